/**
 * Additive increase, multiplicative decrease: one more while calls succeed, a tenth less when calls are refused or
 * too slow. It has no baseline that could drift, so `latencyMs` has to define what is too slow.
 */
import { isUsed, type LimitAlgorithm, OVERLOAD_SHARE } from './algorithm.js'
import type { CallWindow } from './call-window.js'

export interface AimdOptions {
  /** Factor for the limit when calls are refused, 0.5 to 0.99. */
  backoff: number
  /** Typical latency above which the limit falls. */
  latencyMs: number | undefined
}

/** After this many good windows in a row the step grows by one. */
const WINDOWS_A_STEP = 4

export class Aimd implements LimitAlgorithm {
  readonly baselineMs = undefined
  readonly #options: AimdOptions
  #good = 0

  constructor(options: AimdOptions) {
    this.#options = options
  }

  next(limit: number, window: CallWindow): number {
    const { backoff, latencyMs = Infinity } = this.#options
    if (window.dropShare >= OVERLOAD_SHARE || window.typical().ms > latencyMs) {
      this.#good = 0
      return limit * backoff
    }
    if (!isUsed(limit, window)) return limit
    return limit + 1 + Math.floor(this.#good++ / WINDOWS_A_STEP)
  }
}
