/**
 * The store of a fleet of one: the same transitions on a Map, answered at once. Also what a pod
 * falls back to, and what simulations run on.
 */
import type { Clock } from '../../core/clock.js'
import { clockOption } from '../../core/injected.js'
import { object, validate } from '../../core/options.js'
import { emptyGuard, emptyLane, type GuardState, type LaneState } from '../limits/lane-state.js'
import {
  applyFeedback,
  changeLimits,
  type Kept,
  readLimits,
  settlePermits,
  takePermits,
} from '../limits/transitions.js'
import type { LaneRef, LimitStore, Store } from '../port.js'
import { ExpiringMap } from './expiring-map.js'

export interface MemoryStoreOptions {
  /** Default: the system's clock. */
  clock?: Clock
}

const SEQUENCE_LIFE_US = 600_000_000

const readOptions = object({ clock: clockOption })

export function memoryStore(options: MemoryStoreOptions = {}): Store {
  const { clock } = validate('memoryStore', options, readOptions)
  return { limits: createMemoryLimits(clock), close: async () => {} }
}

function createMemoryLimits(clock: Clock): LimitStore {
  const lanes = new ExpiringMap<LaneState>()
  const guards = new ExpiringMap<GuardState>()
  const sequences = new ExpiringMap<number>()
  const startMs = clock.now()
  const startUs = Math.floor(clock.wallMs()) * 1_000
  const nowUs = () => startUs + Math.floor((clock.now() - startMs) * 1_000)

  /** Runs a transition on both states of a lane and keeps what it says has to be kept. */
  function change<R extends LaneRef, T>(
    request: R,
    transition: (lane: LaneState, guard: GuardState, request: R, now: number) => Kept<T>,
  ): T {
    const now = nowUs()
    const laneKey = `${request.guard}\0${request.lane}`
    const lane = lanes.get(laneKey, now) ?? emptyLane()
    const guard = guards.get(request.guard, now) ?? emptyGuard()
    const { reply, laneLifeUs, guardLifeUs } = transition(lane, guard, request, now)
    if (laneLifeUs !== undefined) lanes.set(laneKey, lane, now, now + laneLifeUs)
    if (guardLifeUs !== undefined) guards.set(request.guard, guard, now, now + guardLifeUs)
    return reply
  }

  return {
    take: (request) => change(request, takePermits),
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
      change(request, (lane, guard, ref, now) => ({ reply: readLimits(lane, guard, ref, now) })),
  }
}
