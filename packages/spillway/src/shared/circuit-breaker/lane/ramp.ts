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

/** Starting with a quarter, a pod reaches its earlier load after a third of `rampMs`. */
export function mostAtOnce({ closedForMs, rampMs, probes, carried }: Ramp): number {
  const first = Math.max(probes, Math.ceil(carried * FIRST_SHARE))
  return Math.floor(first * 2 ** (DOUBLINGS * (closedForMs / rampMs)))
}
