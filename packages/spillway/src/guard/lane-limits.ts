/**
 * How many calls each lane may have at once, where that is found out: a model has a capacity of its
 * own, and a latency of its own, which says nothing about another's.
 */
import type { Clock } from '../core/clock.js'
import {
  type AdaptiveLimitSnapshot,
  WatchedLimit,
  type WatchedLimitOptions,
} from '../local/adaptive-limit/adaptive-limit.js'

export interface LaneLimitSnapshot extends Omit<AdaptiveLimitSnapshot, 'name'> {
  lane: string
  active: number
}

interface Lane {
  readonly limit: WatchedLimit
  /** Calls that run, or for which the store is being asked. */
  active: number
}

/** Names of lanes may be many; those that nothing runs in are forgotten, the oldest first. */
const MOST_LANES = 1_000

export class LaneLimits {
  readonly #name: string
  readonly #options: Omit<WatchedLimitOptions, 'name' | 'clock'>
  readonly #clock: Clock
  readonly #lanes = new Map<string, Lane>()
  /** Nearly always the same as last time. */
  #lastName: string | undefined
  #last: Lane | undefined

  constructor(name: string, options: Omit<WatchedLimitOptions, 'name' | 'clock'>, clock: Clock) {
    this.#name = name
    this.#options = options
    this.#clock = clock
  }

  free(lane: string): number {
    const { limit, active } = this.#lane(lane)
    return limit.limit - active
  }

  enter(lane: string, count: number): void {
    this.#lane(lane).active += count
  }

  leave(lane: string): void {
    this.#lane(lane).active--
  }

  /** An attempt was answered, or the answer has begun; it still has its slot. */
  answered(lane: string, nowMs: number, startMs: number, dropped: boolean): void {
    const { limit, active } = this.#lane(lane)
    limit.ended(nowMs, startMs, active, dropped)
  }

  /** What all lanes may have, together. */
  get total(): number {
    let total = 0
    for (const { limit } of this.#lanes.values()) total += limit.limit
    return total
  }

  /** Part of what all lanes may have that is in use. */
  get used(): number {
    let active = 0
    let limit = 0
    for (const lane of this.#lanes.values()) {
      if (lane.active === 0) continue
      active += lane.active
      limit += lane.limit.limit
    }
    return limit === 0 ? 0 : active / limit
  }

  snapshots(): LaneLimitSnapshot[] {
    return Array.from(this.#lanes, ([lane, { limit, active }]) => {
      const { name: _, ...snapshot } = limit.snapshot()
      return { lane, active, ...snapshot }
    })
  }

  #lane(name: string): Lane {
    if (this.#lastName === name) return this.#last as Lane
    let lane = this.#lanes.get(name)
    if (lane === undefined) {
      if (this.#lanes.size >= MOST_LANES) this.#forgetOne()
      const limit = new WatchedLimit({ ...this.#options, name: this.#name, clock: this.#clock })
      lane = { limit, active: 0 }
      this.#lanes.set(name, lane)
    }
    this.#lastName = name
    this.#last = lane
    return lane
  }

  #forgetOne(): void {
    for (const [name, { active }] of this.#lanes) {
      if (active > 0) continue
      this.#lanes.delete(name)
      return
    }
  }
}
