/** How a limit follows what calls say about the downstream. Pure arithmetic, one step for each window. */
import type { CallWindow } from './call-window.js'

export interface LimitAlgorithm {
  /** The next limit, with fractions. `nowMs` is when the window ended. */
  next(limit: number, window: CallWindow, nowMs: number): number
  /** What a call takes when the downstream has nothing else to do, as far as it is known. */
  readonly baselineMs: number | undefined
}

/** A refusal now and then is bad luck; from here on it is a sign. */
export const TELLING_SHARE = 0.05

/** A limit that is not used says nothing about what would happen if it were. */
export function isUsed(limit: number, { mostInFlight }: CallWindow): boolean {
  return mostInFlight * 2 >= limit
}
