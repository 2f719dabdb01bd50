/**
 * Goes by how much longer calls take than they would on an idle downstream: what is beyond that they
 * spend in its queue. The limit shrinks by that ratio, and always gets a few slots more than that, so
 * that it finds out when there is more to be had.
 *
 * What an idle downstream takes cannot be an average of the past: in a long incident the queue becomes
 * what is normal, and the limit grows into it. Nor the least ever seen: of calls whose latency varies
 * that is luck. So it is measured: now and then half of the slots stay empty for one window. If calls
 * still take as long, it is not our doing. Between two probes it falls only if calls are certainly
 * faster, and follows slowly while less than half of the limit is used.
 */
import { isUsed, type LimitAlgorithm, TELLING_SHARE } from './algorithm.js'
import type { CallWindow, Typical } from './call-window.js'

export interface Gradient2Options {
  /** So many times the idle latency is no queue yet. */
  tolerance: number
  /** How often the idle latency is looked for. */
  probeMs: number
}

const STEEPEST = 0.5
const WHEN_REFUSED = 0.9
/** How much of a difference is taken over: by the baseline when idle and after a probe, by the trend. */
const IDLE = 0.05
const PROBED = 0.5
const TREND = 0.4
/** So many standard errors away is no luck. */
const CERTAIN = 3
/** What does not vary at all still varies so much. */
const LEAST_ERROR = 0.02
/** The first probe comes so many times earlier: what it began with may be too much already. */
const FIRST_PROBE = 10

export class Gradient2 implements LimitAlgorithm {
  baselineMs = 0
  /** How far from the truth that may be. */
  #doubtMs = 0
  readonly #options: Gradient2Options
  /** What calls take, over a few windows. */
  #trendMs = 0
  /** Windows in a row in which there was more to be had. */
  #good = 0
  #wasFaster = false
  #nextProbeMs: number | undefined
  /** The limit that is kept for the time after the probe. */
  #kept: number | undefined

  constructor(options: Gradient2Options) {
    this.#options = options
  }

  next(limit: number, window: CallWindow, nowMs: number): number {
    this.#nextProbeMs ??= nowMs + this.#options.probeMs / FIRST_PROBE
    if (window.dropShare >= TELLING_SHARE) {
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
    // Of calls that vary much it is not known well. Doubt must not shrink the limit, again and again.
    const idleMs = this.baselineMs + this.#doubtMs
    const gradient = (this.#options.tolerance * idleMs) / this.#trendMs
    const room = Math.max(0.5, Math.sqrt(limit) / 4)
    if (gradient < 1) {
      this.#good = 0
      return limit * Math.max(STEEPEST, gradient) + room
    }
    if (!used) {
      this.baselineMs += (this.#trendMs - this.baselineMs) * IDLE
      return limit
    }
    return limit + Math.min(room * (1 + this.#good++), limit / 2)
  }

  /** Twice in a row, or it would happen by chance one day. How much there is to be had is seen then. */
  #faster(limit: number, typical: Typical): number {
    if (this.#wasFaster) this.#measured(typical, 1)
    this.#wasFaster = !this.#wasFaster
    return limit
  }

  /** A real change counts at once, the rest is luck and evens out. */
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
