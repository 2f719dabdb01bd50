/**
 * The gate in front of a handler on node:http, and of frameworks that use its request and response.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { SpillwayError } from '../core/errors.js'
import { refusalBody, refusalHeaders } from '../core/refusal-answer.js'
import { refusalOf } from '../core/refusal-of.js'
import { isThenable } from '../core/thenable.js'
import type { HealthLevel } from '../health/health.js'
import { endpointOf } from './endpoint.js'
import { onResponseEnd } from './response-end.js'
import { type ServerCall, ServerGate, type ServerSnapshot, type Verdict } from './server-gate.js'
import type { ServerOptions } from './server-options.js'

/** The handlers after the gate. */
export type Next = (call: ServerCall) => unknown

/** A handler behind `spillwayHttp()`. `call` identifies the caller. */
export type HttpHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  call: ServerCall,
) => unknown

/** A listener for `http.createServer()`, with counts of requests. */
export interface HttpListener {
  (request: IncomingMessage, response: ServerResponse): void
  /** State and counts at this moment. */
  snapshot(): ServerSnapshot
}

/**
 * Creates a listener for `http.createServer`: the handler gets admitted requests. Refusals of guards in it are
 * answered as well.
 *
 * @example
 * const listener = spillwayHttp({ shed }, async (request, response, call) => {
 *   response.end(await guard.run(() => answer(request), call))
 * })
 * http.createServer(listener).listen(8080)
 */
export function spillwayHttp(
  options: ServerOptions<IncomingMessage>,
  handler: HttpHandler,
): HttpListener {
  const gate = new ServerGate<IncomingMessage>(options)
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    const fail = (error: unknown) => answerError(response, error)
    try {
      const next = (call: ServerCall) => {
        const result = handler(request, response, call)
        if (isThenable(result)) result.then(undefined, fail)
      }
      passGate(gate, request, response, endpointOf(request.url ?? '/'), { next, fail })
    } catch (error) {
      fail(error)
    }
  }
  return Object.assign(listener, { snapshot: () => gate.snapshot() })
}

/** Answers the request, or passes it on; `fail` gets later errors. */
export function passGate<R extends IncomingMessage>(
  gate: ServerGate<R>,
  request: R,
  response: ServerResponse,
  endpoint: string,
  { next, fail }: { next: Next; fail: (error: unknown) => void },
): void {
  const level = gate.healthAt(request.method, request.url ?? '/')
  if (level !== undefined) return void answerHealth(gate, level, response).catch(fail)
  const call = gate.receive(request, request, endpoint)
  const verdict = gate.decide(call, request.headers)
  const follow = (each: Verdict) => {
    if (writeVerdict(response, each)) callNext(gate, request, response, () => next(call))
  }
  if (isThenable(verdict)) verdict.then(follow).catch(fail)
  else follow(verdict)
}

/** In the context of its caller's deadline, if there is one. */
function callNext<R extends IncomingMessage>(
  gate: ServerGate<R>,
  { headers }: R,
  response: ServerResponse,
  next: () => unknown,
): void {
  if (!gate.needsContext(headers)) return void next()
  gate.run(headers, next, () => {
    if (!response.headersSent) response.setHeader(gate.retriedHeader, '1')
  })
}

/** Writes the decision to the response; false: the response is complete. */
function writeVerdict(
  response: ServerResponse,
  { refusal, policy, standing, visit }: Verdict,
): boolean {
  if (policy !== undefined) response.setHeader('ratelimit-policy', policy)
  if (standing !== undefined) response.setHeader('ratelimit', standing)
  if (refusal !== undefined) {
    answerRefusal(response, refusal)
    return false
  }
  if (visit !== undefined) onResponseEnd(response, () => visit.end())
  return true
}

/** A refusal of the gate, or of a guard in a handler. */
export function answerRefusal(response: ServerResponse, error: SpillwayError): void {
  for (const [name, value] of Object.entries(refusalHeaders(error))) response.setHeader(name, value)
  answerJson(response, error.status, refusalBody(error))
}

async function answerHealth<R>(
  gate: ServerGate<R>,
  level: HealthLevel,
  response: ServerResponse,
): Promise<void> {
  const { status, body } = await gate.health(level)
  response.setHeader('cache-control', 'no-store')
  answerJson(response, status, body)
}

/** A plain server has no other error handler. Clients do not see the reason. */
function answerError(response: ServerResponse, error: unknown): void {
  if (response.headersSent) return void response.destroy()
  const refusal = refusalOf(error)
  if (refusal !== undefined) return answerRefusal(response, refusal)
  answerJson(response, 500, '{"error":{"type":"internal"}}')
}

function answerJson(response: ServerResponse, status: number, body: string): void {
  response.statusCode = status
  response.setHeader('content-type', 'application/json')
  response.setHeader('content-length', Buffer.byteLength(body))
  response.end(body)
}
