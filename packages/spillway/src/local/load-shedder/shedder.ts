/**
 * Whom to refuse, from what was sampled and from two counters. No I/O, no allocation, no percentile:
 * overload is when the cost of a decision matters.
 */

import type { Random } from '../../core/random.js'
import { placeOf } from '../../core/stable-hash.js'
import type { Clock } from '../../core/time/clock.js'
import type { CheckedShed } from './options.js'
import { PressureGauge, type SampledSignal } from './pressure-gauge.js'

/** Why a call is refused. */
export type ShedReason =
  /** So many wait, or run, already. */
  | 'queue'
  | 'inFlight'
  /** The pressure is over what its tier is served at. */
  | 'tier'
  /** The same for its priority. */
  | 'priority'
  /** It is among those of its priority that the overload hits. */
  | 'overload'
  /** It could not be done in time. */
  | 'deadline'

export type Signal = SampledSignal | 'queue' | 'inFlight'

/** What a decision goes by, for one call. */
export interface ShedCall {
  tier?: string | undefined
  user?: string | undefined
  endpoint?: string | undefined
}

export interface ShedderSnapshot {
  /** The highest of the signals; 1 is the limit. */
  pressure: number
  /** Which one that is; none while there is no pressure at all. */
  highest: Signal | undefined
  /** Each signal divided by its limit. */
  signals: Partial<Record<Signal, number>>
  /** What part of the least important calls is refused, and more: it may be over 1. */
  overload: number
}

export class Shedder {
  readonly options: CheckedShed
  readonly #gauge: PressureGauge | undefined
  readonly #clock: Clock
  readonly #random: Random
  readonly #critical: ReadonlySet<string>
  /** By importance: from which pressure on, and what part of the overload. */
  readonly #thresholds: readonly number[]
  readonly #weights: readonly number[]
  #salt = 0
  #saltUntilMs = Number.NEGATIVE_INFINITY

  constructor(name: string, options: CheckedShed, clock: Clock, random: Random) {
    this.options = options
    this.#clock = clock
    this.#random = random
    this.#gauge = PressureGauge.isNeeded(options)
      ? new PressureGauge(name, options, clock)
      : undefined
    this.#critical = new Set(options.critical)
    const { priorities, weights } = options
    this.#thresholds = [Infinity, priorities.high, priorities.normal, priorities.low]
    this.#weights = [0, weights.high, weights.normal, weights.low]
  }

  /** Whether `record` wants to hear of calls. */
  get timesCalls(): boolean {
    return this.#gauge?.timesCalls === true
  }

  /** A call has come, whatever becomes of it. */
  arrive(): void {
    if (this.#gauge !== undefined) this.#gauge.arrived++
  }

  /** A call was answered, that had come so long ago. */
  record(nowMs: number, tookMs: number): void {
    this.#gauge?.record(nowMs, tookMs)
  }

  /** Why this call should be refused; nothing: it should not. `importance`: 0 is critical. */
  decide(
    importance: number,
    call: ShedCall,
    deadlineMs: number,
    nowMs: number,
    waiting: number,
    inFlight: number,
  ): ShedReason | undefined {
    const gauge = this.#gauge
    gauge?.touch(nowMs)
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
    const neededMs = gauge.usualMs + waiting * gauge.msPerCall
    return this.options.inTime && nowMs + neededMs > deadlineMs ? 'deadline' : undefined
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

  /** A tier that nobody thought of is served, unless `*` says otherwise. */
  #tierLimit(tiers: ReadonlyMap<string, number>, tier: string | undefined): number {
    const own = tier === undefined ? undefined : tiers.get(tier)
    return own ?? tiers.get('*') ?? Infinity
  }

  /** The same ones while the overload is the same; of those nobody knows, any. */
  #isHit(importance: number, user: string | undefined, overload: number, nowMs: number): boolean {
    const part = overload * (this.#weights[importance] as number)
    if (part >= 1) return true
    if (user === undefined) return this.#random() < part
    if (nowMs >= this.#saltUntilMs) this.#rotate(nowMs)
    return placeOf(user, this.#salt) < part
  }

  /** By the time of day, so that all pods turn to others at once. */
  #rotate(nowMs: number): void {
    const { rotateMs } = this.options
    const wallMs = this.#clock.wallMs()
    this.#salt = Math.floor(wallMs / rotateMs)
    this.#saltUntilMs = nowMs + rotateMs - (wallMs % rotateMs)
  }
}
