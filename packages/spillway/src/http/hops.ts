/**
 * For a service in the middle: reads from a request how much time its caller has left and which
 * attempt this is, so that everything in here keeps to it; and tells the caller, with the answer,
 * that somebody in here has tried again already. Guards with `fetch: { hops: true }` send both on.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type HopHeaders, hasRetried, hopNames, runHop } from '../core/hops.js'
import { object, validate } from '../core/options/checks.js'
import type { Clock } from '../core/time/clock.js'
import { clockOption } from '../core/time/clock-options.js'

export interface HopsOptions {
  /** Names of the headers, if not Spillway's own. */
  headers?: HopHeaders
  /** Default: the system's clock. */
  clock?: Clock
}

export interface Hops {
  /** Runs a handler for a request with these headers: a plain object, or `Headers`. */
  run<T>(headers: unknown, handler: () => T): T
  /** The same for node:http, Connect and Express; also puts on the answer what the caller should know. */
  handle<T>(
    request: Pick<IncomingMessage, 'headers'>,
    response: Pick<ServerResponse, 'headersSent' | 'setHeader'>,
    next: () => T,
  ): T
  /** For an answer that is put together by hand, such as a `Response`: headers to add to it. */
  answerHeaders(): Record<string, string>
}

const readClock = object({ clock: clockOption })

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
