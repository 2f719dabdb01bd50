/**
 * Finds out how many concurrent calls a downstream can handle, by observing calls. The limit is a
 * number that others enforce. For downstreams whose capacity is unknown or changes; if it is known
 * and constant, configure it. Create one for each thing with a capacity of its own, such as a
 * model.
 */

import { emit, listening } from '../../core/events.js'
import {
  type Duration,
  duration,
  integer,
  number,
  type OptionProblem,
  object,
  oneOf,
  optional,
  text,
  together,
  validate,
} from '../../core/options/checks.js'
import type { Clock } from '../../core/time/clock.js'
import { clockOption } from '../../core/time/clock-options.js'
import { Aimd } from './aimd.js'
import type { LimitAlgorithm } from './algorithm.js'
import { CallWindow } from './call-window.js'
import { Gradient2 } from './gradient2.js'

/** Options of `createAdaptiveLimit()`. */
export interface AdaptiveLimitOptions {
  /** Name in events and snapshots. Default: `limit`. */
  name?: string
  /**
   * `aimd` reacts to refusals and to `latencyMs`. `gradient2` compares latencies with those of an
   * idle downstream.
   */
  adaptive: 'aimd' | 'gradient2'
  /** Lowest limit, in concurrent calls. Range: integers from 1. Default: 1. */
  min?: number
  /** Highest limit, in concurrent calls. Range: integers from `min`. Default: 1,000. */
  max?: number
  /**
   * First limit, in concurrent calls. Range: `min` to `max`. Default: 20, or the nearest value between `min`
   * and `max`.
   */
  initial?: number
  /** `aimd`: factor for the limit when the downstream refuses. Range: 0.5 to 0.99. Default: 0.9. */
  backoff?: number
  /** `aimd`: typical latency above which the limit falls. Range: from 1 ms. Default: only refusals count. */
  latencyMs?: Duration
  /** `gradient2`: multiple of the idle latency that still counts as no queue. Range: 1 to 10. Default: 1.1. */
  tolerance?: number
  /** `gradient2`: interval at which the idle latency is measured. Range: from 1 second. Default: 30 seconds. */
  probeMs?: Duration
  /** The clock to read and to set timers with. Default: the system clock. */
  clock?: Clock
}

/** How a call ended. */
export interface LimitedCall {
  /** Time until the response, or until its first byte. Range: from 0 ms. */
  latencyMs: number
  /** Concurrent calls, including this one. Range: integers from 1. */
  inFlight: number
  /** `dropped`: refused because of overload, or timed out. `ignored`: not counted. */
  outcome: 'success' | 'dropped' | 'ignored'
}

/** State of an adaptive limit. */
export interface AdaptiveLimitSnapshot {
  /** Name in errors, events and snapshots. */
  name: string
  /** Calls that may run at once. */
  limit: number
  /** `gradient2`: latency of a call on an idle downstream. */
  baselineMs: number | undefined
}

/** A concurrency limit that follows the latency of the downstream. Created by `createAdaptiveLimit()`. */
export interface AdaptiveLimit {
  /** Name in errors, events and snapshots. */
  readonly name: string
  /** The current limit of concurrent calls. */
  readonly limit: number
  /**
   * Reports a call that has ended. Ignored if `latencyMs` or `inFlight` is not a number of at least
   * 0.
   */
  record(call: LimitedCall): void
  /** State and counts at this moment. */
  snapshot(): AdaptiveLimitSnapshot
}

export const adaptiveFields = {
  min: optional(integer({ min: 1 }), 1),
  max: optional(integer({ min: 1 }), 1_000),
  initial: optional(integer({ min: 1 })),
  backoff: optional(number({ min: 0.5, max: 0.99 }), 0.9),
  latencyMs: optional(duration({ min: 1 })),
  tolerance: optional(number({ min: 1, max: 10 }), 1.1),
  probeMs: optional(duration({ min: 1_000 }), 30_000),
}

export const readAlgorithm = oneOf('aimd', 'gradient2')

