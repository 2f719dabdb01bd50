/**
 * Hedging: a second attempt beside one that is slower than nearly all others. It uses only free slots and permits and
 * the retry budget, and it never waits in the queue.
 */
import { emit, listening } from '../../core/events.js'
import { isThenable } from '../../core/thenable.js'
import type { Clock } from '../../core/time/clock.js'
import { type CheckedHedgeDelay, HedgeDelay } from '../../local/hedge/hedge-delay.js'
import type { RetryBudget } from '../../local/retry/retry-budget.js'
import type { BreakerLanes } from '../../shared/circuit-breaker/breaker-lanes.js'
import type { LimitClient } from '../../shared/rate-limiter/limit-client.js'
import type { LimitReply } from '../../shared/rate-limiter/permit.js'
import type { MaybePromise } from '../../store/port.js'
import type { Pipeline } from '../pipeline/pipeline.js'
import type { Permits, Stage, StageCall } from '../pipeline/stage.js'
import type { RunOptions } from '../run-options.js'
import type { ConcurrencyStage } from './concurrency.js'
import type { QueueStage } from './queue.js'
import type { RetryStage } from './retry.js'

export interface HedgeCounts {
  /** Delay of a second attempt; undefined if too few calls were measured. */
  delayMs: number | undefined
  /** Second attempts, and those of them that answered first. */
  made: number
  won: number
}

export interface HedgeStageOptions {
  readonly guard: string
  readonly options: CheckedHedgeDelay & { lane: string | undefined }
  readonly clock: Clock
  readonly retry: RetryStage
  readonly queue: QueueStage
  readonly slots: ConcurrencyStage
  readonly breaker: BreakerLanes | undefined
  /** Limits that are enforced. */
  readonly limits: LimitClient | undefined
}

export class HedgeStage implements Stage {
  readonly name = 'hedge'
  readonly scope = 'local'
  readonly per = 'call'
  readonly delay: HedgeDelay
  readonly #options: HedgeStageOptions
  #made = 0
  #won = 0

  constructor(options: HedgeStageOptions) {
    this.#options = options
    this.delay = new HedgeDelay(options.options)
  }

  /** By the rules of a retry. A probe is not hedged, because it has to test the downstream alone. */
  mayHedge(options: RunOptions, { breaker }: Permits): boolean {
    if (breaker?.probe === true) return false
    const { idempotent, idempotencyKey } = options
    if (idempotent === false && !idempotencyKey) return false
    return this.#options.retry.isAllowed(options)
  }

  /** The lane of a second attempt. */
  laneFor(lane: string): string {
    return this.#options.options.lane ?? lane
  }

  /** The permits of a second attempt, if all are free now and the budget pays; undefined: no hedge. */
  take(pipeline: Pipeline, call: StageCall): MaybePromise<Permits | undefined> {
    const { queue, clock, limits } = this.#options
    const nowMs = clock.now()
    if (!this.#isFree(pipeline, call, nowMs)) return this.#skip('busy')
    // A second attempt costs as much as a first retry.
    if (!(this.#options.retry.budget as RetryBudget).tryRetry(1)) return this.#skip('budget')
    try {
      if (limits?.permits.remote === true) return this.#requestPermit(pipeline, limits, call)
      const { lane, cost, costs, costsUnder } = call
      // Without its deadline, because the limiter would otherwise treat it as a call that can wait.
      const request = { cost, costs, costsUnder }
      return queue.dispatcher.immediate.take(lane, request, nowMs) ?? this.#skip('busy')
    } catch {
      // The store has failed: the first attempt continues.
      return this.#skip('busy')
    }
  }

  begun(delayMs: number): void {
    this.#made++
    if (listening()) emit({ type: 'hedge.started', name: this.#options.guard, delayMs })
  }

  won(delayMs: number): void {
    this.#won++
    if (listening()) emit({ type: 'hedge.won', name: this.#options.guard, delayMs })
  }

  counts(): HedgeCounts {
    const delayMs = this.delay.delayMs(this.#options.clock.now())
    return { delayMs, made: this.#made, won: this.#won }
  }

  #skip(because: 'budget' | 'busy'): undefined {
    if (listening()) emit({ type: 'hedge.skipped', name: this.#options.guard, because })
    return undefined
  }

  /** No stage refuses it, no call waits, and it can start at once. */
  #isFree(pipeline: Pipeline, call: StageCall, nowMs: number): boolean {
    const { queue, breaker } = this.#options
    const { lane } = call
    if (queue.calls.length > 0 || pipeline.check(call, nowMs) !== undefined) return false
    if (breaker !== undefined && !breaker.isClear(lane)) return false
    return queue.dispatcher.spare(lane, call, nowMs) > 0
  }

  /** A slot is reserved in the meantime. */
  #requestPermit(
    pipeline: Pipeline,
    limits: LimitClient,
    call: StageCall,
  ): MaybePromise<Permits | undefined> {
    const { slots, clock, breaker, queue } = this.#options
    const { lane } = call
    const requestedMs = clock.now()
    const costs = limits.settings.of(lane).costsOf(call)
    const reply = limits.permits.take(lane, [costs], undefined, 0)
    slots.reserve(1, lane)

    const giveUp = (): undefined => {
      slots.giveUp(lane)
      queue.cancel()
      return this.#skip('busy')
    }

    const decided = (reply: LimitReply): Permits | undefined => {
      if (reply.granted === 0) return giveUp()
      const permit = limits.permits.createPermit(lane, costs, reply)
      const late = clock.now() - (reply.sentMs ?? requestedMs) > limits.permits.useWithinMs
      if (late || pipeline.closed || breaker?.isClear(lane) === false) {
        permit.refund()
        return giveUp()
      }
      slots.admit()
      return { breaker: breaker?.enter(lane) as Permits['breaker'], permit }
    }

    return isThenable(reply) ? reply.then(decided, giveUp) : decided(reply)
  }
}
