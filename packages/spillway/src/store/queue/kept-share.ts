/**
 * How long a job has to wait for one limit, so that calls outside the job queue get their share. A
 * fraction of the limit is reserved for calls. That alone is not enough: jobs that use up a window
 * in its first second leave nothing for the rest of it. So jobs are also spread evenly over the
 * slices. Then each slice that leaves the window frees the same amount, and calls get it first.
 * Twin: `redis/lua/include/kept-share.lua`.
 */

import { windowEndUs } from '../calendar-day.js'
import type { LimitSpec } from '../limit-spec.js'
import { type Count, capacity, fits, waitUs } from '../limits/counting.js'

/** 0: it fits now. */
export function jobWaitUs(
  spec: LimitSpec,
  count: Count,
  now: number,
  cost: number,
  keep: number,
): number {
  if (cost === 0) return 0
  const wanted = unitsWithShare(spec, cost, keep)
  const longest = fits(spec, count, now, wanted) ? 0 : Math.max(1, waitUs(spec, count, now, wanted))
  return keep === 0 ? longest : Math.max(longest, evenWaitUs(spec, count, now, cost, keep))
}

/** The units that have to be free before a job of this cost is handed out. */
export function unitsWithShare(spec: LimitSpec, cost: number, keep: number): number {
  const most = capacity(spec)
  return cost === 0 ? 0 : cost + Math.min(most - cost, Math.ceil(most * keep))
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
    const elapsed = now - windowEndUs(spec, count.sliceUs, count.newestSlice - 1)
    const due = Math.floor(((count.units + cost - 1) * count.sliceUs) / spec.limit)
    return count.units > 0 && elapsed < due ? due - elapsed : 0
  }
  // A bucket refills evenly.
  return 0
}
