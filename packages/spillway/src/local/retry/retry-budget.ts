/**
 * How much retrying this pod can afford. Retries help against a blip and kill against an overload:
 * when everybody tries three times, a downstream that is struggling gets three times the load. So
 * they are a fraction of the requests, and none at all while something is known to be full.
 */

import { RollingCounter } from '../../core/collections/rolling-counter.js'
import { callSafely } from '../../core/events.js'
import {
  arrayOf,
  type Duration,
  duration,
  func,
  integer,
  number,
  object,
  optional,
  validate,
} from '../../core/options/checks.js'
import { isThenable, swallow } from '../../core/thenable.js'
import type { Clock } from '../../core/time/clock.js'
import { clockOption } from '../../core/time/clock-options.js'

/** What this pod knows about its own state; what is left out counts as healthy. */
export interface RetryConditions {
  breakerOpen?: boolean
  /** Average wait in line. */
  queueWaitMs?: number
  /** Part of the slots in use, 0 to 1. */
  slotsInUse?: number
  /** Part of the recent calls that failed, 0 to 1. */
  errorRate?: number
}

export interface RetryBudgetOptions {
  /** Most retries, as a fraction of the requests in the window. 0 to 1. Default: 0.2. */
  ratio?: number
  /**
   * Retries in a window that are allowed however few requests there were. Default: 3, or none if
   * the ratio is 0.
   */
  minimum?: number
  /** Default: 10 seconds. */
  windowMs?: Duration
  /** Asked before each retry. */
  conditions?: () => RetryConditions
  /** No retry while the average wait in line is over this. Default: 2 seconds. */
  maxQueueWaitMs?: Duration
  /** No retry while more of the slots than this are in use. Default: 0.9. */
  maxSlotsInUse?: number
  /** Retries of one call while more than `errorRate` of calls fail; the lowest that applies counts. */
  steps?: readonly { errorRate: number; retries: number }[]
  /** Retries of one call when all is well. Default: 3. */
  retries?: number
  /** Default: the system's clock. */
  clock?: Clock
}

export interface RetryBudget {
  /** Notes a request, the first attempt of a call. `nowMs`: if the time is known. */
  recordRequest(nowMs?: number): void
  /** Pays for a call's n-th retry (from 1), or says no. */
  tryRetry(retry: number): boolean
  /** Retries a call may make now, by the pod's condition alone. */
  allowedRetries(): number
  snapshot(): { requests: number; retries: number; allowedRetries: number }
}

const fraction = () => number({ min: 0, max: 1 })

const readOptions = object({
  ratio: optional(fraction(), 0.2),
  minimum: optional(integer({ min: 0 })),
  windowMs: optional(duration({ min: 100 }), 10_000),
  conditions: optional(func<() => RetryConditions>()),
  maxQueueWaitMs: optional(duration({ min: 0 }), 2_000),
  maxSlotsInUse: optional(fraction(), 0.9),
  steps: optional(arrayOf(object({ errorRate: fraction(), retries: integer({ min: 0 }) })), [
    { errorRate: 0.5, retries: 1 },
    { errorRate: 0.2, retries: 2 },
  ]),
  retries: optional(integer({ min: 0 }), 3),
  clock: clockOption,
})

type RetryRules = Pick<
  ReturnType<typeof readOptions>,
  'maxQueueWaitMs' | 'maxSlotsInUse' | 'steps' | 'retries'
>

const SLICES = 20

export function createRetryBudget(options: RetryBudgetOptions = {}): RetryBudget {
  const {
    ratio,
    minimum = ratio === 0 ? 0 : 3,
    windowMs,
    conditions,
    clock,
    ...rules
  } = validate('retryBudget', options, readOptions)
  const requests = new RollingCounter(windowMs, SLICES)
  const retries = new RollingCounter(windowMs, SLICES)

  function allowedRetries(): number {
    if (conditions === undefined) return rules.retries
    return callSafely(
      'retryBudget',
      'conditions',
      () => retriesUnder(conditions(), rules),
      rules.retries,
    )
  }

  return {
    recordRequest(nowMs) {
      const now = clock.now()
      // A time in the future would keep the window from moving on.
      requests.add(nowMs !== undefined && nowMs >= 0 && nowMs <= now ? nowMs : now, 1)
    },
    tryRetry(retry) {
      if (!(retry <= allowedRetries())) return false
      const now = clock.now()
      const affordable = Math.max(minimum, ratio * requests.total(now))
      if (retries.total(now) + 1 > affordable) return false
      retries.add(now, 1)
      return true
    },
    allowedRetries,
    snapshot() {
      const now = clock.now()
      return {
        requests: requests.total(now),
        retries: retries.total(now),
        allowedRetries: allowedRetries(),
      }
    },
  }
}

/** How many retries a call may make in this condition. */
function retriesUnder(known: RetryConditions, rules: RetryRules): number {
  if (isThenable(known)) {
    swallow(known)
    throw new TypeError('conditions must not return a promise')
  }
  if (known.breakerOpen) return 0
  if ((known.queueWaitMs ?? 0) > rules.maxQueueWaitMs) return 0
  if ((known.slotsInUse ?? 0) > rules.maxSlotsInUse) return 0
  const errorRate = known.errorRate ?? 0
  let allowed = rules.retries
  for (const step of rules.steps) {
    if (errorRate > step.errorRate) allowed = Math.min(allowed, step.retries)
  }
  return allowed
}
