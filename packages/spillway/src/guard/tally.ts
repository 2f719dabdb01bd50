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
  refused: Refused[]
}

interface Refused {
  stage: Stage
  code: ErrorCode
  count: number
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
  readonly #refused: Refused[] = []
  /** Overload has one reason at a time: nearly always it is the same as the last one's. */
  #last: Refused | undefined

  /** Callers that left by themselves were not refused. */
  refused(error: unknown): void {
    if (!(error instanceof SpillwayError)) return
    const { stage, code } = error
    if (this.#last?.stage !== stage || this.#last.code !== code) {
      this.#last = this.#find(stage, code)
    }
    this.#last.count++
  }

  /** There are not many. */
  #find(stage: Stage, code: ErrorCode): Refused {
    const known = this.#refused.find((each) => each.stage === stage && each.code === code)
    if (known !== undefined) return known
    const first = { stage, code, count: 0 }
    this.#refused.push(first)
    return first
  }

  snapshot(): TallySnapshot {
    const { calls, attempts, outcomes, bodies } = this
    const refused = this.#refused.map((each) => ({ ...each }))
    return { calls, attempts, outcomes: { ...outcomes }, bodies: { ...bodies }, refused }
  }
}
