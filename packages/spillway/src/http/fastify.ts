/** For Fastify 5: `await app.register(spillwayFastify, options)`, before the routes. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { refusalBody, retryAfterMilliseconds, retryAfterSeconds } from '../core/refusal-answer.js'
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
      if (!tell(reply, each)) return
      request.spillway = call
      goOn(gate, request, reply, done)
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

  app.addHook('onError', (_, reply, error, done) => {
    const refusal = refusalToAnswer(error)
    if (refusal !== undefined) {
      // Fastify takes the status from the error; that of an error around a refusal has none.
      reply.code(refusal.status)
      if (refusal.retryAfterMs !== undefined) tellRetryAfter(reply, refusal.retryAfterMs)
    }
    done()
  })
  ready()
}

function goOn(
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
function tell(reply: FastifyReply, { refusal, policy, standing, visit }: Verdict): boolean {
  if (policy !== undefined) reply.header('ratelimit-policy', policy)
  if (standing !== undefined) reply.header('ratelimit', standing)
  if (refusal !== undefined) {
    if (refusal.retryAfterMs !== undefined) tellRetryAfter(reply, refusal.retryAfterMs)
    sendJson(reply, refusal.status, refusalBody(refusal))
    return false
  }
  if (visit !== undefined) onResponseEnd(reply.raw, () => visit.end())
  return true
}

function tellRetryAfter(reply: FastifyReply, retryAfterMs: number): void {
  reply.header('retry-after', retryAfterSeconds(retryAfterMs))
  reply.header('retry-after-ms', retryAfterMilliseconds(retryAfterMs))
}

function sendJson(reply: FastifyReply, status: number, body: string): void {
  reply.code(status).type('application/json').send(body)
}

/** Tells Fastify that the plugin applies to the whole server and not only to its own routes. */
export const spillwayFastify = Object.assign(plugin, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'spillway',
  [Symbol.for('plugin-meta')]: { name: 'spillway', fastify: '5.x' },
})