const readOptions = together(
  object({
    name: optional(text(), 'limit'),
    adaptive: readAlgorithm,
    ...adaptiveFields,
    clock: clockOption,
  }),
  checkBounds,
)

export type WatchedLimitOptions = ReturnType<typeof readOptions>

/** Checks that `min`, `max` and `initial` fit together. */
export function checkBounds(
  { min, max, initial }: { min: number; max: number; initial?: number | undefined },
  path: string,
  problems: OptionProblem[],
): void {
  const within = `from min to max, which are ${min} and ${max}`
  if (min > max) {
    problems.push({ path: `${path}.min`, message: `must not be above max, which is ${max}` })
  } else if (initial !== undefined && (initial < min || initial > max)) {
    problems.push({ path: `${path}.initial`, message: `must be ${within}, got ${initial}` })
  }
}

/**
 * Creates a concurrency limit that follows the latency of the downstream.
 *
 * @example
 * const adaptive = createAdaptiveLimit({ adaptive: 'gradient2', max: 200 })
 * adaptive.record({ latencyMs: 120, inFlight: 8, outcome: 'success' })
 */
export function createAdaptiveLimit(options: AdaptiveLimitOptions): AdaptiveLimit {
  return new WatchedLimit(validate('adaptiveLimit', options, readOptions))
}

const USUAL_INITIAL = 20
/** Longer latencies count as this, because the squares of latencies are summed up. */
const LONGEST_MS = 86_400_000

function isMeasured(value: number): boolean {
  return Number.isFinite(value) && value >= 0
}

export class WatchedLimit implements AdaptiveLimit {
  readonly name: string
  limit: number
  readonly #options: Omit<WatchedLimitOptions, 'name'>
  readonly #clock: Clock
  readonly #algorithm: LimitAlgorithm
  readonly #window = new CallWindow()
  /** With fractions, so that it can grow slowly. */
  #exact: number
  /** How many more calls have to end before their figures reflect the current limit. */
  #outdated = 0

  constructor(options: WatchedLimitOptions) {
    const { name, adaptive, min, max, initial = USUAL_INITIAL, clock } = options
    this.name = name
    this.#options = options
    this.#clock = clock
    this.#algorithm = adaptive === 'aimd' ? new Aimd(options) : new Gradient2(options)
    this.#exact = Math.min(Math.max(initial, min), max)
    this.limit = Math.floor(this.#exact)
    // Among the first calls, the short ones end first.
    this.#outdated = 2 * this.limit
  }

  record({ latencyMs, inFlight, outcome }: LimitedCall): void {
    if (outcome === 'ignored') return
    // A value of NaN would stay in every average.
    if (!isMeasured(latencyMs) || !isMeasured(inFlight)) return
    const nowMs = this.#clock.now()
    this.ended(nowMs, nowMs - Math.min(latencyMs, LONGEST_MS), inFlight, outcome === 'dropped')
  }

  /** Like `record`, with all figures already known. */
  ended(nowMs: number, startMs: number, inFlight: number, dropped: boolean): void {
    if (this.#outdated > 0) {
      this.#outdated--
      return
    }
    const window = this.#window
    if (dropped) window.drop(inFlight)
    else window.add(nowMs - startMs, inFlight)
    if (!window.isFull(this.limit)) return
    const { min, max } = this.#options
    const before = this.limit
    const next = this.#algorithm.next(this.#exact, window, nowMs)
    window.clear()
    this.#exact = Math.min(Math.max(next, min), max)
    this.limit = Math.floor(this.#exact)
    // Calls that run now began under a higher limit. This waits for as many ends as there are such
    // calls, and not for those calls: of the calls begun since then the short ones end first and
    // would look typical.
    if (this.limit < before) this.#outdated = inFlight
    if (this.limit === before || !listening()) return
    emit({ type: 'limit.changed', name: this.name, from: before, to: this.limit })
  }

  snapshot(): AdaptiveLimitSnapshot {
    const { name, limit } = this
    return { name, limit, baselineMs: this.#algorithm.baselineMs }
  }
}
