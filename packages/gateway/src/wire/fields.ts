/**
 * The header lines of a head, of a request or of an answer. At least as strict as Node's own parser: what two
 * programs could read in two ways is an error, not a guess.
 */
import { isHeaderName } from './header-name.js'
import { owned } from './owned.js'

/** A header's name as it is written, with its colon, and in small letters. */
interface Name {
  readonly written: string
  readonly name: string
}

/** Control characters, but for those of which line breaks are made. */
const ODD = /[^\t\r\n\x20-\x7e\x80-\xff]/
const ODD_CHARACTERS = 'has characters in its head that must not be there'
const SPACE = 0x20
const TAB = 0x09
/** Names come from others: nobody may fill the memory with them. */
const MOST_NAMES = 500
/** Longer ones are checked each time. */
const LONGEST_NAME = 200
const MOST_PLACES = 64

const names = new Map<string, string>()

/** For heads that are much like each other: those of one kind of client, or of vendors. */
export class FieldReader {
  /** They have the same headers in the same order: what was at this place is there again. */
  readonly #lastAt: Name[] = []
  readonly #fail: (what: string) => Error

  /** `fail`: what it throws, for what is wrong with a head. */
  constructor(fail: (what: string) => Error) {
    this.#fail = fail
  }

  /**
   * Names in small letters and values in turn, all of them such as may be written into another head.
   * `text`: a whole head up to its empty line, without that. What its first line says is not looked at.
   */
  read(text: string): string[] {
    if (ODD.test(text)) throw this.#fail(ODD_CHARACTERS)
    const fields: string[] = []
    let lineEnd = this.#lineEnd(text, 0)
    for (let place = 0; lineEnd !== -1; place++) {
      const start = lineEnd + 2
      lineEnd = this.#lineEnd(text, start)
      const end = lineEnd === -1 ? text.length : lineEnd
      const { written, name } = this.#nameAt(text, start, end, place)
      fields.push(name, trimmed(text, start + written.length, end))
    }
    return fields
  }

  /** In small letters; fails if it is no name. */
  name(written: string): string {
    return names.get(written) ?? this.#learn(written)
  }

  /** Where the line ends that begins here; -1: it is the last. Fails if half a line break is in it. */
  #lineEnd(text: string, start: number): number {
    const cr = text.indexOf('\r', start)
    const lf = text.indexOf('\n', start)
    if (lf !== (cr === -1 ? -1 : cr + 1)) throw this.#fail(ODD_CHARACTERS)
    return cr
  }

  #nameAt(text: string, start: number, end: number, place: number): Name {
    const last = this.#lastAt[place]
    if (last !== undefined && text.startsWith(last.written, start)) return last
    const colon = text.indexOf(':', start)
    if (colon === -1 || colon >= end) throw this.#fail('has a header without a colon')
    const name = this.name(text.slice(start, colon))
    const known = { written: owned(text.slice(start, colon + 1)), name }
    if (place < MOST_PLACES && known.written.length <= LONGEST_NAME) this.#lastAt[place] = known
    return known
  }

  #learn(written: string): string {
    if (!isHeaderName(written)) throw this.#fail('has a header whose name is none')
    const own = owned(written)
    const lower = own.toLowerCase()
    // Nobody needs it, and it is no name for a property.
    const name = lower === '__proto__' ? '-proto-' : lower
    if (own.length > LONGEST_NAME) return name
    if (names.size >= MOST_NAMES) names.clear()
    names.set(own, name)
    return name
  }
}

function trimmed(text: string, from: number, to: number): string {
  let start = from
  let end = to
  while (start < end && isBlank(text.charCodeAt(start))) start++
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB
}
