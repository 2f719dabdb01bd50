/**
 * Decides which calls to refuse, from the last sample and two counters. Without I/O, allocations or
 * percentiles, because the cost of a decision matters under overload.
 */

import type { SpillwayError } from '../../core/errors.js'
import type { Random } from '../../core/random.js'
import { stableHash } from '../../core/stable-hash.js'
import type { Clock } from '../../core/time/clock.js'
import { ShedWait } from '../shed-wait.js'
import type { CheckedShed } from './options.js'
import { PressureGauge } from './pressure-gauge.js'
import {
  type ShedFacts,
  type ShedReason,
  type Signal,
  shedByQueueError,
  shedError,
  shedInFlightError,
} from './shed-refusal.js'

export type { ShedReason, Signal } from './shed-refusal.js'

/** Properties of a call that the decision needs. */
export interface ShedCall {
  /** Tier of the user, for `tiers`. Default: none. */
  tier?: string | undefined
  /**
   * The user: under overload the same users are refused, instead of a part of the calls of each. Default: none.
   */
  user?: string | undefined
  /** The endpoint, for `critical`. Default: none. */
  endpoint?: string | undefined
}

/** State and counts of a load shedder. */
export interface ShedderSnapshot {
  /** The highest of the signals; 1 is the limit. */
  pressure: number
  /** The signal with the highest value; undefined without pressure. */
  highest: Signal | undefined
  /** Each signal divided by its limit. */
  signals: Partial<Record<Signal, number>>
  /** The share of the least important calls that is refused. Can exceed 1. */
  overload: number
}

/** A call that was refused, and the counts at that moment. */
export interface RefusedCall {
  readonly importance: number
  readonly tier: string | undefined
  readonly deadlineMs: number
  readonly waiting: number
  readonly inFlight: number
}

export class Shedder {
  readonly name: string
  readonly options: CheckedShed
  /** How long refused callers are asked to wait. */
  readonly wait: ShedWait
  /** Whether `record` has to be called. */
  readonly timesCalls: boolean
  readonly #gauge: PressureGauge | undefined
  readonly #clock: Clock
  readonly #random: Random
  readonly #critical: ReadonlySet<string>
  /** By importance: the pressure from which it is refused, and its share of the overload. */
  readonly #thresholds: readonly number[]
  readonly #weights: readonly number[]
  #salt = 0
  #saltUntilMs = Number.NEGATIVE_INFINITY

  constructor(name: string, options: CheckedShed, clock: Clock, random: Random) {
    this.name = name
    this.options = options
    this.wait = new ShedWait(random)
    this.#clock = clock
    this.#random = random
    this.#gauge = PressureGauge.isNeeded(options)
      ? new PressureGauge(name, options, clock)
      : undefined
    this.timesCalls = this.#gauge?.timesCalls === true
    this.#critical = new Set(options.critical)
    const { priorities, weights } = options
    this.#thresholds = [Infinity, priorities.high, priorities.normal, priorities.low]
    this.#weights = [0, weights.high, weights.normal, weights.low]
  }

