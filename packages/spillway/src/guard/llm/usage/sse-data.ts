/**
 * The data of server-sent events, as far as it can hold a usage report. Whole events without the name of a report
 * are skipped by one native search. An event is held until its end arrives, up to `MAX_HELD_BYTES`; the data of a
 * longer one is passed on in pieces.
 */
import { endOfLastEvent } from '../sse-frames.js'

const MAX_HELD_BYTES = 8_192
/** The longest end of an event, `\r\n\r\n`, without its last byte. */
const END_OVERLAP = 3
const [LINE_FEED, CARRIAGE_RETURN] = [0x0a, 0x0d]
const NOTHING = Buffer.alloc(0)
const NEW_LINE = Buffer.from('\n')
const DATA = 'data:'

export interface DataReader {
  push(data: Buffer): void
  /** An event has ended. */
  reset(): void
}

export class SseData {
  /** Common prefix of the names of usage reports, with the quote before it. */
  readonly #needle: string
  readonly #lines: EventLines
  #held: Buffer = NOTHING
  /** The current event is longer than what is held, so its lines are read as they arrive. */
  #isLong = false

  constructor(needle: string, reader: DataReader) {
    this.#needle = needle
    this.#lines = new EventLines(reader)
  }

  push(chunk: Buffer): void {
    const bytes = chunk.length
    const isWhole = chunk[bytes - 1] === LINE_FEED && chunk[bytes - 2] === LINE_FEED
    // Most chunks are whole events. This path takes a third of the time of the other one.
    if (isWhole && this.#held.length === 0) return this.#readEvents(chunk)
    let rest = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    // No event ends in the held bytes, but the end of one may begin there.
    const end = endOfLastEvent(rest, Math.max(0, this.#held.length - END_OVERLAP))
    if (end > 0) {
      this.#readEvents(rest.subarray(0, end))
      rest = rest.subarray(end)
    }
    if (this.#isLong || rest.length > MAX_HELD_BYTES) {
      this.#isLong = true
      this.#held = NOTHING
      this.#lines.push(rest)
      // A copy: the reader of the chunk may transfer its memory.
    } else this.#held = rest.length === 0 ? NOTHING : Buffer.from(rest)
  }

  /** The stream has ended. Many servers leave out the empty line after the last event. */
  end(): void {
    this.#readEvents(this.#held)
    this.#held = NOTHING
  }

  #readEvents(events: Buffer): void {
    if (this.#isLong || this.#mayReport(events)) this.#lines.push(events)
    this.#isLong = false
  }

  /**
   * Whether the name occurs in front of anything but `null`, which OpenAI sends with every event but the last. In a
   * JSON string the quote would be escaped, so a match is no text of the model.
   */
  #mayReport(events: Buffer): boolean {
    const needle = this.#needle
    for (let at = events.indexOf(needle); at !== -1; at = events.indexOf(needle, at + 1)) {
      if (!isNull(events, at + needle.length)) return true
    }
    return false
  }
}

const [QUOTE, COLON, SPACE, LETTER_N] = [0x22, 0x3a, 0x20, 0x6e]

/**
 * Whether the name that starts at `from` is followed by `null`. Compared byte by byte, because every event may have
 * it.
 */
function isNull(events: Buffer, from: number): boolean {
  let at = from
  while (at < events.length && events[at] !== QUOTE) at++
  at++
  while (events[at] === SPACE || events[at] === COLON) at++
  return events[at] === LETTER_N
}

/** Passes on the content of `data` lines, joined by line feeds. */
class EventLines {
  readonly #reader: DataReader
  /** The beginning of a line, until it is known whether it is a `data` line. */
  #beginning = ''
  #line: 'beginning' | 'data' | 'other' = 'beginning'
  #afterCarriageReturn = false

  constructor(reader: DataReader) {
    this.#reader = reader
  }

  push(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) {
      const byte = bytes[at] as number
      if (byte === LINE_FEED || byte === CARRIAGE_RETURN) {
        this.#endLine(byte)
        at++
      } else if (this.#line === 'beginning') {
        this.#afterCarriageReturn = false
        this.#beginning += String.fromCharCode(byte)
        at++
        if (this.#beginning === DATA) this.#line = 'data'
        else if (!DATA.startsWith(this.#beginning)) this.#line = 'other'
      } else {
        const end = endOfLine(bytes, at)
        if (this.#line === 'data') this.#reader.push(bytes.subarray(at, end))
        at = end
      }
    }
  }

  #endLine(byte: number): void {
    const isSecondHalf = byte === LINE_FEED && this.#afterCarriageReturn
    this.#afterCarriageReturn = byte === CARRIAGE_RETURN
    if (isSecondHalf) return
    if (this.#line === 'beginning' && this.#beginning === '') this.#reader.reset()
    else if (this.#line === 'data') this.#reader.push(NEW_LINE)
    this.#line = 'beginning'
    this.#beginning = ''
  }
}

function endOfLine(bytes: Buffer, from: number): number {
  const feed = bytes.indexOf(LINE_FEED, from)
  const end = feed === -1 ? bytes.length : feed
  const carriage = bytes.subarray(from, end).indexOf(CARRIAGE_RETURN)
  return carriage === -1 ? end : from + carriage
}
