/**
 * Reads chosen top-level fields of a JSON object in one pass over chunks, wherever they are in it. The
 * object is validated as strictly as `JSON.parse` does, but never held or built in memory.
 */
import type { FieldNames } from '../../protocols/protocol.js'
import type { ContentVisitor, JsonField, JsonObject } from './json-object.js'
import { endOfPlainWords } from './skip-plain-text.js'

/** Top-level fields, chosen or not. No API has a hundred; millions of them would take seconds to read. */
const MAX_FIELDS = 10_000
/** Deeper nesting is rejected: some parsers overflow their stack on it. */
const MAX_DEPTH = 200
/** Longest top-level name, longest value of a chosen field, and longest number. */
const MAX_KEPT_BYTES = 4_096
const BEGINNING_PIECE_BYTES = 64

export class JsonSyntaxError extends Error {}

type Expected =
  | 'start'
  | 'value'
  | 'value or ]'
  | 'name'
  | 'name or }'
  | ':'
  | ', or end'
  | 'nothing'

interface Kept {
  /** Its part in earlier chunks. */
  bytes: Buffer
  readonly start: number
}

const EMPTY = Buffer.alloc(0)
const [TAB, LINE_FEED, CARRIAGE_RETURN, SPACE] = [0x09, 0x0a, 0x0d, 0x20]
const [QUOTE, COMMA, COLON, BACKSLASH, LETTER_U] = [0x22, 0x2c, 0x3a, 0x5c, 0x75]
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d]
const SCALAR = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/
/** Escaped characters, by the code of the letter behind the backslash. */
const ESCAPES: (string | undefined)[] = []
for (const [letter, character] of ['""', '\\\\', '//', 'b\b', 'f\f', 'n\n', 'r\r', 't\t']) {
  ESCAPES[(letter as string).charCodeAt(0)] = character
}

export class JsonFieldReader {
  readonly #names: FieldNames
  readonly #content: ContentVisitor
  /** Chosen fields so far. There are few, so a list is faster than a set. */
  readonly #seen: string[] = []
  readonly #fields = new Map<string, JsonField>()
  #expected: Expected = 'start'
  /** Open containers, the innermost last: true for an object. */
  readonly #open: boolean[] = []
  /** Bytes before the current chunk. */
  #offset = 0
  #start = 0
  #fieldCount = 0
  /** Open containers around the fields that are chosen from: 1, or 2 in a group. */
  #depth = 1
  /** Name of the group that is being read, with a dot; empty outside of groups. */
  #group = ''
  /** Name of the chosen field whose value is being read. */
  #field: string | undefined
  #isContent = false
  /** A top-level name or value that is being read. */
  #kept: Kept | undefined
  /** A string, number or literal that continues in the next chunk. */
  #scalar: string | undefined
  #inString = false
  #isName = false
  /** Characters of an escape sequence so far, behind the backslash. */
  #escape: string | undefined
  #textBytes = 0
  /** Position of the text in the body. */
  #textStart = 0
  #beginning = ''
  /** More of the beginning is wanted. */
  #keepsBeginning = false
  /** The last character was the first half of a surrogate pair. */
  #highSurrogate = false

  constructor(names: FieldNames, content: ContentVisitor) {
    this.#names = names
    this.#content = content
  }

  /** Throws a JsonSyntaxError as soon as the body cannot become valid any more. */
  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      if (this.#inString) at = this.#readString(chunk, at)
      else if (this.#scalar !== undefined) at = this.#readScalar(chunk, at)
      else at = this.#readToken(chunk, at)
    }
    if (this.#kept !== undefined) this.#keep(this.#kept, chunk, chunk.length)
    this.#offset += chunk.length
  }

  end(): JsonObject {
    if (this.#expected === 'start') throw new JsonSyntaxError('the body is empty')
    if (this.#expected !== 'nothing') throw new JsonSyntaxError('the body is incomplete')
    return { fields: this.#fields, start: this.#start, isEmpty: this.#fieldCount === 0 }
  }

  /** Reads one byte outside of strings, numbers and literals. Returns the position behind it. */
  #readToken(chunk: Buffer, at: number): number {
    const byte = chunk[at] as number
    if (byte === SPACE || byte === LINE_FEED || byte === CARRIAGE_RETURN || byte === TAB) {
      return at + 1
    }
    const position = this.#offset + at
    switch (this.#expected) {
      case 'start':
        // A byte order mark is refused: RFC 8259 forbids it, and vendors disagree on what it means.
        if (byte !== OPEN_BRACE) throw new JsonSyntaxError('the body does not begin with {')
        this.#openContainer(true)
        this.#start = position + 1
        return at + 1
      case ':':
        if (byte !== COLON) throw unexpected(position)
        this.#expected = 'value'
        return at + 1
      case ', or end':
        if (byte === COMMA) this.#expected = this.#open.at(-1) === true ? 'name' : 'value'
        else this.#closeContainer(chunk, byte, at)
        return at + 1
      case 'name or }':
      case 'name':
        if (byte === CLOSE_BRACE && this.#expected === 'name or }') {
          this.#closeContainer(chunk, byte, at)
          return at + 1
        }
        if (byte !== QUOTE) throw unexpected(position)
        return this.#beginName(at)
      case 'value or ]':
      case 'value':
        if (byte === CLOSE_BRACKET && this.#expected === 'value or ]') {
          this.#closeContainer(chunk, byte, at)
          return at + 1
        }
        return this.#beginValue(byte, at)
      case 'nothing':
        throw unexpected(position)
    }
  }

  #beginName(at: number): number {
    this.#isName = true
    this.#keepsBeginning = false
    this.#inString = true
    if (this.#open.length === this.#depth) {
      if (++this.#fieldCount > MAX_FIELDS) {
        throw new JsonSyntaxError(`the body has more than ${MAX_FIELDS} fields`)
      }
      this.#kept = { bytes: EMPTY, start: this.#offset + at }
    }
    return at + 1
  }

  #beginValue(byte: number, at: number): number {
    const isWanted =
      this.#open.length === this.#depth && this.#field !== undefined && !this.#isContent
    if (isWanted && byte === OPEN_BRACE && this.#names.isGroup(this.#field)) {
      this.#openGroup()
      return at + 1
    }
    if (isWanted) this.#kept = { bytes: EMPTY, start: this.#offset + at }
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      this.#openContainer(byte === OPEN_BRACE)
      return at + 1
    }
    if (byte === QUOTE) {
      this.#isName = false
      this.#inString = true
      this.#textBytes = 0
      this.#textStart = this.#offset + at + 1
      this.#beginning = ''
      this.#keepsBeginning = this.#isContent
      this.#highSurrogate = false
      return at + 1
    }
    this.#scalar = ''
    return at
  }

