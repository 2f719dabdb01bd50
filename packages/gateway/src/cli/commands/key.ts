/** `spillway key`: quarantines or releases a configured API key, on all gateways. */

import { type CommandRow, HELP_OPTION, type OptionRows } from '../command.js'
import { ACTION_OPTIONS } from '../operate/operate-options.js'
import { parseArguments, readAction, readDuration, UsageError } from '../parse-args.js'

const ACTIONS = ['release', 'quarantine'] as const

const DEFAULT_QUARANTINE = '1h'

const OPTIONS = {
  for: {
    type: 'string',
    value: 'TIME',
    about: `duration of a quarantine, such as 10m. Default: ${DEFAULT_QUARANTINE}`,
  },
  ...ACTION_OPTIONS,
  ...HELP_OPTION,
} as const satisfies OptionRows

export const keyCommand: CommandRow = {
  name: 'key',
  summary: 'Release or quarantine an API key of a vendor, on all gateways',
  usage: ['release VENDOR KEY [--by NAME]', 'quarantine VENDOR KEY [--for TIME] [--by NAME]'],
  words: ACTIONS,
  options: OPTIONS,
  notes: `KEY is the name of the key in the configuration; a vendor with one key calls it default.
  release      use the key again, before its reset time
  quarantine   stop using the key for --for, on all gateways; other keys and fallbacks take over
spillway status lists the quarantined keys.`,
  async run(args) {
    const { values, positionals } = parseArguments(args, OPTIONS)
    const [word, guard, key, ...more] = positionals
    const action = readAction('key', word, ACTIONS)
    if (guard === undefined) throw new UsageError(`key ${action}: missing vendor`)
    if (key === undefined)
      throw new UsageError(`key ${action}: missing name of the key, such as default`)
    if (more.length > 0) throw new UsageError(`unexpected argument "${more.join(' ')}"`)
    const { performAction } = await import('../operate/perform-action.js')
    if (action === 'release') {
      if (values.for !== undefined) throw new UsageError('--for: not allowed with key release')
      return performAction({ action: 'release-key', guard, key }, values)
    }
    const forMs = readDuration('--for', values.for ?? DEFAULT_QUARANTINE)
    return performAction({ action: 'quarantine-key', guard, key, forMs }, values)
  },
}
