/**
 * Compares the latency of calls with that of an idle downstream. The difference is time spent in
 * the downstream's queue. The limit shrinks by that ratio. It always gets a few extra slots, so
 * that it notices when there is more capacity.
 *
 * The idle latency cannot be an average of the past: in a long incident the queue becomes normal
 * and the limit grows. It cannot be the minimum either: where latencies vary, that is luck. So it
 * is measured. Now and then half of the slots stay empty for one window. If calls take as long as
 * before, our load is not the reason. Between two such probes the idle latency falls only if calls
 * are certainly faster, and follows slowly while less than half of the limit is used.
 */
import { isUsed, type LimitAlgorithm, OVERLOAD_SHARE } from './algorithm.js'
import type { CallWindow, Typical } from './call-window.js'

export interface Gradient2Options {
  /** Multiple of the idle latency that still counts as no queue. */
  tolerance: number
  /** How often the idle latency is measured. */
  probeMs: number
}

const STEEPEST = 0.5
const WHEN_REFUSED = 0.9
/**
 * Weights of a new value: in the baseline when idle, in the baseline after a probe, in the trend.
 */
const IDLE = 0.05
const PROBED = 0.5
const TREND = 0.4
/** A difference of this many standard errors is not chance. */
const CERTAIN = 3
/** The smallest standard error assumed, as a fraction of the latency. */
const LEAST_ERROR = 0.02
/**
 * The first probe comes this many times earlier, because the first limit may already be too high.
 */
const FIRST_PROBE = 10

export class Gradient2 implements LimitAlgorithm {
  baselineMs = 0
  /** Standard error of the baseline. */
  #doubtMs = 0
  readonly #options: Gradient2Options
  /** Latency over a few windows. */
  #trendMs = 0
  /** Good windows in a row. */
  #good = 0
  #wasFaster = false
  #nextProbeMs: number | undefined
  /** The limit to restore after the probe. */
  #kept: number | undefined

  constructor(options: Gradient2Options) {
    this.#options = options
  }

  next(limit: number, window: CallWindow, nowMs: number): number {
    this.#nextProbeMs ??= nowMs + this.#options.probeMs / FIRST_PROBE
    if (window.dropShare >= OVERLOAD_SHARE) {
      this.#kept = undefined
      this.#good = 0
      return limit * WHEN_REFUSED
    }
    const typical = window.typical()
    if (this.baselineMs === 0) this.#measured(typical, 1)
    if (this.#kept !== undefined) return this.#afterProbe(this.#kept, typical, nowMs)
    this.#follow(typical)
    if (this.#isCertainly('faster', typical, this.baselineMs)) return this.#faster(limit, typical)
    this.#wasFaster = false
    const used = isUsed(limit, window)
    if (used && nowMs >= this.#nextProbeMs) {
      this.#kept = limit
      return limit / 2
    }
    return this.#nextLimit(limit, used)
  }

  #nextLimit(limit: number, used: boolean): number {
    // If latencies vary a lot, the baseline is uncertain. That alone must not shrink the limit.
    const idleMs = this.baselineMs + this.#doubtMs
    const gradient = (this.#options.tolerance * idleMs) / this.#trendMs
    const growth = Math.max(0.5, Math.sqrt(limit) / 4)
    if (gradient < 1) {
      this.#good = 0
      return limit * Math.max(STEEPEST, gradient) + growth
    }
    if (!used) {
      this.baselineMs += (this.#trendMs - this.baselineMs) * IDLE
      return limit
    }
    return limit + Math.min(growth * (1 + this.#good++), limit / 2)
  }

  /** Requires two windows in a row, because one can be chance. */
  #faster(limit: number, typical: Typical): number {
    if (this.#wasFaster) this.#measured(typical, 1)
    this.#wasFaster = !this.#wasFaster
    return limit
  }

  /** Takes over a certain change at once, and averages out the rest. */
  #follow(typical: Typical): void {
    const { ms } = typical
    const changed =
      this.#trendMs === 0 ||
      this.#isCertainly('faster', typical, this.#trendMs) ||
      this.#isCertainly('slower', typical, this.#trendMs)
    this.#trendMs = changed ? ms : this.#trendMs + (ms - this.#trendMs) * TREND
  }

  #isCertainly(what: 'faster' | 'slower', { ms, errorMs }: Typical, thanMs: number): boolean {
    const doubtMs = CERTAIN * Math.max(errorMs, thanMs * LEAST_ERROR)
    return what === 'faster' ? ms + doubtMs < thanMs : ms - doubtMs > thanMs
  }

  #afterProbe(kept: number, typical: Typical, nowMs: number): number {
    this.#kept = undefined
    this.#nextProbeMs = nowMs + this.#options.probeMs
    this.#measured(typical, this.#isCertainly('faster', typical, this.baselineMs) ? 1 : PROBED)
    return kept
  }

  #measured({ ms, errorMs }: Typical, share: number): void {
    this.baselineMs += (ms - this.baselineMs) * share
    this.#doubtMs += (errorMs - this.#doubtMs) * share
  }
}
