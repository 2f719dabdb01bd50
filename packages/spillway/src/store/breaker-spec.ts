/** When a breaker trips and how it recovers, as a store is told of it. Zero: does not count. */
export interface BreakerSpec {
  /** Failures in a row. */
  consecutive: number
  /** Shares of the calls in the window, above 0 and up to 1. */
  failureRate: number
  slowRate: number
  /** The window: so long, or so many calls. */
  windowUs: number
  windowCalls: number
  /** So many calls have to be in the window before a share means anything. */
  minimumCalls: number
  openUs: number
  /** Each time it opens again without having closed, it stays open so many times longer. */
  openFactor: number
  maxOpenUs: number
  /** Probes at once in the whole fleet, and how many have to succeed. */
  probes: number
  successes: number
  probeLeaseUs: number
  /** Trips only if it would even with the worst `quorum` - 1 pods left out. */
  quorum: number
}

/** How a call ended, as far as a breaker counts it. */
export const SUCCESS = 0
export const FAILURE = 1
export const SLOW = 2
/** Of probes only: gives back its place and says nothing. */
export const NOTHING = 3
