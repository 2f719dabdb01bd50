/** Headers as they are written: never with anything in them that would begin another. */
import { isHeaderName } from './header-name.js'

const NOT_VALUE = /[^\t\x20-\x7e\x80-\xff]/

/** Names that were found to be names. They come from others: nobody may fill the memory. */
const names = new Set<string>()
const MOST_NAMES = 500
/** Longer ones are checked each time. */
const LONGEST_NAME = 200

export function headerLine(name: string, value: string): string {
  if (!names.has(name)) learnName(name)
  if (!isHeaderValue(value)) throw new TypeError(`the header ${name} has a character it cannot`)
  return trustedLine(name, value)
}

export function isHeaderValue(text: string): boolean {
  return !NOT_VALUE.test(text)
}

/** Of what a `FieldReader` has read, and nobody else: there it has been looked at. */
export function trustedLine(name: string, value: string): string {
  return `${name}: ${value}\r\n`
}

function learnName(name: string): void {
  if (!isHeaderName(name)) throw new TypeError('a header has a name that is none')
  if (name.length > LONGEST_NAME) return
  if (names.size >= MOST_NAMES) names.clear()
  names.add(name)
}
