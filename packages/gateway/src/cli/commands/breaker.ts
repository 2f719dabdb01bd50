/** `spillway breaker`: opens, closes or isolates a vendor's breaker, on all gateways. */

import { type CommandRow, HELP_OPTION, type OptionRows } from '../command.js'
import { ACTION_OPTIONS, LANE_OPTION } from '../operate/operate-options.js'
import { parseArguments, readAction, readDuration, UsageError } from '../parse-args.js'

const ACTIONS = ['open', 'close', 'isolate', 'release', 'reset'] as const
type Action = (typeof ACTIONS)[number]

const OPTIONS = {
  ...LANE_OPTION,
  for: { type: 'string', value: 'TIME', about: 'duration, such as 10m; for open and isolate' },
  ...ACTION_OPTIONS,
  ...HELP_OPTION,
} as const satisfies OptionRows

const DEFAULT_ISOLATION = '10m'

export const breakerCommand: CommandRow = {
  name: 'breaker',
  summary: "Open, close or isolate a vendor's breaker, on all gateways",
  usage: [`${ACTIONS.join('|')} VENDOR [--lane LANE] [--for TIME] [--by NAME]`],
  words: ACTIONS,
  options: OPTIONS,
  notes: `  open      refuse all calls for --for (default: as after failures); then a few probes decide
  close     allow calls again, also if another operator isolated the vendor
  isolate   refuse all calls for --for (default ${DEFAULT_ISOLATION}), without probes
  release   end an isolation by the same operator (--by)
  reset     close it and reset its counts; an isolation stays in force`,
  async run(args) {
    const { values, positionals } = parseArguments(args, OPTIONS)
    const [word, guard, ...more] = positionals
    const action = readAction('breaker', word, ACTIONS)
    if (guard === undefined) throw new UsageError(`breaker ${action}: missing vendor`)
    if (more.length > 0) throw new UsageError(`unexpected argument "${more.join(' ')}"`)
    const { performAction } = await import('../operate/perform-action.js')
    const request = requestOf(action, values.for)
    return performAction(
      { ...request, guard, ...(values.lane !== undefined && { lane: values.lane }) },
      values,
    )
  },
}

function requestOf(action: Action, time: string | undefined) {
  if (action === 'isolate') {
    return { action, forMs: readDuration('--for', time ?? DEFAULT_ISOLATION) } as const
  }
  if (action === 'open') {
    return time === undefined
      ? ({ action } as const)
      : ({ action, forMs: readDuration('--for', time) } as const)
  }
  if (time !== undefined) throw new UsageError(`--for: not allowed with breaker ${action}`)
  return { action }
}
