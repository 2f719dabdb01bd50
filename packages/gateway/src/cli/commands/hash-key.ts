/** `spillway hash-key`: what stands in the configuration in place of a caller's key. */
import { text } from 'node:stream/consumers'
import { writeHash } from '../../config/key-hash.js'
import { type CommandRow, EXIT, HELP_OPTION, type OptionRows } from '../command.js'
import { CommandError } from '../command-error.js'
import { parseArguments, UsageError } from '../parse-args.js'
import { readHidden } from '../read-hidden.js'

const OPTIONS = { ...HELP_OPTION } as const satisfies OptionRows

/** What a header carries whole, and `Bearer …` as one word. */
const CAN_BE_SENT = /^[\x21-\x7e]+$/
/** Of fewer characters, words and names among them, all can be tried. */
const SHORTEST = 20

export const hashKeyCommand: CommandRow = {
  name: 'hash-key',
  summary: "Print the hash of a caller's key, for use in a configuration",
  usage: ['< FILE', ''],
  options: OPTIONS,
  notes: `The key comes from standard input; at a terminal it is asked for, and not shown while it is typed. It is no
argument: those are in the list of processes and in the history of the shell.

  key=$(openssl rand -base64 32)        # for the caller
  printf %s "$key" | spillway hash-key  # for the file`,
  async run(args) {
    const { positionals } = parseArguments(args, OPTIONS)
    // Not repeated: most likely it is the key.
    if (positionals.length > 0) {
      throw new UsageError(
        'a key is no argument, where others can read it: leave it out to be asked, or pipe it in',
      )
    }
    const warn = (text: string) => process.stderr.write(`${text}\n`)
    process.stdout.write(`${hashedLine(await readKey(), warn)}\n`)
    return EXIT.ok
  },
}

/** Typed at a terminal, or piped in. */
function readKey(): Promise<string> {
  const { stdin, stderr } = process
  return stdin.isTTY ? readHidden('Key: ', stdin, stderr) : text(stdin)
}

/** `warn`: for people, beside the line itself. */
export function hashedLine(given: string, warn: (text: string) => void): string {
  // As with keys that a configuration refers to, what is around it does not count.
  const key = given.trim()
  if (key === '') throw new CommandError('there is no key on standard input')
  if (!CAN_BE_SENT.test(key)) {
    throw new CommandError(
      'no header can carry this key: it must be one line of visible ASCII characters without blanks',
    )
  }
  if (key.length < SHORTEST) {
    warn('This key is short: it can be guessed from its hash. openssl rand -base64 32 makes one.')
  }
  return `key: ${writeHash(key)}`
}