  #openContainer(isObject: boolean): void {
    if (this.#open.length >= MAX_DEPTH) {
      throw new JsonSyntaxError(`the body is nested deeper than ${MAX_DEPTH} levels`)
    }
    if (isObject && this.#isContent) this.#content.onObject()
    this.#open.push(isObject)
    this.#expected = isObject ? 'name or }' : 'value or ]'
  }

  #openGroup(): void {
    this.#group = `${this.#field}.`
    this.#field = undefined
    this.#openContainer(true)
    this.#depth = 2
  }

  #closeContainer(chunk: Buffer, byte: number, at: number): void {
    const closing = this.#open.pop() === true ? CLOSE_BRACE : CLOSE_BRACKET
    if (byte !== closing) throw unexpected(this.#offset + at)
    if (this.#open.length < this.#depth) {
      this.#depth = 1
      this.#group = ''
    }
    this.#endValue(chunk, at + 1)
  }

  /** Reads up to the end of the string or of the chunk. Returns the position behind that. */
  #readString(chunk: Buffer, from: number): number {
    let at = from
    while (at < chunk.length) {
      if (this.#escape !== undefined) {
        this.#readEscape(chunk[at] as number, this.#offset + at)
        at++
        continue
      }
      const start = at
      at = endOfPlainText(chunk, at)
      if (at > start) this.#addText(chunk, start, at)
      if (at === chunk.length) break
      const byte = chunk[at] as number
      at++
      if (byte === QUOTE) {
        this.#endString(chunk, at)
        return at
      }
      if (byte !== BACKSLASH) throw unexpected(this.#offset + at - 1)
      this.#escape = ''
    }
    return at
  }

  #addText(chunk: Buffer, start: number, end: number): void {
    this.#textBytes += end - start
    this.#highSurrogate = false
    // Read in pieces, because most texts have a character that is not wanted in the first one.
    for (let at = start; this.#keepsBeginning && at < end; at += BEGINNING_PIECE_BYTES) {
      const missing = this.#content.beginningLength - this.#beginning.length
      const pieceEnd = Math.min(end, at + Math.min(missing, BEGINNING_PIECE_BYTES))
      this.#addBeginning(chunk.toString('latin1', at, pieceEnd))
    }
  }

  #addBeginning(text: string): void {
    const { beginningLength, beginningPattern } = this.#content
    const isWanted = beginningPattern.test(text)
    this.#beginning = isWanted ? this.#beginning + text : ''
    this.#keepsBeginning = isWanted && this.#beginning.length < beginningLength
  }

  #readEscape(byte: number, position: number): void {
    const before = this.#escape as string
    if (before === '' && byte !== LETTER_U) {
      const character = ESCAPES[byte]
      if (character === undefined) throw unexpected(position)
      return this.#addCharacter(character)
    }
    const letter = String.fromCharCode(byte)
    if (before !== '' && !/[0-9a-fA-F]/.test(letter)) throw unexpected(position)
    this.#escape = before + letter
    if (this.#escape.length < 5) return
    this.#addCharacter(String.fromCharCode(Number.parseInt(this.#escape.slice(1), 16)))
  }

  /** An escaped character. The two halves of a surrogate pair have four bytes together, one alone three. */
  #addCharacter(character: string): void {
    this.#escape = undefined
    const code = character.charCodeAt(0)
    const endsPair = this.#highSurrogate && code >= 0xdc00 && code <= 0xdfff
    this.#textBytes += endsPair ? 1 : code < 0x80 ? 1 : code < 0x800 ? 2 : 3
    this.#highSurrogate = code >= 0xd800 && code <= 0xdbff
    if (this.#keepsBeginning) this.#addBeginning(character)
  }

  #endString(chunk: Buffer, end: number): void {
    this.#inString = false
    if (!this.#isName) {
      if (this.#isContent) {
        const textEnd = this.#offset + end - 1
        this.#content.onText(this.#textBytes, this.#beginning, this.#textStart, textEnd)
      }
      return this.#endValue(chunk, end)
    }
    this.#isName = false
    this.#expected = ':'
    if (this.#open.length === this.#depth) this.#chooseField(chunk, end)
  }

  #chooseField(chunk: Buffer, end: number): void {
    const name = this.#group + (this.#takeKept(chunk, end) as string)
    const chosen = this.#names.alike(name)
    if (chosen === undefined) return
    // Some vendors ignore case in names, so another spelling could override the field that is read here.
    if (name !== chosen) throw new JsonSyntaxError(`the field "${chosen}" is in another case`)
    if (this.#seen.includes(name)) throw new JsonSyntaxError(`the field "${name}" occurs twice`)
    this.#seen.push(name)
    this.#field = name
    this.#isContent = this.#names.isContent(name)
  }

  /** Numbers and literals end where something else begins. */
  #readScalar(chunk: Buffer, from: number): number {
    const end = endOfScalar(chunk, from)
    const text = `${this.#scalar}${chunk.toString('latin1', from, end)}`
    if (text.length > MAX_KEPT_BYTES) throw unexpected(this.#offset + end)
    this.#scalar = text
    if (end === chunk.length) return end
    if (!SCALAR.test(text)) throw unexpected(this.#offset + end)
    this.#scalar = undefined
    const isNullField = text === 'null' && this.#open.length === this.#depth
    if (this.#isContent && !isNullField) this.#content.onScalar()
    this.#endValue(chunk, end)
    return end
  }

  #endValue(chunk: Buffer, end: number): void {
    this.#expected = this.#open.length === 0 ? 'nothing' : ', or end'
    if (this.#open.length > this.#depth + 1) return
    const field = this.#field
    if (this.#isContent) this.#content.onPart(field as string)
    if (this.#open.length !== this.#depth) return
    if (field !== undefined && !this.#isContent) {
      const start = this.#kept?.start ?? 0
      const value = this.#takeKept(chunk, end)
      this.#fields.set(field, { value, start, end: this.#offset + end })
    }
    this.#field = undefined
    this.#isContent = false
  }

  #keep(kept: Kept, chunk: Buffer, end: number): void {
    const from = Math.max(0, kept.start - this.#offset)
    if (kept.bytes.length + end - from > MAX_KEPT_BYTES) {
      const what = this.#field === undefined ? 'a field name' : `the field "${this.#field}"`
      throw new JsonSyntaxError(`${what} is longer than ${MAX_KEPT_BYTES} bytes`)
    }
    kept.bytes = Buffer.concat([kept.bytes, chunk.subarray(from, end)])
  }

  /** The value of the name or field that ends here. */
  #takeKept(chunk: Buffer, end: number): unknown {
    const kept = this.#kept as Kept
    this.#kept = undefined
    const from = kept.start - this.#offset
    // Nearly all values begin and end in the same chunk.
    if (from >= 0 && end - from <= MAX_KEPT_BYTES)
      return JSON.parse(chunk.toString('utf8', from, end))
    this.#keep(kept, chunk, end)
    return JSON.parse(kept.bytes.toString())
  }
}

/** Texts up to this length are read byte by byte: names, numbers and short values. */
const SHORT_TEXT_BYTES = 256

/** First quote, backslash or control character from `at` on, or the end of the chunk. */
function endOfPlainText(chunk: Buffer, at: number): number {
  const least = at + SHORT_TEXT_BYTES
  // Words of four bytes begin at multiples of four in memory.
  const shortEnd = Math.min(chunk.length, least + (-(chunk.byteOffset + least) & 3))
  const end = endOfPlainBytes(chunk, at, shortEnd)
  if (end < shortEnd || end === chunk.length) return end
  return endOfPlainBytes(chunk, endOfPlainWords(chunk, end), chunk.length)
}

function endOfPlainBytes(chunk: Buffer, from: number, to: number): number {
  let end = from
  while (end < to) {
    const byte = chunk[end] as number
    if (byte === QUOTE || byte === BACKSLASH || byte < SPACE) break
    end++
  }
  return end
}

function endOfScalar(chunk: Buffer, at: number): number {
  let end = at
  while (end < chunk.length) {
    const byte = chunk[end] as number
    if (byte <= SPACE || byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET) break
    end++
  }
  return end
}

function unexpected(position: number): JsonSyntaxError {
  return new JsonSyntaxError(`the body is not valid JSON at byte ${position}`)
}
