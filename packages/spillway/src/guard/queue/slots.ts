/**
 * What this pod has to give a call: a slot while it runs, and a beat of its pace. Both are reserved
 * while the store is asked for the rest, and nothing is spent until a call really starts.
 */
import type { Algorithm } from '../../local/rate-limiter/algorithm.js'
import type { LaneRegistry } from '../../shared/lanes/lane-registry.js'
import type { LaneLimits } from '../stages/lane-limits.js'

export class Slots {
  /** Slots of this pod. */
  limit: number
  readonly #pace: Algorithm | undefined
  /** What each lane may have of it, where that is found out. */
  readonly lanes: LaneLimits | undefined
  /** A lane whose calls hold slots is in use, and must not be dropped. */
  readonly #registry: LaneRegistry | undefined
  /** Calls that have a slot. */
  active = 0
  /** Calls for which the store is being asked. */
  reserved = 0
  /** Calls that have a slot and will take a beat as they start, a moment from now. */
  #starting = 0

  constructor(
    limit: number,
    pace: Algorithm | undefined,
    lanes?: LaneLimits,
    registry?: LaneRegistry,
  ) {
    this.limit = limit
    this.#pace = pace
    this.lanes = lanes
    this.#registry = registry
  }

  /** No slot is free, whatever the pace. */
  get full(): boolean {
    return this.active + this.reserved >= this.limit
  }

  /** Calls of a lane that could start now; of any, if none is named. */
  free(nowMs: number, lane?: string): number {
    const podSlots = this.limit - this.active - this.reserved
    const slots =
      this.lanes === undefined || lane === undefined
        ? podSlots
        : Math.min(podSlots, this.lanes.free(lane))
    if (this.#pace === undefined || slots <= 0) return slots
    return Math.min(slots, this.#pace.remaining(nowMs) - this.reserved - this.#starting)
  }

  /** If it is the pace that is missing: for how long. */
  paceWaitMs(nowMs: number): number {
    if (this.#pace === undefined || this.active + this.reserved >= this.limit) return 0
    return this.#pace.waitMs(nowMs, 1, this.reserved + this.#starting)
  }

  /** Starts that the pace allows now, whatever the slots. */
  startsLeft(nowMs: number): number {
    if (this.#pace === undefined) return Number.POSITIVE_INFINITY
    return this.#pace.remaining(nowMs) - this.reserved - this.#starting
  }

  /** How long until the pace allows another start, whatever the slots. */
  startWaitMs(nowMs: number): number {
    return this.#pace?.waitMs(nowMs, 1, this.reserved + this.#starting) ?? 0
  }

  /** Slots of a lane that are free now, whatever the pace. */
  slotsLeft(lane: string): number {
    const left = this.limit - this.active - this.reserved
    return this.lanes === undefined ? left : Math.min(left, this.lanes.free(lane))
  }

  reserve(count: number, lane = ''): void {
    this.reserved += count
    this.#registry?.hold(lane, count)
    this.lanes?.enter(lane, count)
  }

  /** What was reserved is not needed. */
  giveUp(lane = ''): void {
    this.reserved--
    this.#registry?.release(lane)
    this.lanes?.leave(lane)
  }

  /** A call with a reservation gets its slot. */
  admit(): void {
    this.reserved--
    this.active++
    this.#starting++
  }

  /** It starts. */
  beat(nowMs: number): void {
    this.#starting--
    this.#pace?.tryTake(nowMs, 1)
  }

  /** It does not start after all. */
  skip(lane = ''): void {
    this.#starting--
    this.end(lane)
  }

  end(lane = ''): void {
    this.active--
    this.#registry?.release(lane)
    this.lanes?.leave(lane)
  }
}
