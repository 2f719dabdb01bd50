/**
 * An attempt with a streamed answer: it ends with its body, and its outcome is known then. A probe is decided
 * earlier.
 */
import { callSafely, emit, listening } from '../../core/events.js'
import type { Outcome } from '../../core/outcome.js'
import { swallow } from '../../core/thenable.js'
import type { Clock } from '../../core/time/clock.js'
import type { Cost } from '../../shared/rate-limiter/permit.js'
import type { TokenUsage } from '../llm/usage/token-usage.js'
import { anyUsage } from '../llm/usage/usage-format.js'
import { UsageReader } from '../llm/usage/usage-reader.js'
import type { BreakerStage } from '../stages/breaker.js'
import type { BodyEnd, BodyListener } from '../stream/body-watch.js'
import type { BodyOwner } from '../stream/relayed.js'
import { StreamedProbe } from '../stream/streamed-probe.js'
import type { CallCounters } from './counters.js'
import type { StageAttempt } from './stage.js'

/** Ends an attempt. */
export interface AttemptExit {
  leave(outcome: Outcome, unfinished: Promise<unknown> | undefined): void
}

export interface StreamDependencies {
  readonly guard: string
  readonly clock: Clock
  readonly breaker: BreakerStage | undefined
  readonly counters: CallCounters
}

export class StreamedAttempt implements BodyListener {
  readonly #shared: StreamDependencies
  readonly #attempt: StageAttempt & AttemptExit
  /** Outcome by status and headers; undefined if the attempt was already released with it. */
  readonly #begun: Outcome | undefined
  /** The usage of the answer settles a permit, or is reported. */
  readonly #isUsageWanted: boolean
  #usage: UsageReader | undefined
  #probe: StreamedProbe | undefined
  /** The owner of a relayed body. */
  owner: BodyOwner | undefined

  constructor(
    shared: StreamDependencies,
    attempt: StageAttempt & AttemptExit,
    begun: Outcome | undefined,
    relayed: boolean,
  ) {
    this.#shared = shared
    this.#attempt = attempt
    this.#begun = begun
    this.#isUsageWanted =
      relayed || attempt.permits.permit !== undefined || attempt.options.onUsage !== undefined
  }

  onFirstChunk(): void {
    if (this.#attempt.permits.breaker?.probe !== true || this.#begun !== 'success') return
    const { clock, breaker } = this.#shared
    this.#probe = new StreamedProbe(clock, () => breaker?.release(this.#attempt, 'success'))
    this.#probe.begin()
  }

  onChunk(chunk: unknown): void {
    if (!this.#isUsageWanted) return
    this.#usage ??= new UsageReader(this.owner?.usageFormat ?? anyUsage)
    this.#usage.push(chunk)
  }

  onEnd(how: BodyEnd, error: unknown): void {
    const { counters, guard: name } = this.#shared
    const { permits, laneInUse: lane } = this.#attempt
    counters.bodies[how]++
    // A body that broke off has cost more than it had reported by then: the estimate stays.
    let usage: TokenUsage | undefined
    try {
      usage = how === 'complete' ? this.#usage?.read() : undefined
      if (usage !== undefined) permits.permit?.settle(this.#costOf(usage))
    } finally {
      if (this.#begun !== undefined) this.#leave(endOutcome(this.#begun, how))
    }
    if (listening()) emit({ type: 'stream.ended', name, lane, how, error })
    this.owner?.ended?.(how, usage)
    if (usage !== undefined) this.#reportUsage(usage)
  }

  #costOf(usage: TokenUsage): Cost {
    const { costOfUsage } = this.#attempt.options
    const reported: Cost = { ...usage }
    if (costOfUsage === undefined) return reported
    return callSafely(this.#shared.guard, 'costOfUsage', () => costOfUsage(reported), reported)
  }

  #reportUsage(usage: TokenUsage): void {
    const { onUsage } = this.#attempt.options
    if (onUsage === undefined) return
    callSafely(this.#shared.guard, 'onUsage', () => swallow(onUsage({ ...usage })), undefined)
  }

  #leave(outcome: Outcome): void {
    this.#attempt.leave(outcome, undefined)
    // True if the probe was already released as a success, before the body ended.
    const succeeded = this.#probe?.end() === true
    if (succeeded && outcome === 'failure')
      this.#shared.breaker?.noteFailure(this.#attempt.laneInUse)
  }
}

/** The outcome of an attempt by how its body ended. */
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
