/** Fallbacks: another guard, a reduced result, a constant value. */

import {
  type Duration,
  duration,
  func,
  object,
  optional,
  validate,
} from '../core/options/checks.js'
import type { Clock } from '../core/time/clock.js'
import { clockOption } from '../core/time/clock-options.js'
import { createDeadline, runWithDeadline } from '../core/time/deadline.js'
import type { CallFunction } from '../guard/pipeline/context.js'
import {
  type FailedCall,
  type FallbackStep,
  type GuardLike,
  guardStep,
} from '../guard/stages/fallback.js'
import type { TimeoutContext } from '../local/timeout/timed-call.js'
import { createTimeout } from '../local/timeout/timeout.js'
import { type StepOptions, stepFields } from './step-options.js'

const readStep = object(stepFields)
const readFunction = func<(...args: never[]) => unknown>()

/**
 * Calls another guard, with a function of its own; a guard alone runs the same function. All protection of that
 * guard applies. Not used after a user limit has refused the call.
 *
 * @example
 * const fallback = [otherGuard(mirror, ({ signal }) => fetch(mirrorUrl, { signal }))]
 */
export function otherGuard<T>(
  guard: GuardLike,
  fn: CallFunction<T>,
  options: StepOptions = {},
): FallbackStep {
  validate('otherGuard.guard.runDegradable', guard?.runDegradable, readFunction)
  validate('otherGuard.fn', fn, readFunction)
  return guardStep(guard, fn, validate('otherGuard', options, readStep))
}

/** Options of the fallback `reduced()`. */
export interface ReducedOptions extends StepOptions {
  /** Longest time for the reduced answer. Range: from 1 ms. Default: 5 seconds. */
  timeoutMs?: Duration
  /** The clock to read and to set timers with. Default: the system clock. */
  clock?: Clock
}

const readReduced = object({
  ...stepFields,
  timeoutMs: optional(duration({ min: 1 }), 5_000),
  clock: clockOption,
})

/**
 * A result of lower quality, from a function that needs no guard. Undefined: it has none.
 *
 * @example
 * const fallback = [reduced(() => popularItems(), { timeoutMs: '1s' })]
 */
export function reduced<T>(
  fn: (context: TimeoutContext, call: FailedCall) => T | PromiseLike<T>,
  options: ReducedOptions = {},
): FallbackStep {
  validate('reduced.fn', fn, readFunction)
  const { name = 'reduced', on, timeoutMs, clock } = validate('reduced', options, readReduced)
  const timeout = createTimeout({ name, clock, callMs: timeoutMs })
  return {
    name,
    on,
    costs: true,
    async answer(call) {
      const { timeoutMs: leftMs, signal } = call.options
      const deadline = leftMs === undefined ? undefined : createDeadline(leftMs, clock)
      const run = () =>
        timeout.run((context) => fn(context, call), signal && { signal: signal as AbortSignal })
      const value = await runWithDeadline(deadline, run)
      return value === undefined ? undefined : { value, message: 'a reduced result' }
    },
  }
}

/**
 * Always returns the same value.
 *
 * @example
 * const fallback = [staticValue({ items: [] })]
 */
export function staticValue(value: unknown, options: StepOptions = {}): FallbackStep {
  const { name = 'static', on } = validate('staticValue', options, readStep)
  const answer = { value, message: 'a fixed answer' }
  return { name, on, answer: () => answer }
}
