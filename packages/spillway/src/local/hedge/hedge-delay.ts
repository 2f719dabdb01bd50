/**
 * When a second attempt begins: after a fixed time, or when the first is slower than nearly all
 * calls.
 */
import { type Duration, duration, integer, number, optional } from '../../core/options/checks.js'
import { RollingHistogram } from '../rolling-histogram.js'

/** When a second attempt starts. */
export interface HedgeDelayOptions {
  /** The second attempt starts if the first has not ended after this time. Range: from 1 ms. Default: the duration at `percentile`. */
  delayMs?: Duration
  /** Calls slower than this fraction of calls get a second attempt. Range: 0.5 to 0.999. Default: 0.95. */
  percentile?: number
  /** Calls needed before the percentile is used. Range: integers from 1. Default: 20. */
  minimumCalls?: number
  /** The percentile is that of calls that ended within this time. Range: from 100 ms. Default: 60 seconds. */
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

/** Reading a percentile takes microseconds, and it changes slowly. */
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
   * Records how long a first attempt took, or how long it had run when the second one won. Without
   * the latter, calls would look faster than they are and the delay would keep shrinking.
   */
  record(nowMs: number, tookMs: number): void {
    this.#histogram?.record(nowMs, tookMs)
  }

  /** Undefined if there are too few calls. */
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
