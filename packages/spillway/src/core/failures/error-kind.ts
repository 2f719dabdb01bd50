/**
 * Why a downstream answered with an error. The status alone does not say it: a 429 may mean "wait a second" or "the
 * quota of this month is used up", and a 400 may mean that only a larger model can answer.
 */

/** Kinds of errors, with the outcome for the breaker and whether a retry can help. */
export const ERROR_KINDS = {
  /** Too many requests or tokens now. Waiting helps. */
  'rate-limited': { outcome: 'throttled', retryable: true },
  /** A quota of a day or month, or the credit, is used up. A retry fails as well. */
  'quota-exhausted': { outcome: 'throttled', retryable: false },
  /** The key is unknown, revoked or expired. That says nothing about the vendor's health. */
  'invalid-key': { outcome: 'ignored', retryable: false },
  /** The request is too large for this model, or for the quota of one minute. Only another model can answer it. */
  'context-window': { outcome: 'ignored', retryable: false },
  /** The vendor's filter blocked the prompt or the answer. */
  'content-filter': { outcome: 'ignored', retryable: false },
  /**
   * The vendor has too much to do, whatever this caller sends. It counts as a failure, so that the breaker opens and
   * fallbacks take over: fewer requests of this caller would not end the overload.
   */
  overloaded: { outcome: 'failure', retryable: true },
  /** The request is wrong, and would be wrong again. */
  'bad-request': { outcome: 'ignored', retryable: false },
  /** The vendor failed. */
  server: { outcome: 'failure', retryable: true },
} as const

export type ErrorKind = keyof typeof ERROR_KINDS

/** An error answer, understood. */
export interface VendorFailure {
  readonly kind: ErrorKind
  /** Time until a request may succeed, if the vendor says so. */
  readonly retryAfterMs?: number | undefined
  /** A spent quota of one model: the key is still valid for others. Default: false. */
  readonly perModel?: boolean
}

/** A vendor's reset time counts up to this. Budgets are renewed monthly. */
export const LONGEST_RESET_MS = 31 * 24 * 3_600_000

/** How long an answer may pause its lane: until the reset of a spent quota, if the vendor says when, or `maxPauseMs`. */
export function longestPauseMs(
  { kind, retryAfterMs }: { readonly kind?: ErrorKind; readonly retryAfterMs?: number | undefined },
  maxPauseMs: number,
): number {
  const isReset = kind === 'quota-exhausted' && retryAfterMs !== undefined
  return isReset ? LONGEST_RESET_MS : maxPauseMs
}

/** By response or error. */
const failures = new WeakMap<object, VendorFailure>()

/** Remembers why this response or error is one. Its verdict follows from the kind. */
export function noteFailure(answer: object, failure: VendorFailure): void {
  failures.set(answer, failure)
}

export function failureOf(answer: unknown): VendorFailure | undefined {
  return typeof answer === 'object' && answer !== null ? failures.get(answer) : undefined
}
