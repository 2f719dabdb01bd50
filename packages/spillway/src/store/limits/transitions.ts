/**
 * The changes of a lane's shared state, as functions without I/O. Each has a Lua script of the same name in
 * `redis/lua/` (`bookPermits` is `book-spent.lua`); a differential test feeds both the same histories. See also take-permits.ts.
 */

import type { LimitSpec } from '../limit-spec.js'
import type {
  BookRequest,
  ChangeRequest,
  FeedbackReply,
  FeedbackRequest,
  LaneFigures,
  LaneRef,
  PauseRequest,
  Settlement,
} from '../port.js'
import { bookSpent } from './book-spent.js'
import { charge, fits, overrun, refund, remaining, used, waitUs } from './counting.js'
import {
  type CountedLimit,
  type GuardState,
  guardLifeUs,
  type LaneState,
  laneLifeUs,
  type Present,
  pausedUntilUs,
  present,
  spansVendor,
  specInForce,
  waitingListOf,
} from './lane-state.js'
import { learnFromFeedback } from './learn-from-feedback.js'
import { type WakeMessage, wakeAgainUs, wakeNext } from './waiting-pods.js'

/** The result of a transition. A state without a life time need not be saved. */
export interface Kept<T> {
  reply: T
  laneLifeUs?: number
  guardLifeUs?: number
  memberLifeUs?: number
  /** Wakes one waiting pod. */
  message?: WakeMessage
  /** Wakes all pods with calls that wait for limits of this guard. */
  wakesAll?: true
}

/** A change of a lane's states. `member`: see `lane-state.ts`. */
export type LaneTransition<R, T> = (
  lane: LaneState,
  guard: GuardState,
  request: R,
  serverUs: number,
  member?: LaneState,
) => Kept<T>

/** Replies after how long to settle nothing, so that the next waiting pod is woken; 0: not needed. */
export function settlePermits(
  lane: LaneState,
  guard: GuardState,
  request: LaneRef & { settlements: readonly Settlement[] },
  serverUs: number,
  member?: LaneState,
): Kept<number> {
  const at = present(lane, guard, request.limits, request.version, serverUs, member)
  for (const { limit, stamp, delta } of request.settlements) {
    const { spec, count } = at.entries[limit] as CountedLimit
    if (delta < 0) refund(spec, count, at.now, stamp, -delta)
    else if (delta > 0) overrun(spec, count, at.now, delta)
  }
  const { settlements } = request
  const frees = settlements.length === 0 || settlements.some(({ delta }) => delta < 0)
  if (!frees) return keep(lane, guard, at, 0)
  const list = waitingListOf(lane, guard, at.entries)
  const message = wakeNext(list, at.entries, at.now)
  const kept = keep(lane, guard, at, wakeAgainUs(list, at.entries, at.now))
  return message === undefined ? kept : { ...kept, message }
}

export function bookPermits(
  lane: LaneState,
  guard: GuardState,
  request: LaneRef & Pick<BookRequest, 'spent'>,
  serverUs: number,
  member?: LaneState,
): Kept<void> {
  const at = present(lane, guard, request.limits, request.version, serverUs, member)
  for (const { limit, stamp, units } of request.spent) {
    const { spec, count } = at.entries[limit] as CountedLimit
    bookSpent(spec, count, at.now, stamp, units)
  }
  return keep(lane, guard, at, undefined)
}

export function applyFeedback(
  lane: LaneState,
  guard: GuardState,
  request: FeedbackRequest,
  serverUs: number,
  member?: LaneState,
): Kept<FeedbackReply> {
  const at = present(lane, guard, request.limits, request.version, serverUs, member)
  const { now, entries } = at
  const newest = Math.max(guard.version, request.version)
  const lesson = learnFromFeedback(entries, request, now, newest)
  if (lesson.limit !== undefined || request.refused !== undefined) at.changed = true
  const replied = (): FeedbackReply => ({
    pausedUntilUs: stillPausedUs(lane, guard, now),
    learned: lesson.limit,
    effective: lesson.limit === undefined ? 0 : (entries[lesson.limit] as CountedLimit).spec.limit,
  })
  // Feedback on an earlier permit is outdated.
  if (request.grantedUs > 0) {
    if (request.grantedUs < lane.feedbackUs) {
      return at.changed ? keep(lane, guard, at, replied()) : { reply: replied() }
    }
    lane.feedbackUs = request.grantedUs
  }
  if (request.throttled && !lesson.holds) {
    let pause = request.pauseUs
    if (pause === undefined) {
      // Calls of one burst are throttled together: that counts once.
      pause =
        lane.pausedUntilUs > now ? 0 : request.basePauseUs * 2 ** Math.min(lane.pauseDoublings, 20)
      if (lane.pausedUntilUs <= now) lane.pauseDoublings++
    }
    lane.pausedUntilUs = Math.max(lane.pausedUntilUs, now + Math.min(pause, request.maxPauseUs))
  } else if (!request.throttled && request.grantedUs > 0) {
    lane.pauseDoublings = 0
  }
  for (const { limit, remaining: left, resetUs } of request.left) {
    const { spec, count } = entries[limit] as CountedLimit
    if (spec.learn === true) continue
    const more = remaining(spec, count, now) - left
    if (left === 0 && resetUs > 0)
      lane.pausedUntilUs = Math.max(lane.pausedUntilUs, now + Math.min(resetUs, request.maxPauseUs))
    else if (more > 0) charge(spec, count, now, more)
  }
  return keep(lane, guard, at, replied())
}

