/**
 * The store of a fleet of one: the same transitions on a Map, answered at once. Also what a pod
 * falls back to, and what simulations run on.
 */
import type { Clock } from '../../core/clock.js'
import { clockOption } from '../../core/injected.js'
import { object, validate } from '../../core/options.js'
import { checkLevels, refundLevels } from '../levels/check-levels.js'
import { emptyGuard, emptyLane, type GuardState, type LaneState } from '../limits/lane-state.js'
import { type Reports, reportRequests, totalRequests } from '../limits/reports.js'
import {
  applyFeedback,
  changeLimits,
  type Kept,
  readLimits,
  settlePermits,
  takePermits,
} from '../limits/transitions.js'
import { takeUsual } from '../limits/usual-take.js'
import type { LaneRef, LevelStore, LimitStore, Store } from '../port.js'
import { ExpiringMap } from './expiring-map.js'
import { createMemoryBreakers, type MemoryBreakers } from './memory-breakers.js'
import { MemoryBuckets } from './memory-buckets.js'
import { createMemoryPods } from './memory-pods.js'

export interface MemoryStoreOptions {
  /** Default: the system's clock. */
  clock?: Clock
}

const SEQUENCE_LIFE_US = 600_000_000

const readOptions = object({ clock: clockOption })

export function memoryStore(options: MemoryStoreOptions = {}): Store {
  const { clock } = validate('memoryStore', options, readOptions)
  const nowUs = createMicroseconds(clock)
  const pods = createMemoryPods(nowUs)
  const breakers = createMemoryBreakers(nowUs, pods.live)
  return {
    remote: false,
    limits: createMemoryLimits(nowUs, breakers.report),
    levels: createMemoryLevels(nowUs),
    breakers,
    pods,
    close: async () => {},
  }
}

/** The store's time: the time of day at the start, and from there on a clock that never goes back. */
function createMicroseconds(clock: Clock): Microseconds {
  const startMs = clock.now()
  const startUs = Math.floor(clock.wallMs()) * 1_000
  return (atMs = clock.now()) => startUs + Math.floor((atMs - startMs) * 1_000)
}

/** `atMs`: a time just read from the same clock, so that it need not be read again. */
type Microseconds = (atMs?: number) => number

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

function createMemoryLimits(nowUs: Microseconds, tell: MemoryBreakers['report']): LimitStore {
  const allLanes = new Map<string, ExpiringMap<LaneState>>()
  const guards = new ExpiringMap<GuardState>()
  const sequences = new ExpiringMap<number>()
  const reports = new Map<string, Reports>()
  const lanesOf = (guard: string) => getOrMake(allLanes, guard, () => new ExpiringMap<LaneState>())
  const reportsOf = (guard: string) => getOrMake(reports, guard, (): Reports => new Map())

  /**
   * Runs a transition on both states of a lane and keeps what it says has to be kept. It may change
   * states in place also where it says nothing: our time never goes back, so that makes no difference.
   */
  function change<R extends LaneRef, T>(
    request: R,
    transition: (lane: LaneState, guard: GuardState, request: R, now: number) => Kept<T>,
  ): T {
    const now = nowUs()
    const lanes = lanesOf(request.guard)
    const lane = lanes.get(request.lane, now) ?? emptyLane()
    const guard = guards.get(request.guard, now) ?? emptyGuard()
    const { reply, laneLifeUs, guardLifeUs } = transition(lane, guard, request, now)
    if (laneLifeUs !== undefined) lanes.set(request.lane, lane, now, now + laneLifeUs)
    if (guardLifeUs !== undefined) guards.set(request.guard, guard, now, now + guardLifeUs)
    return reply
  }

  return {
    take(request) {
      const now = nowUs(request.atMs)
      const lane = allLanes.get(request.guard)?.get(request.lane, now)
      // What is booked later in a slice leaves with it, so this needs no new expiry.
      const usual =
        lane !== undefined && guards.get(request.guard, now) === undefined
          ? takeUsual(lane, request, now)
          : undefined
      const reply = usual ?? change(request, takePermits)
      if (request.report !== undefined) reply.view = tell(request.report)
      return reply
    },
    settle(request) {
      const now = nowUs()
      const key = `${request.guard}\0${request.pod}`
      if ((sequences.get(key, now) ?? 0) >= request.sequence) return
      sequences.set(key, request.sequence, now, now + SEQUENCE_LIFE_US)
      change(request, settlePermits)
    },
    feedback: (request) => change(request, applyFeedback),
    change: (request) => change(request, changeLimits),
    figures: (request) =>
      change(request, (lane, guard, ref, now) => {
        const figures = readLimits(lane, guard, ref, now)
        const requestsLastMinute = totalRequests(reportsOf(request.guard), figures.nowUs)
        return { reply: { ...figures, requestsLastMinute } }
      }),
    report({ guard, pod, requests }) {
      reportRequests(reportsOf(guard), pod, requests, nowUs())
    },
  }
}

function getOrMake<T>(map: Map<string, T>, key: string, make: () => T): T {
  const known = map.get(key)
  if (known !== undefined) return known
  const made = make()
  map.set(key, made)
  return made
}
