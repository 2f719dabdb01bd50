/** `spillway init`: a configuration to begin with, every line of it explained. */
import { type CommandRow, EXIT, HELP_OPTION, type OptionRows } from './command-row.js'
import { parseWords, UsageError } from './usage.js'

const OPTIONS = {
  force: { type: 'boolean', short: 'f', about: 'writes over a file that is there' },
  ...HELP_OPTION,
} as const satisfies OptionRows

export const initCommand: CommandRow = {
  name: 'init',
  summary: 'writes a configuration to begin with, every line explained',
  usage: ['[FILE] [--force]'],
  takesFiles: true,
  options: OPTIONS,
  notes: `FILE is spillway.yaml unless you say otherwise. Beside it goes spillway.schema.json, by which an editor
completes and checks it.`,
  async run(args) {
    const { values, positionals } = parseWords(args, OPTIONS)
    const [file = 'spillway.yaml', ...more] = positionals
    if (more.length > 0) throw new UsageError(`one file at a time: what is "${more.join(' ')}"?`)
    const { writeStarter } = await import('./run-init.js')
    return writeStarter(file, values.force === true) ? EXIT.ok : EXIT.failure
  },
}
