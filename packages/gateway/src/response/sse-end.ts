/**
 * Keeps the last bytes of an event stream, which show whether it is complete. A vendor or a proxy may end the HTTP
 * response cleanly in the middle of an answer. Only a complete stream has the protocol's last event.
 */
import type { Protocol } from '../protocols/protocol.js'
import { VendorError } from '../vendor/vendor-error.js'

/** Enough for the last event and anything after it, and little memory for thousands of streams. */
const LAST_BYTES = 4_096

export class SseEnd {
  /** A copy: a reference to a small chunk would keep its whole buffer in memory. */
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

  /** The last bytes, one character for each. */
  get text(): string {
    return this.#bytes.toString('latin1', Math.max(0, this.#used - LAST_BYTES), this.#used)
  }

  isCutOff(protocol: Protocol): boolean {
    const { text } = this
    return endsInHalfAnEvent(text) || protocol.isCutOff?.(text) === true
  }
}

export function cutOff(): VendorError {
  const message = 'the vendor ended its stream before its last event'
  return new VendorError('STREAM_CUT_OFF', message, { requestSent: true })
}

const TERMINATED = /(?:\n\n|\r\n\r\n|\r\r)$/
/** The data of the last line. */
const LAST_DATA = /(?:^|[\r\n])data: ?([^\r\n]*)[\r\n]*$/

/** Whether the last event is incomplete. Many servers leave out the empty line after the last event. */
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
