/** Whether a client sends the body of its request fast enough. */
import type { ServerLimits } from '../../config/shapes/server-limits-shape.js'
import type { ClientRequest } from '../client-http.js'

export class SlowBody {
  readonly #request: Pick<ClientRequest, 'complete'>
  /** When it was first seen sending, and what it had sent by then. */
  #sinceMs: number | undefined
  #bytesThen = 0
  #lastLookMs = 0

  constructor(request: Pick<ClientRequest, 'complete'>) {
    this.#request = request
  }

  /** `receivedBytes`: of its body so far. `waiting`: false while the gateway or the vendor does not read. */
  isOver(nowMs: number, receivedBytes: number, waiting: boolean, limits: ServerLimits): boolean {
    if (this.#request.complete) return false
    if (this.#sinceMs === undefined) {
      this.#sinceMs = nowMs
      this.#bytesThen = receivedBytes
    } else if (!waiting) {
      this.#sinceMs += nowMs - this.#lastLookMs
    }
    this.#lastLookMs = nowMs
    const sent = receivedBytes - this.#bytesThen
    const allowedMs = limits.bodyMs + (1_000 * sent) / limits.bodyBytesPerSecond
    return nowMs - this.#sinceMs > allowedMs
  }
}
