/** A connection of HTTP/1.1: whether its client sends headers and reads answers in time. */
import type { Socket } from 'node:net'
import type { ServerLimits } from '../config/shapes/server-limits-shape.js'
import type { ClientRequest } from '../request/client-http.js'
import type { Exchange } from '../request/exchange.js'
import type { Connection, ConnectionProblem } from './connection.js'

type Limits = Pick<ServerLimits, 'headersMs' | 'unreadMs'>

export class Http1Connection implements Connection {
  readonly socket: Socket
  /** More than one if requests are pipelined. */
  readonly exchanges = new Set<Exchange>()
  readonly #limits: Limits
  /** `socket.bytesRead` at the end of the last request. */
  #readBytes = 0
  /** Since when a head is incomplete; from the start of the connection for the first one. */
  #headSinceMs: number | undefined
  #unreadSinceMs: number | undefined
  /** Undefined if it was received completely. */
  #lastRequest: Pick<ClientRequest, 'complete'> | undefined
  #sentBytes = -1

  constructor(socket: Socket, limits: Limits, nowMs: number) {
    this.socket = socket
    this.#limits = limits
    this.#headSinceMs = nowMs
  }

  noteStart(request: Pick<ClientRequest, 'complete'>): void {
    this.#lastRequest = request
  }

  /** What was received so far belongs to this request or to those before it. */
  noteEnd(): void {
    this.#readBytes = this.socket.bytesRead
    this.#headSinceMs = undefined
    // An idle connection would keep the request, its answer and the call of the guard, about 15 kB.
    if (this.#lastRequest?.complete === true) this.#lastRequest = undefined
  }

  get isIdle(): boolean {
    const { bytesRead, writableLength, writableEnded } = this.socket
    const isQuiet = writableLength === 0 && bytesRead === this.#readBytes
    // After its last answer the client may still send, and is disconnected soon.
    return this.exchanges.size === 0 && isQuiet && !writableEnded
  }

  get isLingering(): boolean {
    return this.exchanges.size === 0 && this.socket.writableEnded
  }

  check(nowMs: number): ConnectionProblem | undefined {
    if (this.#isStuck(nowMs)) return 'unread'
    // After its last answer a connection is closed by the lingering close, which has its own limits.
    if (this.exchanges.size > 0 || this.isLingering) return undefined
    const isFirst = this.#readBytes === 0
    if (!isFirst && this.socket.bytesRead === this.#readBytes) return undefined
    this.#headSinceMs ??= nowMs
    if (nowMs - this.#headSinceMs <= this.#limits.headersMs) return undefined
    // The rest of a body whose request was answered. A 408 would look like the answer to the next request.
    return this.#lastRequest?.complete === false ? 'idle' : 'slow headers'
  }

  /** An answer that is still written announces the end of the connection itself. */
  drain(): void {
    if (this.isIdle) this.destroy()
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
