/** The vendors: one HTTP server that answers for all of them, and fails for one of them during its outages. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { outagesOf, type PodsPlan, SERVICE_MS } from '@spillway/simulator'
import { nowMs } from './messages.js'

export class Vendors {
  /** When the measured time begins. */
  startMs = Number.POSITIVE_INFINITY
  readonly #plan: PodsPlan
  readonly #arrivals: number[][]
  readonly #server = createServer((incoming, response) => {
    const vendor = Number(incoming.url?.slice(1))
    this.#arrivals[vendor]!.push(Number(incoming.headers['x-sent-ms']))
    const { min, max } = SERVICE_MS
    setTimeout(
      () => {
        response.statusCode = this.#fails(vendor) ? 503 : 200
        response.end()
      },
      min + (max - min) * Math.random(),
    )
  })

  constructor(plan: PodsPlan) {
    this.#plan = plan
    this.#arrivals = Array.from({ length: plan.vendors }, () => [])
  }

  async start(): Promise<number> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return (this.#server.address() as AddressInfo).port
  }

  /** In order, and from the beginning of the measured time. */
  arrivals(): number[][] {
    return this.#arrivals.map((times) =>
      times.map((atMs) => atMs - this.startMs).sort((one, other) => one - other),
    )
  }

  stop(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  #fails(vendor: number): boolean {
    const atMs = nowMs() - this.startMs
    return outagesOf(this.#plan, vendor).some(
      ({ fromMs, untilMs }) => atMs >= fromMs && atMs < untilMs,
    )
  }
}
