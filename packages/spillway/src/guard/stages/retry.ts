/** Retries: decided after everything else was released. Also the budget that retries and hedges share. */
import { type CallerSignal, LeaveSignal, onAbort } from '../../core/abort.js'
import { currentHop } from '../../core/hops.js'
import { isResponse, type Outcome, type OutcomeOptions, type Verdict } from '../../core/outcome.js'
import type { Random } from '../../core/random.js'
import type { Clock } from '../../core/time/clock.js'
import { sleep } from '../../core/time/sleep.js'
import type { BackoffPolicy } from '../../local/retry/backoff.js'
import { ErrorRate } from '../../local/retry/error-rate.js'
import {
  createRetryBudget,
  type RetryBudget,
  type RetryConditions,
} from '../../local/retry/retry-budget.js'
import type { Closing, JudgedRunOptions, RetryPolicy } from '../../local/retry/retry-call.js'
import type { BreakerLanes } from '../../shared/circuit-breaker/breaker-lanes.js'
import { LaneMap, type LaneRegistry } from '../../shared/lanes/lane-registry.js'
import type { Stage, StageAttempt } from '../pipeline/stage.js'
import type { RunOptions } from '../run-options.js'

export interface RetryOption extends BackoffPolicy {
  attempts: number
  budget: number
  maxRetryAfterMs: number
  maxQueueWaitMs: number
  where: 'anywhere' | 'edge'
}

export interface RetryStageOptions {
  readonly guard: string
  /** Undefined without the option `retry`. */
  readonly retry: RetryOption | undefined
  /** Hedges are paid from the same budget. */
  readonly hedges: boolean
  /** Response header by which a downstream reports that it has already retried. */
  readonly retriedHeader: string | undefined
  readonly clock: Clock
  readonly random: Random
  readonly breaker: BreakerLanes | undefined
  readonly classify: OutcomeOptions['classify']
  readonly lanes: LaneRegistry
  /** Load of this pod; for a call that may be retried, without that call. */
  conditions(call?: RetriedCall): RetryConditions
}

/** A call that may be retried. The load of the pod is measured without it. */
export interface RetriedCall {
  readonly lane: string
  /** Work of its last attempt that continues and may keep a slot. */
  readonly unfinished: Promise<unknown> | undefined
}

export class RetryStage implements Stage {
  readonly name = 'retry'
  readonly scope = 'local'
  readonly per = 'call'
  /** Undefined without the option `retry`. */
  readonly policy: RetryPolicy | undefined
  /** For calls that are not retried, but report their attempt. */
  readonly #singleAttempt: RetryPolicy
  /** Retries and hedges are a fraction of the calls it has recorded. Undefined without `retry` and `hedge`. */
  readonly budget: RetryBudget | undefined
  readonly #breaker: BreakerLanes | undefined
  readonly #conditions: RetryStageOptions['conditions']
  readonly #edgeOnly: boolean
  readonly #closing: ClosingSignal
  /** Undefined if a call may be retried only once: then the rate changes nothing. */
  readonly #errorRates: LaneMap<ErrorRate> | undefined
  readonly #clock: Clock
  /** Counts how first attempts end. */
  readonly release?: NonNullable<Stage['release']>

  constructor(options: RetryStageOptions) {
    const { guard, retry, hedges, retriedHeader, clock, random, classify } = options
    const closing = new ClosingSignal(clock)
    this.#closing = closing
    this.#clock = clock
    if (retry !== undefined && retry.attempts > 2) {
      this.#errorRates = new LaneMap(options.lanes, { create: () => new ErrorRate() })
      this.release = (attempt, outcome) => this.#recordEnd(attempt, outcome)
    }
    this.#breaker = options.breaker
    this.#conditions = options.conditions
    this.#edgeOnly = retry?.where === 'edge'
    this.budget =
      retry === undefined && !hedges
        ? undefined
        : createRetryBudget({
            ...(retry && { ratio: retry.budget, maxQueueWaitMs: retry.maxQueueWaitMs }),
            // A hedge counts as a first retry; the policy knows how often a call is tried.
            retries: Math.max((retry?.attempts ?? 1) - 1, hedges ? 1 : 0),
            clock,
            conditions: () => options.conditions(),
          })
    const { budget } = this
    const common = { name: guard, budget, classify, clock, random, closing }
    this.#singleAttempt = { ...ONCE, ...common, usualMs: 0 }
    this.policy = retry && {
      ...retry,
      ...common,
      usualMs: 0,
      ...(retriedHeader !== undefined && {
        retriedBelow: (value: unknown) =>
          isResponse(value) && isRetried(value.headers, retriedHeader),
      }),
    }
  }

  /** A request that arrived as a retry is not retried here, because retries of several tiers would multiply. */
  isAllowed({ callerAttempt = currentHop()?.attempt }: RunOptions): boolean {
    return callerAttempt === undefined || (callerAttempt === 1 && !this.#edgeOnly)
  }

  /** The guard closes: calls that wait for their next attempt end with the last one's result. */
  stopRetries(): void {
    this.#closing.close()
  }

  /** Decides how the call continues after an attempt. */
  policyFor(options: RunOptions): RetryPolicy {
    return this.isAllowed(options) ? (this.policy ?? this.#singleAttempt) : this.#singleAttempt
  }

  optionsFor(
    { signal, idempotent, idempotencyKey }: RunOptions,
    call: RetriedCall,
    judged: () => Verdict | undefined,
  ): JudgedRunOptions {
    const breaker = this.#breaker
    return {
      ...(signal !== undefined && { signal }),
      ...(idempotent !== undefined && { idempotent }),
      ...(idempotencyKey !== undefined && { idempotencyKey }),
      judged,
      conditions: () => ({
        ...this.#conditions(call),
        breakerOpen: breaker !== undefined && breaker.state(call.lane) !== 'closed',
        errorRate: this.#errorRate(call.lane),
      }),
    }
  }

  close(): void {
    this.#errorRates?.close()
  }

  #errorRate(lane: string): number {
    return this.#errorRates?.get(lane)?.rate(this.#clock.now()) ?? 0
  }

  #recordEnd({ attempt, hedge, laneInUse }: StageAttempt, outcome: Outcome): void {
    if (attempt > 1 || hedge) return
    this.#errorRates?.of(laneInUse).record(this.#clock.now(), outcome)
  }
}

const ONCE: RetryOption = {
  attempts: 1,
  budget: 0,
  backoff: 'constant',
  baseMs: 1,
  maxMs: 1,
  jitter: 'none',
  maxRetryAfterMs: 0,
  maxQueueWaitMs: 0,
  where: 'anywhere',
}

/** Wakes the calls that wait for their next attempt when the guard closes. */
class ClosingSignal implements Closing {
  closed = false
  readonly #clock: Clock
  readonly #waitingRetries = new Set<() => void>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  close(): void {
    this.closed = true
    for (const wake of this.#waitingRetries) wake()
  }

  async sleep(delayMs: number, signal: CallerSignal | undefined): Promise<void> {
    const waking = new LeaveSignal()
    const wake = () => waking.abort(undefined)
    this.#waitingRetries.add(wake)
    const forget = signal && onAbort(signal, wake)
    try {
      await sleep(this.#clock, delayMs, waking)
    } catch {
      if (signal?.aborted) throw signal.reason
    } finally {
      forget?.()
      this.#waitingRetries.delete(wake)
    }
  }
}

/** `x-should-retry: false` is what vendors send for the same purpose. */
function isRetried(headers: { get(name: string): string | null }, retriedHeader: string): boolean {
  return headers.get(retriedHeader) !== null || headers.get('x-should-retry') === 'false'
}
