/**
 * Judges the downstream by the end of a call. This differs from the caller's success: a 404 is a healthy answer, a
 * 429 is a request to slow down, and an abort by the caller does not count.
 */
import type { CallerSignal } from './abort.js'
import { type ErrorCode, SpillwayError } from './errors.js'
import { callSafely } from './events.js'
import { ERROR_KINDS, type ErrorKind, failureOf } from './failures/error-kind.js'
import { OptionsError } from './options/checks.js'
import { retryAfterFromHeaders } from './retry-after.js'
import { isThenable, swallow } from './thenable.js'

/** How a call ended, as the breaker counts it. */
export type Outcome =
  /** The downstream did its work. */
  | 'success'
  /** It did not: a server error, a broken connection, a timeout. */
  | 'failure'
  /** It did, but took longer than `slowMs`. */
  | 'slow'
  /** It asks for fewer calls. */
  | 'throttled'
  /**
   * Says nothing about the downstream: the request was wrong, the caller left, Spillway refused.
   */
  | 'ignored'

/** How a call ended: with a value or an error, and after how long. */
export type CallEnd = (
  | {
      /** What the call returned. */
      value: unknown
    }
  | {
      /** What the call threw. */
      error: unknown
    }
) & {
  /** Duration of the call. Range: from 0 ms. Default: unknown, so the call is not slow. */
  durationMs?: number
  /** The caller's signal. An abort by the caller is no failure. Default: none. */
  signal?: CallerSignal | undefined
}

/** What the end of a call says about the downstream. */
export interface Verdict {
  /** How the breaker counts it. */
  outcome: Outcome
  /** Whether the same call could succeed if repeated. */
  retryable: boolean
  /** How long the downstream asks us to wait. */
  retryAfterMs?: number
  /** Why the downstream answered with an error, if its answer was understood. */
  kind?: ErrorKind
}

/** Options for judging how a call ended. */
export interface OutcomeOptions {
  /** Duration from which an answer counts as slow. Range: from 0 ms. Default: never. */
  slowMs?: number
  /**
   * Decides the outcome of a call, entirely or in part; undefined keeps the default. Default: by status and
   * error.
   */
  classify?: (end: CallEnd) => Partial<Verdict> | Outcome | undefined
  /**
   * Time of day in milliseconds since 1970, for dates in `Retry-After`. Range: from 0. Default: `Date.now()`.
   */
  wallMs?: number
  /** Name used in the event when `classify` throws. Default: `outcome`. */
  name?: string
}

const OUTCOMES: readonly unknown[] = [
  'success',
  'failure',
  'slow',
  'throttled',
  'ignored',
] satisfies Outcome[]

/**
 * Judges how a call ended: its outcome, and whether to retry it.
 *
 * @example
 * const { outcome, retryable, retryAfterMs } = judge({ value: response })
 */
export function judge(end: CallEnd, options: OutcomeOptions = {}): Verdict {
  const builtIn = judgeSafely(end, options)
  const { classify } = options
  if (classify === undefined) return builtIn
  const name = options.name ?? 'outcome'
  return callSafely(name, 'classify', () => applyClassify(builtIn, classify(end)), builtIn)
}

/** Verdicts whose outcome `classify` returned. */
const decidedByClassify = new WeakSet<Verdict>()

function applyClassify(
  builtIn: Verdict,
  classified: Partial<Verdict> | Outcome | undefined,
): Verdict {
  if (classified === undefined) return builtIn
  const verdict: Partial<Verdict> =
    typeof classified === 'string' ? { outcome: classified } : classified
  const outcome = verdict.outcome ?? builtIn.outcome
  const { retryAfterMs = builtIn.retryAfterMs } = verdict
  const hasValidWait =
    retryAfterMs === undefined || (Number.isFinite(retryAfterMs) && retryAfterMs >= 0)
  swallow(classified)
  if (
    typeof verdict !== 'object' ||
    isThenable(verdict) ||
    !OUTCOMES.includes(outcome) ||
    !hasValidWait
  ) {
    throw new TypeError(
      `classify must return an outcome, a verdict or nothing, not ${String(classified)}`,
    )
  }
  const worthRetrying = outcome === 'failure' || outcome === 'throttled'
  const { retryable = typeof classified === 'string' ? worthRetrying : builtIn.retryable } = verdict
  const kind = verdict.kind ?? builtIn.kind
  const result: Verdict = { outcome, retryable }
  if (retryAfterMs !== undefined) result.retryAfterMs = retryAfterMs
  if (kind !== undefined) result.kind = kind
  if (verdict.outcome !== undefined) decidedByClassify.add(result)
  return result
}

/** Refusals that are decided after the downstream was called. All others are decided before. */
const DECIDED_AFTER_THE_CALL: ReadonlySet<ErrorCode> = new Set(['CALL_TIMEOUT', 'VENDOR_ERROR'])

/** A getter of the error or value may throw. That must not replace the call's result. */
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
  // An error can state explicitly whether it is retryable.
  if (typeof facts.retryable === 'boolean') verdict.retryable = facts.retryable
  const { retryAfterMs } = facts
  if (Number.isFinite(retryAfterMs) && Number(retryAfterMs) >= 0) {
    verdict.retryAfterMs = Number(retryAfterMs)
  }
  return verdict
}

