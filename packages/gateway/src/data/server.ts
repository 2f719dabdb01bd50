/**
 * The data port. Requests that are plain, as nearly all are, are read without Node's HTTP, which costs more
 * than all that is done with them here; everything else is Node's, which knows all of HTTP.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerOptions } from 'node:http'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import type { ServerLimits } from '../config/shapes/server-limits-shape.js'
import { requestTarget } from '../request/canonical-path.js'
import type { ClientResponse } from '../wire/client.js'
import { keepAliveLines, PlainConnection, type PlainOwner } from '../wire/plain-connection.js'
import type { PlainRequest } from '../wire/plain-request.js'
import type { Fault } from './complaint.js'
import { Connections } from './connections.js'
import { Exchange } from './exchange.js'
import { answerRaw, faultOfParser, NO_TUNNEL } from './malformed.js'
import type { Site } from './site.js'
import type { Sites } from './sites.js'
import { UnreadWatch } from './unread.js'

const BACKLOG = 4_096
const LOOK_EVERY_MS = 1_000
/** Guards say so of what has reached them. */
const SHUTTING_DOWN: Fault = {
  status: 503,
  code: 'SHUTTING_DOWN',
  message: 'the gateway is being closed',
  closes: true,
}
/** Node's parser calls it so, too. */
const CUT_OFF = 'HPE_INVALID_EOF_STATE'

/** How strict and how patient Node's own parser is. Bodies have a watch of ours, which knows who waits for whom. */
function optionsOf({ maxHeaderBytes, headersMs, idleMs }: ServerLimits): ServerOptions {
  return {
    maxHeaderSize: maxHeaderBytes,
    headersTimeout: headersMs,
    requestTimeout: 0,
    keepAliveTimeout: idleMs,
    connectionsCheckingInterval: Math.min(LOOK_EVERY_MS, headersMs),
    insecureHTTPParser: false,
    // Found in the intake, where it gets a line in the log.
    requireHostHeader: false,
  }
}

export class DataServer {
  readonly #sites: Pick<Sites, 'current'>
  readonly #server: Server
  readonly #connections: Connections
  readonly #health: (path: string) => { status: number; body: string } | undefined
  #running = 0
  #onIdle: (() => void) | undefined
  /** Nobody should come any more. Before, somebody may be about to use a connection that is idle. */
  #draining = false

