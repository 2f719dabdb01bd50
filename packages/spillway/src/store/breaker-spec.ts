/** When a breaker opens and how it recovers, as pods send it to the store. Zero disables a condition. */
export interface BreakerSpec {
  /** Failures in a row. */
  consecutive: number
  /** Shares of the calls in the window, above 0 and up to 1. */
  failureRate: number
  slowRate: number
  /** Length of the window: a time, or a number of calls. The other one is 0. */
  windowUs: number
  windowCalls: number
  /** Finished calls in the window below which the shares are not checked. */
  minimumCalls: number
  openUs: number
  /** Factor by which the open time grows each time the breaker opens again without having closed. */
  openFactor: number
  maxOpenUs: number
  /** Probes at once in the whole fleet, and the number that has to succeed. */
  probes: number
  successes: number
  probeLeaseUs: number
  /** The breaker opens only if its conditions hold without the worst `quorum` - 1 pods, too. */
  quorum: number
}

/** How an attempt ended, as counted by a breaker. */
export const SUCCESS = 0
export const FAILURE = 1
export const SLOW = 2
/** Of probes only: returns the permit and is not counted. */
export const NOTHING = 3
/**
 * A retry, or a hedge whose call is counted elsewhere. It ends or lengthens a row of failures, but it
 * is not counted in the rates: the attempts of one call tend to fail together.
 */
export const REPEATED_SUCCESS = 4
export const REPEATED_FAILURE = 5

/** Number of slices in a time window. */
export const WINDOW_SLICES = 10

export function sliceUsOf(windowUs: number): number {
  return Math.ceil(windowUs / WINDOW_SLICES)
}
