/** A connection of HTTP/2: whether its client sends requests and reads answers in time. */
import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import type { Clock } from 'spillway'
import type { ServerLimits } from '../config/shapes/server-limits-shape.js'
import type { Exchange } from '../request/exchange.js'
import type { Connection, ConnectionProblem } from './connection.js'

type Limits = Pick<ServerLimits, 'headersMs' | 'idleMs' | 'unreadMs'>

/** A client that reads nothing must not keep its connection for longer than this after its session has ended. */
const FLUSH_MS = 5_000

interface Unread {
  sentBytes: number
  sinceMs: number
}

export class Http2Connection implements Connection {
  readonly exchanges = new Set<Exchange>()
  readonly #session: ServerHttp2Session
  readonly #socket: Socket
  readonly #limits: Limits
  readonly #clock: Clock
  readonly #unread = new WeakMap<Exchange, Unread>()
  #idleSinceMs: number
  #isUsed = false

  constructor(session: ServerHttp2Session, socket: Socket, limits: Limits, clock: Clock) {
    this.#session = session
    this.#socket = socket
    this.#limits = limits
    this.#clock = clock
    this.#idleSinceMs = clock.now()
  }

  noteStart(): void {}

  noteEnd(nowMs: number): void {
    this.#isUsed = true
    this.#idleSinceMs = nowMs
  }

  get isIdle(): boolean {
    return this.exchanges.size === 0
  }

  /** HTTP/2 answers early without ending the connection. */
  readonly isLingering = false

  check(nowMs: number): ConnectionProblem | undefined {
    for (const exchange of this.exchanges) {
      // A client that does not read one of its answers loses only that answer.
      if (this.#isStuck(exchange, nowMs)) exchange.disconnect()
    }
    if (this.exchanges.size > 0) return undefined
    const { headersMs, idleMs } = this.#limits
    return nowMs - this.#idleSinceMs > (this.#isUsed ? idleMs : headersMs) ? 'idle' : undefined
  }

  /** Sends GOAWAY. Open streams end as usual. */
  drain(): void {
    this.#session.close()
  }

  /** Node lets the session end only after everything before was sent. */
  destroy(): void {
    this.#session.destroy()
    const timer = this.#clock.schedule(FLUSH_MS, () => this.#socket.destroy())
    timer.unref()
    this.#socket.once('close', () => timer.cancel())
  }

  /** Bytes wait to be sent, and none has left for `unreadMs`. */
  #isStuck(exchange: Exchange, nowMs: number): boolean {
    const { sentBytes, unsentBytes } = exchange
    const before = this.#unread.get(exchange)
    // Progress is measured in bytes sent: the number of waiting bytes stays constant while a slow client reads.
    if (unsentBytes === 0 || before?.sentBytes !== sentBytes) {
      this.#unread.set(exchange, { sentBytes, sinceMs: nowMs })
      return false
    }
    return nowMs - before.sinceMs > this.#limits.unreadMs
  }
}
