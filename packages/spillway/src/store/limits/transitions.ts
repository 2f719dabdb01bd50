/**
 * Every change of a lane's shared state, as a function without I/O. Each has a Lua script of the
 * same name in `redis/lua/`; a differential test feeds both the same histories.
 */

import type { LimitSpec } from '../limit-spec.js'
import type {
  BookRequest,
  ChangeRequest,
  FeedbackRequest,
  LaneFigures,
  LaneRef,
  PauseRequest,
  Settlement,
  TakeReply,
  TakeRequest,
} from '../port.js'
import { bookSpent } from './book-spent.js'
import {
  capacity,
  charge,
  fits,
  overrun,
  refund,
  remaining,
  stampOf,
  used,
  waitUs,
} from './counting.js'
import {
  type Entry,
  type GuardState,
  guardLifeUs,
  type LaneState,
  laneLifeUs,
  type Present,
  pausedUntilUs,
  present,
  specStored,
} from './lane-state.js'

/** What a store has to keep after a transition, and for how long; nothing: leave it as it is. */
export interface Kept<T> {
  reply: T
  laneLifeUs?: number
  guardLifeUs?: number
}

export function takePermits(
  lane: LaneState,
  guard: GuardState,
  request: TakeRequest,
  serverUs: number,
): Kept<TakeReply> {
  const at = present(lane, guard, request.limits, request.version, serverUs)
  const { now, entries } = at
  const pauseUs = pausedUntilUs(lane, guard) - now
  const paused = pauseUs > 0
  let granted = 0
  let wait = paused ? pauseUs : 0
  if (!paused) {
    for (const costs of request.costs) {
      wait = longestWaitUs(entries, costs, now)
      if (wait > 0) break
      for (let index = 0; index < entries.length; index++) {
        const { spec, count } = entries[index] as Entry
        const cost = costIn(spec, costs[index] as number)
        if (cost > 0) charge(spec, count, now, cost)
      }
      granted++
    }
  }
  const stamps = entries.map(({ spec, count }) => stampOf(spec, count))
  const capacities = entries.map(({ spec }) => capacity(spec))
  const reply: TakeReply = { granted, waitUs: wait, paused, nowUs: now, stamps, capacities }
  if (wait > 0) reply.left = entries.map(({ spec, count }) => remaining(spec, count, now))
  if (guard.v > request.version) {
    reply.newer = { version: guard.v, limits: newest(request.limits, guard) }
  }
  return granted > 0 || at.changed ? keep(lane, guard, at, reply) : { reply }
}

export function newest(limits: readonly LimitSpec[], guard: GuardState): LimitSpec[] {
  return limits.map((spec) => specStored(spec, guard))
}

/** An estimate above what can ever be granted is lowered to that, instead of waiting for ever. */
function costIn(spec: LimitSpec, cost: number): number {
  return Math.min(cost, capacity(spec))
}

function longestWaitUs(entries: readonly Entry[], costs: readonly number[], now: number): number {
  let longest = 0
  for (let index = 0; index < entries.length; index++) {
    const { spec, count } = entries[index] as Entry
    const cost = costIn(spec, costs[index] as number)
    if (!fits(spec, count, now, cost))
      longest = Math.max(longest, waitUs(spec, count, now, cost), 1)
  }
  return longest
}

export function settlePermits(
  lane: LaneState,
  guard: GuardState,
  request: LaneRef & { settlements: readonly Settlement[] },
  serverUs: number,
): Kept<void> {
  const at = present(lane, guard, request.limits, request.version, serverUs)
  for (const { limit, stamp, delta } of request.settlements) {
    const { spec, count } = at.entries[limit] as Entry
    if (delta < 0) refund(spec, count, at.now, stamp, -delta)
    else if (delta > 0) overrun(spec, count, at.now, delta)
  }
  return keep(lane, guard, at, undefined)
}

export function bookPermits(
  lane: LaneState,
  guard: GuardState,
  request: LaneRef & Pick<BookRequest, 'spent'>,
  serverUs: number,
): Kept<void> {
  const at = present(lane, guard, request.limits, request.version, serverUs)
  for (const { limit, stamp, units } of request.spent) {
    const { spec, count } = at.entries[limit] as Entry
    bookSpent(spec, count, at.now, stamp, units)
  }
  return keep(lane, guard, at, undefined)
}

