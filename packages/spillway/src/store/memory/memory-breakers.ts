/** Breakers in one process: the transitions on a map. Watchers are called synchronously. */
import { type BreakerState, emptyBreaker } from '../breaker/breaker-state.js'
import {
  type BreakerKept,
  commandBreaker,
  reportOutcomes,
  syncBreaker,
  takeProbes,
} from '../breaker/transitions.js'
import type {
  BreakerRef,
  BreakerReport,
  BreakerStore,
  BreakerView,
  BreakerWatcher,
} from '../port.js'
import { ExpiringMap } from './expiring-map.js'

/** As long as the longest window. After that no pod repeats a report. */
const SEQUENCE_LIFE_US = 300_000_000

export interface MemoryBreakers extends BreakerStore {
  /** Replies synchronously. */
  report(request: BreakerReport): BreakerView
  /** Replaces the state, which expires after `lifeUs`. */
  put(guard: string, lane: string, state: BreakerState, lifeUs: number): void
  /** A transition of another mechanism that reads a breaker, or takes its probes. */
  change<R extends BreakerRef, T>(
    request: R,
    transition: (state: BreakerState, request: R, now: number) => BreakerKept<T>,
  ): T
}

/** `live` returns the number of pods of a guard. */
export function createMemoryBreakers(
  nowUs: () => number,
  live: (guard: string) => number,
): MemoryBreakers {
  const states = new ExpiringMap<BreakerState>()
  const sequences = new ExpiringMap<number>()
  const watchers = new Set<BreakerWatcher>()

  /**
   * A transition may change a state in place that it does not keep, because this clock never goes
   * back.
   */
  function change<R extends BreakerRef, T>(
    request: R,
    transition: (state: BreakerState, request: R, now: number) => BreakerKept<T>,
  ): T {
    const now = nowUs()
    const { guard, lane } = request
    const key = `${guard}\0${lane}`
    const state = states.get(key, now) ?? emptyBreaker()
    const { reply, lifeUs, published } = transition(state, request, now)
    if (lifeUs !== undefined) states.set(key, state, now, now + lifeUs)
    if (published !== undefined) for (const each of watchers) each.onView(guard, lane, published)
    return reply
  }

  return {
    change,
    put(guard, lane, state, lifeUs) {
      const now = nowUs()
      states.set(`${guard}\0${lane}`, state, now, now + lifeUs)
    },
    report(request) {
      const now = nowUs()
      const key = `${request.guard}\0${request.lane}\0${request.pod}`
      if ((sequences.get(key, now) ?? 0) >= request.sequence) {
        return change({ ...request, renew: [] }, syncBreaker)
      }
      sequences.set(key, request.sequence, now, now + SEQUENCE_LIFE_US)
      const pods = request.spec.quorum > 1 ? live(request.guard) : 1
      return change(request, (state, report, at) => reportOutcomes(state, report, at, pods))
    },
    probe: (request) => change(request, takeProbes),
    sync: (requests) => requests.map((request) => change(request, syncBreaker)),
    command: (request) => change(request, commandBreaker),
    watch(watcher) {
      watchers.add(watcher)
      return () => {
        watchers.delete(watcher)
      }
    },
  }
}
