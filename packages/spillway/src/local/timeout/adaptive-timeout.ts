/**
 * A time limit that follows what calls really take: a high percentile of the recent past plus a
 * margin, within bounds. A limit set by hand is too long when all is well and too short when the
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

export interface AdaptiveOptions {
  /** Which percentile, as a fraction. Default: 0.99. */
  percentile?: number
  /** How much longer than that, as a fraction. Default: 0.5. */
  margin?: number
  /** Never shorter than this. Default: 100 ms, or `maxMs` if that is less. */
  minMs?: Duration
  /** Never longer than this. Default: `callMs`. */
  maxMs?: Duration
  /** Calls needed before the limit leaves `callMs`. Default: 20. */
  minimumCalls?: number
  /** How far back it looks. Default: 60 seconds. */
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

/** Reading a percentile costs microseconds, and it does not change that fast. */
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
   * How long a call took that succeeded, or was cut off: leaving those out would make every limit
   * look generous and the next one tighter.
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
