/**
 * Two attempts of one call side by side, on one lane. The rates count them as one call: by the first
 * success, or by the failure that leaves none running.
 */
import type { Outcome } from '../../core/outcome.js'

/** `ignored`: the outcome says nothing, and is counted nowhere. */
export type HedgedVerdict = 'counted' | 'left out' | 'ignored'

export class HedgedPair<T extends { pair: HedgedPair<T> | undefined }> {
  #running: T[]
  #counted = false

  constructor(first: T, second: T) {
    this.#running = [first, second]
    first.pair = this
    second.pair = this
  }

  /** The other attempt, while it is running and may still be counted. */
  other(attempt: T): T | undefined {
    return this.#counted ? undefined : this.#running.find((each) => each !== attempt)
  }

  end(attempt: T, outcome: Outcome): HedgedVerdict {
    this.#running = this.#running.filter((each) => each !== attempt)
    attempt.pair = undefined
    if (outcome === 'throttled' || outcome === 'ignored') return 'ignored'
    const undecided = outcome === 'failure' && this.#running.length > 0
    if (this.#counted || undecided) return 'left out'
    this.#counted = true
    return 'counted'
  }
}
