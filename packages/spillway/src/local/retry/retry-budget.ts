/**
 * Limits how much this pod retries. Retries help against short failures and worsen an overload: if
 * every call is tried three times, a struggling downstream gets three times the load. So retries
 * are limited to a fraction of the requests, and stop while a queue or the slots are known to be
 * full.
 */

import { RollingCounter } from '../../core/collections/rolling-counter.js'
import { callSafely, type StopReason } from '../../core/events.js'
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

/** What the application knows about this pod; figures that are left out count as healthy. */
export interface RetryConditions {
  /** Whether the breaker is open. Default: false. */
  breakerOpen?: boolean
  /** Milliseconds that calls wait in the queue: the average, or the oldest call's wait. Range: from 0. Default: 0. */
  queueWaitMs?: number
  /** Slots in use and calls that wait for one, as a fraction of the slots. Range: from 0; may exceed 1. Default: 0. */
  slotsInUse?: number
  /** Share of recent calls that failed. Range: 0 to 1. Default: 0. */
  errorRate?: number
}

/** Options of `createRetryBudget()`. */
export interface RetryBudgetOptions {
  /** Most retries, as a fraction of the requests in the window. Range: 0 to 1. Default: 0.2. */
  ratio?: number
  /**
   * Retries per window that are allowed however few requests there are. Range: integers from 0. Default: 3, or
   * 0 if the ratio is 0.
   */
  minimum?: number
  /** Retries and requests are counted over this time. Range: from 100 ms. Default: 10 seconds. */
  windowMs?: Duration
  /** Returns the state of the pod, read before each retry. Default: only the ratio counts. */
  conditions?: () => RetryConditions
  /** No retry while the average queue wait is above this. Range: from 0 ms. Default: 2 seconds. */
  maxQueueWaitMs?: Duration
  /** No retry while a larger share of the slots than this is in use. Range: 0 to 1. Default: 0.9. */
  maxSlotsInUse?: number
  /**
   * Most retries per call from an error rate on; the lowest number that applies counts. Range: rates from 0 to
   * 1, retries from 0. Default: 2 from an error rate of 0.2, 1 from 0.5.
   */
  steps?: readonly {
    /** Share of calls that fail. Range: 0 to 1. */
    errorRate: number
    /** Retries per call from that rate on. Range: integers from 0. */
    retries: number
  }[]
  /** Retries per call in normal conditions. Range: integers from 0. Default: 3. */
  retries?: number
  /** The clock to read and to set timers with. Default: the system clock. */
  clock?: Clock
}

/** Why a budget does not pay for a retry. */
export type RetryRefusal = Extract<
  StopReason,
  'attempts' | 'breaker' | 'pod-full' | 'queue-wait' | 'error-rate' | 'budget'
>

/** Limits retries to a fraction of the calls. Created by `createRetryBudget()`. */
export interface RetryBudget {
  /** Counts a request, the first attempt of a call. `nowMs`: the time, if known. */
  recordRequest(nowMs?: number): void
  /**
   * Spends the budget for the n-th retry of a call (from 1), or returns false. `conditions`: those of this call.
   * Default: what the option `conditions` returns.
   */
  tryRetry(retry: number, conditions?: RetryConditions): boolean
  /**
   * Like `tryRetry`, but returns why there is no retry, or undefined if the budget has paid for it. Default: every
   * refusal of `tryRetry` counts as `budget`.
   */
  payRetry?(retry: number, conditions?: RetryConditions): RetryRefusal | undefined
  /** Retries that a call may make now, judging by the conditions alone. */
  allowedRetries(): number
  /** State and counts at this moment. */
  snapshot(): {
    /** Calls in the window. */
    requests: number
    /** Retries in the window. */
    retries: number
    /** Retries that are allowed now. */
    allowedRetries: number
  }
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

/**
 * Creates a retry budget, which can be shared by several retries.
 *
 * @example
 * const budget = createRetryBudget({ ratio: 0.1 })
 * const retry = createRetry({ budget })
 */
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

  /** How many retries a call may make, and why not more. */
  function allowance(ofCall?: RetryConditions): Allowance {
    const unlimited: Allowance = { retries: rules.retries, because: 'attempts' }
    if (ofCall !== undefined) return allowanceUnder(ofCall, rules)
    if (conditions === undefined) return unlimited
    const read = () => allowanceUnder(conditions(), rules)
    return callSafely('retryBudget', 'conditions', read, unlimited)
  }

  const allowedRetries = () => allowance().retries

  function payRetry(retry: number, ofCall?: RetryConditions): RetryRefusal | undefined {
    const allowed = allowance(ofCall)
    if (!(retry <= allowed.retries)) return allowed.because
    const now = clock.now()
    const affordable = Math.max(minimum, ratio * requests.total(now))
    if (retries.total(now) + 1 > affordable) return 'budget'
    retries.add(now, 1)
    return undefined
  }

  return {
    recordRequest(nowMs) {
      const now = clock.now()
      // A time in the future would stop the window from moving on.
      requests.add(nowMs !== undefined && nowMs >= 0 && nowMs <= now ? nowMs : now, 1)
    },
    tryRetry: (retry, ofCall) => payRetry(retry, ofCall) === undefined,
    payRetry,
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

interface Allowance {
  readonly retries: number
  /** Why there are no more. */
  readonly because: RetryRefusal
}

/** How many retries a call may make under these conditions. */
function allowanceUnder(known: RetryConditions, rules: RetryRules): Allowance {
  if (isThenable(known)) {
    swallow(known)
    throw new TypeError('conditions must not return a promise')
  }
  if (known.breakerOpen) return { retries: 0, because: 'breaker' }
  if ((known.queueWaitMs ?? 0) > rules.maxQueueWaitMs) return { retries: 0, because: 'queue-wait' }
  if ((known.slotsInUse ?? 0) > rules.maxSlotsInUse) return { retries: 0, because: 'pod-full' }
  const errorRate = known.errorRate ?? 0
  let { retries } = rules
  for (const step of rules.steps) {
    if (errorRate > step.errorRate) retries = Math.min(retries, step.retries)
  }
  return { retries, because: retries < rules.retries ? 'error-rate' : 'attempts' }
}
