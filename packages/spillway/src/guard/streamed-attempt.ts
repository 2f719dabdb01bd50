/**
 * An attempt whose answer has only begun: it ends when its body does, and its outcome is known then.
 * Probes among them have shown what they were to show before that.
 */
import { emit, listening } from '../core/events.js'
import type { Outcome } from '../core/outcome.js'
import type { Cost } from '../shared/rate-limiter/permit.js'
import type { CallAdmission, Machinery } from './machinery.js'
import type { BodyEnd, BodyListener } from './stream/body-watch.js'
import type { BodyOwner } from './stream/relayed.js'
import { StreamedProbe } from './stream/streamed-probe.js'
import { UsageReader } from './stream/usage.js'

/** The ways out of the attempt. */
export interface AttemptExit {
  /** Leaves every stage. */
  leave(outcome: Outcome, work: Promise<unknown> | undefined): void
  /** Leaves the breaker alone, before the rest. */
  exitBreaker(outcome: Outcome): void
}

export class StreamedAttempt implements BodyListener {
  readonly #machinery: Machinery
  readonly #admission: CallAdmission
  readonly #lane: string
  /** What its beginning was worth; nothing, if that settled it. */
  readonly #begun: Outcome | undefined
  readonly #exit: AttemptExit
  readonly #usage: UsageReader | undefined
  #probe: StreamedProbe | undefined
  /** Of a body that somebody passes on by himself. */
  owner: BodyOwner | undefined

  constructor(
    machinery: Machinery,
    admission: CallAdmission,
    lane: string,
    begun: Outcome | undefined,
    exit: AttemptExit,
    relayed: boolean,
  ) {
    this.#machinery = machinery
    this.#admission = admission
    this.#lane = lane
    this.#begun = begun
    this.#exit = exit
    this.#usage = relayed || admission.permit !== undefined ? new UsageReader() : undefined
  }

  onFirstChunk(): void {
    if (this.#admission.breaker?.probe !== true || this.#begun !== 'success') return
    this.#probe = new StreamedProbe(this.#machinery.clock, () => this.#exit.exitBreaker('success'))
    this.#probe.begin()
  }

  onChunk(chunk: unknown): void {
    this.#usage?.push(chunk)
  }

  onEnd(how: BodyEnd, error: unknown): void {
    const { tally, name } = this.#machinery
    tally.bodies[how]++
    // One that broke off has cost more than it had said by then: what was booked stays.
    let cost: Cost | undefined
    try {
      cost = how === 'complete' ? this.#usage?.read() : undefined
      if (cost !== undefined) this.#admission.permit?.settle(cost)
    } finally {
      if (this.#begun !== undefined) this.#leave(endOutcome(this.#begun, how))
    }
    if (listening()) emit({ type: 'stream.ended', name, lane: this.#lane, how, error })
    this.owner?.ended?.(how, cost)
  }

  #leave(outcome: Outcome): void {
    this.#exit.leave(outcome, undefined)
    // The probe has left the breaker with a success already.
    const succeeded = this.#probe?.end() === true
    if (succeeded && outcome === 'failure') this.#machinery.breaker?.record(this.#lane, 'failure')
  }
}

/** What the end of a body says about the downstream. */
const OUTCOME_OF: Record<BodyEnd, Outcome> = {
  complete: 'success',
  truncated: 'failure',
  stalled: 'failure',
  abandoned: 'ignored',
  aborted: 'ignored',
}

function endOutcome(begun: Outcome, how: BodyEnd): Outcome {
  const ended = OUTCOME_OF[how]
  return begun === 'success' || ended === 'failure' ? ended : begun
}
