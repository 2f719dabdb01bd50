/** When a second attempt is worth it: after a set time, or when the first takes longer than nearly all. */
import { type Duration, duration, integer, number, optional } from '../../core/options/checks.js'
import { RollingHistogram } from '../rolling-histogram.js'

export interface HedgeDelayOptions {
  /** Begins the second attempt after so long. Default: what `percentile` of the calls took. */
  delayMs?: Duration
  /** Calls slower than this part of them get a second attempt, 0.5 to 0.999. Default: 0.95. */
  percentile?: number
  /** Calls needed before the percentile is believed. Default: 20. */
  minimumCalls?: number
  /** How far back it looks. Default: 60 seconds. */
  windowMs?: Duration
}

export const hedgeDelayFields = {
  delayMs: optional(duration({ min: 1 })),
  percentile: optional(number({ min: 0.5, max: 0.999 }), 0.95),
  minimumCalls: optional(integer({ min: 1 }), 20),
  windowMs: optional(duration({ min: 100 }), 60_000),
}

export interface CheckedHedgeDelay {
  delayMs: number | undefined
  percentile: number
  minimumCalls: number
  windowMs: number
}

/** Reading a percentile costs microseconds, and it does not change that fast. */
const REFRESH_MS = 250

export class HedgeDelay {
  readonly #options: CheckedHedgeDelay
  readonly #histogram: RollingHistogram | undefined
  #delayMs: number | undefined
  #refreshAtMs = Number.NEGATIVE_INFINITY

  constructor(options: CheckedHedgeDelay) {
    this.#options = options
    this.#delayMs = options.delayMs
    this.#histogram =
      options.delayMs === undefined ? new RollingHistogram(options.windowMs) : undefined
  }

  /**
   * How long a first attempt took, or how long it had run when the second one won. Leaving those out
   * would make calls look faster than they are, and every delay shorter than the last.
   */
  record(nowMs: number, tookMs: number): void {
    this.#histogram?.record(nowMs, tookMs)
  }

  /** Nothing: too little is known to say. */
  delayMs(nowMs: number): number | undefined {
    if (this.#histogram !== undefined && nowMs >= this.#refreshAtMs) {
      this.#refreshAtMs = nowMs + REFRESH_MS
      this.#delayMs = this.#measured(this.#histogram, nowMs)
    }
    return this.#delayMs
  }

  #measured(histogram: RollingHistogram, nowMs: number): number | undefined {
    const { percentile, minimumCalls } = this.#options
    if (histogram.count(nowMs) < minimumCalls) return undefined
    return histogram.percentile(nowMs, percentile)
  }
}
