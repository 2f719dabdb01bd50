/**
 * The data port. A `net.Server` accepts connections and hands them to Node's HTTP server. Draining closes only the
 * `net.Server`: `http.Server.close()` would also cut off answers that have ended but are not sent yet.
 */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { createServer as createHttpServer, type IncomingMessage, type Server } from 'node:http'
import { type AddressInfo, createServer as createNetServer, type Socket } from 'node:net'
import type { ServerLimits } from '../config/shapes/server-limits-shape.js'
import { Exchange } from '../request/exchange.js'
import { requestTarget } from '../request/request-url.js'
import type { Fault } from '../response/errors.js'
import type { ConfigVersions } from '../routing/config-versions.js'
import { ClientConnection } from './client-connection.js'
import { ConnectionLimits } from './connection-limits.js'
import { answerRaw, faultOfParser, NO_TUNNEL } from './parser-errors.js'

const BACKLOG = 4_096
/** Guards refuse calls with the same code. */
const SHUTTING_DOWN: Fault = {
  status: 503,
  code: 'SHUTTING_DOWN',
  message: 'the gateway is being closed',
  closes: true,
}

type Health = (path: string) => { status: number; body: string } | undefined

export class DataServer {
  readonly #versions: Pick<ConfigVersions, 'current'>
  readonly #health: Health
  readonly #limits: ServerLimits
  /** Half-open, because a client that ends its side still receives its answer. */
  readonly #acceptor = createNetServer({ allowHalfOpen: true, noDelay: true })
  readonly #http: Server
  readonly #connections: ConnectionLimits
  readonly #bySocket = new Map<Socket, ClientConnection>()
  #running = 0
  #onIdle: (() => void) | undefined
  #draining = false

  constructor(versions: Pick<ConfigVersions, 'current'>, health: Health) {
    this.#versions = versions
    this.#health = health
    this.#limits = versions.current.config.server
    this.#connections = new ConnectionLimits(this.#limits, (nowMs) => this.#checkAll(nowMs))
    this.#http = this.#createHttp()
    this.#acceptor.on('connection', (socket) => {
      if (this.#connections.admit(socket)) this.#serve(socket)
    })
  }

  async listen(port: number, host: string): Promise<number> {
    this.#acceptor.listen({ port, host, backlog: BACKLOG })
    await once(this.#acceptor, 'listening')
    return (this.#acceptor.address() as AddressInfo).port
  }

  get running(): number {
    return this.#running
  }

  /** Connections that were closed because `server.connections` or `connectionsPerAddress` was reached. */
  get connectionsRefused(): number {
    return this.#connections.refused
  }

  /** Accepts no more connections and closes the idle ones. Resolves when no request is running. */
  async drain(): Promise<void> {
    this.#draining = true
    this.#acceptor.close()
    this.#closeIdle()
    await this.#idle()
  }

  /** Breaks off what is still running. Resolves when all of it was recorded. */
  async close(): Promise<void> {
    this.#draining = true
    this.#connections.close()
    this.#acceptor.close()
    for (const connection of [...this.#bySocket.values()]) {
      for (const exchange of [...connection.exchanges]) exchange.closeWith(SHUTTING_DOWN)
      connection.destroy()
    }
    await this.#idle()
  }

  #createHttp(): Server {
    const { maxHeaderBytes, idleMs } = this.#limits
    const server = createHttpServer({
      insecureHTTPParser: false,
      maxHeaderSize: maxHeaderBytes,
      keepAliveTimeout: idleMs,
      // Checked by `ClientConnection` and `Exchange`: Node checks times only on servers that listen themselves.
      headersTimeout: 0,
      requestTimeout: 0,
      // Checked in `validate.ts`, where the refusal is recorded.
      requireHostHeader: false,
    })
    // Counted in `validate.ts`. Node would drop the headers beyond this number silently.
    server.maxHeadersCount = 0
    const handle = (request: IncomingMessage, response: ServerResponse) =>
      this.#handle(request, response)
    server.on('request', handle)
    server.on('checkExpectation', handle)
    server.on('connect', (_, socket: Socket) => this.#refuseTunnel(socket))
    server.on('clientError', ({ code }: NodeJS.ErrnoException, socket: Socket) =>
      this.#refuse(faultOfParser(code), socket),
    )
    return server
  }

  #serve(socket: Socket): void {
    // The 'close' event follows. Node removes its own listener with a CONNECT.
    socket.on('error', () => {})
    const connection = new ClientConnection(socket, this.#limits, performance.now())
    this.#bySocket.set(socket, connection)
    socket.once('close', () => {
      this.#bySocket.delete(socket)
      // A response that waits behind another one emits no 'close' of its own.
      for (const exchange of [...connection.exchanges]) this.#ended(exchange, connection)
    })
    this.#http.emit('connection', socket)
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const { path } = requestTarget(request.url ?? '/')
    const health = path.startsWith('/health/') ? this.#health(path) : undefined
    if (health !== undefined) {
      response.writeHead(health.status, { 'content-type': 'application/json' })
      response.end(health.body)
      return
    }
    const connection = this.#bySocket.get(request.socket)
    // It was closed while its last request was read.
    if (connection === undefined) return void request.socket.destroy()
    const version = this.#versions.current
    const exchange = new Exchange(version, request, response)
    connection.exchanges.add(exchange)
    this.#running++
    version.enter()
    response.once('close', () => this.#ended(exchange, connection))
    exchange.serve()
  }

  /** The connection carries something that is not HTTP, or its headers are late. */
  #refuse(fault: Fault | undefined, socket: Socket): void {
    const last = [...(this.#bySocket.get(socket)?.exchanges ?? [])].at(-1)
    // A connection without a single byte is closed without an answer.
    if (fault === undefined || socket.bytesRead === 0) socket.destroy()
    // The fault is in its body, or in the request behind it.
    else if (last !== undefined) last.breakOff(fault)
    else this.#versions.current.hooks.onRecord(answerRaw(socket, fault))
  }

  /** Node has detached its parser: an answer that still runs on this connection could not continue. */
  #refuseTunnel(socket: Socket): void {
    const isBusy = (this.#bySocket.get(socket)?.exchanges.size ?? 0) > 0
    if (isBusy) socket.destroy()
    else this.#refuse(NO_TUNNEL, socket)
  }

  #checkAll(nowMs: number): void {
    for (const connection of this.#bySocket.values()) {
      for (const exchange of connection.exchanges) exchange.look(nowMs)
      const problem = connection.check(nowMs)
      if (problem === 'slow headers') {
        this.#refuse(faultOfParser('ERR_HTTP_REQUEST_TIMEOUT'), connection.socket)
      } else if (problem !== undefined) connection.destroy()
    }
  }

  #ended(exchange: Exchange, connection: ClientConnection): void {
    if (!connection.exchanges.delete(exchange)) return
    connection.noteRead()
    exchange.close()
    exchange.version.leave()
    this.#running--
    if (!this.#draining) return
    this.#closeIdle()
    // A request that waited behind this one on its connection starts before.
    setImmediate(() => {
      if (this.#running === 0) this.#onIdle?.()
    })
  }

  #closeIdle(): void {
    for (const connection of this.#bySocket.values()) if (connection.isIdle) connection.destroy()
  }

  async #idle(): Promise<void> {
    if (this.#running === 0) return
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve
    })
  }
}
