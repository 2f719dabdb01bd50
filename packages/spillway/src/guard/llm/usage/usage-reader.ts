/**
 * Reads the tokens of an answer from the answer itself, while it passes: a JSON text, server-sent events, or the parsed
 * objects that an SDK's stream yields. Names count only where the vendor's format has them, never in a model's text.
 */
import { JsonObjects, type Place } from './json-objects.js'
import { SseData } from './sse-data.js'
import type { Counts, TokenUsage } from './token-usage.js'
import type { UsageFormat } from './usage-format.js'

/** Reads the bytes of one kind of body. */
interface BytesReader {
  push(chunk: Buffer): void
  end?(): void
}

/** A body without reports. */
const UNREAD: BytesReader = { push() {} }

/** In front of a body. Some vendors send empty lines until the answer is complete. */
const BLANKS: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d, 0xef, 0xbb, 0xbf])
/** The first bytes of a body behind its blanks, in Latin-1. */
const JSON_TEXT = /^[{[]/
const EVENTS = /^(?:data|event|id|retry)?:/
/** May still become an event. */
const BEGINNING = /^(?:d|da|dat|data|e|ev|eve|even|event|i|id|r|re|ret|retr|retry)?$/
const FIRST_BYTES = 6

export class UsageReader {
  readonly #format: UsageFormat
  /** Undefined until the first bytes show what it is. */
  #bytes: BytesReader | undefined
  #beginning = ''
  readonly #reports: Record<Place, Counts | string> = {}

  constructor(format: UsageFormat) {
    this.#format = format
  }

  push(chunk: unknown): void {
    if (chunk instanceof Uint8Array) this.#pushBytes(bufferOf(chunk))
    else if (typeof chunk === 'string') this.#pushBytes(Buffer.from(chunk))
    else if (typeof chunk === 'object' && chunk !== null) this.#pushObject(chunk)
  }

  /** Once, at the end. Undefined if the answer does not report its usage. */
  read(): TokenUsage | undefined {
    this.#bytes?.end?.()
    const reports: Record<Place, Counts> = {}
    for (const place of Object.keys(this.#reports)) {
      const counts = parsed(this.#reports[place])
      if (counts !== undefined) reports[place] = counts
    }
    return this.#format.read(reports)
  }

  #pushBytes(chunk: Buffer): void {
    if (this.#bytes !== undefined) return this.#bytes.push(chunk)
    let all = this.#beginning === '' ? chunk : Buffer.concat([Buffer.from(this.#beginning), chunk])
    let blanks = 0
    while (BLANKS.has(all[blanks])) blanks++
    if (blanks > 0) all = all.subarray(blanks)
    this.#beginning = all.toString('latin1', 0, FIRST_BYTES)
    this.#bytes = this.#readerOf(this.#beginning)
    this.#bytes?.push(all)
  }

  /** By content, because not every body has a content type, and some have a wrong one. */
  #readerOf(beginning: string): BytesReader | undefined {
    if (JSON_TEXT.test(beginning)) return this.#objects()
    if (EVENTS.test(beginning)) return new SseData(this.#format.places.needle, this.#objects())
    return BEGINNING.test(beginning) ? undefined : UNREAD
  }

  #objects(): JsonObjects {
    return new JsonObjects(this.#format.places, (place, json) => {
      if (json.length > 2) this.#reports[place] = json
    })
  }

  #pushObject(chunk: object): void {
    for (const [place, names] of this.#format.places.paths) {
      const counts = valueAt(chunk, names)
      if (counts !== undefined) this.#reports[place] = counts
    }
  }
}

function bufferOf(chunk: Uint8Array): Buffer {
  return Buffer.isBuffer(chunk)
    ? chunk
    : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
}

function parsed(report: Counts | string | undefined): Counts | undefined {
  if (typeof report !== 'string') return report
  try {
    return JSON.parse(report)
  } catch {
    return undefined
  }
}

/** Undefined if there is no object, or if reading it throws. */
function valueAt(chunk: object, names: readonly string[]): Counts | undefined {
  try {
    let value: unknown = chunk
    for (const name of names) value = (value as Counts | null | undefined)?.[name]
    return typeof value === 'object' && value !== null ? { ...(value as Counts) } : undefined
  } catch {
    return undefined
  }
}
