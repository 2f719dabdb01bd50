/**
 * The fast path of `takePermits`, for most requests: the same limits as last time, no pause, no waiting pod, the
 * same slice, and everything fits. It returns the same reply at a fraction of the cost, or undefined if the
 * request needs the full transition. Replies share what does not change within a slice. Twin:
 * `redis/lua/include/fast-take.lua`.
 */
import type { LimitSpec } from '../limit-spec.js'
import type { TakeReply, TakeRequest } from '../port.js'
import type { Count } from './counting.js'
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
      if (count === undefined || algorithm !== 'sliding-window' || span !== 'lane') return undefined
      if (count.windowUs !== windowUs || count.sliceUs !== Math.ceil(windowUs / slices))
        return undefined
      counts.push(count)
    }
    return new FastTake(lane, limits, counts)
  }

  take({ limits, costs }: TakeRequest, now: number): TakeReply | undefined {
    const lane = this.#lane
    if (costs.length === 0) return undefined
    if (limits !== this.#limits && !areSame(limits, this.#limits)) return undefined
    if (now >= this.#untilUs || lane.pausedUntilUs > now || lane.changedUs > now) return undefined
    // Waiting pods share what is free.
    if (lane.waiting.length > 0) return undefined
    for (let index = 0; index < limits.length; index++) {
      const { limit, windowUs } = limits[index] as LimitSpec
      const count = this.#counts[index] as Count
      // Another release of the fleet may have counted in another window meanwhile.
      if (count.newestSlice !== this.#stamps[index] || count.sliceUs !== this.#sliceUs[index])
        return undefined
      if (count.windowUs !== windowUs || count.units + sumOf(costs, index) > limit) return undefined
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
  }
  return true
}

function sumOf(costs: readonly (readonly number[])[], limit: number): number {
  let sum = 0
  for (let index = 0; index < costs.length; index++) sum += costs[index]?.[limit] as number
  return sum
}
