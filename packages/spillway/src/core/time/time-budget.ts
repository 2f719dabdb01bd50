/**
 * Divides one deadline over the steps of a request. Each step gets its weight's share of the time
 * left when it starts. So an early step cannot use up the time of later ones, and time that it
 * leaves unused goes to them.
 */

import {
  type Check,
  type Duration,
  duration,
  OptionsError,
  object,
  positive,
  validate,
} from '../options/checks.js'
import { suggest } from '../options/suggest.js'
import type { Clock } from './clock.js'
import { clockOption } from './clock-options.js'
import { currentDeadline, Deadline, earlierOf, runWithDeadline } from './deadline.js'

export interface TimeBudgetOptions {
  /** Time for all steps together. An earlier deadline of the request applies first. Range: from 0 ms. */
  totalMs: Duration
  /** The steps and their weights: `{ auth: 1, search: 3, answer: 6 }`. */
  steps: Readonly<Record<string, number>>
  /** The clock to read and to set timers with. Default: the system clock. */
  clock?: Clock
}

/** Time that is shared by the steps of one request. */
export interface TimeBudget {
  /**
   * Starts a step and returns its deadline, a share of the time left. A step can be started once.
   */
  step(name: string): Deadline
  /** Starts a step and runs `fn` under its deadline. */
  run<T>(name: string, fn: () => T): T
  /** Milliseconds that are left. */
  remainingMs(): number
}

const readSteps: Check<Record<string, number>> = (value, path, problems) => {
  if (typeof value === 'object' && value !== null && Object.keys(value).length > 0) {
    const fields = Object.fromEntries(Object.keys(value).map((name) => [name, positive()]))
    return object(fields)(value, path, problems)
  }
  problems.push({ path, message: 'must be an object of step names and weights' })
  return {}
}

const readOptions = object({
  totalMs: duration({ min: 0 }),
  steps: readSteps,
  clock: clockOption,
})

/**
 * Creates a time budget that divides the time of one request between its steps, by weight.
 *
 * @example
 * const budget = createTimeBudget({ totalMs: '10s', steps: { search: 3, answer: 7 } })
 * const found = await budget.run('search', () => search(query))
 */
export function createTimeBudget(options: TimeBudgetOptions): TimeBudget {
  const { totalMs, steps, clock } = validate('timeBudget', options, readOptions)
  const own = new Deadline(clock.now() + totalMs, clock)
  const whole = earlierOf(currentDeadline(), own) ?? own
  const waiting = new Map(Object.entries(steps))

  function step(name: string): Deadline {
    const weight = waiting.get(name)
    if (weight === undefined) throw noSuchStep(name, Object.keys(steps))
    let weightLeft = 0
    for (const each of waiting.values()) weightLeft += each
    waiting.delete(name)
    return new Deadline(clock.now() + (whole.remainingMs() * weight) / weightLeft, clock)
  }

  return {
    step,
    run: (name, fn) => runWithDeadline(step(name), fn),
    remainingMs: () => whole.remainingMs(),
  }
}

function noSuchStep(name: string, known: readonly string[]): OptionsError {
  const close = suggest(name, known)
  const hint = close === undefined ? `known: ${known.join(', ')}` : `did you mean '${close}'?`
  const message = known.includes(name) ? 'was started before' : `unknown step; ${hint}`
  return new OptionsError([{ path: `timeBudget.${name}`, message }])
}
