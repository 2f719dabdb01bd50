/** Options of commands that operate a fleet. */
import { type OptionRows, STORE_OPTIONS } from '../command.js'

export const OPERATING_OPTIONS = {
  ...STORE_OPTIONS,
  admin: {
    type: 'string',
    value: 'URL',
    about:
      'use the admin port of a gateway instead of Redis;\nits token is read from SPILLWAY_ADMIN_TOKEN',
  },
} as const satisfies OptionRows

export const ACTION_OPTIONS = {
  by: {
    type: 'string',
    value: 'NAME',
    about: 'name of the operator, for the log. Default: your user name and this machine',
  },
  json: { type: 'boolean', about: 'write the result as JSON to stdout' },
  ...OPERATING_OPTIONS,
} as const satisfies OptionRows

export const LANE_OPTION = {
  lane: { type: 'string', value: 'LANE', about: 'a lane, such as a model. Default: all' },
} as const satisfies OptionRows
