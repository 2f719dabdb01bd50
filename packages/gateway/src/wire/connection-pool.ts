/** Connections to one vendor. Each is for one request at a time; how many that are is for the guard to say. */
import type { Asking, WireHandler, WireRequest } from './ask.js'
import { Call, Connection, type ConnectionOwner, type Destination } from './connection.js'
import { requestBytes } from './request-bytes.js'
import { WireError } from './wire-error.js'

/** Idle ones are given up before most servers do so, so that none is used as it closes. */
export const REST_MS = 4_000
/** So much before the server says that it will close it. */
const BEFORE_END_MS = 1_000
const LOOK_EVERY_MS = 1_000

export class ConnectionPool implements ConnectionOwner {
  readonly #destination: Destination
  readonly #open = new Set<Connection>()
  /** The last used is the first to be used again, so that the others may end. */
  readonly #idle: Connection[] = []
  #looking: NodeJS.Timeout | undefined
  #destroyed = false

  constructor(origin: string, connectMs: number) {
    const { protocol, hostname, port, host } = new URL(origin)
    const secure = protocol === 'https:'
    this.#destination = {
      secure,
      // An address of IPv6 stands in brackets there.
      hostname: hostname.replace(/^\[|\]$/g, ''),
      port: port === '' ? (secure ? 443 : 80) : Number(port),
      host,
      connectMs,
    }
  }

  /** Throws if the request cannot be written down; what else goes wrong, the handler is told. */
  ask(request: WireRequest, body: Buffer | undefined, handler: WireHandler): Asking {
    if (this.#destroyed) throw closedError()
    const bytes = requestBytes(request, body, this.#destination.host)
    const call = new Call(bytes, handler, request.method === 'HEAD')
    const connection = this.#rested() ?? this.#opened()
    connection.carry(call)
    return call
  }

  /** How many stand or are being made, and how many of them rest. */
  get counts(): { open: number; idle: number } {
    return { open: this.#open.size, idle: this.#idle.length }
  }

  async destroy(): Promise<void> {
    this.#destroyed = true
    clearInterval(this.#looking)
    for (const connection of this.#open) connection.destroy(closedError())
  }

  /** It had rested too long. A new one has not. */
  onUnsent(call: Call): void {
    if (this.#destroyed) call.handler.onError(closedError())
    else this.#opened().carry(call)
  }

  onIdle(connection: Connection, keepAliveMs: number): void {
    const restMs = Math.min(REST_MS, keepAliveMs - BEFORE_END_MS)
    if (restMs <= 0 || this.#destroyed) return connection.destroy()
    connection.restsUntilMs = performance.now() + restMs
    this.#idle.push(connection)
    this.#looking ??= setInterval(() => this.#look(), LOOK_EVERY_MS).unref()
  }

  onClosed(connection: Connection): void {
    this.#open.delete(connection)
    const place = this.#idle.lastIndexOf(connection)
    if (place !== -1) this.#idle.splice(place, 1)
  }

  #rested(): Connection | undefined {
    const nowMs = performance.now()
    for (;;) {
      const connection = this.#idle.pop()
      if (connection === undefined) return undefined
      // One that died is still here until its end is told.
      if (connection.usable && connection.restsUntilMs > nowMs) return connection
      connection.destroy()
    }
  }

  #opened(): Connection {
    const connection = new Connection(this.#destination, this)
    this.#open.add(connection)
    return connection
  }

  /** Lets those go that have rested long enough. */
  #look(): void {
    const nowMs = performance.now()
    for (const connection of [...this.#idle]) {
      if (connection.restsUntilMs <= nowMs) connection.destroy()
    }
    if (this.#idle.length > 0) return
    clearInterval(this.#looking)
    this.#looking = undefined
  }
}

function closedError(): WireError {
  return new WireError('CONNECTIONS_CLOSED', 'the connections to this vendor are closed')
}
