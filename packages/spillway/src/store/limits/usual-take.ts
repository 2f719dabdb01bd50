/**
 * Most takes: the same windows as last time, nobody paused, the same slice, and everything fits. Says
 * what `takePermits` would say, at a fraction of its cost, or nothing. Twin:
 * `redis/lua/include/usual-take.lua`.
 */
import type { TakeReply, TakeRequest } from '../port.js'
import type { LaneState } from './lane-state.js'

/** Only for a guard whose limits were neither changed nor overridden, and have no counts of its own. */
export function takeUsual(
  lane: LaneState,
  { limits, costs }: TakeRequest,
  now: number,
): TakeReply | undefined {
  if (lane.p > now || lane.t > now || costs.length === 0) return undefined
  for (let index = 0; index < limits.length; index++) {
    const { id, algorithm, span, limit, windowUs, slices } = limits[
      index
    ] as (typeof limits)[number]
    const count = lane.counts[id]
    if (count === undefined || algorithm !== 'sliding-window' || span !== 'lane') return undefined
    if (count.u !== windowUs || count.w !== Math.ceil(windowUs / slices)) return undefined
    if (Math.floor(now / count.w) !== count.n) return undefined
    if (count.s + sumOf(costs, index) > limit) return undefined
  }
  const stamps = new Array<number>(limits.length)
  const capacities = new Array<number>(limits.length)
  for (let index = 0; index < limits.length; index++) {
    const { id, limit } = limits[index] as (typeof limits)[number]
    const count = lane.counts[id] as LaneState['counts'][string]
    const sum = sumOf(costs, index)
    count.s += sum
    ;(count.b[count.n % count.b.length] as number) += sum
    stamps[index] = count.n
    capacities[index] = limit
  }
  lane.t = now
  const granted = costs.length
  // With a place for what the asker adds: adding one later would cost a copy.
  return { granted, waitUs: 0, paused: false, nowUs: now, stamps, capacities, under: undefined }
}

function sumOf(costs: readonly (readonly number[])[], limit: number): number {
  let sum = 0
  for (let index = 0; index < costs.length; index++) sum += costs[index]?.[limit] as number
  return sum
}
