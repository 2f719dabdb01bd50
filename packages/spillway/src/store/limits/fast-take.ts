/**
 * The fast path of `takePermits` and `settlePermits`, for most requests: the same limits as last time, no pause, no
 * waiting pod, the same slice, and everything fits. It has the same result at a fraction of the cost, or does nothing if
 * the request needs the full transition. Replies share the fields that do not change within a slice. Twin of `take`:
 * `redis/lua/include/fast-take.lua`.
 */
import type { LimitSpec } from '../limit-spec.js'
import type { SettleRequest, TakeReply, TakeRequest } from '../port.js'
import { type Count, overrun, refund } from './counting.js'
import type { LaneState } from './lane-state.js'

export class FastTake {
  readonly #lane: LaneState
  readonly #limits: readonly LimitSpec[]
  /** Per limit, from the lane's state. */
  readonly #counts: readonly Count[]
  readonly #sliceUs: readonly number[]
  readonly #stamps: readonly number[]
  readonly #capacities: readonly number[]
  /** When the first of the slices ends. */
  readonly #untilUs: number

  private constructor(lane: LaneState, limits: readonly LimitSpec[], counts: readonly Count[]) {
    this.#lane = lane
    this.#limits = limits
    this.#counts = counts
    this.#sliceUs = counts.map(({ sliceUs }) => sliceUs)
    this.#stamps = counts.map(({ newestSlice }) => newestSlice)
    this.#capacities = limits.map(({ limit }) => limit)
    this.#untilUs = Math.min(
      ...counts.map(({ newestSlice, sliceUs }) => (newestSlice + 1) * sliceUs),
    )
  }

  /** For guards without changed limits, overrides and vendor-wide limits only. */
  static of(lane: LaneState, limits: readonly LimitSpec[]): FastTake | undefined {
    const counts: Count[] = []
    for (const { id, algorithm, span, windowUs, slices } of limits) {
      const count = lane.counts[id]
      // A lane's own limits beside those of its pool are counted in another state.
      if (span !== limits[0]?.span || span === 'vendor') return undefined
      if (count === undefined || algorithm !== 'sliding-window') return undefined
      if (count.windowUs !== windowUs || count.sliceUs !== Math.ceil(windowUs / slices))
        return undefined
      counts.push(count)
    }
    return new FastTake(lane, limits, counts)
  }

  take({ limits, costs }: TakeRequest, now: number): TakeReply | undefined {
    const lane = this.#lane
    if (costs.length === 0 || lane.pausedUntilUs > now || !this.#isCurrent(limits, now)) {
      return undefined
    }
    for (let index = 0; index < limits.length; index++) {
      const { limit, learn } = limits[index] as LimitSpec
      const count = this.#counts[index] as Count
      const units = count.units + sumOf(costs, index)
      if (units > limit) return undefined
      if (learn === true && count.learned !== undefined && units > count.learned.limit)
        return undefined
    }
    for (let index = 0; index < limits.length; index++) {
      const count = this.#counts[index] as Count
      const sum = sumOf(costs, index)
      count.units += sum
      ;(count.slices[count.newestSlice % count.slices.length] as number) += sum
    }
    lane.changedUs = now
    return {
      granted: costs.length,
      waitUs: 0,
      paused: false,
      nowUs: now,
      stamps: this.#stamps,
      capacities: this.#capacities,
      // Set by the client later; adding a property then would change the object's hidden class.
      under: undefined,
    }
  }

  /** False if nothing was settled. */
  settle({ limits, settlements }: SettleRequest, now: number): boolean {
    if (!this.#isCurrent(limits, now)) return false
    for (const { limit, stamp, delta } of settlements) {
      const spec = limits[limit] as LimitSpec
      const count = this.#counts[limit] as Count
      if (delta < 0) refund(spec, count, now, stamp, -delta)
      else if (delta > 0) overrun(spec, count, now, delta)
    }
    this.#lane.changedUs = now
    return true
  }

  /** The limits are those of the last request, their slices have not ended, and no pod waits. */
  #isCurrent(limits: readonly LimitSpec[], now: number): boolean {
    const lane = this.#lane
    if (limits !== this.#limits && !areSame(limits, this.#limits)) return false
    // Waiting pods share the free units.
    if (now >= this.#untilUs || lane.changedUs > now || lane.waiting.length > 0) return false
    for (let index = 0; index < limits.length; index++) {
      const { windowUs } = limits[index] as LimitSpec
      const count = this.#counts[index] as Count
      // Another release of the fleet may have counted in another window meanwhile.
      if (count.newestSlice !== this.#stamps[index] || count.sliceUs !== this.#sliceUs[index])
        return false
      if (count.windowUs !== windowUs) return false
    }
    return true
  }
}

/** Pods that share a memory store have their own copies of equal limits. */
function areSame(some: readonly LimitSpec[], others: readonly LimitSpec[]): boolean {
  if (some.length !== others.length) return false
  for (let index = 0; index < some.length; index++) {
    const one = some[index] as LimitSpec
    const other = others[index] as LimitSpec
    if (one.id !== other.id || one.algorithm !== other.algorithm || one.span !== other.span)
      return false
    if (one.limit !== other.limit || one.windowUs !== other.windowUs) return false
    if (one.slices !== other.slices || one.burst !== other.burst) return false
    if (one.learn !== other.learn) return false
  }
  return true
}

function sumOf(costs: readonly (readonly number[])[], limit: number): number {
  let sum = 0
  for (let index = 0; index < costs.length; index++) sum += costs[index]?.[limit] as number
  return sum
}
