/**
 * The data port. A `net.Server` accepts connections and hands them to Node's HTTP server. Draining closes only the
 * `net.Server`: `http.Server.close()` would also cut off answers that have ended but are not sent yet.
 */
import { once } from 'node:events'
import type { ServerHttp2Session } from 'node:http2'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import type { Clock } from 'spillway'
import { systemClock } from 'spillway/internal'
import type { ListenAddress } from '../config/listen-address.js'
import type { ServerLimits } from '../config/shapes/server-limits-shape.js'
import type { ClientRequest, ClientResponse } from '../request/client-http.js'
import { onceSent } from '../request/early-answer.js'
import { Exchange } from '../request/exchange.js'
import { requestTarget } from '../request/validation/request-url.js'
import { type Fault, SHUTTING_DOWN } from '../response/errors.js'
import type { ConfigVersions } from '../routing/config-versions.js'
import type { Connection } from './connection.js'
import { ConnectionLimits } from './connection-limits.js'
import { createHttpServers, type HttpHandlers } from './http-servers.js'
import { Http1Connection } from './http1-connection.js'
import { Http2Connection } from './http2-connection.js'
import { answerRaw, faultOfParser, NO_TUNNEL } from './parser-errors.js'

/** True after the server was closed. */
const LAST_BYTES_MS = 1_000

type Health = (path: string) => { status: number; body: string } | undefined

export class DataServer implements HttpHandlers {
  readonly #versions: Pick<ConfigVersions, 'current'>
  readonly #health: Health
  readonly #limits: ServerLimits
  readonly #clock: Clock
  readonly #acceptor: Server
  readonly #serveHttp: (socket: Socket) => void
  readonly #connectionLimits: ConnectionLimits
  /** By socket for HTTP/1.1, by session for HTTP/2. */
  readonly #connections = new Map<Socket | ServerHttp2Session, Connection>()
  /** All accepted ones, also during a TLS handshake and after the end of a session. */
  readonly #sockets = new Set<Socket>()
  #running = 0
  #onIdle: (() => void) | undefined
  #draining = false
  #closed = false

  constructor(
    versions: Pick<ConfigVersions, 'current'>,
    health: Health,
    clock: Clock = systemClock,
  ) {
    this.#versions = versions
    this.#health = health
    this.#limits = versions.current.config.server
    this.#clock = clock
    // A client of HTTP/1.1 that ends its side still receives its answer. One of HTTP/2 has left.
    this.#acceptor = createServer({ allowHalfOpen: this.#limits.tls === undefined, noDelay: true })
    const check = (nowMs: number) => this.#checkAll(nowMs)
    this.#connectionLimits = new ConnectionLimits(this.#limits, check, clock)
    this.#serveHttp = createHttpServers(this.#limits, this)
    this.#acceptor.on('connection', (socket) => this.#accept(socket))
  }

