/** `spillway hash-key`: what stands in the configuration in place of a caller's key. */
import { type CommandRow, EXIT, HELP_OPTION, type OptionRows } from './command-row.js'
import { parseWords, UsageError } from './usage.js'

const OPTIONS = { ...HELP_OPTION } as const satisfies OptionRows

export const hashKeyCommand: CommandRow = {
  name: 'hash-key',
  summary: "prints a caller's key as the hash that may stand in a configuration",
  usage: ['< FILE', ''],
  options: OPTIONS,
  notes: `The key comes from standard input; at a terminal it is asked for, and not shown while it is typed. It is no
argument: those are in the list of processes and in the history of the shell.

  key=$(openssl rand -base64 32)        # for the caller
  printf %s "$key" | spillway hash-key  # for the file`,
  async run(args) {
    const { positionals } = parseWords(args, OPTIONS)
    // Not repeated: most likely it is the key.
    if (positionals.length > 0) {
      throw new UsageError(
        'a key is no argument, where others can read it: leave it out to be asked, or pipe it in',
      )
    }
    const { hashedLine, readKey } = await import('./run-hash-key.js')
    const warn = (text: string) => process.stderr.write(`${text}\n`)
    process.stdout.write(`${hashedLine(await readKey(), warn)}\n`)
    return EXIT.ok
  },
}
