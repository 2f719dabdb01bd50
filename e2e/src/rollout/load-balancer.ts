/**
 * A load balancer in front of gateways: each request goes to the next gateway whose readiness probe succeeded. It
 * keeps connections open and never repeats a request, so failures reach the client.
 */
import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { GatewayProcess } from '../gateway-process.js'

const PROBE_EVERY_MS = 200

interface Upstream {
  readonly gateway: GatewayProcess
  isReady: boolean
  running: number
  answered: number
}

export class LoadBalancer {
  readonly #agent = new Agent({ keepAlive: true })
  readonly #server = createServer((incoming, answer) => this.#forward(incoming, answer))
  readonly #upstreams = new Map<GatewayProcess, Upstream>()
  readonly #probing: Promise<void>
  #turn = 0
  #isOver = false

  constructor() {
    this.#probing = this.#keepProbing()
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Resolves when the gateway's readiness probe has succeeded. */
  async add(gateway: GatewayProcess): Promise<void> {
    const upstream = { gateway, isReady: false, running: 0, answered: 0 }
    this.#upstreams.set(gateway, upstream)
    while (!upstream.isReady) await sleep(PROBE_EVERY_MS)
  }

  /** @returns the number of requests that it answered */
  remove(gateway: GatewayProcess): number {
    const answered = this.#upstreams.get(gateway)?.answered ?? 0
    this.#upstreams.delete(gateway)
    return answered
  }

  /** Requests that the gateway has not answered completely. */
  running(gateway: GatewayProcess): number {
    return this.#upstreams.get(gateway)?.running ?? 0
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await this.#probing
    this.#agent.destroy()
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #forward(incoming: IncomingMessage, answer: ServerResponse): void {
    const ready = [...this.#upstreams.values()].filter(({ isReady }) => isReady)
    const upstream = ready[this.#turn++ % Math.max(1, ready.length)]
    if (upstream === undefined) {
      answer.writeHead(503).end('no gateway is ready')
      return
    }
    upstream.running++
    answer.once('close', () => upstream.running--)
    const { method, headers, url = '/' } = incoming
    const target = new URL(url, upstream.gateway.url)
    const outgoing = request(target, { method, headers, agent: this.#agent }, (received) => {
      upstream.answered++
      answer.writeHead(received.statusCode ?? 502, received.headers)
      received.pipe(answer)
      // Destroys the socket, so that a truncated answer does not look complete.
      received.once('error', () => answer.destroy())
    })
    outgoing.once('error', (error: NodeJS.ErrnoException) => {
      if (answer.headersSent) answer.destroy()
      else answer.writeHead(502).end(error.code)
    })
    incoming.pipe(outgoing)
  }

  async #keepProbing(): Promise<void> {
    while (!this.#isOver) {
      await Promise.all([...this.#upstreams.values()].map((upstream) => this.#probe(upstream)))
      await sleep(PROBE_EVERY_MS)
    }
  }

  async #probe(upstream: Upstream): Promise<void> {
    const answer = await fetch(`${upstream.gateway.adminUrl}/health/ready`).catch(() => undefined)
    await answer?.arrayBuffer()
    upstream.isReady = answer?.ok === true
  }
}