  /** Answers with the TCP port; 0 for a Unix socket. */
  async listen(address: ListenAddress): Promise<number> {
    this.#acceptor.listen(address)
    await once(this.#acceptor, 'listening')
    return 'path' in address ? 0 : (this.#acceptor.address() as AddressInfo).port
  }

  /**
   * Serves a connection that the supervisor has accepted, in place of `listen`. False: the server is closed, or it
   * is being drained and the connection is not one of the last.
   */
  serve(socket: Socket, isLast: boolean): boolean {
    if (this.#closed || (this.#draining && !isLast)) return false
    socket.allowHalfOpen = this.#limits.tls === undefined
    this.#accept(socket)
    return true
  }

  get running(): number {
    return this.#running
  }

  /** Connections that were closed because `server.connections` or `connectionsPerAddress` was reached. */
  get connectionsRefused(): number {
    return this.#connectionLimits.refused
  }

  /** Accepts no more connections and closes the idle ones. Resolves when no request is running. */
  async drain(): Promise<void> {
    this.#draining = true
    this.#acceptor.close()
    this.#drainConnections()
    await this.#idle()
  }

  /** Aborts running requests. Resolves when all of them were recorded. */
  async close(): Promise<void> {
    this.#draining = true
    this.#closed = true
    this.#connectionLimits.close()
    this.#acceptor.close()
    for (const connection of [...this.#connections.values()]) {
      // A reset could destroy the last answer before the client has read it. The timer below ends it.
      if (connection.isLingering) continue
      for (const exchange of [...connection.exchanges]) exchange.closeWith(SHUTTING_DOWN)
      connection.destroy()
    }
    await this.#idle()
    // The last bytes of an answer may still be on their way. A client that does not read them must not keep the process.
    const timer = this.#clock.schedule(LAST_BYTES_MS, () => {
      for (const socket of this.#sockets) socket.destroy()
    })
    timer.unref()
  }

  onHttp1(socket: Socket): void {
    socket.on('error', () => {})
    const connection = new Http1Connection(socket, this.#limits, this.#clock.now())
    this.#track(socket, connection)
    socket.once('close', () => this.#lost(socket, connection))
  }

  onHttp2(session: ServerHttp2Session, socket: Socket): void {
    const connection = new Http2Connection(session, socket, this.#limits, this.#clock)
    this.#track(session, connection)
    session.once('close', () => this.#lost(session, connection))
  }

  onRequest(request: ClientRequest, response: ClientResponse, expectsContinue: boolean): void {
    const connection = this.#connections.get(
      (request.stream?.session as ServerHttp2Session | undefined) ?? request.socket,
    )
    // It was closed while its last request was read.
    if (connection === undefined) return void response.destroy()
    // The answer to an earlier request has ended the connection, so this one could not be answered (RFC 9112, 9.6).
    if (request.stream === undefined && request.socket.writableEnded) return void request.resume()
    connection.noteStart(request)
    // Also for a health check, and for a body that arrives after its answer: its bytes do not count for the next
    // head.
    request.once('close', () => connection.noteEnd(this.#clock.now()))
    const address = requestTarget(request.url ?? '/')
    const { path } = address
    const health = path.startsWith('/health/') ? this.#health(path) : undefined
    if (health !== undefined) {
      response.writeHead(health.status, { 'content-type': 'application/json' })
      response.end(health.body)
      return
    }
    const { current } = this.#versions
    const exchange = new Exchange(current, request, response, address, expectsContinue)
    connection.exchanges.add(exchange)
    this.#running++
    exchange.version.enter()
    onceSent(response, () => this.#ended(exchange, connection))
    exchange.serve()
  }

  onTunnel(socket: Socket): void {
    const isBusy = (this.#connections.get(socket)?.exchanges.size ?? 0) > 0
    // An answer that still runs on this connection could not continue without the parser.
    if (isBusy) socket.destroy()
    else this.#refuse(NO_TUNNEL, socket)
  }

  onParserError(code: string | undefined, socket: Socket): void {
    this.#refuse(faultOfParser(code), socket)
  }

  #accept(socket: Socket): void {
    // The 'close' event follows. Node removes its own listener with a CONNECT.
    socket.on('error', () => {})
    if (!this.#connectionLimits.admit(socket)) return
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    this.#serveHttp(socket)
  }

  /** The connection carries something that is not HTTP, or its headers are late. */
  #refuse(fault: Fault | undefined, socket: Socket): void {
    const last = [...(this.#connections.get(socket)?.exchanges ?? [])].at(-1)
    // A connection without a single byte is closed without an answer.
    if (fault === undefined || socket.bytesRead === 0) socket.destroy()
    // It was answered. The parser reports each packet that arrives until the connection is closed.
    else if (socket.writableEnded) return
    // The fault is in its body, or in the request behind it.
    else if (last !== undefined) last.breakOff(fault)
    else this.#versions.current.hooks.onRecord(answerRaw(socket, fault))
  }

  #track(key: Socket | ServerHttp2Session, connection: Connection): void {
    this.#connections.set(key, connection)
  }

  #lost(key: Socket | ServerHttp2Session, connection: Connection): void {
    this.#connections.delete(key)
    // A response that is queued behind another one emits no 'close' event.
    for (const exchange of [...connection.exchanges]) this.#ended(exchange, connection)
  }

  #checkAll(nowMs: number): void {
    for (const [key, connection] of this.#connections) {
      for (const exchange of connection.exchanges) exchange.checkUpload(nowMs)
      const problem = connection.check(nowMs)
      if (problem === undefined) continue
      if (problem === 'slow headers') this.onParserError('ERR_HTTP_REQUEST_TIMEOUT', key as Socket)
      else connection.destroy()
    }
  }

  #ended(exchange: Exchange, connection: Connection): void {
    if (!connection.exchanges.delete(exchange)) return
    connection.noteEnd(this.#clock.now())
    exchange.close()
    exchange.version.leave()
    this.#running--
    if (!this.#draining) return
    this.#drainConnections()
    // A request that waited behind this one on its connection starts before.
    setImmediate(() => {
      if (this.#running === 0) this.#onIdle?.()
    })
  }

  #drainConnections(): void {
    for (const connection of this.#connections.values()) connection.drain()
  }

  async #idle(): Promise<void> {
    if (this.#running === 0) return
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve
    })
  }
}
