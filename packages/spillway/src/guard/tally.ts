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
  /** The same of those that stages in shadow would have refused. */
  wouldHaveRefused: Refused[]
}

interface Refused {
  stage: Stage
  code: ErrorCode
  count: number
}

/** There are not many of a kind: overload has one reason at a time. */
class RefusalCounts {
  readonly #all: Refused[] = []
  /** Nearly always it is the same as the last one's. */
  #last: Refused | undefined

  add({ stage, code }: SpillwayError): void {
    if (this.#last?.stage !== stage || this.#last.code !== code) {
      this.#last = this.#find(stage, code)
    }
    this.#last.count++
  }

  #find(stage: Stage, code: ErrorCode): Refused {
    const known = this.#all.find((each) => each.stage === stage && each.code === code)
    if (known !== undefined) return known
    const first = { stage, code, count: 0 }
    this.#all.push(first)
    return first
  }

  list(): Refused[] {
    return this.#all.map((each) => ({ ...each }))
  }
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
  readonly #refused = new RefusalCounts()
  readonly #wouldHaveRefused = new RefusalCounts()

  /** Callers that left by themselves were not refused. */
  refused(error: unknown): void {
    if (error instanceof SpillwayError) this.#refused.add(error)
  }

  wouldRefuse(error: SpillwayError): void {
    this.#wouldHaveRefused.add(error)
  }

  snapshot(): TallySnapshot {
    const { calls, attempts, outcomes, bodies } = this
    return {
      calls,
      attempts,
      outcomes: { ...outcomes },
      bodies: { ...bodies },
      refused: this.#refused.list(),
      wouldHaveRefused: this.#wouldHaveRefused.list(),
    }
  }
}
