/** How a limit follows the results of calls. Pure arithmetic, one step per window. */
import type { CallWindow } from './call-window.js'

export interface LimitAlgorithm {
  /** The next limit, with fractions. `nowMs` is when the window ended. */
  next(limit: number, window: CallWindow, nowMs: number): number
  /** Latency of a call on an idle downstream, if known. */
  readonly baselineMs: number | undefined
}

/** Share of refused calls from which they count as a sign of overload. */
export const OVERLOAD_SHARE = 0.05

/** Latencies below the limit do not show the load at the limit. */
export function isUsed(limit: number, { mostInFlight }: CallWindow): boolean {
  return mostInFlight * 2 >= limit
}
