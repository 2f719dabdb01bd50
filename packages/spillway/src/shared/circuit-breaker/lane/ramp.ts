/**
 * How many calls a pod may make at once after the breaker has closed, so that not all waiting callers
 * return in the same moment.
 */

/** Within `rampMs` the number doubles this many times; after it there is no limit. */
const DOUBLINGS = 6
/** The share of the calls before the outage that may start at once. */
const FIRST_SHARE = 1 / 4

export interface Ramp {
  closedForMs: number
  rampMs: number
  /** The policy's number of probes: the least to start with. */
  probes: number
  /** The most calls at once that this pod made before the breaker opened. */
  carried: number
}

/** With a quarter to start with, a pod is back at what it carried after a third of `rampMs`. */
export function mostAtOnce({ closedForMs, rampMs, probes, carried }: Ramp): number {
  const first = Math.max(probes, Math.ceil(carried * FIRST_SHARE))
  return Math.floor(first * 2 ** (DOUBLINGS * (closedForMs / rampMs)))
}

const PEAK_MS = 30_000

/** The largest number in the last 30 to 60 seconds. */
export class RecentPeak {
  #current = 0
  #previous = 0
  #sinceMs = Number.NEGATIVE_INFINITY

  note(value: number, nowMs: number): void {
    if (nowMs - this.#sinceMs >= PEAK_MS) {
      this.#previous = nowMs - this.#sinceMs < 2 * PEAK_MS ? this.#current : 0
      this.#current = 0
      this.#sinceMs = nowMs
    }
    if (value > this.#current) this.#current = value
  }

  get value(): number {
    return Math.max(this.#current, this.#previous)
  }
}