export function applyFeedback(
  lane: LaneState,
  guard: GuardState,
  request: FeedbackRequest,
  serverUs: number,
): Kept<number> {
  const at = present(lane, guard, request.limits, request.version, serverUs)
  const { now, entries } = at
  // What an earlier call heard is known already, and may be out of date.
  if (request.grantedUs > 0) {
    if (request.grantedUs < lane.f) {
      const reply = stillPausedUs(lane, guard, now)
      return at.changed ? keep(lane, guard, at, reply) : { reply }
    }
    lane.f = request.grantedUs
  }
  if (request.throttled) {
    let pause = request.pauseUs
    if (pause === undefined) {
      // Many calls of one burst are refused together: that is one refusal.
      pause = lane.p > now ? 0 : request.basePauseUs * 2 ** Math.min(lane.g, 20)
      if (lane.p <= now) lane.g++
    }
    lane.p = Math.max(lane.p, now + Math.min(pause, request.maxPauseUs))
  } else if (request.grantedUs > 0) {
    lane.g = 0
  }
  for (const { limit, remaining: left, resetUs } of request.left) {
    const { spec, count } = entries[limit] as Entry
    const more = remaining(spec, count, now) - left
    if (left === 0 && resetUs > 0)
      lane.p = Math.max(lane.p, now + Math.min(resetUs, request.maxPauseUs))
    else if (more > 0) charge(spec, count, now, more)
  }
  return keep(lane, guard, at, stillPausedUs(lane, guard, now))
}

function stillPausedUs(lane: LaneState, guard: GuardState, now: number): number {
  const untilUs = pausedUntilUs(lane, guard)
  return untilUs > now ? untilUs : 0
}

/** Counts nothing, so it need not know the limits. */
export function pauseLane(
  lane: LaneState,
  guard: GuardState,
  { lane: name, forUs }: Pick<PauseRequest, 'lane' | 'forUs'>,
  serverUs: number,
): Kept<number> {
  const { now } = present(lane, guard, [], 0, serverUs)
  const state = name === undefined ? guard : lane
  state.p = forUs > 0 ? Math.max(state.p, now + forUs) : 0
  state.t = now
  if (name === undefined) {
    return { reply: stillPausedUs(lane, guard, now), guardLifeUs: guardLifeUs(guard, now) }
  }
  // The next refusal is the first again.
  if (forUs === 0) lane.g = 0
  return { reply: stillPausedUs(lane, guard, now), laneLifeUs: laneLifeUs(lane, now) }
}

/** Leaves the lane alone: its counts adapt when they are next used. */
export function changeLimits(
  lane: LaneState,
  guard: GuardState,
  request: ChangeRequest,
  serverUs: number,
): Kept<number> {
  const at = present(structuredClone(lane), guard, request.limits, request.version, serverUs)
  if (request.override !== undefined) {
    const { id, limit, forUs } = request.override
    if (forUs > 0) guard.overrides[id] = [limit, at.now + forUs]
    else delete guard.overrides[id]
  } else {
    guard.v = Math.max(guard.v, request.version) + 1
    for (const { id, limit, windowUs, burst, slices } of request.limits) {
      guard.limits[id] = [limit, windowUs, burst, slices]
    }
  }
  guard.t = at.now
  return { reply: guard.v, guardLifeUs: guardLifeUs(guard, at.now) }
}

/** Changes nothing, so it looks at copies. */
export function readLimits(
  laneState: LaneState,
  guardState: GuardState,
  request: LaneRef,
  serverUs: number,
): Omit<LaneFigures, 'requestsLastMinute'> {
  const lane = structuredClone(laneState)
  const guard = structuredClone(guardState)
  const { now, entries } = present(lane, guard, request.limits, request.version, serverUs)
  return {
    nowUs: now,
    version: Math.max(guard.v, request.version),
    pausedUntilUs: stillPausedUs(lane, guard, now),
    limits: entries.map(({ spec, count }) => {
      return {
        id: spec.id,
        limit: spec.limit,
        used: used(spec, count, now),
        remaining: remaining(spec, count, now),
        waitUs: fits(spec, count, now, 1) ? 0 : Math.max(1, waitUs(spec, count, now, 1)),
      }
    }),
  }
}

export function keep<T>(lane: LaneState, guard: GuardState, at: Present, reply: T): Kept<T> {
  lane.t = at.now
  const spansVendor = at.entries.some(({ spec }) => spec.span === 'vendor')
  if (!spansVendor && !at.changed) return { reply, laneLifeUs: laneLifeUs(lane, at.now) }
  guard.t = at.now
  return { reply, laneLifeUs: laneLifeUs(lane, at.now), guardLifeUs: guardLifeUs(guard, at.now) }
}
