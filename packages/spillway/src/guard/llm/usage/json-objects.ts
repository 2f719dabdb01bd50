/**
 * Finds objects at given places of a JSON text that arrives in chunks. Only the found objects are kept, up to
 * `MAX_OBJECT_BYTES` each. The text is not validated, and values at other places are skipped without a copy.
 */

/** A place is the path of names to an object, joined by dots, such as `message.usage`. */
export type Place = string

/** A larger object is ignored. Usage reports have some hundred bytes. */
const MAX_OBJECT_BYTES = 8_192
/** A longer name is none of the places. */
const MAX_NAME_BYTES = 64

const [QUOTE, COMMA, COLON, BACKSLASH] = [0x22, 0x2c, 0x3a, 0x5c]
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d]

/** The names below an object that lead to a place: a place itself, or an object to look into. */
type Names = ReadonlyMap<string, Place | Names>

export class Places {
  readonly names: Names
  readonly all: readonly Place[]
  /** Each place with its names. */
  readonly paths: readonly (readonly [Place, readonly string[]])[]
  /** Every text with a matching object contains this: a quote and the common prefix of the last names. */
  readonly needle: string

  constructor(places: readonly Place[]) {
    this.all = places
    this.paths = places.map((place) => [place, place.split('.')])
    this.needle = `"${commonBeginning(this.paths.map(([, names]) => names.at(-1) as string))}`
    const root = new Map<string, Place | Names>()
    for (const place of places) {
      const names = place.split('.')
      const last = names.pop() as string
      let at = root
      for (const name of names) {
        let below = at.get(name) as Map<string, Place | Names> | undefined
        if (below === undefined) {
          below = new Map()
          at.set(name, below)
        }
        at = below
      }
      at.set(last, place)
    }
    this.names = root
  }
}

function commonBeginning([first = '', ...others]: readonly string[]): string {
  let common = first
  while (!others.every((name) => name.startsWith(common))) common = common.slice(0, -1)
  return common
}

export class JsonObjects {
  readonly #places: Places
  readonly #onFound: (place: Place, json: string) => void
  /** Open objects and arrays. An array around everything does not count: its items are read like whole texts. */
  #depth = 0
  /** The open objects on the way to a place, outermost first. */
  #path: Names[] = []
  /** The name of the value that comes next, in the innermost object of the path. */
  #name = ''
  #isName = false
  #inString = false
  /** The next character of the string is escaped. */
  #escaped = false
  /** Bytes of the name that is being read; undefined if it cannot match. */
  #nameSoFar: string | undefined
  #found: { readonly place: Place; readonly depth: number; json: string } | undefined

  /** `onFound`: receives the text of each object. A later one at the same place replaces an earlier one. */
  constructor(places: Places, onFound: (place: Place, json: string) => void) {
    this.#places = places
    this.#onFound = onFound
  }

  /** Another text begins. */
  reset(): void {
    this.#depth = 0
    this.#path = []
    this.#inString = false
    this.#escaped = false
    this.#nameSoFar = undefined
    this.#found = undefined
  }

  push(chunk: Buffer): void {
    /** Start of the found object's part in this chunk. */
    let start = this.#found === undefined ? -1 : 0
    for (let at = 0; at < chunk.length; ) {
      if (this.#inString) {
        at = this.#readString(chunk, at)
        continue
      }
      const byte = chunk[at++] as number
      if (byte === QUOTE) this.#beginString()
      else if (byte === OPEN_BRACE) {
        if (this.#openObject()) start = at - 1
      } else if (byte === OPEN_BRACKET) {
        if (this.#depth > 0) this.#depth++
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        if (this.#close()) {
          this.#keep(chunk, start, at)
          this.#report()
          start = -1
        }
      } else if (this.#depth === this.#path.length) {
        if (byte === COLON) this.#isName = false
        else if (byte === COMMA) this.#isName = true
      }
    }
    if (this.#found !== undefined) this.#keep(chunk, start, chunk.length)
  }

  #beginString(): void {
    this.#inString = true
    const isName = this.#isName && this.#depth > 0 && this.#depth === this.#path.length
    this.#nameSoFar = isName ? '' : undefined
  }

  /** Reads up to the end of the string or of the chunk. Returns the position behind that. */
  #readString(chunk: Buffer, from: number): number {
    const first = this.#escaped ? from + 1 : from
    this.#escaped = false
    let at = first
    for (;;) {
      const quote = endOfString(chunk, at)
      const end = quote === -1 ? chunk.length : quote
      // An odd number of backslashes escapes the next character.
      let backslash = end
      while (backslash > first && chunk[backslash - 1] === BACKSLASH) backslash--
      const escapes = (end - backslash) % 2 === 1
      if (quote === -1) {
        this.#escaped = escapes
        this.#addToName(chunk, from, end)
        return end
      }
      if (!escapes) {
        this.#addToName(chunk, from, end)
        this.#endString()
        return end + 1
      }
      at = quote + 1
    }
  }

  #addToName(chunk: Buffer, from: number, to: number): void {
    if (this.#nameSoFar === undefined) return
    const isLong = this.#nameSoFar.length + to - from > MAX_NAME_BYTES
    this.#nameSoFar = isLong ? undefined : this.#nameSoFar + chunk.toString('latin1', from, to)
  }

  #endString(): void {
    this.#inString = false
    if (this.#isName && this.#depth === this.#path.length) this.#name = this.#nameSoFar ?? ''
  }

  /** True if the object is at one of the places. */
  #openObject(): boolean {
    const isOnPath = this.#depth === this.#path.length && this.#found === undefined
    if (isOnPath) {
      const next = this.#depth === 0 ? this.#places.names : this.#path.at(-1)?.get(this.#name)
      if (typeof next === 'string') {
        this.#found = { place: next, depth: this.#depth++, json: '' }
        return true
      }
      if (next !== undefined) {
        this.#path.push(next)
        this.#isName = true
      }
    }
    this.#depth++
    return false
  }

  /** True if the found object ends here. */
  #close(): boolean {
    if (this.#depth === 0) return false
    this.#depth--
    if (this.#found !== undefined) return this.#depth === this.#found.depth
    if (this.#depth < this.#path.length) this.#path.pop()
    return false
  }

  #keep(chunk: Buffer, start: number, end: number): void {
    const found = this.#found
    if (found === undefined) return
    if (found.json.length + end - start > MAX_OBJECT_BYTES) {
      // Skipped from here on, like a value at another place.
      this.#found = undefined
    } else found.json += chunk.toString('latin1', start, end)
  }

  #report(): void {
    const found = this.#found
    this.#found = undefined
    if (found !== undefined) this.#onFound(found.place, found.json)
  }
}

/** Strings up to this length are read byte by byte, which is faster than a native search. */
const SHORT_BYTES = 32

/** The next quote, or -1. */
function endOfString(chunk: Buffer, from: number): number {
  const shortEnd = Math.min(chunk.length, from + SHORT_BYTES)
  for (let at = from; at < shortEnd; at++) if (chunk[at] === QUOTE) return at
  return shortEnd === chunk.length ? -1 : chunk.indexOf(QUOTE, shortEnd)
}
