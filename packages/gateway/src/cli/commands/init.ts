/** `spillway init`: writes a commented starter configuration. */
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type CommandRow, EXIT, HELP_OPTION, type OptionRows } from '../command.js'
import { DEFAULT_CONFIG_FILE } from '../config-file.js'
import { parseArguments, UsageError } from '../parse-args.js'
import { STARTER_CONFIG } from '../starter-config.js'

const OPTIONS = {
  force: { type: 'boolean', short: 'f', about: 'overwrite an existing file' },
  ...HELP_OPTION,
} as const satisfies OptionRows

const SCHEMA_FILE = 'spillway.schema.json'

export const initCommand: CommandRow = {
  name: 'init',
  summary: 'Write a commented starter configuration',
  usage: ['[FILE] [--force]'],
  takesFiles: true,
  options: OPTIONS,
  notes: `FILE defaults to spillway.yaml. The command also writes spillway.schema.json beside it, with which editors
complete and check the file.`,
  async run(args) {
    const { values, positionals } = parseArguments(args, OPTIONS)
    const [file = DEFAULT_CONFIG_FILE, ...more] = positionals
    if (more.length > 0) throw new UsageError(`unexpected argument "${more.join(' ')}"`)
    return (await writeStarterConfig(file, values.force === true)) ? EXIT.ok : EXIT.failure
  },
}

/** Writes the configuration and its schema. Returns false if the file exists and `force` is not set. */
async function writeStarterConfig(file: string, force: boolean): Promise<boolean> {
  const { publishedSchema } = await import('../../config/json-schema.js')
  try {
    // `wx` fails if the file exists, even if it was created a moment ago.
    writeFileSync(file, STARTER_CONFIG, { flag: force ? 'w' : 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    process.stderr.write(`${file} is there already; --force writes over it\n`)
    return false
  }
  const schema = join(dirname(file), SCHEMA_FILE)
  writeFileSync(schema, publishedSchema())
  // Under npx, no command is installed.
  const spillway =
    process.env.npm_command === 'exec' ? 'npx -p @spillway/gateway spillway' : 'spillway'
  process.stdout.write(`Written: ${file}, ${schema}

Next:
  export OPENAI_API_KEY=…        # or write url: mock in place of the key, to try things out
  ${spillway} check ${file}
  ${spillway} gateway --config ${file}
`)
  return true
}
