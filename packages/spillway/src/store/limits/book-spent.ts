/**
 * Units that were used without asking, while the store was away. Booked in the slice or window they
 * were used in, while that counts; of buckets as debt. Twin: `redis/lua/book-spent.lua`.
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
    // A pod's guess at the store's time may be a little ahead.
    if (stamp >= count.n) count.s += units
    return
  }
  if (stamp <= count.n - count.b.length) return
  const index = Math.min(stamp, count.n) % count.b.length
  count.b[index] = (count.b[index] as number) + units
  count.s += units
}
