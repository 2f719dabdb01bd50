/** For Fastify 5: `await app.register(spillwayFastify, options)`, before the routes. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { SpillwayError } from '../core/errors.js'
import { refusalBody, refusalHeaders } from '../core/refusal-answer.js'
import { refusalToAnswer } from '../core/refusal-of.js'
import { isThenable } from '../core/thenable.js'
import { endpointOf } from './endpoint.js'
import { onResponseEnd } from './response-end.js'
import { type ServerCall, ServerGate, type ServerSnapshot, type Verdict } from './server-gate.js'
import type { ServerOptions } from './server-options.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller of the request: pass it to a guard. Null before the request was admitted. */
    spillway: ServerCall | null
  }
  interface FastifyInstance {
    /** Counts of admitted and refused requests. */
    spillway: { snapshot(): ServerSnapshot }
  }
}

/** Options of the Fastify plugin. */
export type FastifyServerOptions = ServerOptions<FastifyRequest>

type Done = () => void

/** Runs a function in the async context that was current when it was created. */
type Inside = ReturnType<typeof AsyncLocalStorage.snapshot>

const CONTEXT = Symbol('spillway context')
type WithContext = { [CONTEXT]?: Inside }

function plugin(app: FastifyInstance, options: FastifyServerOptions, ready: Done): void {
  const gate = new ServerGate<FastifyRequest>(options)
  app.decorateRequest('spillway', null)
  app.decorate('spillway', { snapshot: () => gate.snapshot() })

  app.addHook('onRequest', (request, reply, done) => {
    const { raw } = request
    const level = gate.healthAt(raw.method, raw.url as string)
    if (level !== undefined) {
      gate
        .health(level)
        .then(
          ({ status, body }) => sendJson(reply.header('cache-control', 'no-store'), status, body),
          done,
        )
      return
    }
    const endpoint = request.routeOptions.url ?? endpointOf(raw.url as string)
    const call = gate.receive(raw, request, endpoint)
    const verdict = gate.decide(call, raw.headers)
    const follow = (each: Verdict) => {
      if (!applyVerdict(reply, each)) return
      request.spillway = call
      callHandler(gate, request, reply, done)
    }
    if (isThenable(verdict)) verdict.then(follow).catch(done)
    else follow(verdict)
  })

  // Bodies are read in events of the connection, outside of the request's async context.
  app.addHook('preValidation', (request, _, done) => {
    const inside = (request as WithContext)[CONTEXT]
    if (inside === undefined) done()
    else inside(done)
  })

  // For applications whose own error handler sends the error itself.
  app.addHook('onError', (_, reply, error, done) => {
    const refusal = refusalToAnswer(error)
    if (refusal !== undefined) {
      reply.code(refusal.status).headers(refusalHeaders(refusal))
    }
    done()
  })

  app.addHook('onRoute', (route) => {
    route.errorHandler ??= answerRefusals
  })
  ready()
}

/**
 * Answers refusals like those of the plugin itself, also if an SDK has wrapped them. Other errors, and all errors
 * of an application with its own error handler, are passed to the next handler.
 */
function answerRefusals(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const isOwnHandler = request.server.errorHandler.name !== FASTIFY_DEFAULT
  const refusal = isOwnHandler ? undefined : refusalToAnswer(error)
  if (refusal === undefined) throw error
  sendRefusal(reply, refusal)
}

/** Name of the handler that Fastify uses if the application has set none. */
const FASTIFY_DEFAULT = 'defaultErrorHandler'

function callHandler(
  gate: ServerGate<FastifyRequest>,
  request: FastifyRequest,
  reply: FastifyReply,
  done: Done,
): void {
  const { headers } = request.raw
  if (!gate.needsContext(headers)) return done()
  const next = () => {
    ;(request as WithContext)[CONTEXT] = AsyncLocalStorage.snapshot()
    done()
  }
  gate.run(headers, next, () => {
    if (!reply.sent) reply.header(gate.retriedHeader, '1')
  })
}

/** Writes the decision to the response; false: the response is complete. */
function applyVerdict(reply: FastifyReply, { refusal, policy, standing, visit }: Verdict): boolean {
  if (policy !== undefined) reply.header('ratelimit-policy', policy)
  if (standing !== undefined) reply.header('ratelimit', standing)
  if (refusal !== undefined) {
    sendRefusal(reply, refusal)
    return false
  }
  if (visit !== undefined) onResponseEnd(reply.raw, () => visit.end())
  return true
}

function sendRefusal(reply: FastifyReply, refusal: SpillwayError): void {
  reply.headers(refusalHeaders(refusal))
  sendJson(reply, refusal.status, refusalBody(refusal))
}

function sendJson(reply: FastifyReply, status: number, body: string): void {
  reply.code(status).type('application/json').send(body)
}

/**
 * Plugin for Fastify 5 that sheds, limits and sets deadlines before the handlers. It applies to the whole server;
 * register it before the routes.
 *
 * @example
 * await app.register(spillwayFastify, { limits: [{ per: 'ip', limit: 100, windowMs: '1m' }] })
 */
export const spillwayFastify = Object.assign(plugin, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'spillway',
  [Symbol.for('plugin-meta')]: { name: 'spillway', fastify: '5.x' },
})
