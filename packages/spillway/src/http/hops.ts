/**
 * For a service between others: reads from a request how much time its caller has left and which
 * attempt it is, so that nested mechanisms follow it. The response says whether this service has
 * already retried. Guards with `fetch: { hops: true }` send both on.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type HopHeaders, hasRetried, hopNames, runHop } from '../core/hops.js'
import { object, validate } from '../core/options/checks.js'
import type { Clock } from '../core/time/clock.js'
import { clockOption } from '../core/time/clock-options.js'

/** Options of `createHops()`. */
export interface HopsOptions {
  /** Names of the headers. Default: `spillway-deadline-ms`, `spillway-attempt` and `spillway-retried`. */
  headers?: HopHeaders
  /** The clock to read and to set timers with. Default: the system clock. */
  clock?: Clock
}

/** Reads and writes the headers of hops between services. Created by `createHops()`. */
export interface Hops {
  /** Runs a handler for a request with these headers: a plain object, or `Headers`. */
  run<T>(headers: unknown, handler: () => T): T
  /** For node:http, Connect and Express. Also sets the headers of the response. */
  handle<T>(
    request: Pick<IncomingMessage, 'headers'>,
    response: Pick<ServerResponse, 'headersSent' | 'setHeader'>,
    next: () => T,
  ): T
  /** Headers for a response that the application builds itself, such as a `Response`. */
  answerHeaders(): Record<string, string>
}

const readClock = object({ clock: clockOption })

/**
 * Creates a reader and writer for the headers of hops between services.
 *
 * @example
 * const hops = createHops()
 * http.createServer((request, response) => hops.handle(request, response, () => app(request, response)))
 */
export function createHops({ headers, clock }: HopsOptions = {}): Hops {
  const names = hopNames(headers)
  const checked = validate('hops', { clock }, readClock)
  return {
    run: (incoming, handler) => runHop(incoming, names, handler, { clock: checked.clock }),
    handle: (request, response, next) =>
      runHop(request.headers, names, next, {
        clock: checked.clock,
        onRetried: () => {
          if (!response.headersSent) response.setHeader(names.retried, '1')
        },
      }),
    answerHeaders: () => (hasRetried() ? { [names.retried]: '1' } : {}),
  }
}
