/**
 * How many calls at once a downstream can bear, found out by watching them: a number, which others
 * enforce. For downstreams whose capacity you do not know or that changes; where it is known and
 * constant, write it down. One for each thing that has a capacity of its own, such as a model.
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

export interface AdaptiveLimitOptions {
  /** Stands in events and snapshots. Default: `limit`. */
  name?: string
  /** Goes by refusals and a latency you name, or by how much longer calls take than when it is idle. */
  adaptive: 'aimd' | 'gradient2'
  /** Never less. Default: 1. */
  min?: number
  /** Never more. Default: 1,000. */
  max?: number
  /** What it begins with. Default: 20, or what is nearest to it between `min` and `max`. */
  initial?: number
  /** `aimd`: what is left when the downstream refuses, 0.5 to 0.99. Default: 0.9. */
  backoff?: number
  /** `aimd`: calls should not typically take longer. Default: only refusals count. */
  latencyMs?: Duration
  /** `gradient2`: so many times the idle latency is no queue yet, 1 to 10. Default: 1.1. */
  tolerance?: number
  /** `gradient2`: how often it looks for the idle latency. Default: 30 seconds. */
  probeMs?: Duration
  /** Default: the system's clock. */
  clock?: Clock
}

/** How a call ended, for whoever decides on a limit. */
export interface LimitedCall {
  /** Until the answer, or its first byte. */
  latencyMs: number
  /** Calls at once, this one included. */
  inFlight: number
  /** `dropped`: refused because there was too much, or timed out. `ignored`: says nothing. */
  outcome: 'success' | 'dropped' | 'ignored'
}

export interface AdaptiveLimitSnapshot {
  name: string
  limit: number
  /** `gradient2`: what a call takes when the downstream is idle. */
  baselineMs: number | undefined
}

export interface AdaptiveLimit {
  readonly name: string
  /** Calls at once, as of now. */
  readonly limit: number
  /** Reports a call that has ended. Ignored if `latencyMs` or `inFlight` is not a number of at least 0. */
  record(call: LimitedCall): void
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

/** Whether the bounds leave room for anything. */
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

export function createAdaptiveLimit(options: AdaptiveLimitOptions): AdaptiveLimit {
  return new WatchedLimit(validate('adaptiveLimit', options, readOptions))
}

const USUAL_INITIAL = 20
/** Longer counts as this: the squares of latencies are summed up. */
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
  /** With fractions, or it would never grow slowly. */
  #exact: number
  /** So many more calls have to end before what they say is about the limit of now. */
  #outdated = 0

  constructor(options: WatchedLimitOptions) {
    const { name, adaptive, min, max, initial = USUAL_INITIAL, clock } = options
    this.name = name
    this.#options = options
    this.#clock = clock
    this.#algorithm = adaptive === 'aimd' ? new Aimd(options) : new Gradient2(options)
    this.#exact = Math.min(Math.max(initial, min), max)
    this.limit = Math.floor(this.#exact)
    // Of the first ones, too, the short ones end first.
    this.#outdated = 2 * this.limit
  }

  record({ latencyMs, inFlight, outcome }: LimitedCall): void {
    if (outcome === 'ignored') return
    // One figure that is no number would stay in every average from now on.
    if (!isMeasured(latencyMs) || !isMeasured(inFlight)) return
    const nowMs = this.#clock.now()
    this.ended(nowMs, nowMs - Math.min(latencyMs, LONGEST_MS), inFlight, outcome === 'dropped')
  }

  /** The same for those who know all of it already. */
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
    // Those that run now began under a higher limit. It is their number that is waited for and not that
    // they have ended: of those begun since, the short ones end first, and would look like all.
    if (this.limit < before) this.#outdated = inFlight
    if (this.limit === before || !listening()) return
    emit({ type: 'limit.changed', name: this.name, from: before, to: this.limit })
  }

  snapshot(): AdaptiveLimitSnapshot {
    const { name, limit } = this
    return { name, limit, baselineMs: this.#algorithm.baselineMs }
  }
}
