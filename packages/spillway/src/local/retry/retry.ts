/**
 * Repeats calls that failed for a temporary reason. In an outage retries multiply the load, so each
 * one needs a reason, time and a budget. Use it outside of bulkhead and timeout, so that nothing is
 * held while it waits.
 */

import {
  type Duration,
  duration,
  either,
  func,
  having,
  integer,
  number,
  object,
  optional,
  text,
  validate,
} from '../../core/options/checks.js'
import type { OutcomeOptions } from '../../core/outcome.js'
import type { Random } from '../../core/random.js'
import type { Clock } from '../../core/time/clock.js'
import { clockOption, randomOption } from '../../core/time/clock-options.js'
import type { Attempt } from './attempts.js'
import { type BackoffOptions, backoffFields } from './backoff.js'
import { createRetryBudget, type RetryBudget } from './retry-budget.js'
import {
  RetryCall,
  type RetryFunction,
  type RetryPolicy,
  type RetryRunOptions,
} from './retry-call.js'

/** Options of `createRetry()`. */
export interface RetryOptions extends BackoffOptions {
  /** Name in events. Default: `retry`. */
  name?: string
  /** Most attempts, including the first. Range: integers from 1. Default: 3. */
  attempts?: number
  /**
   * A retry budget, or the ratio of one: 0.2 allows one retry per five requests. Range: 0 to 1. Default: none.
   */
  budget?: RetryBudget | number
  /** A longer `Retry-After` than this ends the call. Range: from 0 ms. Default: 60 seconds. */
  maxRetryAfterMs?: Duration
  /**
   * Decides the outcome of a call in place of the built-in rules; undefined keeps them. Default: by status and
   * error.
   */
  classify?: OutcomeOptions['classify']
  /** The clock to read and to set timers with. Default: the system clock. */
  clock?: Clock
  /** Source of random numbers from 0 to 1. Default: `Math.random`. */
  random?: Random
}

/** Value or error of a retried call, with every attempt. */
export type RetryResult<T> =
  | { ok: true; value: T; attempts: readonly Attempt[] }
  | { ok: false; error: unknown; attempts: readonly Attempt[] }

/** Repeats failed calls. Created by `createRetry()`. */
export interface Retry {
  /** Name in errors, events and snapshots. */
  readonly name: string
  /** Throws what the last attempt threw, unchanged; `attemptsOf(error)` returns all attempts. */
  run<T>(fn: RetryFunction<T>, options?: RetryRunOptions): Promise<T>
  /** Like `run`, but returns the error and all attempts instead of throwing. */
  tryRun<T>(fn: RetryFunction<T>, options?: RetryRunOptions): Promise<RetryResult<T>>
}

const readOptions = object({
  ...backoffFields,
  name: optional(text(), 'retry'),
  attempts: optional(integer({ min: 1 }), 3),
  budget: optional(
    either(
      having<RetryBudget>('a retry budget', 'recordRequest', 'tryRetry'),
      number({ min: 0, max: 1 }),
    ),
  ),
  maxRetryAfterMs: optional(duration({ min: 0 }), 60_000),
  classify: optional(func<NonNullable<OutcomeOptions['classify']>>()),
  clock: clockOption,
  random: randomOption,
})

const NO_OPTIONS: RetryRunOptions = {}

/**
 * Creates a retry, which repeats failed calls with growing waits.
 *
 * @example
 * const retry = createRetry({ attempts: 3, baseMs: '200ms', budget: 0.2 })
 * const user = await retry.run(({ signal }) => loadUser(id, signal))
 */
export function createRetry(options: RetryOptions = {}): Retry {
  return new LocalRetry(validate('retry', options, readOptions))
}

class LocalRetry implements Retry {
  readonly name: string
  readonly #policy: RetryPolicy

  constructor(options: ReturnType<typeof readOptions>) {
    const { budget, clock } = options
    this.name = options.name
    this.#policy = {
      ...options,
      budget:
        typeof budget === 'number'
          ? // A bare ratio says nothing about how often one call may try: `attempts` does.
            createRetryBudget({ ratio: budget, retries: options.attempts - 1, clock })
          : budget,
      usualMs: 0,
    }
  }

  run<T>(fn: RetryFunction<T>, options: RetryRunOptions = NO_OPTIONS): Promise<T> {
    return new RetryCall(this.#policy, fn, options, undefined).start()
  }

  async tryRun<T>(
    fn: RetryFunction<T>,
    options: RetryRunOptions = NO_OPTIONS,
  ): Promise<RetryResult<T>> {
    const attempts: Attempt[] = []
    try {
      const value = await new RetryCall(this.#policy, fn, options, attempts).start()
      return { ok: true, value, attempts }
    } catch (error) {
      return { ok: false, error, attempts }
    }
  }
}
