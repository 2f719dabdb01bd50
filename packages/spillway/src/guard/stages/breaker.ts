/** The circuit breaker, shared by all pods: refuses at once while the downstream is broken. */
import type { Details, SpillwayError } from '../../core/errors.js'
import { type Outcome, probeOutcome } from '../../core/outcome.js'
import type { BreakerLanes } from '../../shared/circuit-breaker/breaker-lanes.js'
import type { Answer, Permits, Stage, StageAttempt, StageCall } from '../pipeline/stage.js'

export class BreakerStage implements Stage {
  readonly name = 'breaker'
  readonly scope = 'shared'
  readonly per = 'attempt'
  readonly #breaker: BreakerLanes
  readonly #shadow: boolean

  constructor(breaker: BreakerLanes, shadow: boolean) {
    this.#breaker = breaker
    this.#shadow = shadow
  }

  check({ lane }: StageCall): SpillwayError | undefined {
    return this.#shadow ? this.#breaker.shadowRefusal(lane) : this.#breaker.refuse(lane)
  }

  /** The rates count a call once: by its first attempt. */
  started({ attempt, permits }: StageAttempt): void {
    if (attempt > 1 && permits.breaker !== undefined) this.#breaker.markRepeated(permits.breaker)
  }

  /**
   * A probe reports as soon as its answer shows how the downstream is, before a streamed body ends. An answer that
   * does not count in the rates, such as a 404, still shows that the downstream does not hang.
   */
  answered(attempt: StageAttempt, { end, verdict, streaming }: Answer): void {
    const permit = attempt.permits.breaker
    const ignored = verdict.outcome === 'ignored'
    if (permit === undefined || !(permit.probe || ignored)) return
    const outcome = probeOutcome(end, verdict)
    if (!permit.probe) {
      if (outcome === 'success') this.#breaker.markAnswered(permit)
    } else if (!streaming || ignored) this.release(attempt, outcome)
  }

  /** Reports at most once: a streamed probe may have succeeded before its stream ends. */
  release({ permits }: StageAttempt, outcome: Outcome): void {
    const permit = permits.breaker
    if (permit === undefined) return
    permits.breaker = undefined
    this.#breaker.exit(permit, outcome)
  }

  cancel(_lane: string, { breaker: permit }: Permits): void {
    if (permit !== undefined) this.#breaker.exit(permit, 'ignored')
  }

  /** Two attempts of one call run side by side on one lane: the rates count them as one call. */
  hedged(first: StageAttempt, second: StageAttempt): void {
    const [one, other] = [first.permits.breaker, second.permits.breaker]
    if (one !== undefined && other !== undefined) this.#breaker.hedge(one, other)
  }

  /** Reports a stream that broke off after its probe had succeeded. */
  noteFailure(lane: string): void {
    this.#breaker.record(lane, 'failure')
  }

  passed({ lane }: StageCall, permits: Permits | undefined): Details {
    const { state, calls, failures, inFlight, ageMs } = this.#breaker.snapshot(lane)
    const probe = permits?.breaker?.probe === true
    return { state, calls, failures, inFlight, ageMs, ...(probe && { probe }) }
  }
}
