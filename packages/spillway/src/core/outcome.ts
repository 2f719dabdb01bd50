/**
 * What a call's end says about the downstream, which is not the same as whether the caller got what
 * it wanted: a 404 is a healthy answer, a 429 a request to slow down, a hang-up says nothing.
 */
import type { CallerSignal } from './abort.js'
import { type ErrorCode, SpillwayError } from './errors.js'
import { callSafely } from './events.js'
import { OptionsError } from './options/checks.js'
import { retryAfterFromHeaders } from './retry-after.js'
import { isThenable, swallow } from './thenable.js'

export type Outcome =
  /** The downstream did its work. */
  | 'success'
  /** It did not: an error of its own, a broken connection, no answer in time. */
  | 'failure'
  /** It did, but took longer than `slowMs`. */
  | 'slow'
  /** It asks us to slow down. */
  | 'throttled'
  /** Says nothing about the downstream: the request was wrong, the caller left, we refused. */
  | 'ignored'

/** How a call ended: with a value or with an error, and after how long. */
export type CallEnd = ({ value: unknown } | { error: unknown }) & {
  /** Milliseconds the call took, where known. */
  durationMs?: number
  /** The caller's own signal: an abort that came from there is no failure. */
  signal?: CallerSignal | undefined
}

export interface Verdict {
  outcome: Outcome
  /** Whether the same call could succeed if made again. */
  retryable: boolean
  /** How long the downstream asks us to wait. */
  retryAfterMs?: number
}

export interface OutcomeOptions {
  /** Milliseconds from which an answer counts as slow. Default: never. */
  slowMs?: number
  /**
   * Your own word on how a call ended: a whole or partial verdict, or nothing to keep the default.
   */
  classify?: (end: CallEnd) => Partial<Verdict> | Outcome | undefined
  /** Time of day, for Retry-After dates. */
  wallMs?: number
  /** Who is asking; stands in the event about a `classify` that throws. Default: `outcome`. */
  name?: string
}

const OUTCOMES: readonly unknown[] = [
  'success',
  'failure',
  'slow',
  'throttled',
  'ignored',
] satisfies Outcome[]

export function judge(end: CallEnd, options: OutcomeOptions = {}): Verdict {
  const standard = judgeSafely(end, options)
  const { classify } = options
  if (classify === undefined) return standard
  const name = options.name ?? 'outcome'
  return callSafely(name, 'classify', () => applyOwn(standard, classify(end)), standard)
}

/** Verdicts whose outcome is the one that `classify` returned. */
const decidedByClassify = new WeakSet<Verdict>()

function applyOwn(standard: Verdict, own: Partial<Verdict> | Outcome | undefined): Verdict {
  if (own === undefined) return standard
  const verdict: Partial<Verdict> = typeof own === 'string' ? { outcome: own } : own
  const outcome = verdict.outcome ?? standard.outcome
  const { retryAfterMs = standard.retryAfterMs } = verdict
  const sound = retryAfterMs === undefined || (Number.isFinite(retryAfterMs) && retryAfterMs >= 0)
  swallow(own)
  if (typeof verdict !== 'object' || isThenable(verdict) || !OUTCOMES.includes(outcome) || !sound) {
    throw new TypeError(`classify must return an outcome, a verdict or nothing, not ${String(own)}`)
  }
  const worthRetrying = outcome === 'failure' || outcome === 'throttled'
  const { retryable = typeof own === 'string' ? worthRetrying : standard.retryable } = verdict
  const result = { outcome, retryable, ...(retryAfterMs !== undefined && { retryAfterMs }) }
  if (verdict.outcome !== undefined) decidedByClassify.add(result)
  return result
}

/** Of Spillway's own decisions, only these were taken after the downstream had been called. */
const DECIDED_AFTER_THE_CALL: ReadonlySet<ErrorCode> = new Set(['CALL_TIMEOUT', 'VENDOR_ERROR'])

/** A getter on somebody's error or value may throw; that must not take its place. */
function judgeSafely(end: CallEnd, options: OutcomeOptions): Verdict {
  const failed = 'error' in end
  try {
    return failed ? judgeError(end.error, end, options) : judgeValue(end, options)
  } catch {
    return { outcome: failed ? 'failure' : 'success', retryable: failed }
  }
}

function judgeError(error: unknown, end: CallEnd, options: OutcomeOptions): Verdict {
  const verdict = judgeErrorKind(error, end, options)
  const facts = asRecord(error)
  // An error may know better than its kind.
  if (typeof facts.retryable === 'boolean') verdict.retryable = facts.retryable
  const { retryAfterMs } = facts
  if (Number.isFinite(retryAfterMs) && Number(retryAfterMs) >= 0) {
    verdict.retryAfterMs = Number(retryAfterMs)
  }
  return verdict
}

function judgeErrorKind(error: unknown, end: CallEnd, options: OutcomeOptions): Verdict {
  if (error instanceof SpillwayError) return judgeOwnError(error)
  if (error instanceof OptionsError) return { outcome: 'ignored', retryable: false }
  const facts = asRecord(error)
  // However a client puts it: the caller left.
  if (end.signal?.aborted) return hungUp(end, options)
  // Nobody who was waiting hung up, yet the call was aborted: someone gave up on it.
  if (facts.name === 'AbortError') return { outcome: 'ignored', retryable: false }
  if (facts.name === 'TimeoutError') return { outcome: 'failure', retryable: true }
  // An error with a good status: the answer came, and was not what it should be.
  const status = statusOf(facts)
  if (status !== undefined && status >= 400) {
    return judgeStatus(status, facts.headers ?? asRecord(facts.response).headers, options)
  }
  return { outcome: 'failure', retryable: !isBug(error) }
}

