/** For Express 5, and frameworks with Connect middleware: `app.use(spillwayExpress(options))`. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { refusalToAnswer } from '../core/refusal-of.js'
import { EndpointNames, endpointOf, type RouterRules } from './endpoint.js'
import { answerRefusal, passGate } from './node-server.js'
import { type ServerCall, ServerGate, type ServerSnapshot } from './server-gate.js'
import type { ServerOptions } from './server-options.js'

/** The fields of Express that are used; your `identify` may use all of them. */
export interface ExpressRequest extends IncomingMessage {
  /** The whole URL, also below a mount path. */
  originalUrl?: string
  /** The application. */
  app?: {
    /** Whether a setting is on. */ enabled(setting: string): boolean
  }
  /** The caller of the request: pass it to a guard. */
  spillway?: ServerCall
}

type NextFunction = (error?: unknown) => void

/** Middleware for Express, with counts of requests. */
export interface ExpressMiddleware<R extends ExpressRequest> {
  (request: R, response: ServerResponse, next: NextFunction): void
  /** State and counts at this moment. */
  snapshot(): ServerSnapshot
}

/**
 * Creates middleware for Express that sheds, limits and sets deadlines before the handlers.
 *
 * @example
 * app.use(spillwayExpress({ limits: [{ per: 'ip', limit: 100, windowMs: '1m' }] }))
 */
export function spillwayExpress<R extends ExpressRequest = ExpressRequest>(
  options: ServerOptions<R> = {},
): ExpressMiddleware<R> {
  const gate = new ServerGate<R>(options)
  const names = new EndpointNames(namedEndpoints(options))
  const middleware = (request: R, response: ServerResponse, next: NextFunction) => {
    // Under a mount path, `url` is only the rest of it.
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

/** Express ignores case and a trailing slash by default. */
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

/**
 * Creates error middleware that answers refusals of guards with status and `Retry-After`, also if an SDK has
 * wrapped them as `cause`. Add it after all routes.
 *
 * @example
 * app.use(spillwayExpressErrors())
 */
export function spillwayExpressErrors() {
  return (error: unknown, _: ExpressRequest, response: ServerResponse, next: NextFunction) => {
    const refusal = response.headersSent ? undefined : refusalToAnswer(error)
    if (refusal === undefined) return next(error)
    answerRefusal(response, refusal)
  }
}
