/** How a decision on a call ended: its code and a sentence. Contains no text from the downstream. */
import type { Outcome } from '../../core/outcome.js'
import type { DecisionRecord } from './decision-record.js'

export type DecisionEnd = Pick<
  DecisionRecord,
  'code' | 'stage' | 'scope' | 'retryAfterMs' | 'why' | 'details' | 'status' | 'sharedAgeMs'
>

/** The end of a call that Spillway did not refuse. */
export const NOT_REFUSED = {
  stage: 'call',
  scope: 'local',
  retryAfterMs: undefined,
  details: {},
} as const

export function isClientError(status: number | undefined): boolean {
  return status !== undefined && status >= 400 && status < 500
}

/** Code for a call that returned a value, by its outcome and HTTP status. */
export function endOfAnswer(
  outcome: Outcome,
  status: number | undefined,
): Pick<DecisionRecord, 'code' | 'why'> {
  const answered = status === undefined ? 'answered' : `answered with ${status}`
  if (outcome === 'success') return { code: 'OK', why: `the downstream ${answered}` }
  if (outcome === 'slow') {
    return { code: 'OK', why: `the downstream ${answered}, slower than breaker.slowMs` }
  }
  if (isClientError(status) || outcome === 'throttled') {
    const why = status === undefined ? 'asked for fewer calls' : `rejected the request: ${status}`
    return { code: 'REJECTED', why: `the downstream ${why}` }
  }
  if (outcome === 'ignored') {
    return { code: 'OK', why: `the downstream ${answered}; no outcome for the breaker` }
  }
  return { code: 'FAILED', why: `the downstream ${answered}, which counts as a failure` }
}

export const FALLBACK_REASONS: Readonly<Record<string, string>> = {
  timeout: 'the call took too long',
  error: 'the call failed',
  'circuit-open': 'the circuit was open',
  limited: 'a limit was used up',
  shed: 'the pod or the guard refused the call',
  pressure: 'the pod was busy',
}

const SAFE_NAME = /^[\w.-]{1,40}$/

/** A message may contain secrets: kind, code and status are enough. */
export function kindOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return typeof error
  const { name, code, status } = error as Record<string, unknown>
  const parts = [name, code, status].filter(
    (each) => typeof each === 'number' || (typeof each === 'string' && SAFE_NAME.test(each)),
  )
  return parts.length === 0 ? 'an error' : parts.join(' ')
}
