/** One connection of a client: its open requests, and whether the client sends headers and reads answers in time. */
import type { Socket } from 'node:net'
import type { ServerLimits } from '../config/shapes/server-limits-shape.js'
import type { Exchange } from '../request/exchange.js'

type Limits = Pick<ServerLimits, 'headersMs' | 'unreadMs'>

export class ClientConnection {
  readonly socket: Socket
  /** More than one if requests are pipelined. */
  readonly exchanges = new Set<Exchange>()
  readonly #limits: Limits
  /** `socket.bytesRead` at the end of the last request. */
  #readBytes = 0
  /** Since when a head is incomplete; from the start of the connection for the first one. */
  #headSinceMs: number | undefined
  #unreadSinceMs: number | undefined
  #sentBytes = -1

  constructor(socket: Socket, limits: Limits, nowMs: number) {
    this.socket = socket
    this.#limits = limits
    this.#headSinceMs = nowMs
  }

  /** A request has ended: what was received so far belongs to it or to the requests before it. */
  noteRead(): void {
    this.#readBytes = this.socket.bytesRead
    this.#headSinceMs = undefined
  }

  /** No request is open or arriving, and every answer was sent. */
  get isIdle(): boolean {
    const { bytesRead, writableLength } = this.socket
    return this.exchanges.size === 0 && writableLength === 0 && bytesRead === this.#readBytes
  }

  /** Called about once a second. */
  check(nowMs: number): 'slow headers' | 'unread' | undefined {
    if (this.#isStuck(nowMs)) return 'unread'
    if (this.exchanges.size > 0) return undefined
    const isFirst = this.#readBytes === 0
    if (!isFirst && this.socket.bytesRead === this.#readBytes) return undefined
    this.#headSinceMs ??= nowMs
    return nowMs - this.#headSinceMs > this.#limits.headersMs ? 'slow headers' : undefined
  }

  destroy(): void {
    this.socket.destroy()
  }

  /** Bytes wait to be sent, and none has left for `unreadMs`. */
  #isStuck(nowMs: number): boolean {
    const { bytesWritten, writableLength } = this.socket
    const sentBytes = bytesWritten - writableLength
    if (writableLength === 0 || sentBytes !== this.#sentBytes) {
      this.#sentBytes = sentBytes
      this.#unreadSinceMs = writableLength === 0 ? undefined : nowMs
      return false
    }
    this.#unreadSinceMs ??= nowMs
    return nowMs - this.#unreadSinceMs > this.#limits.unreadMs
  }
}
