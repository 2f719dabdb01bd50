/** `spillway check`: validates a configuration without starting a gateway. */
import { counted } from '../../config/counted.js'
import { type CommandRow, configOption, EXIT, HELP_OPTION, type OptionRows } from '../command.js'
import { findConfigFile } from '../config-file.js'
import { noArguments, parseArguments, UsageError } from '../parse-args.js'

const OPTIONS = {
  ...configOption('configuration to validate, like the argument FILE. Default: spillway.yaml'),
  'no-secrets': {
    type: 'boolean',
    about: 'allow missing secrets, for build servers that have none',
  },
  json: {
    type: 'boolean',
    about: 'write every problem with file, line and column to stdout as JSON',
  },
  ...HELP_OPTION,
} as const satisfies OptionRows

export const checkCommand: CommandRow = {
  name: 'check',
  summary: 'Validate a configuration file',
  usage: ['[FILE] [--no-secrets] [--json]'],
  takesFiles: true,
  options: OPTIONS,
  notes: 'Exit code 0: the file is valid. 1: it has problems.',
  async run(args) {
    const { values, positionals } = parseArguments(args, OPTIONS)
    const [given, ...more] = [
      ...(values.config === undefined ? [] : [values.config]),
      ...positionals,
    ]
    noArguments(more)
    const file = findConfigFile(given)
    if (file === undefined) {
      throw new UsageError('check: missing file; there is no spillway.yaml in this folder')
    }
    const { ConfigError } = await import('../../config/config-error.js')
    const { loadConfig } = await import('../../config/load.js')
    const { configWarnings } = await import('../../config/config-warnings.js')
    const { placeholderSecrets } = await import('../../config/placeholder-secrets.js')
    try {
      const config = loadConfig(
        values['no-secrets'] ? { file, ...placeholderSecrets(file) } : { file },
      )
      const { vendors, routes, callers } = config
      const warning = configWarnings(file, config)
      const counts = {
        vendors: vendors.length,
        routes: routes.length,
        callers: callers?.length ?? 0,
      }
      if (values.json) {
        const warnings = warning?.mistakes.map((each) => ({ file, ...each }))
        const all = { ok: true, ...counts, ...(warnings && { warnings }) }
        process.stdout.write(`${JSON.stringify(all)}\n`)
        return EXIT.ok
      }
      if (warning !== undefined) process.stderr.write(`${warning.message}\n`)
      process.stdout.write(`${file}: valid: ${wordsOf(counts)}\n`)
      return EXIT.ok
    } catch (error) {
      if (!(error instanceof ConfigError) || !values.json) throw error
      const mistakes = error.mistakes.map((each) => ({ file, ...each }))
      process.stdout.write(`${JSON.stringify({ ok: false, mistakes })}\n`)
      return EXIT.failure
    }
  },
}

function wordsOf(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([what, count]) => counted(count, what.slice(0, -1)))
    .join(', ')
}
