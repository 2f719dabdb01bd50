/** All pods, by their reports. */
import type { StoreStatus } from './common-types.js'

export interface Fleet {
  at: number
  store: {
    status: StoreStatus
    degraded: boolean
    sinceAt: number
    /** Problems of guards, as text. */
    problems: string[]
  }
  /**
   * All guards of all pods, by name; `PodRow.guards` refers to them by index. The order may change
   * between ticks.
   */
  names: string[]
  /**
   * This pod first, the others by name. While the store is unreachable: as last reported, see
   * `ageMs`.
   */
  pods: PodRow[]
  /** Further live pods that are not listed. */
  podsLeftOut: number
}

export interface PodRow {
  pod: string
  /** Time since the last report. Above 2,000 the pod is late, above 5,000 it is dropped. */
  ageMs: number
  /** `unknown`: the pod runs a version without reports. */
  state: 'up' | 'draining' | 'drain-requested' | 'unknown'
  version: string
  upMs: number
  /** The highest signal of its guards, 1 is the limit; and which one. Absent: nothing sheds. */
  pressure?: number
  pressureBy?: string
  /**
   * Of its event loop: the mean delay of the last second, and the share of the time it was busy, 0
   * to 1.
   */
  loopMs: number
  loopBusy: number
  memoryMb: number
  inFlight: number
  waiting: number
  store: StoreStatus
  /** By guard: its rates per second, as reported. */
  guards: PodGuardRow[]
}

/**
 * [index in `names`, calls per second, refused per second, running, waiting, breaker as this pod
 * sees it, decided per second]. Of several lanes the worst breaker. Decided: refused or started;
 * calls that waited are counted when they are decided.
 */
export type PodGuardRow = [
  guard: number,
  calls: number,
  refused: number,
  active: number,
  waiting: number,
  breaker: BreakerCode,
  decided: number,
]

/**
 * 0 closed, 1 half-open, 2 open, 3 isolated, 4 this pod isolates itself, -1 there is none, or it
 * was never used.
 */
export type BreakerCode = -1 | 0 | 1 | 2 | 3 | 4
