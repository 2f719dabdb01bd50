/** The number of pods that share the limits, and how many of them are missing. */
import type { Fleet } from '../../store/fleet-share.js'
import type { PulseReply } from '../../store/port.js'

/** After an outage it takes this long until all pods have reported again. */
const REMEMBER_MS = 5_000

export class PodShares {
  fleet: Fleet
  /** Pods that have not reported; their shares must not be used. */
  missing = 0
  readonly #expectedPods: number
  #before = 0
  #rememberUntilMs = Number.NEGATIVE_INFINITY

  /** `expectedPods`: the least number of pods among which limits are divided while the store is unreachable. */
  constructor(expectedPods: number) {
    this.#expectedPods = expectedPods
    this.fleet = { pods: expectedPods, rank: expectedPods - 1 }
  }

  count({ pods, joined, rank }: PulseReply, nowMs: number): void {
    const known = nowMs < this.#rememberUntilMs ? this.#before : 0
    const all = Math.max(pods, known, 1)
    if (all !== this.fleet.pods || rank !== this.fleet.rank) this.fleet = { pods: all, rank }
    this.missing = Math.max(0, all - joined)
  }

  /** The store is unreachable. `known`: it has reported the number of pods before. */
  lost(known: boolean): void {
    if (known) this.#before = this.fleet.pods
    // Pods that start together may not all have reported yet.
    const pods = this.#expectedPods
    if (this.fleet.pods < pods) this.fleet = { ...this.fleet, pods }
  }

  /** The store is reachable again; the other pods need a moment to report. */
  returned(nowMs: number): void {
    this.#rememberUntilMs = nowMs + REMEMBER_MS
  }
}
