/**
 * Grants permits to a prefix of a request's calls, each of all limits or of none. Twin:
 * `redis/lua/include/take-permits.lua`.
 */
import type { LimitSpec } from '../limit-spec.js'
import type { TakeReply, TakeRequest } from '../port.js'
import { capacity, charge, remaining, stampOf } from './counting.js'
import {
  type CountedLimit,
  type GuardState,
  type LaneState,
  overrideEndsInUs,
  pausedUntilUs,
  present,
  specStored,
  waitingListOf,
} from './lane-state.js'
import { noteFull } from './learned-limit.js'
import { type Kept, keep } from './transitions.js'
import { partOf, SHARE_RETRY_US, WaitingTurn, waitBehindUs } from './waiting-pods.js'

export function takePermits(
  lane: LaneState,
  guard: GuardState,
  request: TakeRequest,
  serverUs: number,
  member?: LaneState,
): Kept<TakeReply> {
  const at = present(lane, guard, request.limits, request.version, serverUs, member)
  const { now, entries } = at
  const list = waitingListOf(lane, guard, entries)
  const turn = new WaitingTurn(list, entries, now, request.lane, request.waiter)
  const pauseUs = pausedUntilUs(lane, guard) - now
  const paused = pauseUs > 0
  const { granted, wait }: Granted = paused
    ? { granted: 0, wait: pauseUs }
    : grant(turn, entries, request, now)
  // The end of an override may raise the limit.
  const waitUs = paused ? wait : Math.min(wait, overrideEndsInUs(guard, entries, now))
  turn.end(granted, paused ? 0 : waitUs, request.costs[granted])
  const isFull = !paused && noteFullLimits(entries, request.costs[granted], now)
  const message = paused ? undefined : turn.wakeNext()
  const stamps = entries.map(({ spec, count }) => stampOf(spec, count, now))
  const capacities = entries.map(({ spec }) => capacity(spec))
  const reply: TakeReply = { granted, waitUs, paused, nowUs: now, stamps, capacities }
  if (waitUs > 0) reply.left = entries.map(({ spec, count }) => remaining(spec, count, now))
  if (guard.version > request.version) {
    reply.newer = { version: guard.version, limits: newest(request.limits, guard) }
  }
  const isKept = granted > 0 || at.changed || turn.changed || isFull
  const kept = isKept ? keep(lane, guard, at, reply) : { reply }
  return message === undefined ? kept : { ...kept, message }
}

/** The limits in force, as a pod with older ones has to learn them. */
export function newest(limits: readonly LimitSpec[], guard: GuardState): LimitSpec[] {
  return limits.map((spec) => specStored(spec, guard))
}

/** A call with these costs has to wait. Returns whether that has to be stored. */
function noteFullLimits(
  entries: readonly CountedLimit[],
  costs: readonly number[] | undefined,
  now: number,
): boolean {
  let isNew = false
  if (costs === undefined) return isNew
  for (const [index, { spec, count }] of entries.entries()) {
    if (count.learned === undefined) continue
    if (noteFull(spec, count, now, costIn(spec, costs[index] as number))) isNew = true
  }
  return isNew
}

interface Granted {
  granted: number
  wait: number
}

/**
 * A call needs its cost, and the same amount for the pods that are due before this one. If other pods claim a part of
 * the free units, this pod gets its part. The pod that had least gets at least one call.
 */
function grant(
  turn: WaitingTurn,
  entries: readonly CountedLimit[],
  { costs }: TakeRequest,
  now: number,
): Granted {
  const reserved = turn.isShared ? turn.needsAhead(true) : undefined
  const parts = turn.isShared
    ? entries.map(({ spec, count }, index) => turn.partOf(index, remaining(spec, count, now)))
    : undefined
  const { hadLeast } = turn
  const used = entries.map(() => 0)
  for (const [granted, call] of costs.entries()) {
    const own = entries.map(({ spec }, index) => costIn(spec, call[index] as number))
    if (!fit(entries, own, now, reserved)) {
      // Reserved for a pod that is due; if that pod is late, this one may have it.
      if (fit(entries, own, now, undefined)) return { granted, wait: SHARE_RETRY_US }
      return { granted, wait: Math.max(1, turn.waitUs(own, granted > 0)) }
    }
    const mayExceed = granted === 0 && hadLeast
    if (parts !== undefined && !mayExceed && exceeds(entries, own, used, parts)) {
      return { granted, wait: turn.partWaitUs(own) }
    }
    for (const [index, { spec, count }] of entries.entries()) {
      const cost = own[index] as number
      if (cost === 0) continue
      charge(spec, count, now, cost)
      used[index] = (used[index] as number) + cost
    }
    turn.granted(own)
  }
  return { granted: costs.length, wait: 0 }
}

function fit(
  entries: readonly CountedLimit[],
  costs: readonly number[],
  now: number,
  reserved: readonly number[] | undefined,
): boolean {
  for (let index = 0; index < entries.length; index++) {
    const { spec, count } = entries[index] as CountedLimit
    const cost = costs[index] as number
    if (waitBehindUs(spec, count, now, cost, reserved?.[index] ?? 0) > 0) return false
  }
  return true
}

function exceeds(
  entries: readonly CountedLimit[],
  costs: readonly number[],
  used: readonly number[],
  parts: readonly number[],
): boolean {
  return entries.some(({ spec }, index) => {
    const cost = costs[index] as number
    return cost > 0 && partOf(spec, (used[index] as number) + cost) > (parts[index] as number)
  })
}

/** An estimate above what can ever be granted is lowered to that; otherwise it would wait for ever. */
function costIn(spec: LimitSpec, cost: number): number {
  return Math.min(cost, capacity(spec))
}
