/**
 * One call on its way through the pipeline: it enters the stages of the call, gets the permits of an attempt at once
 * or through the queue, runs, and is retried if its retry policy allows it.
 */
import { AsyncResource } from 'node:async_hooks'
import type { CallerSignal } from '../../core/abort.js'
import { SpillwayError } from '../../core/errors.js'
import type { Outcome, Verdict } from '../../core/outcome.js'
import type { Clock } from '../../core/time/clock.js'
import type { Deadline } from '../../core/time/deadline.js'
import type { Attempt } from '../../local/retry/attempts.js'
import { type AttemptScope, learnUsual, RetryCall } from '../../local/retry/retry-call.js'
import { DEFAULT_LANE } from '../../shared/lanes/lane-names.js'
import type { LaneRegistry } from '../../shared/lanes/lane-registry.js'
import type { CallFollower } from '../decisions/follower.js'
import { WaitingAttempt, type WaitingCall } from '../queue/waiting-attempt.js'
import type { HedgeStage } from '../stages/hedge.js'
import type { QueueStage } from '../stages/queue.js'
import type { RetriedCall, RetryStage } from '../stages/retry.js'
import type { ShedStage } from '../stages/shed.js'
import { type AttemptDependencies, type AttemptListener, GuardAttempt } from './attempt.js'
import type { CallFunction } from './context.js'
import type { CallCounters, CallObservers } from './counters.js'
import { HedgedAttempt } from './hedged-attempt.js'
import type { Pipeline } from './pipeline.js'
import { type PendingCall, PendingGrant, type Permits, type StageCall } from './stage.js'
import type { CallTrace } from './trace.js'

/** What all calls of one guard share. */
export interface CallDependencies {
  readonly clock: Clock
  readonly lanes: LaneRegistry
  readonly pipeline: Pipeline
  readonly queue: QueueStage
  readonly retry: RetryStage
  readonly hedge: HedgeStage | undefined
  /** Set if load shedding depends on how long calls take. */
  readonly shed: ShedStage | undefined
  readonly attempts: AttemptDependencies
  readonly counters: CallCounters
  readonly observers: CallObservers
}

/** Observers of one call. */
export interface CallWatchers {
  /** Gets a line for each attempt. */
  report?: Attempt[] | undefined
  trace?: CallTrace | undefined
  /** For the log of decisions; only some calls have one. */
  follower?: CallFollower | undefined
  /** Gets the verdict on the last attempt that was made. */
  judged?: JudgedCall | undefined
}

/** How the last attempt of a call was judged; no verdict if none was made. */
export interface JudgedCall {
  verdict?: Verdict
}

/** The call as stages see it. Attempts change its fields. */
export type CallFacts = { -readonly [K in keyof StageCall]: StageCall[K] }

type End<T> = { value: T } | { error: unknown }

const NEXT_TURN = Promise.resolve()
const RESOURCE_OPTIONS = { requireManualDestroy: true }

