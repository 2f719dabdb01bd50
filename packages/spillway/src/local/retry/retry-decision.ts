/**
 * Decides whether to retry: a list of conditions, each of which can prevent it. The budget comes
 * last, because asking it spends.
 */
import type { StopReason } from '../../core/events.js'
import type { Verdict } from '../../core/outcome.js'

export type RetryDecision = { retry: true; delayMs: number } | { retry: false; because: StopReason }

export interface RetryQuestion {
  verdict: Verdict
  /** Attempts made, and the most allowed. */
  attempt: number
  attempts: number
  idempotent: boolean
  /** The wait before another attempt. */
  delayMs: number
  maxRetryAfterMs: number
  /** Usual duration of an attempt, if known. */
  usualMs: number
  /** Time left until the deadline; infinite without one. */
  remainingMs: number
  /** Spends the budget, or returns why there is no retry. */
  payRetry: () => StopReason | undefined
}

export function decideRetry(question: RetryQuestion): RetryDecision {
  const { verdict, attempt, attempts, delayMs } = question
  if (!verdict.retryable) return stop('permanent')
  if (attempt >= attempts) return stop('attempts')
  if (!question.idempotent) return stop('not-idempotent')
  if ((verdict.retryAfterMs ?? 0) > question.maxRetryAfterMs) return stop('retry-after')
  if (delayMs + question.usualMs >= question.remainingMs) return stop('deadline')
  const because = question.payRetry()
  return because === undefined ? { retry: true, delayMs } : stop(because)
}

function stop(because: StopReason): RetryDecision {
  return { retry: false, because }
}
