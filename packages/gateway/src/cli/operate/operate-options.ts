/** The options of commands that do something to a fleet. */
import { configOption, type OptionRows } from '../command.js'

/** Of every command that operates a fleet. */
export const OPERATING_OPTIONS = {
  ...configOption('the configuration of the gateways. Default: spillway.yaml'),
  admin: {
    type: 'string',
    value: 'URL',
    about:
      'asks the gateway with this admin port, in place of the store;\nits token is taken from SPILLWAY_ADMIN_TOKEN',
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
  lane: { type: 'string', value: 'LANE', about: 'one lane, such as a model. Default: all' },
} as const satisfies OptionRows