function stillPausedUs(lane: LaneState, guard: GuardState, now: number): number {
  const untilUs = pausedUntilUs(lane, guard)
  return untilUs > now ? untilUs : 0
}

/** Needs no limits, because it counts nothing. */
export function pauseLane(
  lane: LaneState,
  guard: GuardState,
  { lane: name, forUs }: Pick<PauseRequest, 'lane' | 'forUs'>,
  serverUs: number,
): Kept<number> {
  const { now } = present(lane, guard, [], 0, serverUs)
  const state = name === undefined ? guard : lane
  state.pausedUntilUs = forUs > 0 ? Math.max(state.pausedUntilUs, now + forUs) : 0
  state.changedUs = now
  if (name === undefined) {
    return { reply: stillPausedUs(lane, guard, now), guardLifeUs: guardLifeUs(guard, now) }
  }
  // The next pause without a duration is a first one again.
  if (forUs === 0) lane.pauseDoublings = 0
  return { reply: stillPausedUs(lane, guard, now), laneLifeUs: laneLifeUs(lane, now) }
}

/** Does not touch the lane: its counts adapt when they are next used. */
export function changeLimits(
  lane: LaneState,
  guard: GuardState,
  request: ChangeRequest,
  serverUs: number,
  member?: LaneState,
): Kept<number> {
  const [own, ofMember] = [structuredClone(lane), structuredClone(member)]
  const at = present(own, guard, request.limits, request.version, serverUs, ofMember)
  if (request.override !== undefined) {
    const { id, limit, forUs } = request.override
    if (forUs > 0) guard.overrides[id] = [limit, at.now + forUs, at.now]
    else delete guard.overrides[id]
  } else {
    guard.version = Math.max(guard.version, request.version) + 1
    for (const { id, limit, windowUs, burst, slices } of request.limits) {
      guard.limits[id] = [limit, windowUs, burst, slices]
    }
  }
  guard.changedUs = at.now
  return { reply: guard.version, guardLifeUs: guardLifeUs(guard, at.now), wakesAll: true }
}

/** Changes nothing, so it works on copies. */
export function readLimits(
  laneState: LaneState,
  guardState: GuardState,
  request: LaneRef,
  serverUs: number,
  member?: LaneState,
): Omit<LaneFigures, 'requestsLastMinute'> {
  const lane = structuredClone(laneState)
  const guard = structuredClone(guardState)
  const own = structuredClone(member)
  const { now, entries } = present(lane, guard, request.limits, request.version, serverUs, own)
  return {
    nowUs: now,
    version: Math.max(guard.version, request.version),
    pausedUntilUs: stillPausedUs(lane, guard, now),
    limits: entries.map(({ spec, count }, index) => {
      const own = request.limits[index] as LimitSpec
      return {
        id: spec.id,
        limit: spec.limit,
        configured: specInForce(own, guard, request.version, now).limit,
        used: used(spec, count, now),
        remaining: remaining(spec, count, now),
        waitUs: fits(spec, count, now, 1) ? 0 : Math.max(1, waitUs(spec, count, now, 1)),
      }
    }),
  }
}

export function keep<T>(lane: LaneState, guard: GuardState, at: Present, reply: T): Kept<T> {
  const { now, member } = at
  lane.changedUs = now
  const kept: Kept<T> = { reply, laneLifeUs: laneLifeUs(lane, now) }
  if (member !== undefined) {
    member.changedUs = now
    kept.memberLifeUs = laneLifeUs(member, now)
  }
  if (!spansVendor(at.entries) && !at.changed) return kept
  guard.changedUs = now
  kept.guardLifeUs = guardLifeUs(guard, now)
  return kept
}
