/**
 * What one call has taken from the stages that it enters once, such as the charge of its user's limit. Everything
 * goes back once, when the call has ended and no attempt, nor the body of its answer, is left.
 */
import { SpillwayError } from '../../core/errors.js'
import type { Outcome } from '../../core/outcome.js'
import type { Pipeline } from './pipeline.js'
import { PendingGrant, type StageCall } from './stage.js'

export class EnteredStages {
  readonly #pipeline: Pipeline
  /** By the stage's place in `pipeline.entered`. */
  #grants: unknown[] | undefined = []
  /** The stage to enter next. */
  #place = 0
  #attempts = 0
  #ran = false
  #outcome: Outcome | undefined
  #ended = false

  constructor(pipeline: Pipeline) {
    this.#pipeline = pipeline
  }

  /** Enters one stage after the other, until one refuses or the store has to be asked. */
  enter(call: StageCall, nowMs: number): SpillwayError | PendingGrant | undefined {
    const { entered } = this.#pipeline
    while (this.#place < entered.length) {
      const grant = entered[this.#place]?.enter(call, nowMs)
      if (grant instanceof PendingGrant) return grant
      if (grant instanceof SpillwayError) return grant
      if (grant !== undefined && this.#grants !== undefined) this.#grants[this.#place] = grant
      this.#place++
    }
    return undefined
  }

  /** The stage in turn has granted this. */
  decided(grant: unknown): void {
    if (grant !== undefined && this.#grants !== undefined) this.#grants[this.#place] = grant
    this.#place++
  }

  attemptStarted(): void {
    this.#ran = true
    this.#attempts++
  }

  attemptReleased(outcome: Outcome): void {
    this.#attempts--
    this.#outcome = outcome
    this.#leave()
  }

  /** The caller has its answer, or the call was refused. */
  callEnded(): void {
    this.#ended = true
    this.#leave()
  }

  #leave(): void {
    const grants = this.#grants
    if (!this.#ended || this.#attempts > 0 || grants === undefined) return
    this.#grants = undefined
    this.#pipeline.leave(grants, { ran: this.#ran, outcome: this.#outcome })
  }
}
