/** Whether a client does its part: sends the body it has begun, reads the answer it asked for. */
import type { ServerLimits } from '../config/server-limits-shape.js'
import type { ClientRequest, ClientResponse } from '../wire/client.js'

export type Slowness = 'body' | 'unread' | undefined

export class Patience {
  readonly #request: ClientRequest
  readonly #response: ClientResponse
  /** When it was first seen sending, and what it had sent by then. */
  #sinceMs: number | undefined
  #bytesThen = 0
  #lastLookMs = 0
  #unreadSinceMs: number | undefined
  #writtenThen = -1

  constructor(request: ClientRequest, response: ClientResponse) {
    this.#request = request
    this.#response = response
  }

  /** `waiting`: whether it is the client that is waited for, if its body has not come. */
  look(nowMs: number, waiting: boolean, limits: ServerLimits): Slowness {
    if (!this.#request.complete && this.#isSlow(nowMs, waiting, limits)) return 'body'
    return this.#isUnread(nowMs, limits) ? 'unread' : undefined
  }

  #isSlow(nowMs: number, waiting: boolean, limits: ServerLimits): boolean {
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

  #isUnread(nowMs: number, { unreadMs }: ServerLimits): boolean {
    const { socket } = this.#response
    if (socket === null || socket.writableLength === 0) {
      this.#unreadSinceMs = undefined
      return false
    }
    const written = socket.bytesWritten - socket.writableLength
    if (this.#unreadSinceMs === undefined || written !== this.#writtenThen) {
      this.#unreadSinceMs = nowMs
      this.#writtenThen = written
      return false
    }
    return nowMs - this.#unreadSinceMs > unreadMs
  }
}
