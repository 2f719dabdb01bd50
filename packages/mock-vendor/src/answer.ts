/** Sends the response that was planned for a request. */
import type { Answer, Dialect, Failure } from './dialect.js'
import type { Exchange } from './exchange.js'
import type { Plan } from './knobs.js'

export interface Scene {
  readonly exchange: Exchange
  readonly dialect: Dialect
  readonly plan: Plan
  /** Headers of every response to this request. */
  headers(): Record<string, string>
}

const JSON_TYPE = { 'content-type': 'application/json' }
const STREAM_TYPE = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
}

export async function play(scene: Scene, answer: Answer): Promise<void> {
  const { exchange, dialect, plan } = scene
  if (plan.neverAnswer) return void (await exchange.wait(Number.POSITIVE_INFINITY))
  if (!(await exchange.wait(plan.latencyMs))) return
  if (plan.failure !== undefined) {
    const { status, retryAfterMs } = plan.failure
    return refuse(scene, dialect.failure(status), retryAfterMs)
  }
  if (answer.streamed) await stream(scene, answer)
  else await sendWhole(scene, answer)
}

/** Refuses in the API's own error format. `Retry-After` is in whole seconds, rounded up. */
export async function refuse(
  { exchange, dialect, headers }: Pick<Scene, 'exchange' | 'dialect' | 'headers'>,
  failure: Failure,
  retryAfterMs?: number,
): Promise<void> {
  const retryAfter =
    retryAfterMs === undefined
      ? undefined
      : { 'retry-after': String(Math.ceil(retryAfterMs / 1_000)) }
  const body = dialect.errorBody(failure, exchange.call.requestId)
  await sendJson(exchange, failure.status, { ...headers(), ...retryAfter }, JSON.stringify(body))
}

export async function sendJson(
  exchange: Exchange,
  status: number,
  headers: Record<string, string>,
  text: string,
): Promise<void> {
  exchange.head(status, { ...headers, ...JSON_TYPE, 'content-length': byteLength(text) })
  exchange.call.chunks = 1
  if (await exchange.send(text)) exchange.finish()
}

async function sendWhole(scene: Scene, answer: Answer): Promise<void> {
  const { exchange, dialect, plan } = scene
  for (let token = 0; token < answer.tokens; token++) {
    if (!(await exchange.wait(plan.tokenMs()))) return
  }
  if (plan.errorAfter < Number.POSITIVE_INFINITY) return refuse(scene, dialect.failure(500))
  const text = JSON.stringify(dialect.whole(answer))
  const half = text.slice(0, text.length / 2)
  if (plan.garbage) return sendJson(exchange, 200, scene.headers(), half)

  const rest = text.slice(half.length)
  exchange.head(200, { ...scene.headers(), ...JSON_TYPE, 'content-length': byteLength(text) })
  if (plan.stallBefore && !(await exchange.wait(plan.stallMs))) return
  if (!(await exchange.send(half))) return
  if (plan.cutAfter < Number.POSITIVE_INFINITY) return exchange.cut()
  if (plan.stallAfter < Number.POSITIVE_INFINITY && !(await exchange.wait(plan.stallMs))) return
  exchange.call.chunks = 1
  exchange.call.tokensSent = answer.tokens
  if (await exchange.send(rest)) exchange.finish()
}

async function stream(scene: Scene, answer: Answer): Promise<void> {
  const { exchange, plan } = scene
  const { call } = exchange
  exchange.head(200, { ...scene.headers(), ...STREAM_TYPE })
  if (plan.stallBefore && !(await exchange.wait(plan.stallMs))) return

  let stalled = false
  for (const { kind, text } of eventsOf(scene, answer)) {
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

function* eventsOf({ dialect, plan }: Scene, answer: Answer): Generator<StreamEvent> {
  for (const text of dialect.opening(answer)) yield { kind: 'opening', text }
  const middle = Math.floor(answer.tokens / 2)
  for (let index = 0; index < answer.tokens; index++) {
    if (index === plan.errorAfter) break
    const text = dialect.token(answer, index)
    yield { kind: 'token', text: spoil(text, { garbage: plan.garbage, from: middle, index }) }
  }
  if (plan.errorAfter <= answer.tokens) return yield { kind: 'closing', text: dialect.breakdown() }
  if (plan.garbage === 'sse') return
  for (const text of dialect.closing(answer)) yield { kind: 'closing', text }
}

/** Bad JSON once, or bad framing from there on. The JSON is at the end of an event. */
function spoil(
  text: string,
  { garbage, from, index }: { garbage: Plan['garbage']; from: number; index: number },
): string {
  if (garbage === 'json' && index === from) return `${text.slice(0, -10)}\n\n`
  if (garbage === 'sse' && index >= from) return text.slice(0, -1)
  return text
}

function byteLength(text: string): string {
  return String(Buffer.byteLength(text))
}
