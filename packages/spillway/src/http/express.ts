/** For Express 5 (and anything that takes the middleware of Connect): `app.use(spillwayExpress(options))`. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { SpillwayError } from '../core/errors.js'
import { EndpointNames, endpointOf, type RouterRules } from './endpoint.js'
import { answerRefusal, passGate } from './node-server.js'
import { type ServerCall, ServerGate, type ServerSnapshot } from './server-gate.js'
import type { ServerOptions } from './server-options.js'

/** What Express adds, as far as it is of use here; your `identify` may ask for all of it. */
export interface ExpressRequest extends IncomingMessage {
  originalUrl?: string
  app?: { enabled(setting: string): boolean }
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
  const names = new EndpointNames(namedEndpoints(options))
  const middleware = (request: R, response: ServerResponse, next: NextFunction) => {
    // Mounted under a path, `url` is what is left of it.
    const path = endpointOf(request.originalUrl ?? request.url ?? '/')
    const endpoint = names.find(path, rulesOf(request))
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

/** Express ignores case and a slash at the end of a path, unless its settings say otherwise. */
function rulesOf({ app }: ExpressRequest): RouterRules {
  return {
    caseSensitive: app?.enabled('case sensitive routing') === true,
    strict: app?.enabled('strict routing') === true,
  }
}

function namedEndpoints({ limits = [] }: Pick<ServerOptions<never>, 'limits'>): string[] {
  return limits.flatMap(({ per, limit }) =>
    per === 'endpoint' && typeof limit === 'object' ? Object.keys(limit) : [],
  )
}

/** After all routes: answers what guards in them refused, with status and `Retry-After`. */
export function spillwayExpressErrors() {
  return (error: unknown, _: ExpressRequest, response: ServerResponse, next: NextFunction) => {
    if (!(error instanceof SpillwayError) || response.headersSent) return next(error)
    answerRefusal(response, error)
  }
}
