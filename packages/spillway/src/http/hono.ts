/**
 * For Hono 4: `app.use(spillwayHono(options))`, before the routes. On Node's server the client's
 * address is that of its connection. Where Hono does not provide it, it is unknown, and all clients
 * count as one.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Context, MiddlewareHandler } from 'hono'
import { SpillwayError } from '../core/errors.js'
import { refusalBody, refusalHeaders } from '../core/refusal-answer.js'
import { refusalOf } from '../core/refusal-of.js'
import { onResponseEnd } from './response-end.js'
import { type Incoming, type ServerCall, ServerGate, type ServerSnapshot } from './server-gate.js'
import type { ServerOptions } from './server-options.js'

/** Options of the Hono middleware. */
export type HonoServerOptions = ServerOptions<Context>

/** `context.get('spillway')` is the caller of the request. Pass it to a guard. */
export interface HonoVariables {
  /** The caller of the request. */
  spillway: ServerCall
}

/** Middleware for Hono, with counts of requests. */
export type HonoMiddleware = MiddlewareHandler<{ Variables: HonoVariables }> & {
  /** State and counts at this moment. */
  snapshot(): ServerSnapshot
}

/**
 * Creates middleware for Hono that sheds, limits and sets deadlines before the handlers.
 *
 * @example
 * app.use(spillwayHono({ limits: [{ per: 'ip', limit: 100, windowMs: '1m' }] }))
 */
export function spillwayHono(options: HonoServerOptions = {}): HonoMiddleware {
  const gate = new ServerGate<Context>(options)
  const middleware: MiddlewareHandler<{ Variables: HonoVariables }> = async (context, next) => {
    const { method, path } = context.req
    const level = gate.healthAt(method, path)
    if (level !== undefined) {
      const { status, body } = await gate.health(level)
      return json(status, body, { 'cache-control': 'no-store' })
    }
    const incoming = incomingOf(context)
    const call = gate.receive(incoming, context, path)
    const { refusal, policy, standing, visit } = await gate.decide(call, incoming.headers)
    const headers: Record<string, string> = {}
    if (policy !== undefined) headers['ratelimit-policy'] = policy
    if (standing !== undefined) headers.ratelimit = standing
    if (refusal !== undefined) return refusalResponse(refusal, headers)
    context.set('spillway', call)
    const outgoing = nodeOf(context).outgoing
    if (visit !== undefined && outgoing !== undefined) onResponseEnd(outgoing, () => visit.end())
    try {
      if (!gate.needsContext(incoming.headers)) await next()
      else {
        await gate.run(incoming.headers, next, () => {
          headers[gate.retriedHeader] = '1'
        })
      }
    } finally {
      // Without Node's response there is no event for the end.
      if (outgoing === undefined) visit?.end()
    }
    const refused = refusalIn(context)
    if (refused !== undefined) {
      context.res = refusalResponse(refused, headers)
      return undefined
    }
    for (const [name, value] of Object.entries(headers)) context.header(name, value)
    return undefined
  }
  return Object.assign(middleware, { snapshot: () => gate.snapshot() })
}

/**
 * The refusal that Hono has turned into an error response. A response other than 500 to an error around a
 * refusal is the application's own.
 */
function refusalIn({ error, res }: Context): SpillwayError | undefined {
  return error instanceof SpillwayError || res.status === 500 ? refusalOf(error) : undefined
}

/** On Node's server, its request and response. */
function nodeOf(context: Context): { incoming?: IncomingMessage; outgoing?: ServerResponse } {
  return context.env ?? {}
}

function incomingOf(context: Context): Incoming {
  const { incoming } = nodeOf(context)
  if (incoming !== undefined) return incoming
  const headers = Object.fromEntries(context.req.raw.headers) as IncomingHttpHeaders
  return { headers, socket: {} }
}

function refusalResponse(
  error: SpillwayError,
  headers: Readonly<Record<string, string>>,
): Response {
  return json(error.status, refusalBody(error), { ...headers, ...refusalHeaders(error) })
}

function json(status: number, body: string, headers: Record<string, string>): Response {
  return new Response(body, { status, headers: { ...headers, 'content-type': 'application/json' } })
}
