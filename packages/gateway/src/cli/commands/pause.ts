/** `spillway pause` and `spillway resume`: stop and restart all calls to a vendor, on all gateways. */

import { type CommandRow, HELP_OPTION, type OptionRows } from '../command.js'
import { ACTION_OPTIONS, LANE_OPTION } from '../operate/operate-options.js'
import { parseArguments, readDuration, UsageError } from '../parse-args.js'

const RESUME_OPTIONS = {
  ...LANE_OPTION,
  ...ACTION_OPTIONS,
  ...HELP_OPTION,
} as const satisfies OptionRows

const PAUSE_OPTIONS = {
  for: { type: 'string', value: 'TIME', about: 'duration, such as 5m; required' },
  ...RESUME_OPTIONS,
} as const satisfies OptionRows

export const pauseCommand: CommandRow = {
  name: 'pause',
  summary: 'Pause all calls to a vendor for a while, as after a 429 with Retry-After',
  usage: ['VENDOR --for TIME [--lane LANE] [--by NAME]'],
  options: PAUSE_OPTIONS,
  notes: `Jobs wait, and so do calls with enough time left; other calls are refused with 429 and Retry-After.
The breaker does not change.`,
  async run(args) {
    const { values, positionals } = parseArguments(args, PAUSE_OPTIONS)
    const guard = theVendor('pause', positionals)
    if (values.for === undefined) throw new UsageError('pause: missing duration; use --for 5m')
    const { performAction } = await import('../operate/perform-action.js')
    const forMs = readDuration('--for', values.for)
    return performAction({ action: 'pause', guard, forMs, ...laneOf(values) }, values)
  },
}

export const resumeCommand: CommandRow = {
  name: 'resume',
  summary: 'End a pause, also one that a vendor requested',
  usage: ['VENDOR [--lane LANE] [--by NAME]'],
  options: RESUME_OPTIONS,
  async run(args) {
    const { values, positionals } = parseArguments(args, RESUME_OPTIONS)
    const guard = theVendor('resume', positionals)
    const { performAction } = await import('../operate/perform-action.js')
    return performAction({ action: 'resume', guard, ...laneOf(values) }, values)
  },
}

function theVendor(command: string, [guard, ...more]: readonly string[]): string {
  if (guard === undefined) throw new UsageError(`${command}: missing vendor`)
  if (more.length > 0) throw new UsageError(`unexpected argument "${more.join(' ')}"`)
  return guard
}

function laneOf({ lane }: { lane?: string | undefined }) {
  return lane === undefined ? {} : { lane }
}
