/**
 * The last of a stream of events, as the vendor sent it: what tells, once it is over, whether it was all.
 * A vendor that gives up, or a proxy in front of it, may end in the middle of an answer as cleanly as at its
 * end, as far as HTTP can tell; what a protocol says last, only the whole of it has.
 */
import type { Protocol } from '../protocols/protocol.js'
import { VendorError } from '../vendor/vendor-error.js'

/** So much is looked at: enough for what is said behind the last word, and little for thousands of streams. */
const LAST_BYTES = 4_096

export class SseEnd {
  /** A copy: pieces are often small, and each would keep more than itself. */
  readonly #bytes = Buffer.allocUnsafe(2 * LAST_BYTES)
  #used = 0

  push(piece: Buffer): void {
    const last = piece.length > LAST_BYTES ? piece.subarray(-LAST_BYTES) : piece
    if (this.#used + last.length > this.#bytes.length) {
      this.#bytes.copyWithin(0, this.#used - LAST_BYTES, this.#used)
      this.#used = LAST_BYTES
    }
    this.#used += last.copy(this.#bytes, this.#used)
  }

  /** It was not all. */
  isCutOff(protocol: Protocol): boolean {
    const text = this.#bytes.toString('latin1', Math.max(0, this.#used - LAST_BYTES), this.#used)
    return endsInHalfAnEvent(text) || protocol.isCutOff?.(text) === true
  }
}

export function cutOff(): VendorError {
  const message = 'the vendor ended its stream before its last event'
  return new VendorError('STREAM_CUT_OFF', message, { requestSent: true })
}

const TERMINATED = /(?:\n\n|\r\n\r\n|\r\r)$/
/** What the last line says. */
const LAST_DATA = /(?:^|[\r\n])data: ?([^\r\n]*)[\r\n]*$/

/** Its last event has begun, and its data are not whole. Many servers leave out the empty line after the last. */
function endsInHalfAnEvent(text: string): boolean {
  if (TERMINATED.test(text)) return false
  const data = LAST_DATA.exec(text)?.[1]?.trim()
  if (data === undefined || data === '[DONE]') return false
  try {
    JSON.parse(data)
    return false
  } catch {
    return true
  }
}
