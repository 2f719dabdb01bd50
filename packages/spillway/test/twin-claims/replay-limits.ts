/**
 * Runs a history of limits with the TypeScript transitions. Each reply is given to the caller, which compares it with that of a
 * Lua script or with a recording.
 */
import type { LimitSpec } from '../../src/store/limit-spec.js'
import {
  emptyGuard,
  emptyLane,
  type GuardState,
  hasMember,
  type LaneState,
} from '../../src/store/limits/lane-state.js'
import { type Reports, reportRequests, totalRequests } from '../../src/store/limits/reports.js'
import { takePermits } from '../../src/store/limits/take-permits.js'
import {
  applyFeedback,
  bookPermits,
  changeLimits,
  type LaneTransition,
  pauseLane,
  readLimits,
  settlePermits,
} from '../../src/store/limits/transitions.js'
import type { LaneRef, LimitStore } from '../../src/store/port.js'
import { type LimitHistory, OLD_POD, START_US } from './limit-histories.js'

/** Sends a request to the compared implementation at time `nowUs`, and compares the replies. */
type Compare = <M extends keyof LimitStore>(
  method: M,
  request: Parameters<LimitStore[M]>[0],
  reply: unknown,
  nowUs: number,
) => Promise<void> | void

/** Results of a history. */
export interface Replayed {
  /** Messages that wake pods, in order. */
  messages: { pod: string; lane: string }[]
  /** How often pods of all lanes were woken. */
  wakesAll: number
  /** The state that the transitions kept, without the replies. */
  lives: (number | undefined)[][]
  severalWait: number
  shared: number
  members: number
  lowered: number
}