/** An AsyncResource, because a call that waited or timed out goes on in its caller's async context. */
export class GuardCall<T>
  extends AsyncResource
  implements PendingCall, AttemptListener<T>, WaitingCall, RetriedCall
{
  readonly facts: CallFacts
  readonly #shared: CallDependencies
  readonly #fn: CallFunction<T>
  readonly #watchers: CallWatchers | undefined
  readonly #deadline: Deadline | undefined
  /** Grants of the stages that the call has entered, in order. Undefined after they were released. */
  #grants: unknown[] | undefined = []
  /** Attempts that have not been released; of a streamed answer until its body has ended. */
  #attempts = 0
  /** Outcome of the last released attempt, except for an attempt that lost against a hedge. */
  #outcome: Outcome | undefined
  /** Work of the last attempt that continues after the attempt. */
  #unfinished: Promise<unknown> | undefined
  /** The caller has its answer, or the call was refused. */
  #ended = false
  /** Undefined while the attempt has not ended, or if it was refused. */
  #verdict: Verdict | undefined
  /** When the last attempt started. */
  #startMs: number
  /** Set while an attempt after the first is made: settles the promise that the retry waits for. */
  #retry: { resolve: (value: T) => void; reject: (error: unknown) => void } | undefined
  /** Scope of the first attempt, if it may be retried. */
  #firstScope: AttemptScope | undefined
  /** `start` has not returned yet. */
  #starting = true
  #resolve!: (value: T) => void
  #reject!: (error: unknown) => void

  constructor(
    shared: CallDependencies,
    fn: CallFunction<T>,
    facts: CallFacts,
    deadline: Deadline | undefined,
    watchers: CallWatchers | undefined,
  ) {
    super('SpillwayCall', RESOURCE_OPTIONS)
    this.#shared = shared
    this.#fn = fn
    this.#watchers = watchers
    this.#deadline = deadline
    this.#startMs = facts.arrivedMs
    // The call has passed its checks. From now on only per-attempt checks are made.
    facts.kind = 'attempt'
    this.facts = facts
  }

  get lane(): string {
    return this.facts.lane
  }

  get unfinished(): Promise<unknown> | undefined {
    return this.#unfinished
  }

  get deadlineMs(): number {
    return this.facts.deadlineMs
  }

  get signal(): CallerSignal | undefined {
    return this.facts.options.signal
  }

  /** Called right after the pipeline's checks. */
  start(): Promise<T> {
    const answer = new Promise<T>((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.#enter(this.facts.arrivedMs)
    this.#starting = false
    return answer
  }

  /** Enters the remaining per-call stages. */
  #enter(nowMs: number): void {
    const { facts } = this
    const { pipeline, lanes, retry } = this.#shared
    try {
      const grant = pipeline.enter(facts, this.#grants ?? [], nowMs)
      if (grant instanceof PendingGrant) return grant.whenDecided(this)
      if (grant !== undefined) return this.refuse(grant)
      retry.budget?.recordRequest(facts.arrivedMs)
      facts.lane = lanes.enter(facts.options.lane ?? DEFAULT_LANE)
      this.#watchers?.follower?.entered(facts)
    } catch (error) {
      return this.refuse(error)
    }
    if (this.#starting) this.#getPermits(nowMs)
    else this.#continueAfterWait(nowMs)
  }

  /** The store has decided on the stage that the call enters. */
  onDecided(grant: unknown): void {
    if (grant instanceof SpillwayError) return this.refuse(grant)
    this.#grants?.push(grant)
    this.#enter(this.#shared.clock.now())
  }

  onLeft(reason: unknown): void {
    this.refuse(reason)
  }

  /** Continues after a wait. Meanwhile the caller may have aborted, or the deadline passed. */
  #continueAfterWait(nowMs: number): void {
    if (this.signal?.aborted === true) return this.refuse(this.signal.reason)
    const refusal = this.#shared.pipeline.expired(this.facts, nowMs)
    if (refusal === undefined) this.#getPermits(nowMs)
    else this.refuse(refusal)
  }

  /** Everything that the attempt needs: at once, or through the queue. */
  #getPermits(nowMs: number): void {
    const { queue, clock } = this.#shared
    const { facts } = this
    try {
      const permits = queue.dispatcher.immediate.take(facts.lane, facts, nowMs)
      if (permits !== undefined) return this.#start(permits, nowMs)
      this.#watchers?.follower?.waits(nowMs)
      const refusal = queue.join(new WaitingAttempt(this, queue, clock), nowMs)
      if (refusal !== undefined) this.refuse(refusal)
    } catch (error) {
      this.refuse(error)
    }
  }

  /** Starts an attempt that has waited and now has its permits. */
  begin(permits: Permits): void {
    const { pipeline, clock, queue } = this.#shared
    const { facts, signal } = this
    const nowMs = clock.now()
    if (permits.useByMs !== undefined && nowMs > permits.useByMs) {
      // This process was busy since the store replied. The call waits for another permit.
      pipeline.cancel(facts.lane, permits)
      this.#continueAfterWait(nowMs)
      return queue.dispatcher.requestLater(facts.lane)
    }
    const aborted = signal?.aborted === true
    const refusal = aborted ? undefined : pipeline.expired(facts, nowMs)
    if (!aborted && refusal === undefined) {
      try {
        return this.#start(permits, nowMs)
      } catch (error) {
        return this.refuse(error)
      }
    }
    pipeline.cancel(facts.lane, permits)
    this.refuse(aborted ? signal.reason : refusal)
  }

  #start(permits: Permits, startMs: number): void {
    const { pipeline, observers, hedge, attempts, retry } = this.#shared
    const { facts } = this
    const { options, lane, attempt } = facts
    // A first attempt that may be retried runs in a scope; the scope of a later one is in place already.
    const mayNest = retry.policy !== undefined && retry.policy.nested !== false
    if (mayNest && this.#retry === undefined) this.#firstScope = { givenUp: undefined }
    const given = {
      fn: this.#fn,
      scope: this.#retry === undefined ? this.#firstScope : undefined,
      trace: this.#watchers?.trace,
      options,
      lane,
      permits,
      deadline: this.#deadline,
      startMs,
      attempt,
      hedge: false,
    }
    let made: GuardAttempt<T> | HedgedAttempt<T>
    let first: GuardAttempt<T>
    try {
      made =
        hedge?.mayHedge(options, permits) === true
          ? new HedgedAttempt<T>(hedge, attempts, facts, given, this)
          : new GuardAttempt<T>(attempts, given, this)
      first = made instanceof HedgedAttempt ? made.first : made
    } catch (error) {
      pipeline.cancel(lane, permits)
      throw error
    }
    const refusal = pipeline.acquire(first)
    if (refusal !== undefined) return this.refuse(refusal)
    if (attempt === 1) observers.timings?.began(startMs - facts.arrivedMs)
    this.#watchers?.follower?.begins(facts, permits, startMs)
    this.#startMs = startMs
    made.start()
  }

  onStarted(): void {
    this.#attempts++
  }

  onValue(value: T, verdict: Verdict): void {
    const { retry, shed, clock } = this.#shared
    const { policy } = retry
    this.#verdict = verdict
    this.#watchers?.follower?.judged(verdict, { value })
    if (this.#watchers?.judged !== undefined) this.#watchers.judged.verdict = verdict
    if (this.#retry !== undefined) return this.#retry.resolve(value)
    shed?.callEnded(this.facts.arrivedMs, undefined)
    const final = policy === undefined || !verdict.retryable
    if (!final || this.#watchers?.report !== undefined) return this.#conclude({ value })
    // Durations are learnt only from calls that have a deadline.
    if (policy !== undefined && this.#deadline !== undefined) {
      learnUsual(policy, clock.now() - this.#startMs)
    }
    this.#succeed(value)
  }

  onError(error: unknown, verdict: Verdict): void {
    const { retry, shed } = this.#shared
    this.#verdict = verdict
    this.#watchers?.follower?.judged(verdict, { error })
    if (this.#watchers?.judged !== undefined) this.#watchers.judged.verdict = verdict
    if (this.#retry !== undefined) return this.#retry.reject(error)
    shed?.callEnded(this.facts.arrivedMs, error)
    const final = this.#watchers?.report === undefined && retry.policy === undefined
    if (final) this.#fail(error)
    else this.#conclude({ error })
  }

  onReleased(outcome: Outcome | undefined, unfinished: Promise<unknown> | undefined): void {
    this.#attempts--
    this.#unfinished = unfinished
    this.#outcome = outcome ?? this.#outcome
    this.#leave()
  }

  /** Ends or retries the call in its caller's async context. A timeout runs in that of a shared timer. */
  #conclude(end: End<T>): void {
    this.runInAsyncScope(this.#concludeHere, this, end)
  }

  #concludeHere(end: End<T>): void {
    const { retry } = this.#shared
    const { options } = this.facts
    const policy = retry.policyFor(options)
    const retryOptions = retry.optionsFor(options, this, () => this.#verdict)
    const again = ({ attempt }: { attempt: number }) => this.#tryAgain(attempt)
    new RetryCall(policy, again, retryOptions, this.#watchers?.report, this.#deadline)
      .resume(end, this.#startMs, this.#firstScope)
      .then(
        (value) => this.#succeed(value),
        (error) => this.#fail(error),
      )
  }

  #tryAgain(attempt: number): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const { pipeline, lanes, clock } = this.#shared
      const { facts } = this
      this.#retry = { resolve, reject }
      this.#verdict = undefined
      facts.attempt = attempt
      // While a call waits to be retried, its lane may be dropped.
      facts.lane = lanes.enter(facts.options.lane ?? DEFAULT_LANE)
      const nowMs = clock.now()
      const refusal = pipeline.check(facts, nowMs)
      if (refusal === undefined) this.#continueAfterWait(nowMs)
      else this.refuse(refusal)
    })
  }

  #succeed(value: T): void {
    this.#watchers?.follower?.succeeded()
    this.#ended = true
    this.#leave()
    this.#resolve(value)
  }

  #fail(error: unknown): void {
    this.#watchers?.follower?.failed(error)
    this.#ended = true
    this.#leave()
    this.#reject(error)
  }

  /** The attempt does not start. A first attempt that does not start is not tried again. */
  refuse(error: unknown): void {
    const { counters, observers } = this.#shared
    counters.refused(error, this.facts.options.tier)
    if (this.#retry !== undefined) return this.#retry.reject(error)
    observers.decisions?.refused(this.#watchers?.follower, error, () => this.facts)
    this.#ended = true
    this.#leave()
    // A promise that is rejected before its caller has it costs four times as much.
    if (this.#starting) void NEXT_TURN.then(() => this.#reject(error))
    else this.#reject(error)
  }

  /** Releases the call's grants once, when it has ended and no attempt or response body is left. */
  #leave(): void {
    const grants = this.#grants
    if (!this.#ended || this.#attempts > 0 || grants === undefined) return
    this.#grants = undefined
    const outcome = this.#outcome
    this.#shared.pipeline.leave(grants, { ran: outcome !== undefined, outcome })
  }
}
