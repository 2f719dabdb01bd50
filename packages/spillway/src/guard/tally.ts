/** What became of a guard's calls, counted. */
import { type ErrorCode, SpillwayError, type Stage } from '../core/errors.js'
import type { Outcome } from '../core/outcome.js'
import type { BodyEnd } from './stream/body-watch.js'

export interface TallySnapshot {
  /** Calls that came. */
  calls: number
  /** Attempts that were made, retries included. */
  attempts: number
  /** How they ended. */
  outcomes: Record<Outcome, number>
  /** How those with a streamed answer ended. */
  bodies: Record<BodyEnd, number>
  /** Calls refused, by stage and code. */
  refused: { stage: Stage; code: ErrorCode; count: number }[]
}

export class Tally {
  calls = 0
  attempts = 0
  readonly outcomes: Record<Outcome, number> = {
    success: 0,
    failure: 0,
    slow: 0,
    throttled: 0,
    ignored: 0,
  }
  readonly bodies: Record<BodyEnd, number> = {
    complete: 0,
    truncated: 0,
    stalled: 0,
    abandoned: 0,
    aborted: 0,
  }
  readonly #refused = new Map<Stage, Map<ErrorCode, number>>()

  /** Callers that left by themselves were not refused. */
  refused(error: unknown): void {
    if (!(error instanceof SpillwayError)) return
    const { stage, code } = error
    let codes = this.#refused.get(stage)
    if (codes === undefined) {
      codes = new Map()
      this.#refused.set(stage, codes)
    }
    codes.set(code, (codes.get(code) ?? 0) + 1)
  }

  snapshot(): TallySnapshot {
    const { calls, attempts, outcomes, bodies } = this
    const refused = Array.from(this.#refused, ([stage, codes]) =>
      Array.from(codes, ([code, count]) => ({ stage, code, count })),
    ).flat()
    return { calls, attempts, outcomes: { ...outcomes }, bodies: { ...bodies }, refused }
  }
}
