/** The adaptive concurrency limit of each lane: models differ in capacity and latency. */
import type { Clock } from '../../core/time/clock.js'
import {
  type AdaptiveLimitSnapshot,
  WatchedLimit,
  type WatchedLimitOptions,
} from '../../local/adaptive-limit/adaptive-limit.js'
import { LaneMap, type LaneRegistry } from '../../shared/lanes/lane-registry.js'

export interface LaneLimitSnapshot extends Omit<AdaptiveLimitSnapshot, 'name'> {
  lane: string
  active: number
}

interface Lane {
  readonly limit: WatchedLimit
  /** Calls that run, or whose permits are being requested. */
  active: number
}

export class LaneConcurrency {
  readonly #lanes: LaneMap<Lane>
  /** The limit of a lane before its first call. */
  readonly #initial: number

  constructor(
    name: string,
    options: Omit<WatchedLimitOptions, 'name' | 'clock'>,
    clock: Clock,
    lanes: LaneRegistry,
  ) {
    const createLimit = () => new WatchedLimit({ ...options, name, clock })
    this.#initial = createLimit().limit
    this.#lanes = new LaneMap(lanes, {
      create: () => ({ limit: createLimit(), active: 0 }),
      isIdle: ({ active }) => active === 0,
    })
  }

  free(lane: string): number {
    const known = this.#lanes.get(lane)
    return known === undefined ? this.#initial : known.limit.limit - known.active
  }

  enter(lane: string, count: number): void {
    this.#lanes.of(lane).active += count
  }

  leave(lane: string): void {
    this.#lanes.of(lane).active--
  }

  /** An attempt was answered, or its answer has begun; it still holds its slot. */
  answered(lane: string, nowMs: number, startMs: number, dropped: boolean): void {
    const { limit, active } = this.#lanes.of(lane)
    limit.ended(nowMs, startMs, active, dropped)
  }

  /** Sum of the limits of all lanes. */
  get total(): number {
    let total = 0
    for (const { limit } of this.#lanes.values()) total += limit.limit
    return total
  }

  /** Fraction of the limits in use, over lanes that have calls. */
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

  /** Active calls of the lane and those that wait in it, as a fraction of its limit. */
  pressure(lane: string, waiting: number): number {
    const known = this.#lanes.get(lane)
    return known === undefined ? 0 : (known.active + waiting) / known.limit.limit
  }

  snapshots(): LaneLimitSnapshot[] {
    return Array.from(this.#lanes, ([lane, { limit, active }]) => {
      const { name: _, ...snapshot } = limit.snapshot()
      return { lane, active, ...snapshot }
    })
  }

  close(): void {
    this.#lanes.close()
  }
}
