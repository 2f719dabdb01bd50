/**
 * The way to one vendor. Nearly every request has its body at hand and goes the short way, which takes far
 * less of the processor; a body that is still coming goes by undici, and so does whoever wants to read an
 * answer as a stream.
 */
import { type Dispatcher, Pool } from 'undici'
import type { Asking, WireHandler, WireRequest } from './ask.js'
import { askUndici } from './ask-undici.js'
import { ConnectionPool, REST_MS } from './connection-pool.js'

export class Line {
  readonly #short: ConnectionPool
  readonly #long: Pool

  constructor(origin: string, connectMs: number) {
    this.#short = new ConnectionPool(origin, connectMs)
    this.#long = new Pool(origin, {
      connect: { timeout: connectMs },
      keepAliveTimeout: REST_MS,
      // Silence is the guard's affair.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
  }

  ask(request: WireRequest, handler: WireHandler): Asking {
    const { body } = request
    if (body === undefined || Buffer.isBuffer(body)) return this.#short.ask(request, body, handler)
    if (typeof body === 'string') return this.#short.ask(request, Buffer.from(body), handler)
    return askUndici(this.#long, request, handler)
  }

  /** For whoever reads the answer by himself, and has time. */
  request(
    { method, path, headers, body }: WireRequest,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    const whole = body as Buffer | string | null
    return this.#long.request({ method, path, headers, body: whole, signal })
  }

  async destroy(): Promise<void> {
    await Promise.all([this.#short.destroy(), this.#long.destroy()])
  }
}