function judgeErrorKind(error: unknown, end: CallEnd, options: OutcomeOptions): Verdict {
  if (error instanceof SpillwayError) return judgeRefusal(error)
  if (error instanceof OptionsError) return { outcome: 'ignored', retryable: false }
  const facts = asRecord(error)
  // Clients report an abort in different ways, so the signal decides.
  if (end.signal?.aborted) return judgeAbort(end, options)
  // The caller did not abort, so other code gave up on the call.
  if (facts.name === 'AbortError') return { outcome: 'ignored', retryable: false }
  if (facts.name === 'TimeoutError') return { outcome: 'failure', retryable: true }
  // An error with a success status: the response came but was not valid.
  const status = statusOf(facts)
  if (status !== undefined && status >= 400) {
    const headers = facts.headers ?? asRecord(facts.response).headers
    return byKind(error, judgeStatus(status, headers, options))
  }
  return { outcome: 'failure', retryable: !isBug(error) }
}

function judgeRefusal(error: SpillwayError): Verdict {
  // The deadline passed while the downstream had the call, so the downstream was too slow.
  const timedOutInCall = error.code === 'DEADLINE_EXCEEDED' && error.details.called === true
  const called = DECIDED_AFTER_THE_CALL.has(error.code)
  return { outcome: called || timedOutInCall ? 'failure' : 'ignored', retryable: called }
}

/** An early abort by the caller does not count. An abort after `slowMs` counts as slow. */
function judgeAbort({ durationMs }: CallEnd, { slowMs }: OutcomeOptions): Verdict {
  const late = slowMs !== undefined && durationMs !== undefined && durationMs >= slowMs
  return { outcome: late ? 'slow' : 'ignored', retryable: false }
}

function judgeValue(end: CallEnd & { value?: unknown }, options: OutcomeOptions): Verdict {
  const { value } = end
  if (isResponse(value)) {
    const { status } = value
    const verdict = judgeStatus(status, status >= 400 ? value.headers : undefined, options)
    if (verdict.outcome !== 'success') return byKind(value, verdict)
  }
  const slow = options.slowMs !== undefined && (end.durationMs ?? 0) >= options.slowMs
  return { outcome: slow ? 'slow' : 'success', retryable: false }
}

/** An error whose kind is known is judged by its kind. */
function byKind(answer: unknown, byStatus: Verdict): Verdict {
  const failure = failureOf(answer)
  if (failure === undefined) return byStatus
  const { kind, retryAfterMs = byStatus.retryAfterMs } = failure
  // For these the status says more: 501 is a server error that would recur, 425 a request that may be repeated.
  const byStatusOrKind = kind === 'server' || kind === 'bad-request' ? byStatus : ERROR_KINDS[kind]
  const { outcome, retryable } = byStatusOrKind
  return { outcome, retryable, kind, ...(retryAfterMs !== undefined && { retryAfterMs }) }
}

/**
 * Result of a probe for a half-open breaker. An answer such as 404 does not count in a failure rate, but it shows
 * that the downstream works, unless `classify` decided otherwise.
 */
export function probeOutcome(end: CallEnd, verdict: Verdict): Outcome {
  if (verdict.outcome !== 'ignored' || decidedByClassify.has(verdict)) return verdict.outcome
  const refused = 'error' in end && end.error instanceof SpillwayError
  if (refused || end.signal?.aborted === true) return 'ignored'
  const status = answerOf(end)?.status
  const works = status !== undefined && status < 500 && status !== 408 && status !== 429
  return works ? 'success' : 'ignored'
}

/** Statuses in the 5xx range that a repeated request would get again. */
const PERMANENT = new Set([501, 505])

/** The verdict for an HTTP status. Headers may specify how long to wait. */
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
  // 408: the server gave up waiting for the request. 425: sent too early, meant to be repeated.
  if (status === 408) return waiting({ outcome: 'failure', retryable: true }, headers, options)
  if (status === 425) return waiting({ outcome: 'ignored', retryable: true }, headers, options)
  return { outcome: status >= 400 ? 'ignored' : 'success', retryable: false }
}

function waiting(verdict: Verdict, headers: unknown, { wallMs }: OutcomeOptions): Verdict {
  try {
    const retryAfterMs = retryAfterFromHeaders(headers, wallMs ?? Date.now())
    return retryAfterMs === undefined ? verdict : { ...verdict, retryAfterMs }
  } catch {
    // The status alone decides.
    return verdict
  }
}

/** Status and headers of the downstream's response, if the call's end has them. */
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

/** HTTP clients keep the status in different places. */
function statusOf(error: Record<string, unknown>): number | undefined {
  const candidates = [error.status, error.statusCode, asRecord(error.response).status]
  return candidates.find(
    (status): status is number => Number.isInteger(status) && Number(status) >= 100,
  )
}

/**
 * Whether this is a mistake in the caller's code, such as a wrong argument, which would recur.
 * `fetch` throws a TypeError for network failures as well, but those have a cause that is not a
 * bug.
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

/** A chain of causes can be circular. */
const MOST_CAUSES = 5

/** Node's own `Response` or that of another fetch. A value whose properties throw is none. */
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
