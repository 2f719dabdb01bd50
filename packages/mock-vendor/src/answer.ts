/** Sends the response that was planned for a request. */
import {
  type Answer,
  type Dialect,
  type EventWriter,
  type Failure,
  json,
  type Payload,
  type Reply,
} from './dialect.js'
import type { Exchange } from './exchange.js'
import type { Plan } from './knobs.js'

export interface Scene {
  readonly exchange: Exchange
  readonly dialect: Dialect
  readonly plan: Plan
  readonly reply: Reply
  /** Headers of every response to this request. */
  headers(): Record<string, string>
}

const STREAM_TYPE = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
}

export async function play(scene: Scene, answer: Answer): Promise<void> {
  const { exchange, dialect, plan, reply } = scene
  if (plan.neverAnswer) return void (await exchange.wait(Number.POSITIVE_INFINITY))
  if (!(await exchange.wait(plan.latencyMs))) return
  if (plan.failure !== undefined) {
    const { status, kind, retryAfterMs } = plan.failure
    const failure = kind === undefined ? dialect.failure(status) : dialect.failures[kind]
    return refuse(scene, failure, retryAfterMs)
  }
  if (exchange.call.streamed && reply.events !== undefined) {
    await stream(scene, { answer, writer: reply.events })
  } else await sendWhole(scene, answer)
}

/** Refuses in the API's own error format. `Retry-After` is in whole seconds, rounded up. */
export async function refuse(
  { exchange, dialect, headers }: Pick<Scene, 'exchange' | 'dialect' | 'headers'>,
  failure: Failure,
  retryAfterMs?: number,
): Promise<void> {
  const retryAfter = retryAfterMs === undefined ? {} : retryHeaders(dialect, retryAfterMs)
  const body = failure.body ?? dialect.errorBody(failure, exchange.call.requestId)
  await sendPayload(exchange, json(body), { ...headers(), ...retryAfter }, failure.status)
}

function retryHeaders(dialect: Dialect, waitMs: number): Record<string, string> {
  return dialect.retryHeaders?.(waitMs) ?? { 'retry-after': String(Math.ceil(waitMs / 1_000)) }
}

export async function sendPayload(
  exchange: Exchange,
  { contentType, body }: Payload,
  headers: Record<string, string>,
  status = 200,
): Promise<void> {
  exchange.head(status, { ...headers, ...bodyHeaders(contentType, body) })
  exchange.call.chunks = 1
  if (await exchange.send(body)) exchange.finish()
}

async function sendWhole(scene: Scene, answer: Answer): Promise<void> {
  const { exchange, dialect, plan } = scene
  for (let token = 0; token < answer.tokens; token++) {
    if (!(await exchange.wait(plan.tokenMs()))) return
  }
  if (plan.errorAfter < Number.POSITIVE_INFINITY) return refuse(scene, dialect.failure(500))
  const { contentType, body } = scene.reply.whole(answer)
  const half = body.slice(0, body.length / 2)
  if (plan.garbage) return sendPayload(exchange, { contentType, body: half }, scene.headers())

  const rest = body.slice(half.length)
  exchange.head(200, { ...scene.headers(), ...bodyHeaders(contentType, body) })
  if (plan.stallBefore && !(await exchange.wait(plan.stallMs))) return
  if (!(await exchange.send(half))) return
  if (plan.cutAfter < Number.POSITIVE_INFINITY) return exchange.cut()
  if (plan.stallAfter < Number.POSITIVE_INFINITY && !(await exchange.wait(plan.stallMs))) return
  exchange.call.chunks = 1
  exchange.call.tokensSent = answer.tokens
  if (await exchange.send(rest)) exchange.finish()
}

interface Script {
  readonly answer: Answer
  readonly writer: EventWriter
}

async function stream(scene: Scene, script: Script): Promise<void> {
  const { exchange, plan } = scene
  const { call } = exchange
  exchange.head(200, { ...scene.headers(), ...STREAM_TYPE })
  if (plan.stallBefore && !(await exchange.wait(plan.stallMs))) return

  let stalled = false
  for (const { kind, text } of eventsOf(scene.plan, script)) {
    if (call.chunks === plan.cutAfter) return exchange.cut()
    if (!stalled && kind !== 'opening' && call.tokensSent >= plan.stallAfter) {
      stalled = true
      if (!(await exchange.wait(plan.stallMs))) return
    }
    if (kind === 'token' && call.tokensSent > 0 && !(await exchange.wait(plan.tokenMs()))) return
    call.chunks++
    if (kind === 'token') call.tokensSent++
    if (!(await exchange.send(text))) return
  }
  if (call.chunks === plan.cutAfter) exchange.cut()
  else exchange.finish()
}

interface StreamEvent {
  readonly kind: 'opening' | 'token' | 'closing'
  readonly text: string
}

function* eventsOf(plan: Plan, { answer, writer }: Script): Generator<StreamEvent> {
  for (const text of writer.opening(answer)) yield { kind: 'opening', text }
  const middle = Math.floor(answer.tokens / 2)
  for (let index = 0; index < answer.tokens; index++) {
    if (index === plan.errorAfter) break
    const text = writer.token(answer, index)
    yield { kind: 'token', text: spoil(text, { garbage: plan.garbage, from: middle, index }) }
  }
  if (plan.errorAfter <= answer.tokens) {
    return yield { kind: 'closing', text: writer.breakdown(answer) }
  }
  if (plan.garbage === 'sse') return
  for (const text of writer.closing(answer)) yield { kind: 'closing', text }
}

/** `json`: one event with invalid JSON. `sse`: wrong framing from this event on. */
function spoil(
  text: string,
  { garbage, from, index }: { garbage: Plan['garbage']; from: number; index: number },
): string {
  if (garbage === 'json' && index === from) return `${text.slice(0, -10)}\n\n`
  if (garbage === 'sse' && index >= from) return `${text.trimEnd()}\n`
  return text
}

function bodyHeaders(contentType: string, body: string | Buffer) {
  return { 'content-type': contentType, 'content-length': String(Buffer.byteLength(body)) }
}
