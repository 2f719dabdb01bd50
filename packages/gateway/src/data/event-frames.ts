/**
 * Passes a stream of server-sent events on in whole events. A piece of the vendor's is one or more of
 * them nearly always, and goes on as it is; only what has begun and not ended is held back, so that an
 * error event can follow when the vendor breaks off in the middle of one.
 */

/** An event longer than this goes on in pieces: nothing is held back without a bound. */
const MOST_HELD_BYTES = 1_048_576
const NOTHING = Buffer.alloc(0)

export class EventFrames {
  #held: Buffer = NOTHING
  readonly #drop: ((event: string) => boolean) | undefined

  /** `drop`: events the reader did not ask for. */
  constructor(drop?: (event: string) => boolean) {
    this.#drop = drop
  }

  /** What can go on now; empty if nothing can. */
  push(chunk: Buffer): Buffer {
    const all = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    const end = endOfLastEvent(all)
    const whole = end === 0 && all.length > MOST_HELD_BYTES ? all.length : end
    this.#held = whole === all.length ? NOTHING : all.subarray(whole)
    const events = whole === all.length ? all : all.subarray(0, whole)
    return this.#drop === undefined ? events : this.#without(events, this.#drop)
  }

  /** What is left at a clean end. */
  rest(): Buffer {
    const rest = this.#held
    this.#held = NOTHING
    return this.#drop === undefined ? rest : this.#without(rest, this.#drop)
  }

  #without(events: Buffer, drop: (event: string) => boolean): Buffer {
    const text = events.toString('latin1')
    const all = text.split(/(?<=\n\n|\r\n\r\n|\r\r)/)
    const wanted = all.filter((event) => !drop(event))
    return wanted.length === all.length ? events : Buffer.from(wanted.join(''), 'latin1')
  }
}

/** An event ends with an empty line, in any of the three ways to end a line. */
function endOfLastEvent(bytes: Buffer): number {
  const feed = bytes.lastIndexOf('\n\n')
  if (feed !== -1 && feed === bytes.length - 2) return bytes.length
  const both = bytes.lastIndexOf('\r\n\r\n')
  const carriage = bytes.lastIndexOf('\r\r')
  return Math.max(
    feed === -1 ? 0 : feed + 2,
    both === -1 ? 0 : both + 4,
    carriage === -1 ? 0 : carriage + 2,
  )
}
