/**
 * Most takes: the same limits as last time, nobody paused, the same slice, and everything fits. Says
 * what `takePermits` would say, at a fraction of its cost, or nothing. What does not change within a
 * slice is worked out once, and replies share it. Twin: `redis/lua/include/usual-take.lua`.
 */
import type { LimitSpec } from '../limit-spec.js'
import type { TakeReply, TakeRequest } from '../port.js'
import type { Count } from './counting.js'
import type { LaneState } from './lane-state.js'

export class FastTake {
  readonly #lane: LaneState
  readonly #limits: readonly LimitSpec[]
  /** Per limit, as in the lane's state. */
  readonly #counts: readonly Count[]
  readonly #sliceUs: readonly number[]
  readonly #stamps: readonly number[]
  readonly #capacities: readonly number[]
  /** The first of the slices is over then. */
  readonly #untilUs: number

  private constructor(lane: LaneState, limits: readonly LimitSpec[], counts: readonly Count[]) {
    this.#lane = lane
    this.#limits = limits
    this.#counts = counts
    this.#sliceUs = counts.map(({ w }) => w)
    this.#stamps = counts.map(({ n }) => n)
    this.#capacities = limits.map(({ limit }) => limit)
    this.#untilUs = Math.min(...counts.map(({ n, w }) => (n + 1) * w))
  }

  /** Only for a guard whose limits were neither changed nor overridden, and have no counts of its own. */
  static of(lane: LaneState, limits: readonly LimitSpec[]): FastTake | undefined {
    const counts: Count[] = []
    for (const { id, algorithm, span, windowUs, slices } of limits) {
      const count = lane.counts[id]
      if (count === undefined || algorithm !== 'sliding-window' || span !== 'lane') return undefined
      if (count.u !== windowUs || count.w !== Math.ceil(windowUs / slices)) return undefined
      counts.push(count)
    }
    return new FastTake(lane, limits, counts)
  }

  take({ limits, costs }: TakeRequest, now: number): TakeReply | undefined {
    const lane = this.#lane
    if (!areSame(limits, this.#limits) || costs.length === 0) return undefined
    if (now >= this.#untilUs || lane.p > now || lane.t > now) return undefined
    for (let index = 0; index < limits.length; index++) {
      const { limit, windowUs } = limits[index] as LimitSpec
      const { n, w, u, s } = this.#counts[index] as Count
      // Another release of the fleet may have counted in another window meanwhile.
      if (n !== this.#stamps[index] || w !== this.#sliceUs[index] || u !== windowUs)
        return undefined
      if (s + sumOf(costs, index) > limit) return undefined
    }
    for (let index = 0; index < limits.length; index++) {
      const count = this.#counts[index] as Count
      const sum = sumOf(costs, index)
      count.s += sum
      ;(count.b[count.n % count.b.length] as number) += sum
    }
    lane.t = now
    return {
      granted: costs.length,
      waitUs: 0,
      paused: false,
      nowUs: now,
      stamps: this.#stamps,
      capacities: this.#capacities,
      // A place for what the asker adds: adding one later would cost a copy.
      under: undefined,
    }
  }
}

/** Pods that share a store in memory each have their own copy. */
function areSame(some: readonly LimitSpec[], others: readonly LimitSpec[]): boolean {
  if (some === others) return true
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
