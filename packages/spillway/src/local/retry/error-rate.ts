/**
 * Failures as a fraction of the first attempts in the last ten seconds. Retries are left out, because they would
 * count one failing call several times. Throttled and ignored attempts do not indicate whether a retry would succeed.
 */
import { RollingCounter } from '../../core/collections/rolling-counter.js'
import type { Outcome } from '../../core/outcome.js'

const WINDOW_MS = 10_000
const SLICES = 10
/** Below this number of samples the rate says too little, and counts as 0. */
const MIN_SAMPLES = 20

export class ErrorRate {
  readonly #samples = new RollingCounter(WINDOW_MS, SLICES)
  readonly #failures = new RollingCounter(WINDOW_MS, SLICES)

  /** Counts the outcome of a first attempt. */
  record(nowMs: number, outcome: Outcome): void {
    if (outcome === 'throttled' || outcome === 'ignored') return
    this.#samples.add(nowMs, 1)
    if (outcome === 'failure') this.#failures.add(nowMs, 1)
  }

  /** From 0 to 1. */
  rate(nowMs: number): number {
    const samples = this.#samples.total(nowMs)
    return samples < MIN_SAMPLES ? 0 : this.#failures.total(nowMs) / samples
  }
}
