/** `spillway hash-key`: prints the hash of a caller's key, for the configuration. */
import { text } from 'node:stream/consumers'
import { writeHash } from '../../config/key-hash.js'
import { type CommandRow, EXIT, HELP_OPTION, type OptionRows } from '../command.js'
import { CommandError } from '../command-error.js'
import { parseArguments, UsageError } from '../parse-args.js'
import { readHidden } from '../read-hidden.js'

const OPTIONS = { ...HELP_OPTION } as const satisfies OptionRows

/** Visible ASCII without blanks, so that the key fits in a header and in `Bearer …`. */
const CAN_BE_SENT = /^[\x21-\x7e]+$/
/** Shorter keys can be found by brute force. */
const SHORTEST = 20

export const hashKeyCommand: CommandRow = {
  name: 'hash-key',
  summary: "Print the hash of a caller's key, for use in a configuration",
  usage: ['< FILE', ''],
  options: OPTIONS,
  notes: `Reads the key from standard input; at a terminal it prompts for the key without echo. The key is not an
argument, because arguments are visible in the process list and in the shell history.

  key=$(openssl rand -base64 32)        # for the caller
  printf %s "$key" | spillway hash-key  # for the file`,
  async run(args) {
    const { positionals } = parseArguments(args, OPTIONS)
    // The argument is not printed, because it is probably the key.
    if (positionals.length > 0) {
      throw new UsageError(
        'a key must not be an argument, because other users could read it; run hash-key without arguments, or pipe the key in',
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
  // Surrounding white space is ignored, as for keys that a configuration refers to.
  const key = given.trim()
  if (key === '') throw new CommandError('no key on standard input; use: spillway hash-key < FILE')
  if (!CAN_BE_SENT.test(key)) {
    throw new CommandError(
      'the key must be one line of visible ASCII characters without blanks, because it is sent in a header',
    )
  }
  if (key.length < SHORTEST) {
    warn('This key is short: it can be guessed from its hash. openssl rand -base64 32 makes one.')
  }
  return `key: ${writeHash(key)}`
}
