/**
 * Two attempts of one call side by side, on one lane. The breaker counts them as one call: by the
 * first success, or by the failure that leaves none running.
 */
import type { Outcome } from '../core/outcome.js'

export class HedgePair {
  #running = 1
  #counted = false

  /** The second attempt has begun. */
  join(): void {
    this.#running++
  }

  /** An attempt has ended. Returns whether the rates leave it out. */
  leavesOut(outcome: Outcome): boolean {
    this.#running--
    if (outcome === 'throttled' || outcome === 'ignored') return false
    const undecided = outcome === 'failure' && this.#running > 0
    const leftOut = this.#counted || undecided
    if (!undecided) this.#counted = true
    return leftOut
  }
}