export async function replayLimits(
  { specs, pool, oldKnowsPool, oldFactors, steps }: LimitHistory,
  compare: Compare,
): Promise<Replayed> {
  let nowUs = START_US
  const seen: Replayed = {
    ...{ messages: [], wakesAll: 0, lives: [] },
    ...{ severalWait: 0, shared: 0, members: 0, lowered: 0 },
  }
  const lanes: Record<string, LaneState> = { a: emptyLane(), b: emptyLane() }
  const pools: Record<string, LaneState> = pool === undefined ? {} : { [pool]: emptyLane() }
  let guard: GuardState = emptyGuard()
  /** Where the state of a lane is kept, and the state of a lane with limits beside those of its pool. */
  const homeOf = ({ lane, pool }: { lane: string; pool?: string | undefined }) =>
    pool === undefined ? ([lanes, lane] as const) : ([pools, pool] as const)
  const memberOf = (request: Pick<LaneRef, 'lane' | 'pool' | 'limits'>) =>
    hasMember(request) ? structuredClone(lanes[request.lane] as LaneState) : undefined
  /** Runs a transition on copies and keeps the changed ones. */
  const mine = <R extends Pick<LaneRef, 'lane' | 'pool' | 'limits'>, T>(
    transition: LaneTransition<R, T>,
    request: R,
  ): T => {
    const [states, name] = homeOf(request)
    const lane = structuredClone(states[name] as LaneState)
    const ofGuard = structuredClone(guard)
    const member = memberOf(request)
    const kept = transition(lane, ofGuard, request, nowUs, member)
    const { reply, laneLifeUs, guardLifeUs, memberLifeUs, message, wakesAll } = kept
    seen.lives.push([laneLifeUs, guardLifeUs, memberLifeUs])
    if (laneLifeUs !== undefined) states[name] = lane
    if (guardLifeUs !== undefined) guard = ofGuard
    if (memberLifeUs !== undefined) lanes[request.lane] = member as LaneState
    if (member !== undefined && memberLifeUs !== undefined) seen.members++
    if (message) seen.messages.push(message)
    if (wakesAll) seen.wakesAll++
    if (lane.waiting.length + ofGuard.waiting.length > 2) seen.severalWait++
    return reply
  }
  const oldPool = oldKnowsPool ? pool : undefined
  const oldSpecs = specs.slice(0, 1).map((each) => ({
    ...changedBy(each, oldFactors),
    span: each.span === 'pool' && oldPool === undefined ? ('lane' as const) : each.span,
  }))
  /** The limits that each pod was started with, and those it uses now. */
  const releases = [specs, specs, oldSpecs]
  const knownLimits = releases.map((limits) => ({ limits, version: 0 }))
  /** By lane, the last reply first. */
  const stamps: Record<string, number[][]> = {}
  const reports: Reports = new Map()
  let sequence = 0

  for (const { pauseUs, lane: name, pod: number, operation: op } of steps) {
    nowUs += pauseUs
    const release = releases[number] as LimitSpec[]
    const known = knownLimits[number] as (typeof knownLimits)[number]
    const ref = { guard: 'g', lane: name, pool: number === OLD_POD ? oldPool : pool, ...known }
    const refusedBy = (op: { refused: number[]; booked: boolean; repliesAgo: number }) => {
      const costs = op.refused.slice(0, release.length)
      const booked = costs.map((units) => (op.booked ? units : 0))
      const stampsOf = stamps[name]?.[op.repliesAgo] ?? []
      return { costs, booked, stamps: costs.map((_, index) => stampsOf[index] ?? 0) }
    }
    switch (op.kind) {
      case 'take': {
        const costs = op.costs.map((each) => each.slice(0, release.length))
        const waiter =
          op.waitsUs === undefined ? undefined : { pod: `p${number}`, forUs: op.waitsUs }
        const request = { ...ref, costs, waiter }
        const reply = mine(takePermits, request)
        await compare('take', request, reply, nowUs)
        if (reply.granted > 0 && reply.waitUs === 50_000) seen.shared++
        stamps[name] = [[...reply.stamps], ...(stamps[name] ?? [])]
        const { newer } = reply
        if (newer) knownLimits[number] = { limits: [...newer.limits], version: newer.version }
        break
      }
      case 'settle': {
        const limit = op.which % release.length
        const stamp = (stamps[name]?.[op.repliesAgo]?.[limit] ?? 0) - (op.which % 3)
        // Nothing to settle only wakes the next pod.
        const settlements = op.delta === 0 ? [] : [{ limit, stamp, delta: op.delta }]
        const request = { ...ref, pod: 'p', sequence: ++sequence, settlements }
        await compare('settle', request, mine(settlePermits, request), nowUs)
        if (op.resent) await compare('settle', request, 0, nowUs)
        break
      }
      case 'book': {
        const limit = op.which % release.length
        const spent = [
          { limit, stamp: (stamps[name]?.[0]?.[limit] ?? 0) - op.ago, units: op.units },
        ]
        const request = { ...ref, pod: 'b', sequence: ++sequence, spent }
        await compare('book', request, mine(bookPermits, request), nowUs)
        if (op.resent) await compare('book', request, undefined, nowUs)
        break
      }
      case 'feedback': {
        const request = {
          ...ref,
          grantedUs: op.ago < 0 ? 0 : nowUs - op.ago,
          throttled: op.throttled,
          pauseUs: op.pauseUs,
          basePauseUs: 500_000,
          maxPauseUs: 15_000_000,
          left: op.speaks ? [{ limit: 0, remaining: op.remaining, resetUs: op.resetUs }] : [],
          refused:
            op.throttled && ref.limits.some(({ learn }) => learn) ? refusedBy(op) : undefined,
        }
        const reply = mine(applyFeedback, request)
        await compare('feedback', request, reply, nowUs)
        if (reply.learned !== undefined) seen.lowered++
        break
      }
      case 'change': {
        const changed = release.map((each) => changedBy(each, op.factors))
        const request = { ...ref, limits: changed }
        const version = mine(changeLimits, request)
        await compare('change', request, version, nowUs)
        knownLimits[number] = { limits: changed, version }
        break
      }
      case 'override': {
        const override = { id: 'unit0', limit: op.limit, forUs: op.forUs }
        const request = { ...ref, override }
        await compare('change', request, mine(changeLimits, request), nowUs)
        break
      }
      case 'pause': {
        const whole = { lane: undefined, pool: undefined }
        const pauseRequest = {
          forUs: op.forUs,
          ...(op.whole ? whole : { lane: name, pool: ref.pool }),
        }
        // For all lanes the script reads a lane without a name.
        if (op.whole) lanes[''] = emptyLane()
        const until = mine((lane, guards, _, now) => pauseLane(lane, guards, pauseRequest, now), {
          lane: op.whole ? '' : name,
          pool: pauseRequest.pool,
          limits: [],
        })
        await compare('pause', { guard: 'g', ...pauseRequest }, until, nowUs)
        break
      }
      case 'report': {
        const request = { guard: 'g', pod: `p${number}`, requests: op.requests }
        reportRequests(reports, request.pod, request.requests, nowUs)
        await compare('report', request, undefined, nowUs)
        break
      }
      case 'figures': {
        const [states, home] = homeOf(ref)
        const figures = readLimits(states[home] as LaneState, guard, ref, nowUs, memberOf(ref))
        const requestsLastMinute = totalRequests(reports, figures.nowUs)
        await compare('figures', ref, { ...figures, requestsLastMinute }, nowUs)
      }
    }
  }
  return seen
}

function changedBy(spec: LimitSpec, factors: { limit: number; window: number }): LimitSpec {
  return {
    ...spec,
    limit: Math.max(1, Math.round(spec.limit * factors.limit)),
    windowUs: Math.round(spec.windowUs * factors.window),
  }
}
