/** `spillway check`: whether a configuration could be used, without using it. */
import { type CommandRow, EXIT, HELP_OPTION, type OptionRows } from '../command.js'
import { parseArguments, UsageError } from '../parse-args.js'

const OPTIONS = {
  'no-secrets': {
    type: 'boolean',
    about: 'allow missing secrets, for build servers that have none',
  },
  json: { type: 'boolean', about: 'write every problem with file, line and column to stdout as JSON' },
  ...HELP_OPTION,
} as const satisfies OptionRows

export const checkCommand: CommandRow = {
  name: 'check',
  summary: 'Validate a configuration file',
  usage: ['CONFIG [--no-secrets] [--json]'],
  takesFiles: true,
  options: OPTIONS,
  notes: 'Exit code 0: it can be used. 1: there are mistakes.',
  async run(args) {
    const { values, positionals } = parseArguments(args, OPTIONS)
    const [file, ...more] = positionals
    if (file === undefined) throw new UsageError('check which file? spillway check spillway.yaml')
    if (more.length > 0) throw new UsageError(`one file at a time: what is "${more.join(' ')}"?`)
    const { ConfigError } = await import('../../config/config-error.js')
    const { loadConfig } = await import('../../config/load.js')
    const { unmatchedModels } = await import('../../config/unmatched-models.js')
    const { placeholderSecrets } = await import('../../config/placeholder-secrets.js')
    try {
      const config = loadConfig(
        values['no-secrets'] ? { file, ...placeholderSecrets(file) } : { file },
      )
      const { vendors, routes, callers } = config
      const warnings = unmatchedModels(config).map(
        ({ vendor, model }) =>
          `vendors.${vendor}.models: no entry matches the model '${model}', so the vendor's own limits hold for it`,
      )
      const counts = {
        vendors: vendors.length,
        routes: routes.length,
        callers: callers?.length ?? 0,
      }
      if (values.json) {
        const all = { ok: true, ...counts, ...(warnings.length > 0 && { warnings }) }
        process.stdout.write(`${JSON.stringify(all)}\n`)
        return EXIT.ok
      }
      for (const warning of warnings) process.stderr.write(`${file}: warning: ${warning}\n`)
      process.stdout.write(`${file}: good: ${wordsOf(counts)}\n`)
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
    .map(([what, count]) => `${count} ${count === 1 ? what.slice(0, -1) : what}`)
    .join(', ')
}
