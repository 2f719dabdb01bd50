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
  readonly #refused = new Map<string, { stage: Stage; code: ErrorCode; count: number }>()

  /** Callers that left by themselves were not refused. */
  refused(error: unknown): void {
    if (!(error instanceof SpillwayError)) return
    const { stage, code } = error
    const key = `${stage} ${code}`
    const known = this.#refused.get(key)
    if (known === undefined) this.#refused.set(key, { stage, code, count: 1 })
    else known.count++
  }

  snapshot(): TallySnapshot {
    const { calls, attempts, outcomes, bodies } = this
    const refused = Array.from(this.#refused.values(), (each) => ({ ...each }))
    return { calls, attempts, outcomes: { ...outcomes }, bodies: { ...bodies }, refused }
  }
}
