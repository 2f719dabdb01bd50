/** Reports how attempts end to the throttle and the adaptive limits; absent without both. */

import { SpillwayError } from '../core/errors.js'
import { answerOf, type CallEnd, type Outcome, type Verdict } from '../core/outcome.js'
import type { Clock } from '../core/time/clock.js'
import type { LaneLimits } from './lane-limits.js'
import type { LaneThrottles } from './lane-throttles.js'

/** A running attempt. */
export interface MeteredAttempt {
  readonly lane: string
  readonly startMs: number
  readonly toThrottle: ReturnType<LaneThrottles['began']> | undefined
}

export class AttemptMeter {
  readonly #clock: Clock
  readonly #lanes: LaneLimits | undefined
  readonly #throttles: LaneThrottles | undefined

  constructor(clock: Clock, lanes: LaneLimits | undefined, throttles: LaneThrottles | undefined) {
    this.#clock = clock
    this.#lanes = lanes
    this.#throttles = throttles
  }

  /** An attempt begins. */
  began(lane: string, startMs: number): MeteredAttempt {
    return { lane, startMs, toThrottle: this.#throttles?.began(lane, startMs) }
  }

  succeeded(attempt: MeteredAttempt): void {
    this.#note(attempt, 'success', false)
  }

  /** It has ended, or its answer has begun. */
  ended(attempt: MeteredAttempt, end: CallEnd, verdict: Verdict): void {
    this.#note(attempt, verdict.outcome, isTooMuch(end, verdict))
  }

  #note({ lane, startMs, toThrottle }: MeteredAttempt, outcome: Outcome, dropped: boolean): void {
    const nowMs = this.#clock.now()
    toThrottle?.(nowMs, outcome)
    // How long a failure or a hang-up took says nothing about the load.
    const says = dropped || outcome === 'success' || outcome === 'slow'
    if (says) this.#lanes?.answered(lane, nowMs, startMs, dropped)
  }
}

/** Statuses that say "too much", beside 429. */
const BUSY = new Set([503, 504, 529])

/** The downstream refused because it has too much to do, or did not answer in time. */
function isTooMuch(end: CallEnd, { outcome }: Verdict): boolean {
  if (outcome === 'throttled') return true
  if (outcome !== 'failure') return false
  const error = 'error' in end ? end.error : undefined
  if (error instanceof SpillwayError) return error.code === 'CALL_TIMEOUT'
  return BUSY.has(answerOf(end)?.status ?? 0)
}
