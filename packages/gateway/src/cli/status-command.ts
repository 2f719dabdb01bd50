/** `spillway status`: how the whole fleet stands, by the store's own word. */
import { OPERATING_OPTIONS } from './action-options.js'
import { type CommandRow, HELP_OPTION, type OptionRows } from './command-row.js'
import { noArguments, parseWords, readDuration, UsageError } from './usage.js'

const OPTIONS = {
  json: { type: 'boolean', about: 'everything on stdout; with --watch, a line each time' },
  watch: { type: 'boolean', short: 'w', about: 'again and again, until Ctrl-C' },
  every: { type: 'string', value: 'TIME', about: 'how often, with --watch. Default: 2s' },
  ...OPERATING_OPTIONS,
  ...HELP_OPTION,
} as const satisfies OptionRows

const USUAL_MS = 2_000

export const statusCommand: CommandRow = {
  name: 'status',
  summary: 'pods, breakers and limits of the whole fleet, as the store has them',
  usage: ['[--json] [--watch [--every TIME]] [--config FILE | --admin URL]'],
  options: OPTIONS,
  notes: 'Exit code 0: the store answers. 3: it does not.',
  async run(args) {
    const { values, positionals } = parseWords(args, OPTIONS)
    noArguments(positionals)
    if (values.every !== undefined && !values.watch) throw new UsageError('--every: needs --watch')
    const { runStatus } = await import('./run-status.js')
    const everyMs = values.every === undefined ? USUAL_MS : readDuration('--every', values.every)
    return runStatus(values, values.watch ? everyMs : undefined)
  },
}
