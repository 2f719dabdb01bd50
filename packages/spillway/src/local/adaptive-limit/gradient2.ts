/**
 * Goes by how much longer calls take than they would on an idle downstream: what is beyond that they
 * spend in its queue. The limit shrinks by that ratio, and always gets a few slots more than that, so
 * that it finds out when there is more to be had.
 *
 * What an idle downstream takes cannot be an average of the past: in a long incident the queue becomes
 * what is normal, and the limit grows into it. So it falls with every shorter window, rises only while
 * less than half of the limit is used, and otherwise only after a probe: now and then half of the slots
 * stay empty for one window, and if calls still take as long, it is not our doing.
 */
import { isUsed, type LimitAlgorithm, TELLING_SHARE } from './algorithm.js'
import type { CallWindow } from './call-window.js'

export interface Gradient2Options {
  /** So many times the idle latency is no queue yet. */
  tolerance: number
  /** How often the idle latency is looked for. */
  probeMs: number
}

const STEEPEST = 0.5
const WHEN_REFUSED = 0.9
/** How much of the difference the baseline takes over: when calls got faster; a little; when idle. */
const MUCH_FASTER = 0.5
const FASTER = 0.1
const IDLE = 0.05
const PROBED = 0.5
const NOISE = 0.2
const FIRST_PROBE = 10

export class Gradient2 implements LimitAlgorithm {
  baselineMs = 0
  readonly #options: Gradient2Options
  /** Windows in a row in which there was more to be had. */
  #good = 0
  #nextProbeMs: number | undefined
  /** The limit that is kept for the time after the probe. */
  #kept: number | undefined

  constructor(options: Gradient2Options) {
    this.#options = options
  }

  next(limit: number, window: CallWindow, nowMs: number): number {
    // The first one soon: what it began with may have been too much already.
    this.#nextProbeMs ??= nowMs + this.#options.probeMs / FIRST_PROBE
    if (window.dropShare >= TELLING_SHARE) {
      this.#kept = undefined
      this.#good = 0
      return limit * WHEN_REFUSED
    }
    const typicalMs = window.typicalMs()
    if (this.#kept !== undefined) return this.#afterProbe(this.#kept, typicalMs, nowMs)
    // It has just become faster: how much there is to be had is seen once that is known.
    if (this.#learn(typicalMs)) return limit
    const used = isUsed(limit, window)
    if (used && nowMs >= this.#nextProbeMs) {
      this.#kept = limit
      return limit / 2
    }
    return this.#follow(limit, typicalMs, used)
  }

  #follow(limit: number, typicalMs: number, used: boolean): number {
    const gradient = (this.#options.tolerance * this.baselineMs) / typicalMs
    const room = Math.max(0.5, Math.sqrt(limit) / 4)
    if (gradient < 1) {
      this.#good = 0
      return limit * Math.max(STEEPEST, gradient) + room
    }
    if (!used) {
      this.baselineMs += (typicalMs - this.baselineMs) * IDLE
      return limit
    }
    return limit + Math.min(room * (1 + this.#good++), limit / 2)
  }

  /** Whether it was much faster than known. */
  #learn(typicalMs: number): boolean {
    if (this.baselineMs === 0) this.baselineMs = typicalMs
    const faster = this.baselineMs - typicalMs
    if (faster <= 0) return false
    const much = faster > this.baselineMs * NOISE
    this.baselineMs -= faster * (much ? MUCH_FASTER : FASTER)
    return much
  }

  #afterProbe(kept: number, typicalMs: number, nowMs: number): number {
    this.#kept = undefined
    this.#nextProbeMs = nowMs + this.#options.probeMs
    if (typicalMs < this.baselineMs) this.baselineMs = typicalMs
    else this.baselineMs += (typicalMs - this.baselineMs) * PROBED
    return kept
  }
}
