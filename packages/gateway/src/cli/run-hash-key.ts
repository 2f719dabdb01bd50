/** From a key that nobody else should see to the line for the configuration. */
import { text } from 'node:stream/consumers'
import { writeHash } from '../config/key-hash.js'
import { CannotError } from './cannot-error.js'
import { readHidden } from './read-hidden.js'

/** What a header carries whole, and `Bearer …` as one word. */
const CAN_BE_SENT = /^[\x21-\x7e]+$/
/** Of fewer characters, words and names among them, all can be tried. */
const SHORTEST = 20

/** Typed at a terminal, or piped in. */
export function readKey(): Promise<string> {
  const { stdin, stderr } = process
  return stdin.isTTY ? readHidden('Key: ', stdin, stderr) : text(stdin)
}

/** `warn`: for people, beside the line itself. */
export function hashedLine(given: string, warn: (text: string) => void): string {
  // As with keys that a configuration refers to, what is around it does not count.
  const key = given.trim()
  if (key === '') throw new CannotError('there is no key on standard input')
  if (!CAN_BE_SENT.test(key)) {
    throw new CannotError(
      'no header can carry this key: it must be one line of visible ASCII characters without blanks',
    )
  }
  if (key.length < SHORTEST) {
    warn('This key is short: it can be guessed from its hash. openssl rand -base64 32 makes one.')
  }
  return `key: ${writeHash(key)}`
}
