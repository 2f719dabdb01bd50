/** Whether a client does its part of a request: sends the body it has begun. */
import type { ServerLimits } from '../config/shapes/server-limits-shape.js'
import type { ClientRequest } from './client-http.js'

export class SlowBody {
  readonly #request: ClientRequest
  /** When it was first seen sending, and what it had sent by then. */
  #sinceMs: number | undefined
  #bytesThen = 0
  #lastLookMs = 0

  constructor(request: ClientRequest) {
    this.#request = request
  }

  /** `waiting`: whether it is the client that is waited for, if its body has not come. */
  isOver(nowMs: number, waiting: boolean, limits: ServerLimits): boolean {
    if (this.#request.complete) return false
    const { bytesRead } = this.#request.socket
    if (this.#sinceMs === undefined) {
      this.#sinceMs = nowMs
      this.#bytesThen = bytesRead
    } else if (!waiting) {
      // It is held up by us or the vendor.
      this.#sinceMs += nowMs - this.#lastLookMs
    }
    this.#lastLookMs = nowMs
    const sent = bytesRead - this.#bytesThen
    const allowedMs = limits.bodyMs + (1_000 * sent) / limits.bodyBytesPerSecond
    return nowMs - this.#sinceMs > allowedMs
  }
}
