/** How long until the store is asked again: longer each time, until it has been well for a while. */

import type { Random } from '../../core/random.js'
import type { Clock } from '../../core/time/clock.js'

const FIRST_MS = 50
const LONGEST_MS = 800
/** Who stays well for so long is forgiven. */
const WELL_MS = 5_000

export class Backoff {
  readonly #clock: Clock
  readonly #random: Random
  #tries = 0
  #wellSinceMs = Number.NEGATIVE_INFINITY

  constructor(clock: Clock, random: Random) {
    this.#clock = clock
    this.#random = random
  }

  lost(): void {
    if (this.#clock.now() - this.#wellSinceMs >= WELL_MS) this.#tries = 0
  }

  found(): void {
    this.#wellSinceMs = this.#clock.now()
  }

  /** Half of it is chance, so that a fleet does not come back in step. */
  nextMs(): number {
    const fullMs = Math.min(FIRST_MS * 2 ** this.#tries++, LONGEST_MS)
    return fullMs * (0.5 + 0.5 * this.#random())
  }
}
