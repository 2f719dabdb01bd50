/**
 * How long a job has to wait for one limit, so that calls that do not wait in a queue find something.
 * A part of the limit is not for jobs. That alone would not do: jobs that use up a window in its first
 * second leave nothing for the rest of it. So jobs also come evenly, slice by slice; then every slice
 * that leaves the window sets as much free as the others, and calls are first to get it. Twin:
 * `redis/lua/include/kept-share.lua`.
 */
import type { LimitSpec } from '../limit-spec.js'
import { type Count, capacity, fits, waitUs } from '../limits/counting.js'

/** Zero: it fits now. */
export function jobWaitUs(
  spec: LimitSpec,
  count: Count,
  now: number,
  cost: number,
  keep: number,
): number {
  if (cost === 0) return 0
  const most = capacity(spec)
  const wanted = cost + Math.min(most - cost, Math.ceil(most * keep))
  const longest = fits(spec, count, now, wanted) ? 0 : Math.max(1, waitUs(spec, count, now, wanted))
  return keep === 0 ? longest : Math.max(longest, evenWaitUs(spec, count, now, cost, keep))
}

function evenWaitUs(
  spec: LimitSpec,
  count: Count,
  now: number,
  cost: number,
  keep: number,
): number {
  if (spec.algorithm === 'sliding-window') {
    const inSlice = count.slices[count.newestSlice % count.slices.length] as number
    // A whole oldest slice counts, so one more than the window has shares it.
    const each = (spec.limit - Math.ceil(spec.limit * keep)) / (spec.slices + 1)
    const even = Math.floor((count.newestSlice + 1) * each) - Math.floor(count.newestSlice * each)
    return inSlice > 0 && inSlice + cost > even ? (count.newestSlice + 1) * count.sliceUs - now : 0
  }
  if (spec.algorithm === 'fixed-window') {
    const elapsed = now - count.newestSlice * count.sliceUs
    const due = Math.floor(((count.units + cost - 1) * count.sliceUs) / spec.limit)
    return count.units > 0 && elapsed < due ? due - elapsed : 0
  }
  // A bucket fills evenly.
  return 0
}
