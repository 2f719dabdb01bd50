/**
 * Books units that a pod used under an outage rule, while the store was unreachable: in the slice or window in
 * which they were used, if that still counts, and for buckets as debt. Twin: `redis/lua/book-spent.lua`.
 */
import type { LimitSpec } from '../limit-spec.js'
import { type Count, isBucket, overrun } from './counting.js'

export function bookSpent(
  spec: LimitSpec,
  count: Count,
  now: number,
  stamp: number,
  units: number,
): void {
  if (isBucket(spec)) return overrun(spec, count, now, units)
  if (spec.algorithm === 'fixed-window') {
    // A pod's estimate of the store's time may be slightly ahead.
    if (stamp >= count.newestSlice) count.units += units
    return
  }
  if (stamp <= count.newestSlice - count.slices.length) return
  const index = Math.min(stamp, count.newestSlice) % count.slices.length
  count.slices[index] = (count.slices[index] as number) + units
  count.units += units
}
