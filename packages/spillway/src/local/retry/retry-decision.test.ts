import { describe, expect, it, vi } from 'vitest'
import { decideRetry, type RetryQuestion } from './retry-decision.js'

const question: RetryQuestion = {
  verdict: { outcome: 'failure', retryable: true },
  attempt: 1,
  attempts: 3,
  idempotent: true,
  delayMs: 100,
  maxRetryAfterMs: 60_000,
  usualMs: 50,
  remainingMs: 1_000,
  payRetry: () => undefined,
}
const failureAfter = (retryAfterMs: number): RetryQuestion['verdict'] => ({
  ...question.verdict,
  retryAfterMs,
})

describe('decideRetry', () => {
  it.each<[string, Partial<RetryQuestion>]>([
    ['permanent', { verdict: { outcome: 'failure', retryable: false } }],
    ['attempts', { attempt: 3 }],
    ['not-idempotent', { idempotent: false }],
    ['retry-after', { verdict: failureAfter(60_001) }],
    ['deadline', { remainingMs: 150 }],
  ])('a call is not retried because of %s, and the budget is not spent', (because, change) => {
    const payRetry = vi.fn(() => undefined)
    expect(decideRetry({ ...question, ...change, payRetry })).toEqual({ retry: false, because })
    expect(payRetry).not.toHaveBeenCalled()
  })

  it.each<[string, Partial<RetryQuestion>]>([
    ['one attempt is left', { attempt: 2 }],
    ['Retry-After is exactly maxRetryAfterMs', { verdict: failureAfter(60_000) }],
    ['another attempt ends 1 ms before the deadline', { remainingMs: 151 }],
  ])('a call is retried when %s', (_, change) => {
    expect(decideRetry({ ...question, ...change })).toEqual({ retry: true, delayMs: 100 })
  })

  it('a call is not retried for the reason that the budget returns', () => {
    const payRetry = () => 'budget' as const
    expect(decideRetry({ ...question, payRetry })).toEqual({ retry: false, because: 'budget' })
  })
})
