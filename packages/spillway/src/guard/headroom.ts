/**
 * How much a guard could take on, as far as this pod knows without asking anybody: for choosing between several
 * that could do the same. Replies and heartbeats keep it fresh, to a second or so.
 */
import type { Machinery } from './machinery.js'

/** A downstream that may be back needs somebody to find out, and no more than that. */
const PROBING = 0.05

/** 0: nothing now. 1: everything. Otherwise the least fraction that is left: of any limit, of this pod's slots. */
export function headroomOf(machinery: Machinery, lane: string): number {
  const { breaker, limits, slots, dispatcher, clock, closed } = machinery
  const nowMs = clock.now()
  if (closed || dispatcher.isShut(lane, nowMs)) return 0
  if (breaker?.knownRefusal(lane) !== undefined) return 0
  const { limit } = slots
  const free = limit === Number.POSITIVE_INFINITY ? 1 : Math.max(0, slots.free(nowMs, lane)) / limit
  const left = Math.min(free, limits === undefined ? 1 : limits.headroom(lane))
  return breaker?.refuses(lane) === true ? Math.min(left, PROBING) : left
}
