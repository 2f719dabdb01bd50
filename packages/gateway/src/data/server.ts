/** The data port: plain node:http, which measures faster than any framework on it. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Exchange } from './exchange.js'
import type { Site } from './site.js'
import type { Sites } from './sites.js'

/** Longer than the load balancers in front keep theirs, so that none is used as it closes. */
const KEEP_ALIVE_MS = 75_000
const BACKLOG = 4_096

export class DataServer {
  readonly #sites: Pick<Sites, 'current'>
  readonly #server: Server
  readonly #health: (path: string) => { status: number; body: string } | undefined
  #running = 0
  #onIdle: (() => void) | undefined

  constructor(
    sites: Pick<Sites, 'current'>,
    health: (path: string) => { status: number; body: string } | undefined,
  ) {
    this.#sites = sites
    this.#health = health
    this.#server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) =>
      this.#handle(request, response),
    )
    this.#server.on('connection', (socket) => this.#connect(socket))
  }

  async listen(port: number, host: string): Promise<number> {
    this.#server.listen({ port, host, backlog: BACKLOG })
    await once(this.#server, 'listening')
    return (this.#server.address() as AddressInfo).port
  }

  get running(): number {
    return this.#running
  }

  /** No new connections; resolves when no request is running. */
  async drain(): Promise<void> {
    this.#server.close()
    this.#server.closeIdleConnections()
    if (this.#running === 0) return
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve
    })
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const health = request.url?.startsWith('/health/')
      ? this.#health(request.url.split('?', 1)[0] as string)
      : undefined
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
    response.once('close', () => this.#ended(exchange, open))
    exchange.serve()
  }

  #connect(socket: Socket): void {
    // An answer that waits behind another on its connection does not hear that the connection is gone.
    socket.once('close', () => {
      const open = openOn(socket)
      for (const { exchange } of [...open]) this.#ended(exchange, open)
    })
  }

  #ended(exchange: Exchange, open: Open[]): void {
    const place = open.findIndex((each) => each.exchange === exchange)
    if (place === -1) return
    const [{ site }] = open.splice(place, 1) as [Open]
    exchange.close()
    site.leave()
    this.#running--
    if (site.hooks.draining) this.#server.closeIdleConnections()
    if (this.#running === 0) this.#onIdle?.()
  }
}

interface Open {
  readonly exchange: Exchange
  /** The configuration it began under. */
  readonly site: Site
}

const OPEN = Symbol('open exchanges')

/** The requests that came over a connection and are not over; more than one if they are pipelined. */
function openOn(socket: Socket & { [OPEN]?: Open[] }): Open[] {
  socket[OPEN] ??= []
  return socket[OPEN]
}
