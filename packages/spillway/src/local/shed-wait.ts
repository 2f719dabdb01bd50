/**
 * How long callers are asked to wait after load shedding: 1 to 3 seconds at random, so that they do not come back
 * at the same moment, doubled for each 10 seconds that the shedding continues. A lasting overload is not over in
 * a second, and every retry that comes too early is one more refusal.
 */
import type { Random } from '../core/random.js'

const SHORTEST_MS = 1_000
const LONGEST_MS = 30_000
/** The longest wait of a range, as a multiple of its shortest. */
const SPREAD = 3
const DOUBLE_EVERY_MS = 10_000
/** 16 to 30 seconds. One more doubling would leave no range to draw from. */
const MOST_DOUBLINGS = 4
/** The shedding has ended if no call was refused for this time. */
const OVER_AFTER_MS = 10_000

/** 1 to 3 seconds, at random. */
export function shortWaitMs(random: Random): number {
  return Math.round(SHORTEST_MS + random() * (SPREAD - 1) * SHORTEST_MS)
}

export class ShedWait {
  readonly #random: Random
  #sinceMs = 0
  #lastMs = Number.NEGATIVE_INFINITY

  constructor(random: Random) {
    this.#random = random
  }

  /** A call is refused: the wait to ask its caller for, in whole milliseconds. */
  nextMs(nowMs: number): number {
    if (nowMs - this.#lastMs >= OVER_AFTER_MS) this.#sinceMs = nowMs
    this.#lastMs = nowMs
    const elapsedMs = nowMs - this.#sinceMs
    if (elapsedMs < DOUBLE_EVERY_MS) return shortWaitMs(this.#random)
    const doublings = Math.min(MOST_DOUBLINGS, Math.floor(elapsedMs / DOUBLE_EVERY_MS))
    const shortestMs = SHORTEST_MS * 2 ** doublings
    const longestMs = Math.min(LONGEST_MS, SPREAD * shortestMs)
    return Math.round(shortestMs + this.#random() * (longestMs - shortestMs))
  }
}
