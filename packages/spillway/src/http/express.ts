/** For Express 5 (and anything that takes the middleware of Connect): `app.use(spillwayExpress(options))`. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { SpillwayError } from '../core/errors.js'
import { answerRefusal, passGate, pathOf } from './node-server.js'
import { type ServerCall, ServerGate, type ServerSnapshot } from './server-gate.js'
import type { ServerOptions } from './server-options.js'

/** What Express adds, as far as it is of use here; your `identify` may ask for all of it. */
export interface ExpressRequest extends IncomingMessage {
  originalUrl?: string
  /** Whose request it is: hand it to a guard. */
  spillway?: ServerCall
}

type NextFunction = (error?: unknown) => void

export interface ExpressMiddleware<R extends ExpressRequest> {
  (request: R, response: ServerResponse, next: NextFunction): void
  snapshot(): ServerSnapshot
}

export function spillwayExpress<R extends ExpressRequest = ExpressRequest>(
  options: ServerOptions<R> = {},
): ExpressMiddleware<R> {
  const gate = new ServerGate<R>(options)
  const middleware = (request: R, response: ServerResponse, next: NextFunction) => {
    // Mounted under a path, `url` is what is left of it.
    const endpoint = pathOf(request.originalUrl ?? request.url ?? '/')
    passGate(gate, request, response, endpoint, {
      next: (call) => {
        request.spillway = call
        next()
      },
      fail: next,
    })
  }
  return Object.assign(middleware, { snapshot: () => gate.snapshot() })
}

/** After all routes: answers what guards in them refused, with status and `Retry-After`. */
export function spillwayExpressErrors() {
  return (error: unknown, _: ExpressRequest, response: ServerResponse, next: NextFunction) => {
    if (!(error instanceof SpillwayError) || response.headersSent) return next(error)
    answerRefusal(response, error)
  }
}