function judgeOwnError(error: SpillwayError): Verdict {
  // Time ran out while the downstream had the call: it was too slow for this caller.
  const ranOut = error.code === 'DEADLINE_EXCEEDED' && error.details.called === true
  const called = DECIDED_AFTER_THE_CALL.has(error.code)
  return { outcome: called || ranOut ? 'failure' : 'ignored', retryable: called }
}

/** A caller that leaves early says nothing; one that waited past `slowMs` says a lot. */
function hungUp({ durationMs }: CallEnd, { slowMs }: OutcomeOptions): Verdict {
  const late = slowMs !== undefined && durationMs !== undefined && durationMs >= slowMs
  return { outcome: late ? 'slow' : 'ignored', retryable: false }
}

function judgeValue(end: CallEnd & { value?: unknown }, options: OutcomeOptions): Verdict {
  const { value } = end
  if (isResponse(value)) {
    const { status } = value
    const verdict = judgeStatus(status, status >= 400 ? value.headers : undefined, options)
    if (verdict.outcome !== 'success') return verdict
  }
  const slow = options.slowMs !== undefined && (end.durationMs ?? 0) >= options.slowMs
  return { outcome: slow ? 'slow' : 'success', retryable: false }
}

/**
 * What the end of a probe says to a half-open breaker. An answer such as 404 is no call that counts,
 * but it shows that the downstream works, unless `classify` decided about it.
 */
export function probeOutcome(end: CallEnd, verdict: Verdict): Outcome {
  if (verdict.outcome !== 'ignored' || decidedByClassify.has(verdict)) return verdict.outcome
  const refused = 'error' in end && end.error instanceof SpillwayError
  if (refused || end.signal?.aborted === true) return 'ignored'
  const status = answerOf(end)?.status
  const works = status !== undefined && status < 500 && status !== 408 && status !== 429
  return works ? 'success' : 'ignored'
}

/** Statuses in the 5xx range that a repetition would only meet again. */
const PERMANENT = new Set([501, 505])

/** From an HTTP status; headers may say when to come back. */
export function judgeStatus(
  status: number,
  headers?: unknown,
  options: Pick<OutcomeOptions, 'wallMs'> = {},
): Verdict {
  if (status === 429) return waiting({ outcome: 'throttled', retryable: true }, headers, options)
  if (status >= 500) {
    const verdict: Verdict = { outcome: 'failure', retryable: !PERMANENT.has(status) }
    return waiting(verdict, headers, options)
  }
  // 408: it waited for us in vain; 425: too early, meant to be repeated.
  if (status === 408) return waiting({ outcome: 'failure', retryable: true }, headers, options)
  if (status === 425) return waiting({ outcome: 'ignored', retryable: true }, headers, options)
  return { outcome: status >= 400 ? 'ignored' : 'success', retryable: false }
}

function waiting(verdict: Verdict, headers: unknown, { wallMs }: OutcomeOptions): Verdict {
  try {
    const retryAfterMs = retryAfterFromHeaders(headers, wallMs ?? Date.now())
    return retryAfterMs === undefined ? verdict : { ...verdict, retryAfterMs }
  } catch {
    // The status is word enough.
    return verdict
  }
}

/** What the downstream answered, if a call's end tells: its status and its headers. */
export function answerOf(end: CallEnd): { status: number; headers: unknown } | undefined {
  if ('value' in end) return isResponse(end.value) ? end.value : undefined
  try {
    const facts = asRecord((end as { error: unknown }).error)
    const status = statusOf(facts)
    if (status === undefined) return undefined
    return { status, headers: facts.headers ?? asRecord(facts.response).headers }
  } catch {
    return undefined
  }
}

/** HTTP clients disagree on where an error keeps its status. */
function statusOf(error: Record<string, unknown>): number | undefined {
  const candidates = [error.status, error.statusCode, asRecord(error.response).status]
  return candidates.find(
    (status): status is number => Number.isInteger(status) && Number(status) >= 100,
  )
}

/**
 * The caller's own mistakes (a typo, a wrong argument) look the same the second time. `fetch` says
 * TypeError when the network fails, but then names the cause, which is none.
 */
function isBug(error: unknown, depth = 0): boolean {
  const bug =
    error instanceof TypeError ||
    error instanceof ReferenceError ||
    error instanceof RangeError ||
    error instanceof SyntaxError
  return (
    bug && (error.cause === undefined || (depth < MOST_CAUSES && isBug(error.cause, depth + 1)))
  )
}

/** A chain of causes could be a circle. */
const MOST_CAUSES = 5

/** Node's own, or that of another fetch: they look alike. What cannot be asked is none. */
export function isResponse(value: unknown): value is Response {
  if (typeof value !== 'object' || value === null) return false
  try {
    if (value instanceof Response) return true
    const { status, ok, headers } = value as Record<string, unknown>
    return (
      typeof status === 'number' &&
      typeof ok === 'boolean' &&
      typeof asRecord(headers).get === 'function'
    )
  } catch {
    return false
  }
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
