/**
 * Free capacity of a guard, as far as this pod knows without I/O. Used to choose between guards for a call. Replies
 * and heartbeats update it about once per second.
 */
import type { GuardParts } from '../build-guard.js'

/** A downstream that may be back needs a few calls to find out, and no more. */
const PROBING = 0.05

/** 0: nothing now. 1: everything. Otherwise the smallest fraction left of any limit and of this pod's slots. */
export function headroomOf(
  {
    breaker,
    limits,
    slots,
    queue,
    clock,
    pipeline,
  }: Pick<GuardParts, 'breaker' | 'limits' | 'slots' | 'queue' | 'clock' | 'pipeline'>,
  lane: string,
): number {
  const nowMs = clock.now()
  if (pipeline.closed || queue.dispatcher.blocks.isShut(lane, nowMs)) return 0
  if (breaker?.knownRefusal(lane) !== undefined) return 0
  const { limit } = slots
  const free = limit === Number.POSITIVE_INFINITY ? 1 : Math.max(0, slots.free(nowMs, lane)) / limit
  const left = Math.min(free, limits === undefined ? 1 : limits.headroom(lane))
  return breaker?.refuses(lane) === true ? Math.min(left, PROBING) : left
}
