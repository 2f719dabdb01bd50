/**
 * Client-side adaptive throttling: a downstream that refuses most of what it is sent still spends work
 * on every refusal. So a part of the calls is refused here, the more the fewer it accepts:
 * max(0, (requests − k × accepts) / (requests + 1)) of them. Never all, so that it finds out when the
 * downstream is back; a circuit breaker beside it decides faster, and for the whole fleet.
 */
import type { Clock } from '../core/clock.js'
import { type Details, refuse, SpillwayError } from '../core/errors.js'
import { clockOption, randomOption } from '../core/injected.js'
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
} from '../core/options.js'
import { judge, type OutcomeOptions } from '../core/outcome.js'
import type { Random } from '../core/random.js'
import { RollingCounter } from '../core/rolling-counter.js'

export interface ThrottleOptions {
  /** Stands in errors. Default: `throttle`. */
  name?: string
  /** So many requests for each accepted one are let through, from 1. Default: 2. */
  k?: number
  /** How far back it looks. Default: 10 seconds. */
  windowMs?: Duration
  /** Calls needed in that time before anything is refused. Default: 10. */
  minimumCalls?: number
  /** Your own word on how a call ended. */
  classify?: OutcomeOptions['classify']
  /** Default: the system's clock. */
  clock?: Clock
  /** Default: `Math.random`. */
  random?: Random
}

export interface ThrottleSnapshot {
  /** In the window: calls that came, and calls the downstream accepted. */
  requests: number
  accepts: number
  /** Part of the calls that is refused. */
  refusal: number
}

export interface Throttle {
  readonly name: string
  /** Runs it, or refuses with SHED. */
  run<T>(fn: () => T | PromiseLike<T>): Promise<T>
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

export function createThrottle(options: ThrottleOptions = {}): Throttle {
  const checked = validate('throttle', options, readOptions)
  const { name, clock, classify, random } = checked
  const acceptance = new Acceptance(checked, random)
  return {
    name,
    async run(fn) {
      if (acceptance.refuses(clock.now()))
        return refuse(throttleError(name, acceptance, clock.now()))
      const judging = { name, wallMs: clock.wallMs(), ...(classify && { classify }) }
      try {
        const value = await fn()
        acceptance.ended(clock.now(), judge({ value }, judging).outcome)
        return value
      } catch (error) {
        acceptance.ended(clock.now(), judge({ error }, judging).outcome)
        throw error
      }
    },
    snapshot: () => acceptance.snapshot(clock.now()),
  }
}

/** What one downstream, or one lane of it, has accepted lately. */
export class Acceptance {
  readonly #k: number
  readonly #minimum: number
  readonly #random: Random
  readonly #requests: RollingCounter
  readonly #accepts: RollingCounter

  constructor({ k, windowMs, minimumCalls }: CheckedThrottle, random: Random) {
    this.#k = k
    this.#minimum = minimumCalls
    this.#random = random
    this.#requests = new RollingCounter(windowMs, SLICES)
    this.#accepts = new RollingCounter(windowMs, SLICES)
  }

  /**
   * Whether a call is refused here. Who is let through counts when it ends: a hundred calls that have
   * no answer yet were not refused by anybody.
   */
  refuses(nowMs: number): boolean {
    const refusal = this.#refusal(nowMs)
    if (refusal === 0 || this.#random() >= refusal) return false
    this.#requests.add(nowMs, 1)
    return true
  }

  /** Whatever the answer was, it was one, unless the downstream failed or asked for less. */
  ended(nowMs: number, outcome: string): void {
    this.#requests.add(nowMs, 1)
    if (outcome !== 'failure' && outcome !== 'throttled') this.#accepts.add(nowMs, 1)
  }

  snapshot(nowMs: number): ThrottleSnapshot {
    const [requests, accepts] = [this.#requests.total(nowMs), this.#accepts.total(nowMs)]
    return { requests, accepts, refusal: this.#refusal(nowMs) }
  }

  #refusal(nowMs: number): number {
    const requests = this.#requests.total(nowMs)
    if (requests < this.#minimum) return 0
    const beyond = requests - this.#k * this.#accepts.total(nowMs)
    return beyond > 0 ? beyond / (requests + 1) : 0
  }
}

export function throttleError(name: string, acceptance: Acceptance, nowMs: number): SpillwayError {
  return new SpillwayError({
    code: 'SHED',
    stage: 'shed',
    scope: 'local',
    details: { name, reason: 'throttle', ...acceptance.snapshot(nowMs) },
    explain,
  })
}

function explain({ name, requests, accepts }: Details): string {
  return `${name}: throttled here, because of the last ${requests} calls ${accepts} were accepted`
}
