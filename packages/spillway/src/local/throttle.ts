/**
 * Client-side adaptive throttling. A downstream that rejects most requests still spends work on
 * each rejection. So a share of the calls is refused here, which grows as fewer are accepted:
 * max(0, (requests − k × accepts) / (requests + 1)). It never reaches 1, so the throttle notices
 * when the downstream is back. A circuit breaker decides faster, and for the whole fleet.
 *
 * Calls in flight count as accepted until they are older than calls usually take. Otherwise
 * rejections, which end at once, would be nearly all that is known after a cold start.
 */

import { InFlight, InFlightCall } from '../core/collections/in-flight.js'
import { RollingCounter } from '../core/collections/rolling-counter.js'
import { counted, type Details, refuse, SpillwayError } from '../core/errors.js'
import {
  type Duration,
  duration,
  func,
  integer,
  number,
  object,
  optional,
  text,
  validate,
} from '../core/options/checks.js'
import { judge, type OutcomeOptions } from '../core/outcome.js'
import type { Random } from '../core/random.js'
import type { Clock } from '../core/time/clock.js'
import { clockOption, randomOption } from '../core/time/clock-options.js'
import { shortWaitMs } from './shed-wait.js'

/** Options of `createThrottle()`. */
export interface ThrottleOptions {
  /** Name in errors. Default: `throttle`. */
  name?: string
  /** Requests let through for each one that the downstream accepts. Range: from 1. Default: 2. */
  k?: number
  /** Requests and rejections are counted over this time. Range: from 100 ms. Default: 10 seconds. */
  windowMs?: Duration
  /** Calls needed in the window before any is refused. Range: integers from 1. Default: 10. */
  minimumCalls?: number
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

/** Counts of a throttle. */
export interface ThrottleSnapshot {
  /** Calls that came in during the window. */
  requests: number
  /** Calls that the downstream accepted in the window. */
  accepts: number
  /** Share of the calls that is refused. */
  refusal: number
}

/** Refuses a share of the calls that grows with the share the downstream rejects. Created by `createThrottle()`. */
export interface Throttle {
  /** Name in errors, events and snapshots. */
  readonly name: string
  /** Runs `fn`, or refuses with THROTTLED. */
  run<T>(fn: () => T | PromiseLike<T>): Promise<T>
  /** State and counts at this moment. */
  snapshot(): ThrottleSnapshot
}

export const throttleFields = {
  k: optional(number({ min: 1 }), 2),
  windowMs: optional(duration({ min: 100 }), 10_000),
  minimumCalls: optional(integer({ min: 1 }), 10),
}

export interface CheckedThrottle {
  k: number
  windowMs: number
  minimumCalls: number
}

const readOptions = object({
  name: optional(text(), 'throttle'),
  ...throttleFields,
  classify: optional(func<NonNullable<OutcomeOptions['classify']>>()),
  clock: clockOption,
  random: randomOption,
})

const SLICES = 30
/** The age up to which a call counts as in flight while no success is known. */
const LONGEST_CALL_MS = 60_000

/**
 * Creates a throttle, which refuses a share of the calls while the downstream rejects many.
 *
 * @example
 * const throttle = createThrottle({ k: 2 })
 * await throttle.run(() => callVendor())
 */
export function createThrottle(options: ThrottleOptions = {}): Throttle {
  const checked = validate('throttle', options, readOptions)
  const { name, clock, classify, random } = checked
  const acceptance = new Acceptance(checked)
  return {
    name,
    async run(fn) {
      const nowMs = clock.now()
      const refusal = acceptance.refusal(nowMs)
      if (refusal > 0 && random() < refusal) {
        acceptance.refused(nowMs)
        return refuse(throttleError(name, acceptance, nowMs, random))
      }
      const call = acceptance.began(clock.now())
      const judging = { name, wallMs: clock.wallMs(), ...(classify && { classify }) }
      try {
        const value = await fn()
        acceptance.ended(clock.now(), judge({ value }, judging).outcome, call)
        return value
      } catch (error) {
        acceptance.ended(clock.now(), judge({ error }, judging).outcome, call)
        throw error
      }
    },
    snapshot: () => acceptance.snapshot(clock.now()),
  }
}

/** Recent requests and accepted requests of one downstream or lane. */
export class Acceptance {
  readonly #k: number
  readonly #minimum: number
  readonly #requests: RollingCounter
  readonly #accepts: RollingCounter
  readonly #inFlight: InFlight

  constructor({ k, windowMs, minimumCalls }: CheckedThrottle) {
    this.#k = k
    this.#minimum = minimumCalls
    this.#requests = new RollingCounter(windowMs, SLICES)
    this.#accepts = new RollingCounter(windowMs, SLICES)
    this.#inFlight = new InFlight(Math.max(windowMs, LONGEST_CALL_MS), Number.POSITIVE_INFINITY)
  }

  /** The share of calls to refuse now, from 0 to 1. */
  refusal(nowMs: number): number {
    const requests = this.#requests.total(nowMs)
    const accepts = this.#accepts.total(nowMs)
    // Calls in flight count as accepted, so they can only lower the share.
    if (requests < this.#minimum || requests <= this.#k * accepts) return 0
    const inFlight = this.#inFlight.count(nowMs)
    const all = requests + inFlight
    const beyond = all - this.#k * (accepts + inFlight)
    return beyond > 0 ? beyond / (all + 1) : 0
  }

  /** A call was refused here. Other calls count as requests when they end. */
  refused(nowMs: number): void {
    this.#requests.add(nowMs, 1)
  }

  /** A call begins. Its end is reported with the returned object. */
  began(nowMs: number): InFlightCall {
    const call = new InFlightCall()
    this.#inFlight.begin(call, nowMs)
    return call
  }

  /** Any response counts as accepted, unless the downstream failed or asked for fewer calls. */
  ended(nowMs: number, outcome: string, call?: InFlightCall): void {
    const rejected = outcome === 'failure' || outcome === 'throttled'
    this.#requests.add(nowMs, 1)
    if (!rejected) this.#accepts.add(nowMs, 1)
    if (call !== undefined) this.#inFlight.end(call, rejected ? 'failure' : 'success', nowMs)
  }

  snapshot(nowMs: number): ThrottleSnapshot {
    const [requests, accepts] = [this.#requests.total(nowMs), this.#accepts.total(nowMs)]
    return { requests, accepts, refusal: this.refusal(nowMs) }
  }
}

export function throttleError(
  name: string,
  acceptance: Acceptance,
  nowMs: number,
  random: Random,
): SpillwayError {
  return new SpillwayError({
    code: 'THROTTLED',
    stage: 'throttle',
    scope: 'local',
    retryAfterMs: shortWaitMs(random),
    details: { name, ...acceptance.snapshot(nowMs) },
    explain,
  })
}

function explain({ name, requests, accepts }: Details): string {
  return `${name}: throttled here, because the downstream accepted ${accepts} of the last ${counted(requests, 'calls')}`
}