  constructor(
    sites: Pick<Sites, 'current'>,
    health: (path: string) => { status: number; body: string } | undefined,
  ) {
    this.#sites = sites
    this.#health = health
    const { server: limits } = sites.current.config
    const handle = (request: IncomingMessage | PlainRequest, response: ClientResponse) =>
      this.#handle(request, response)
    this.#server = createServer(optionsOf(limits), handle)
    const plain = this.#plainOwner(limits, handle)
    // Counted in the intake: those beyond it would be left out in silence.
    this.#server.maxHeadersCount = 0
    this.#server.on('checkExpectation', handle)
    this.#server.on('connect', (_, socket: Socket) => this.#refuseTunnel(socket))
    this.#server.on('clientError', ({ code }: NodeJS.ErrnoException, socket: Socket) =>
      this.#refuse(faultOfParser(code), socket),
    )
    this.#connections = new Connections(limits, (socket, nowMs) => {
      for (const { exchange } of openOn(socket)) exchange.look(nowMs)
      const known = socket as Known
      known[PLAIN]?.look(nowMs)
      if (known[UNREAD]?.isStuck(socket, nowMs, limits.unreadMs)) socket.destroy()
    })
    this.#server.on('connection', (socket) => this.#connect(socket, plain))
  }

  async listen(port: number, host: string): Promise<number> {
    this.#server.listen({ port, host, backlog: BACKLOG })
    await once(this.#server, 'listening')
    return (this.#server.address() as AddressInfo).port
  }

  get running(): number {
    return this.#running
  }

  /** Connections turned away because there were too many. */
  get connectionsRefused(): number {
    return this.#connections.refused
  }

  /** No new connections; resolves when no request is running. */
  async drain(): Promise<void> {
    this.#draining = true
    // Node's own way out also cuts off answers that have ended but not left.
    NetServer.prototype.close.call(this.#server)
    this.#connections.closeThose(isIdle)
    await this.#idle()
  }

  /** Ends what is left; resolves when all of it has been told of. */
  async close(): Promise<void> {
    this.#draining = true
    this.#connections.close()
    this.#server.close()
    this.#connections.closeThose((socket) => {
      for (const { exchange } of [...openOn(socket)]) exchange.closeWith(SHUTTING_DOWN)
      return true
    })
    await this.#idle()
  }

  async #idle(): Promise<void> {
    if (this.#running === 0) return
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve
    })
  }

  /** Connections come here first. Node's own listener gets those that it says are for Node. */
  #plainOwner(
    { maxHeaderBytes, headersMs, idleMs }: ServerLimits,
    onRequest: PlainOwner['onRequest'],
  ): PlainOwner {
    const server = this.#server
    const sites = this.#sites
    const [toNode] = server.listeners('connection') as ((socket: Socket) => void)[]
    if (toNode === undefined) throw new Error('this Node.js hands connections over in another way')
    server.removeAllListeners('connection')
    return {
      mostHeadBytes: maxHeaderBytes,
      get mostBodyBytes() {
        const { keepBytes, maxBytes } = sites.current.config.body
        return Math.min(keepBytes, maxBytes)
      },
      headersMs,
      idleMs,
      keepAlive: keepAliveLines(idleMs),
      onRequest,
      onOther: (socket) => {
        const known = socket as Known
        known[PLAIN] = undefined
        // What was read of it has yet to be read by Node.
        known[READ] = Number.NaN
        toNode.call(server, socket)
      },
      onCut: (socket) => this.#refuse(faultOfParser(CUT_OFF), socket),
    }
  }

  #handle(request: IncomingMessage | PlainRequest, response: ClientResponse): void {
    const { path } = requestTarget(request.url ?? '/')
    const health = path.startsWith('/health/') ? this.#health(path) : undefined
    if (health !== undefined) {
      response.writeHead(health.status, { 'content-type': 'application/json' })
      response.end(health.body)
      return
    }
    const site = this.#sites.current
    const exchange = new Exchange(site, request, response)
    const open = openOn(request.socket)
    open.push({ exchange, site })
    this.#running++
    site.enter()
    const { socket } = request
    response.once('close', () => {
      noteRead(socket)
      this.#ended(exchange, open)
    })
    exchange.serve()
  }

  #connect(socket: Known, plain: PlainOwner): void {
    if (!this.#connections.admit(socket)) return
    // It is closed next. Node's own listener leaves with a CONNECT.
    socket.on('error', IGNORE)
    socket[UNREAD] = new UnreadWatch()
    socket[PLAIN] = new PlainConnection(socket, plain)
    // An answer that waits behind another on its connection does not hear that the connection is gone.
    socket.once('close', () => {
      const open = openOn(socket)
      for (const { exchange } of [...open]) this.#ended(exchange, open)
    })
  }

  /** What came is no HTTP, or did not come in time. */
  #refuse(fault: Fault | undefined, socket: Socket): void {
    const open = openOn(socket)
    // A connection that has never said anything is let go without a word.
    if (fault === undefined || socket.bytesRead === 0) socket.destroy()
    // In the middle of a body, or behind a request that is still to be answered.
    else if (open.length > 0) open.at(-1)?.exchange.breakOff(fault)
    else this.#sites.current.hooks.onRecord(answerRaw(socket, fault))
  }

  /** Node has let go of its connection: an answer that runs on it would not hear when there is room for more. */
  #refuseTunnel(socket: Socket): void {
    if (openOn(socket).length > 0) socket.destroy()
    else this.#refuse(NO_TUNNEL, socket)
  }

  #ended(exchange: Exchange, open: Open[]): void {
    const place = open.findIndex((each) => each.exchange === exchange)
    if (place === -1) return
    const [{ site }] = open.splice(place, 1) as [Open]
    exchange.close()
    site.leave()
    this.#running--
    if (!this.#draining) return
    this.#connections.closeThose(isIdle)
    // One that has waited behind it on its connection begins before.
    setImmediate(() => {
      if (this.#running === 0) this.#onIdle?.()
    })
  }
}

interface Open {
  readonly exchange: Exchange
  /** The configuration it began under. */
  readonly site: Site
}

const IGNORE = () => {}
const OPEN = Symbol('open exchanges')
const READ = Symbol('bytes read')
const PLAIN = Symbol('plain connection')
const UNREAD = Symbol('unread answers')

type Known = Socket & {
  [OPEN]?: Open[]
  [READ]?: number
  [PLAIN]?: PlainConnection | undefined
  [UNREAD]?: UnreadWatch
}

function noteRead(socket: Known): void {
  socket[READ] = socket.bytesRead
}

/** Nothing is asked over it, not even half of a question, and no part of an answer is left to send. */
function isIdle(socket: Known): boolean {
  if (openOn(socket).length > 0 || socket.writableLength > 0) return false
  return socket.bytesRead === (socket[READ] ?? 0) && socket[PLAIN]?.hasMore !== true
}

/** The requests that came over a connection and are not over; more than one if they are pipelined. */
function openOn(socket: Known): Open[] {
  socket[OPEN] ??= []
  return socket[OPEN]
}
