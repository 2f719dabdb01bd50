/** Limits in one process: the transitions on maps. Watchers are called after the caller has its reply. */
import type { Microseconds } from '../../core/time/clock.js'
import { FastTake } from '../limits/fast-take.js'
import {
  emptyGuard,
  emptyLane,
  type GuardState,
  hasMember,
  type LaneState,
} from '../limits/lane-state.js'
import { type Reports, reportRequests, totalRequests } from '../limits/reports.js'
import { takePermits } from '../limits/take-permits.js'
import {
  applyFeedback,
  bookPermits,
  changeLimits,
  type Kept,
  type LaneTransition,
  pauseLane,
  readLimits,
  settlePermits,
} from '../limits/transitions.js'
import type { LaneRef, LimitStore, PermitWatcher, SettleRequest } from '../port.js'
import { ExpiringMap } from './expiring-map.js'
import type { MemoryBreakers } from './memory-breakers.js'
import type { QueueNeighbours } from './memory-queue.js'

const SEQUENCE_LIFE_US = 600_000_000

/** The state of one guard's limits. */
class KeptGuard {
  readonly lanes = new ExpiringMap<KeptLane>()
  readonly pools = new ExpiringMap<KeptLane>()
  readonly reports: Reports = new Map()
  /** The last batch of settlements from each pod. */
  readonly sequences = new ExpiringMap<number>()
  #state: GuardState | undefined
  #untilUs = 0

  /** State that spans all lanes, if there is any. */
  stateAt(nowUs: number): GuardState | undefined {
    return this.#untilUs > nowUs ? this.#state : undefined
  }

  keep(state: GuardState, untilUs: number): void {
    this.#state = state
    this.#untilUs = untilUs
  }
}

interface KeptLane {
  readonly state: LaneState
  /** The fast path, as the last request on the slow path left it. */
  fast: FastTake | undefined
}

function newLane(): KeptLane {
  return { state: emptyLane(), fast: undefined }
}

/** `change`: for job queues, which take permits in their own transitions. */
interface MemoryLimits {
  limits: LimitStore
  change: QueueNeighbours['limits']
}

export function createMemoryLimits(
  nowUs: Microseconds,
  report: MemoryBreakers['report'],
): MemoryLimits {
  const guards = new Map<string, KeptGuard>()
  const watchers = new Map<string, Set<PermitWatcher>>()

  function guardOf(name: string): KeptGuard {
    const known = guards.get(name)
    if (known !== undefined) return known
    const made = new KeptGuard()
    guards.set(name, made)
    return made
  }

  /**
   * Runs a transition on both states of a lane and saves those that it marks. It may change unsaved states in place:
   * this clock never goes back, so that has no effect.
   */
  function change<R extends LaneRef, T>(
    request: R,
    transition: LaneTransition<R, T>,
    now = nowUs(),
  ): T {
    const own = guardOf(request.guard)
    const { pool } = request
    const states = pool === undefined ? own.lanes : own.pools
    const lane = states.get(pool ?? request.lane, now) ?? newLane()
    const member = hasMember(request) ? (own.lanes.get(request.lane, now) ?? newLane()) : undefined
    const guard = own.stateAt(now) ?? emptyGuard()
    const kept = transition(lane.state, guard, request, now, member?.state)
    const { laneLifeUs, guardLifeUs, memberLifeUs } = kept
    if (laneLifeUs !== undefined) states.set(pool ?? request.lane, lane, now, now + laneLifeUs)
    if (guardLifeUs !== undefined) own.keep(guard, now + guardLifeUs)
    if (member !== undefined && memberLifeUs !== undefined) {
      own.lanes.set(request.lane, member, now, now + memberLifeUs)
    }
    if (watchers.size > 0) wake(request.guard, kept)
    return kept.reply
  }

  function wake(guard: string, { message, wakesAll }: Kept<unknown>): void {
    if (message !== undefined) {
      const { pod, lane } = message
      queueMicrotask(() => {
        for (const each of watchers.get(pod) ?? []) each.onFreed(guard, lane)
      })
    }
    if (wakesAll === undefined) return
    queueMicrotask(() => {
      for (const ofPod of watchers.values()) {
        for (const each of ofPod) each.onFreed(guard, undefined)
      }
    })
  }

  function isNew({
    guard,
    pod,
    sequence,
  }: Pick<SettleRequest, 'guard' | 'pod' | 'sequence'>): boolean {
    const now = nowUs()
    const { sequences } = guardOf(guard)
    if ((sequences.get(pod, now) ?? 0) >= sequence) return false
    sequences.set(pod, sequence, now, now + SEQUENCE_LIFE_US)
    return true
  }

  const limits: LimitStore = {
    take(request) {
      const now = nowUs(request.atMs)
      const guard = guards.get(request.guard)
      const { pool } = request
      const states = pool === undefined ? guard?.lanes : guard?.pools
      const known = states?.get(pool ?? request.lane, now)
      const lane = guard?.stateAt(now) === undefined ? known : undefined
      // Units booked later in a slice leave with it, so this needs no new expiry.
      let reply = lane?.fast?.take(request, now)
      if (reply === undefined) {
        reply = change(request, takePermits, now)
        if (lane !== undefined && reply.granted > 0) {
          lane.fast = FastTake.of(lane.state, request.limits)
        }
      }
      if (request.report !== undefined) reply.view = report(request.report)
      return reply
    },
    settle(request) {
      if (!isNew(request)) return 0
      const now = nowUs()
      const guard = guards.get(request.guard)
      const { pool } = request
      const states = pool === undefined ? guard?.lanes : guard?.pools
      const known = states?.get(pool ?? request.lane, now)
      const lane = guard?.stateAt(now) === undefined ? known : undefined
      // As in `take`, this needs no new expiry. No pod waits, so none has to be woken.
      return lane?.fast?.settle(request, now) === true ? 0 : change(request, settlePermits, now)
    },
    book(request) {
      if (isNew(request)) change(request, bookPermits)
    },
    feedback: (request) => change(request, applyFeedback),
    pause({ guard, lane, pool, forUs }) {
      const ref = { guard, lane: lane ?? '', pool, limits: [], version: 0 }
      return change(ref, (own, guards, _, now) => pauseLane(own, guards, { lane, forUs }, now))
    },
    change: (request) => change(request, changeLimits),
    figures: (request) =>
      change(request, (lane, guard, ref, now, member) => {
        const figures = readLimits(lane, guard, ref, now, member)
        const { reports } = guardOf(request.guard)
        return { reply: { ...figures, requestsLastMinute: totalRequests(reports, figures.nowUs) } }
      }),
    report({ guard, pod, requests }) {
      reportRequests(guardOf(guard).reports, pod, requests, nowUs())
    },
    watch(pod, watcher) {
      const ofPod = watchers.get(pod) ?? new Set()
      watchers.set(pod, ofPod.add(watcher))
      return () => {
        ofPod.delete(watcher)
        if (ofPod.size === 0 && watchers.get(pod) === ofPod) watchers.delete(pod)
      }
    },
  }
  return { limits, change }
}
