/**
 * A time limit that follows the real duration of calls: a high percentile of recent ones plus a
 * margin, within bounds. A fixed limit is too long while all is well and too short when the
 * downstream changes.
 */
import {
  type Duration,
  duration,
  integer,
  number,
  object,
  optional,
} from '../../core/options/checks.js'
import { RollingHistogram } from '../rolling-histogram.js'

/** Options of an adaptive timeout. */
export interface AdaptiveOptions {
  /** Percentile of the durations, as a fraction. Range: 0.5 to 1. Default: 0.99. */
  percentile?: number
  /** How much longer than the percentile the limit is, as a fraction. Range: from 0. Default: 0.5. */
  margin?: number
  /** Shortest limit. Range: from 1 ms. Default: 100 ms, or `maxMs` if that is less. */
  minMs?: Duration
  /** Longest limit. Range: from 1 ms. Default: `callMs`. */
  maxMs?: Duration
  /** Calls needed before the limit differs from `callMs`. Range: integers from 1. Default: 20. */
  minimumCalls?: number
  /** The percentile is that of calls that ended within this time. Range: from 100 ms. Default: 60 seconds. */
  windowMs?: Duration
}

export const readAdaptive = object({
  percentile: optional(number({ min: 0.5, max: 1 }), 0.99),
  margin: optional(number({ min: 0 }), 0.5),
  minMs: optional(duration({ min: 1 })),
  maxMs: optional(duration({ min: 1 })),
  minimumCalls: optional(integer({ min: 1 }), 20),
  windowMs: optional(duration({ min: 100 }), 60_000),
})

/** Reading a percentile takes microseconds, and it changes slowly. */
const REFRESH_MS = 250

export class AdaptiveTimeout {
  readonly #options: ReturnType<typeof readAdaptive>
  readonly #initialMs: number
  readonly #histogram: RollingHistogram
  #limitMs: number
  #refreshAtMs = Number.NEGATIVE_INFINITY

  constructor(initialMs: number, options: ReturnType<typeof readAdaptive>) {
    this.#options = options
    this.#initialMs = Math.min(initialMs, options.maxMs ?? initialMs)
    this.#limitMs = this.#initialMs
    this.#histogram = new RollingHistogram(options.windowMs)
  }

  /**
   * Records the duration of a call that succeeded or was cut off. Without the latter, every limit
   * would look generous and the next one would be tighter.
   */
  record(nowMs: number, durationMs: number): void {
    this.#histogram.record(nowMs, durationMs)
  }

  limitMs(nowMs: number): number {
    if (nowMs >= this.#refreshAtMs) {
      this.#limitMs = this.#compute(nowMs)
      this.#refreshAtMs = nowMs + REFRESH_MS
    }
    return this.#limitMs
  }

  #compute(nowMs: number): number {
    const { percentile, margin, minMs = 100, maxMs = this.#initialMs, minimumCalls } = this.#options
    if (this.#histogram.count(nowMs) < minimumCalls) return this.#initialMs
    const usualMs = this.#histogram.percentile(nowMs, percentile)
    return Math.min(Math.max(usualMs * (1 + margin), minMs), maxMs)
  }
}
