/**
 * How long to wait before a retry. The wait grows, to give a downstream time to recover, and is
 * random, so that callers do not return at the same moment. Never 0.
 */
import {
  type Duration,
  duration,
  either,
  number,
  object,
  oneOf,
  optional,
} from '../../core/options/checks.js'
import type { Random } from '../../core/random.js'

/** How long to wait between attempts. */
export interface BackoffOptions {
  /**
   * `constant`: base, base, base. `linear`: 1, 2, 3 × base. `exponential`: 1, 2, 4 × base.
   * `decorrelated`: random between base and three times the last wait, without further jitter.
   * Default: `exponential`.
   */
  backoff?: 'constant' | 'linear' | 'exponential' | 'decorrelated'
  /** Wait before the second attempt, before `jitter` is applied. Range: from 1 ms. Default: 100 ms. */
  baseMs?: Duration
  /** Longest wait between two attempts. Range: from 1 ms. Default: 10 seconds. */
  maxMs?: Duration
  /**
   * `full`: random up to the computed wait. `equal`: half of it, plus random up to the other half. A number:
   * plus or minus that fraction. `none`: the computed wait. Range: 0 to 1. Default: `full`.
   */
  jitter?: 'none' | 'full' | 'equal' | number
}

export const backoffFields = {
  backoff: optional(oneOf('constant', 'linear', 'exponential', 'decorrelated'), 'exponential'),
  baseMs: optional(duration({ min: 1 }), 100),
  maxMs: optional(duration({ min: 1 }), 10_000),
  jitter: optional(either(number({ min: 0, max: 1 }), oneOf('none', 'full', 'equal')), 'full'),
}

const readBackoff = object(backoffFields)
export type BackoffPolicy = ReturnType<typeof readBackoff>

const SHORTEST_MS = 1

/** Milliseconds before the n-th retry (from 1); `previousMs` is the wait before the last one. */
export function backoffMs(
  policy: BackoffPolicy,
  retry: number,
  previousMs: number,
  random: Random,
): number {
  const { backoff, baseMs, maxMs } = policy
  if (backoff === 'decorrelated') {
    const upTo = Math.max(baseMs, previousMs) * 3
    return clamp(baseMs + random() * (upTo - baseMs), maxMs)
  }
  const grown = { constant: 1, linear: retry, exponential: 2 ** (retry - 1) }[backoff]
  return clamp(scatter(Math.min(baseMs * grown, maxMs), policy.jitter, random), maxMs)
}

function scatter(delayMs: number, jitter: BackoffPolicy['jitter'], random: Random): number {
  if (jitter === 'none') return delayMs
  if (jitter === 'full') return random() * delayMs
  if (jitter === 'equal') return delayMs / 2 + (random() * delayMs) / 2
  return delayMs * (1 + jitter * (2 * random() - 1))
}

function clamp(delayMs: number, maxMs: number): number {
  return Math.min(Math.max(delayMs, SHORTEST_MS), maxMs)
}
