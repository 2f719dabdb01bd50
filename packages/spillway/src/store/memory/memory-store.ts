/**
 * The store of a single pod: the same transitions on a Map, with synchronous replies. Pods also
 * fall back to it, and simulations run on it.
 */

import { object, validate } from '../../core/options/checks.js'
import type { Clock } from '../../core/time/clock.js'
import { clockOption } from '../../core/time/clock-options.js'
import { checkLevels, refundLevels } from '../levels/check-levels.js'
import { FastTake } from '../limits/fast-take.js'
import { emptyGuard, emptyLane, type GuardState, type LaneState } from '../limits/lane-state.js'
import { type Reports, reportRequests, totalRequests } from '../limits/reports.js'
import {
  applyFeedback,
  bookPermits,
  changeLimits,
  type Kept,
  pauseLane,
  readLimits,
  settlePermits,
  takePermits,
} from '../limits/transitions.js'
import type {
  LaneRef,
  LevelStore,
  LimitStore,
  SettleRequest,
  Store,
  TakeReply,
  TakeRequest,
} from '../port.js'
import { ExpiringMap } from './expiring-map.js'
import { createMemoryBreakers, type MemoryBreakers } from './memory-breakers.js'
import { MemoryBuckets } from './memory-buckets.js'
import { createMemoryPods } from './memory-pods.js'
import { createMemoryPulses } from './memory-pulses.js'
import { createMemoryQueues, type QueueNeighbours } from './memory-queue.js'
import { createMicroseconds, type Microseconds } from './microseconds.js'

export interface MemoryStoreOptions {
  /** Default: the system clock. */
  clock?: Clock
}

const SEQUENCE_LIFE_US = 600_000_000

const readOptions = object({ clock: clockOption })

export function memoryStore(options: MemoryStoreOptions = {}): Store {
  const { clock } = validate('memoryStore', options, readOptions)
  const nowUs = createMicroseconds(clock)
  const pods = createMemoryPods(nowUs)
  const breakers = createMemoryBreakers(nowUs, pods.live)
  const { limits, change } = createMemoryLimits(nowUs, breakers.report)
  return {
    remote: false,
    limits,
    levels: createMemoryLevels(nowUs),
    breakers,
    pods,
    pulses: createMemoryPulses(nowUs),
    queues: createMemoryQueues(nowUs, { limits: change, breaker: breakers.change }),
    close: async () => {},
  }
}

function createMemoryLevels(nowUs: Microseconds): LevelStore {
  const buckets = new MemoryBuckets()
  return {
    check(requests, atMs) {
      buckets.nowUs = nowUs(atMs)
      return checkLevels(buckets, requests, buckets.nowUs)
    },
    refund(requests) {
      buckets.nowUs = nowUs()
      refundLevels(buckets, requests, buckets.nowUs)
    },
  }
}

/** The stored limits of one guard. */
class KeptGuard {
  readonly lanes = new ExpiringMap<KeptLane>()
  readonly reports: Reports = new Map()
  #state: GuardState | undefined
  #untilUs = 0

  /** State that spans its lanes, if any. */
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
  /** The fast path, set up by the last request that needed the general one. */
  usual: FastTake | undefined
}

/** `change` is for operations that take permits as part of their own step. */
interface MemoryLimits {
  limits: LimitStore
  change: QueueNeighbours['limits']
}

function createMemoryLimits(nowUs: Microseconds, tell: MemoryBreakers['report']): MemoryLimits {
  const guards = new Map<string, KeptGuard>()
  const sequences = new ExpiringMap<number>()

  function guardOf(name: string): KeptGuard {
    const known = guards.get(name)
    if (known !== undefined) return known
    const made = new KeptGuard()
    guards.set(name, made)
    return made
  }

  /**
   * Runs a transition on both states of a lane and keeps what it returns. A transition may change
   * states in place even if it returns nothing to keep, because this clock never goes back.
   */
  function change<R extends LaneRef, T>(
    request: R,
    transition: (lane: LaneState, guard: GuardState, request: R, now: number) => Kept<T>,
    now = nowUs(),
  ): T {
    const own = guardOf(request.guard)
    const lane = own.lanes.get(request.lane, now) ?? { state: emptyLane(), usual: undefined }
    const guard = own.stateAt(now) ?? emptyGuard()
    const { reply, laneLifeUs, guardLifeUs } = transition(lane.state, guard, request, now)
    if (laneLifeUs !== undefined) own.lanes.set(request.lane, lane, now, now + laneLifeUs)
    if (guardLifeUs !== undefined) own.keep(guard, now + guardLifeUs)
    return reply
  }

  function take(request: TakeRequest): TakeReply {
    const now = nowUs(request.atMs)
    const guard = guardOf(request.guard)
    const lane = guard.lanes.get(request.lane, now)
    if (lane === undefined || guard.stateAt(now) !== undefined) {
      return change(request, takePermits, now)
    }
    // Later bookings of a slice expire with it, so this sets no new expiry.
    const usual = lane.usual?.take(request, now)
    if (usual !== undefined) return usual
    const reply = change(request, takePermits, now)
    if (reply.granted > 0) lane.usual = FastTake.of(lane.state, request.limits)
    return reply
  }

  function isNew({
    guard,
    pod,
    sequence,
  }: Pick<SettleRequest, 'guard' | 'pod' | 'sequence'>): boolean {
    const now = nowUs()
    const key = `${guard}\0${pod}`
    if ((sequences.get(key, now) ?? 0) >= sequence) return false
    sequences.set(key, sequence, now, now + SEQUENCE_LIFE_US)
    return true
  }

  const limits: LimitStore = {
    take(request) {
      const reply = take(request)
      if (request.report !== undefined) reply.view = tell(request.report)
      return reply
    },
    settle(request) {
      if (isNew(request)) change(request, settlePermits)
    },
    book(request) {
      if (isNew(request)) change(request, bookPermits)
    },
    feedback: (request) => change(request, applyFeedback),
    pause({ guard, lane, forUs }) {
      const ref = { guard, lane: lane ?? '', limits: [], version: 0 }
      return change(ref, (own, guards, _, now) => pauseLane(own, guards, { lane, forUs }, now))
    },
    change: (request) => change(request, changeLimits),
    figures: (request) =>
      change(request, (lane, guard, ref, now) => {
        const figures = readLimits(lane, guard, ref, now)
        const { reports } = guardOf(request.guard)
        return { reply: { ...figures, requestsLastMinute: totalRequests(reports, figures.nowUs) } }
      }),
    report({ guard, pod, requests }) {
      reportRequests(guardOf(guard).reports, pod, requests, nowUs())
    },
  }
  return { limits, change }
}
