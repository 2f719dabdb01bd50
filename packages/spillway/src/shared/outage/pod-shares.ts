/** Among how many pods limits are shared out, and how many of them are not heard of. */
import type { Fleet } from '../../store/local-spend.js'
import type { PulseReply } from '../../store/port.js'

/** After a return it takes so long until all pods have been heard of again. */
const REMEMBER_MS = 5_000

export class PodShares {
  fleet: Fleet
  /** Pods whose shares have to be left alone. */
  missing = 0
  readonly #expectedPods: number
  #before = 0
  #rememberUntilMs = Number.NEGATIVE_INFINITY

  /** `expectedPods`: as long as nobody has said. */
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

  /** The store is away. `known`: it has said how many there are. */
  lost(known: boolean): void {
    if (known) this.#before = this.fleet.pods
    // Pods that start together have not all been heard of yet.
    const pods = this.#expectedPods
    if (this.fleet.pods < pods) this.fleet = { ...this.fleet, pods }
  }

  /** The store is back; the other pods need a moment. */
  returned(nowMs: number): void {
    this.#rememberUntilMs = nowMs + REMEMBER_MS
  }
}
