/**
 * Passes server-sent events on in whole events. Most pieces from a vendor are whole events and pass unchanged. The
 * beginning of an event is held back until its end arrives, so that an error event can follow if the vendor breaks
 * off in between.
 */

/** A longer event is passed on in pieces, so that the held bytes have a bound. */
const MOST_HELD_BYTES = 1_048_576
const FEWEST_BYTES = 1_024
const NOTHING = Buffer.alloc(0)
/** The longest end of an event, `\r\n\r\n`, without its last byte: this much of it may be held already. */
const END_OVERLAP = 3

export class SseFrames {
  /** The first `#heldBytes` bytes are held. The rest is free space, so that appending rarely copies the held bytes. */
  #buffer: Buffer = NOTHING
  #heldBytes = 0
  readonly #drop: ((event: string) => boolean) | undefined

  /** `drop`: events the client did not ask for. */
  constructor(drop?: (event: string) => boolean) {
    this.#drop = drop
  }

  /** The bytes that can be passed on now; empty if there are none. */
  push(chunk: Buffer): Buffer {
    const all = this.#heldBytes === 0 ? chunk : this.#append(chunk)
    // No event ends in the bytes that were held before.
    const from = Math.max(0, all.length - chunk.length - END_OVERLAP)
    const end = endOfLastEvent(all, from)
    const whole = end === 0 && all.length > MOST_HELD_BYTES ? all.length : end
    if (whole === 0) {
      if (this.#heldBytes === 0) this.#append(chunk)
      return NOTHING
    }
    this.#release()
    if (whole < all.length) this.#append(all.subarray(whole))
    const events = all.subarray(0, whole)
    return this.#drop === undefined ? events : this.#without(events, this.#drop)
  }

  /** The held bytes, at a clean end. */
  rest(): Buffer {
    const rest = this.#buffer.subarray(0, this.#heldBytes)
    this.#release()
    return this.#drop === undefined ? rest : this.#without(rest, this.#drop)
  }

  /** Returns all held bytes. Doubling the buffer copies each byte a constant number of times. */
  #append(chunk: Buffer): Buffer {
    const bytes = this.#heldBytes + chunk.length
    if (bytes > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(FEWEST_BYTES, 2 * this.#heldBytes, bytes))
      this.#buffer.copy(larger, 0, 0, this.#heldBytes)
      this.#buffer = larger
    }
    chunk.copy(this.#buffer, this.#heldBytes)
    this.#heldBytes = bytes
    return this.#buffer.subarray(0, bytes)
  }

  /** The held bytes are passed on, so their buffer must not be reused. */
  #release(): void {
    this.#buffer = NOTHING
    this.#heldBytes = 0
  }

  #without(events: Buffer, drop: (event: string) => boolean): Buffer {
    const text = events.toString('latin1')
    const all = text.split(/(?<=\n\n|\r\n\r\n|\r\r)/)
    const wanted = all.filter((event) => !drop(event))
    return wanted.length === all.length ? events : Buffer.from(wanted.join(''), 'latin1')
  }
}

/** An event ends with an empty line, in any of the three ways to end a line. 0: no event ends behind `from`. */
export function endOfLastEvent(bytes: Buffer, from: number): number {
  const last = bytes.subarray(from)
  const feed = last.lastIndexOf('\n\n')
  if (feed !== -1 && feed === last.length - 2) return bytes.length
  const both = last.lastIndexOf('\r\n\r\n')
  const carriage = last.lastIndexOf('\r\r')
  const end = Math.max(
    feed === -1 ? 0 : feed + 2,
    both === -1 ? 0 : both + 4,
    carriage === -1 ? 0 : carriage + 2,
  )
  return end === 0 ? 0 : from + end
}
