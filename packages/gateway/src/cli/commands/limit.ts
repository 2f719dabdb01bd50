/** `spillway limit`: overrides a limit for some time, on all gateways. */

import { type CommandRow, HELP_OPTION, type OptionRows } from '../command.js'
import { ACTION_OPTIONS } from '../operate/operate-options.js'
import { parseArguments, readAction, readDuration, readWhole, UsageError } from '../parse-args.js'

const ACTIONS = ['set', 'clear'] as const

const OPTIONS = {
  for: {
    type: 'string',
    value: 'TIME',
    about: 'duration of the override, such as 10m; required by set',
  },
  ...ACTION_OPTIONS,
  ...HELP_OPTION,
} as const satisfies OptionRows

export const limitCommand: CommandRow = {
  name: 'limit',
  summary: "Override a vendor's limit for a while, on all gateways",
  usage: ['set VENDOR UNIT VALUE --for TIME [--by NAME]', 'clear VENDOR UNIT [--by NAME]'],
  words: ACTIONS,
  options: OPTIONS,
  notes: `spillway limit set openai requests 50 --for 10m
spillway limit set openai tokens@opus 50000 --for 10m   of a pool; spillway status shows the names
Usage so far still counts. After --for, or with clear, the configured limit applies again.`,
  async run(args) {
    const { values, positionals } = parseArguments(args, OPTIONS)
    const [word, guard, unit, value, ...more] = positionals
    const action = readAction('limit', word, ACTIONS)
    if (guard === undefined) throw new UsageError(`limit ${action}: missing vendor`)
    if (unit === undefined) throw new UsageError(`limit ${action}: missing unit, such as requests`)
    const extra = action === 'clear' ? value : more[0]
    if (extra !== undefined) throw new UsageError(`unexpected argument "${extra}"`)
    const { performAction } = await import('../operate/perform-action.js')
    if (action === 'clear') return performAction({ action: 'restore', guard, unit }, values)
    const limit = readWhole('limit set: VALUE', value, { min: 1 })
    if (limit === undefined) throw new UsageError('limit set: missing value, such as 500')
    if (values.for === undefined) throw new UsageError('limit set: missing duration; use --for 10m')
    const forMs = readDuration('--for', values.for)
    return performAction({ action: 'override', guard, unit, limit, forMs }, values)
  },
}
