/**
 * Pauses between attempts to reach the store. They grow until the store has been reachable for a
 * while.
 */

import type { Random } from '../../core/random.js'
import type { Clock } from '../../core/time/clock.js'

const FIRST_MS = 50
const LONGEST_MS = 800
/** After this time without a failure the pauses start again with the shortest. */
const STABLE_MS = 5_000

export class Backoff {
  readonly #clock: Clock
  readonly #random: Random
  #attempts = 0
  #reachableSinceMs = Number.NEGATIVE_INFINITY

  constructor(clock: Clock, random: Random) {
    this.#clock = clock
    this.#random = random
  }

  lost(): void {
    if (this.#clock.now() - this.#reachableSinceMs >= STABLE_MS) this.#attempts = 0
  }

  found(): void {
    this.#reachableSinceMs = this.#clock.now()
  }

  /** Half of it is random, so that the pods of a fleet do not reconnect together. */
  nextMs(): number {
    const fullMs = Math.min(FIRST_MS * 2 ** this.#attempts++, LONGEST_MS)
    return fullMs * (0.5 + 0.5 * this.#random())
  }
}