  /** Counts a call that came in, refused or not. */
  arrive(): void {
    if (this.#gauge !== undefined) this.#gauge.arrived++
  }

  /** Records the duration of a call that was answered. */
  record(nowMs: number, tookMs: number): void {
    this.#gauge?.record(nowMs, tookMs)
  }

  /** Why this call should be refused, or undefined. `importance` 0 is critical. */
  decide(
    importance: number,
    call: ShedCall,
    deadlineMs: number,
    nowMs: number,
    waiting: number,
    inFlight: number,
  ): ShedReason | undefined {
    const gauge = this.#gauge
    gauge?.noteCall(nowMs)
    const { endpoint, tier } = call
    if (importance === 0 || (endpoint !== undefined && this.#critical.has(endpoint)))
      return undefined
    const { maxQueue, maxInFlight, tiers } = this.options
    let pressure = gauge === undefined ? 0 : gauge.pressure
    if (maxQueue !== undefined) {
      if (waiting >= maxQueue) return 'queue'
      const queue = waiting / maxQueue
      if (queue > pressure) pressure = queue
    }
    if (maxInFlight !== undefined) {
      if (inFlight >= maxInFlight) return 'inFlight'
      const running = inFlight / maxInFlight
      if (running > pressure) pressure = running
    }
    if (tiers !== undefined && pressure > this.#tierLimit(tiers, tier)) return 'tier'
    if (pressure >= (this.#thresholds[importance] as number)) return 'priority'
    if (gauge === undefined) return undefined
    if (gauge.overload > 0 && this.#isHit(importance, call.user, gauge.overload, nowMs)) {
      return 'overload'
    }
    if (gauge.usualMs === 0 || deadlineMs === Infinity) return undefined
    const late = nowMs + this.#neededMs(waiting) > deadlineMs
    return this.options.inTime && late ? 'deadline' : undefined
  }

  /** The refusal for a reason that `decide` gave. `prefix`: of the options' names in its message. */
  refusal(
    reason: ShedReason,
    { importance, tier, deadlineMs, waiting, inFlight }: RefusedCall,
    nowMs: number,
    prefix: ShedFacts['prefix'],
  ): SpillwayError {
    const { name, options } = this
    const retryAfterMs = this.wait.nextMs(nowMs)
    if (reason === 'queue') {
      return shedByQueueError(name, prefix, waiting, options.maxQueue as number, retryAfterMs)
    }
    if (reason === 'inFlight') {
      return shedInFlightError(name, prefix, inFlight, options.maxInFlight as number, retryAfterMs)
    }
    const gauge = this.#gauge
    let highest: Signal | undefined = gauge?.highest
    let pressure = gauge?.pressure ?? 0
    const { maxQueue, maxInFlight } = options
    if (maxQueue !== undefined && waiting / maxQueue > pressure) {
      pressure = waiting / maxQueue
      highest = 'queue'
    }
    if (maxInFlight !== undefined && inFlight / maxInFlight > pressure) {
      pressure = inFlight / maxInFlight
      highest = 'inFlight'
    }
    return shedError({
      name,
      prefix,
      options,
      reason,
      retryAfterMs,
      importance,
      tier,
      waiting,
      highest,
      pressure,
      overload: gauge?.overload ?? 0,
      neededMs: this.#neededMs(waiting),
      leftMs: deadlineMs - nowMs,
    })
  }

  snapshot(waiting: number, inFlight: number): ShedderSnapshot {
    const { maxQueue, maxInFlight } = this.options
    const signals: ShedderSnapshot['signals'] = { ...this.#gauge?.signals }
    if (maxQueue !== undefined) signals.queue = waiting / maxQueue
    if (maxInFlight !== undefined) signals.inFlight = inFlight / maxInFlight
    let highest: Signal | undefined
    let pressure = 0
    for (const [name, each] of Object.entries(signals) as [Signal, number][]) {
      if (each <= pressure) continue
      pressure = each
      highest = name
    }
    return { pressure, highest, signals, overload: this.#gauge?.overload ?? 0 }
  }

  close(): void {
    this.#gauge?.close()
  }

  /** How long a call would take from now on, judging by the last ones. */
  #neededMs(waiting: number): number {
    const gauge = this.#gauge
    return gauge === undefined ? 0 : gauge.usualMs + waiting * gauge.msPerCall
  }

  /** Unlisted tiers are served unless `*` is set. */
  #tierLimit(tiers: ReadonlyMap<string, number>, tier: string | undefined): number {
    const own = tier === undefined ? undefined : tiers.get(tier)
    return own ?? tiers.get('*') ?? Infinity
  }

  /**
   * The same users are refused while the overload does not change. Calls without a user are drawn at
   * random.
   */
  #isHit(importance: number, user: string | undefined, overload: number, nowMs: number): boolean {
    const part = overload * (this.#weights[importance] as number)
    if (part >= 1) return true
    if (user === undefined) return this.#random() < part
    if (nowMs >= this.#saltUntilMs) this.#rotate(nowMs)
    return stableHash(user, this.#salt) < part
  }

  /** By the time of day, so that all pods rotate at once. */
  #rotate(nowMs: number): void {
    const { rotateMs } = this.options
    const wallMs = this.#clock.wallMs()
    this.#salt = Math.floor(wallMs / rotateMs)
    this.#saltUntilMs = nowMs + rotateMs - (wallMs % rotateMs)
  }
}
