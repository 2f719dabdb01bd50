/**
 * The last of a stream of events, as the vendor sent it: what tells, once it is over, whether it was all.
 * A vendor that gives up, or a proxy in front of it, may end in the middle of an answer as cleanly as at its
 * end, as far as HTTP can tell; what a protocol says last, only the whole of it has.
 */
import type { Protocol } from '../protocols/protocol.js'
import { latin1 } from '../wire/latin1.js'

/** So much is looked at: enough for what is said behind the last word, and little enough to be kept. */
const LAST_BYTES = 8_192

export class StreamEnd {
  readonly #pieces: Buffer[] = []
  #bytes = 0

  /** As they are: to cut each would cost more than to cut what is left at the end. */
  push(piece: Buffer): void {
    this.#pieces.push(piece)
    this.#bytes += piece.length
    for (;;) {
      const [first, second] = this.#pieces
      if (first === undefined || second === undefined) return
      if (this.#bytes - first.length < LAST_BYTES) return
      this.#bytes -= first.length
      this.#pieces.shift()
    }
  }

  /** It was not all. */
  isCutOff({ isCutOff }: Protocol): boolean {
    if (isCutOff === undefined) return false
    const text = latin1(Buffer.concat(this.#pieces).subarray(-LAST_BYTES))
    return text.trim() === '' || endsInHalfAnEvent(text) || isCutOff(text)
  }
}

const TERMINATED = /(?:\n\n|\r\n\r\n|\r\r)$/
/** What the last line says. */
const LAST_DATA = /(?:^|[\r\n])data: ?([^\r\n]*)[\r\n]*$/

/** Its last event has begun, and its data are not whole. Many servers leave out the empty line after the last. */
function endsInHalfAnEvent(text: string): boolean {
  if (TERMINATED.test(text)) return false
  const data = LAST_DATA.exec(text)?.[1]
  if (data === undefined || data === '[DONE]') return false
  try {
    JSON.parse(data)
    return false
  } catch {
    return true
  }
}
