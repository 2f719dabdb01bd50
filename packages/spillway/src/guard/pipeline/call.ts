/**
 * One call on its way through the pipeline: it enters the stages of the call, gets the permits of an attempt at
 * once or through the queue, runs, and is tried again if its retry policy says so.
 *
 * Ten thousand calls may wait, so a call is one object with few fields.
 */
import type { CallerSignal } from '../../core/abort.js'
import { SpillwayError } from '../../core/errors.js'
import type { Outcome, Verdict } from '../../core/outcome.js'
import type { Clock } from '../../core/time/clock.js'
import type { Deadline } from '../../core/time/deadline.js'
import { type Attempt, AttemptScope } from '../../local/retry/attempts.js'
import { learnUsual, RetryCall } from '../../local/retry/retry-call.js'
import { DEFAULT_LANE } from '../../shared/default-lane.js'
import type { LaneRegistry } from '../../shared/lanes/lane-registry.js'
import { type LeaveReason, QueuedCall } from '../../shared/permit-queue/queued-call.js'
import type { Cost } from '../../shared/rate-limiter/permit.js'
import type { CallFollower } from '../decisions/follower.js'
import { QueuedRetry } from '../queue/queued-retry.js'
import type { ResumableCall } from '../queue/resume.js'
import type { RunOptions } from '../run-options.js'
import type { HedgeStage } from '../stages/hedge.js'
import type { QueueStage } from '../stages/queue.js'
import type { RetryStage } from '../stages/retry.js'
import type { ShedStage } from '../stages/shed.js'
import { type AttemptDependencies, type AttemptListener, GuardAttempt } from './attempt.js'
import type { CallFunction } from './context.js'
import type { CallCounters, CallObservers } from './counters.js'
import { EnteredStages } from './entered-stages.js'
import { HedgedAttempt } from './hedged-attempt.js'
import type { Pipeline } from './pipeline.js'
import {
  type CallKind,
  type PendingCall,
  PendingGrant,
  type Permits,
  type QueuedAttempt,
  type StageCall,
} from './stage.js'
import type { CallTrace } from './trace.js'

/** What all calls of one guard share. */
export interface CallDependencies {
  readonly clock: Clock
  readonly lanes: LaneRegistry
  readonly pipeline: Pipeline
  readonly queue: QueueStage
  readonly retry: RetryStage
  readonly hedge: HedgeStage | undefined
  /** Learns how long calls take. */
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
}

type End<T> = { value: T } | { error: unknown }

const NEXT_TURN = Promise.resolve()

export class GuardCall<T>
  extends QueuedCall<Permits>
  implements StageCall, PendingCall, AttemptListener<T>, QueuedAttempt, ResumableCall<Permits>
{
  /** It was let in: only the stages of an attempt are checked from now on. */
  readonly kind: CallKind = 'attempt'
  readonly options: RunOptions
  lane: string
  readonly priority: number
  readonly arrivedMs: number
  attempt = 1
  costs: readonly number[]
  costsUnder: unknown
  readonly #shared: CallDependencies
  readonly #fn: CallFunction<T>
  readonly #watchers: CallWatchers | undefined
  readonly #deadline: Deadline | undefined
  /** Undefined if the guard has no stages that a call enters. */
  readonly #entered: EnteredStages | undefined
  /** Undefined while the attempt has not ended, or if it was refused. */
  #verdict: Verdict | undefined
  /** The last attempt that started. */
  #last: GuardAttempt<T> | undefined
  /** Hears how an attempt after the first ends. */
  #retry: AttemptListener<T> | undefined
  /** Of the first attempt, if it may be retried. */
  #firstScope: AttemptScope | undefined
  /** `start` has not returned yet. */
  #starting = true
  #resolve!: (value: T | PromiseLike<T>) => void
  #reject!: (error: unknown) => void

  constructor(
    shared: CallDependencies,
    fn: CallFunction<T>,
    facts: StageCall,
    deadline: Deadline | undefined,
    watchers: CallWatchers | undefined,
  ) {
    super()
    this.#shared = shared
    this.#entered =
      shared.pipeline.entered.length === 0 ? undefined : new EnteredStages(shared.pipeline)
    this.#fn = fn
    this.#watchers = watchers
    this.#deadline = deadline
    this.options = facts.options
    this.lane = facts.lane
    this.priority = facts.priority
    this.arrivedMs = facts.arrivedMs
    this.costs = facts.costs
    this.costsUnder = facts.costsUnder
  }

  get cost(): Cost | undefined {
    return this.options.cost
  }

  get deadlineMs(): number {
    return this.#deadline?.atMs ?? Number.POSITIVE_INFINITY
  }

  get signal(): CallerSignal | undefined {
    return this.options.signal
  }

  /** The pipeline has let it in, this moment. */
  start(): Promise<T> {
    const answer = new Promise<T>(handOver)
    this.#resolve = resolveMade
    this.#reject = rejectMade
    this.#enter(this.arrivedMs)
    this.#starting = false
    return answer
  }

  /** Enters the stages of the call that are left. */
  #enter(nowMs: number): void {
    try {
      const grant = this.#entered?.enter(this, nowMs)
      if (grant instanceof PendingGrant) return grant.whenDecided(this)
      if (grant !== undefined) return this.refuse(grant)
      this.lane = this.#shared.lanes.enter(this.options.lane ?? DEFAULT_LANE)
      this.#watchers?.follower?.entered(this)
    } catch (error) {
      return this.refuse(error)
    }
    if (this.#starting) this.#getPermits(nowMs)
    else this.#goOn(nowMs)
  }

  /** The store has decided on the stage that was asked last. */
  onDecided(grant: unknown): void {
    if (grant instanceof SpillwayError) return this.refuse(grant)
    this.#entered?.decided(grant)
    this.#enter(this.#shared.clock.now())
  }

  onLeft(reason: unknown): void {
    this.refuse(reason)
  }

  /** Time has passed since the pipeline let it in. */
  #goOn(nowMs: number): void {
    if (this.signal?.aborted === true) return this.refuse(this.signal.reason)
    const refusal = this.#shared.pipeline.expired(this, nowMs)
    if (refusal === undefined) this.#getPermits(nowMs)
    else this.refuse(refusal)
  }

  /** Everything that the attempt needs: at once, or through the queue. */
  #getPermits(nowMs: number): void {
    const { queue } = this.#shared
    try {
      const permits = queue.dispatcher.tryNow(this.lane, this, nowMs)
      if (permits !== undefined) return this.#start(permits, nowMs)
      const refusal = this.#join(nowMs)
      if (refusal !== undefined) this.refuse(refusal)
    } catch (error) {
      this.refuse(error)
    }
  }

  #join(nowMs: number): SpillwayError | undefined {
    const { queue } = this.#shared
    this.#watchers?.follower?.waits(nowMs)
    const waiting = this.#retry === undefined ? this : new QueuedRetry(this, queue.resumer)
    return queue.join(waiting, nowMs)
  }

  /** It has waited, and has its permits. */
  admit(permits: Permits): void {
    this.#shared.queue.resumer.resumeSoon(this, permits)
  }

  /** A moment later, in the caller's async context. */
  begin(permits: Permits): void {
    const { pipeline, clock } = this.#shared
    const nowMs = clock.now()
    const aborted = this.signal?.aborted === true
    const refusal = aborted ? undefined : pipeline.expired(this, nowMs)
    if (!aborted && refusal === undefined) {
      try {
        return this.#start(permits, nowMs)
      } catch (error) {
        return this.refuse(error)
      }
    }
    pipeline.cancel(this.lane, permits)
    this.refuse(aborted ? this.signal?.reason : refusal)
  }

  #start(permits: Permits, startMs: number): void {
    const { pipeline, observers } = this.#shared
    let attempt: GuardAttempt<T> | HedgedAttempt<T>
    let first: GuardAttempt<T>
    try {
      attempt = this.#createAttempt(permits, startMs)
      first = attempt instanceof HedgedAttempt ? attempt.first : attempt
    } catch (error) {
      pipeline.cancel(this.lane, permits)
      throw error
    }
    const refusal = pipeline.acquire(first)
    if (refusal !== undefined) return this.refuse(refusal)
    if (this.attempt === 1) observers.timings?.began(startMs - this.arrivedMs)
    this.#watchers?.follower?.begins(this, permits, startMs)
    this.#last = first
    attempt.start(this.#function())
  }

  #createAttempt(permits: Permits, startMs: number): GuardAttempt<T> | HedgedAttempt<T> {
    const { hedge, attempts } = this.#shared
    const { options, lane, attempt } = this
    const deadline = this.#deadline
    const trace = this.#watchers?.trace
    const listener = this.#retry ?? this
    if (hedge?.mayHedge(options, permits) === true) {
      const hedged = { call: this, fn: this.#function(), deadline, trace }
      return new HedgedAttempt<T>(hedge, attempts, hedged, permits, startMs, listener)
    }
    const facts = { options, lane, permits, deadline, startMs, attempt, hedge: false }
    const created = new GuardAttempt<T>(attempts, facts, listener)
    if (trace !== undefined) created.trace = trace.attempt({ lane, attempt, hedge: false })
    return created
  }

  /** A first attempt that may be retried runs in a scope; the scope of a later one is in place already. */
  #function(): CallFunction<T> {
    if (this.#shared.retry.policy === undefined || this.#retry !== undefined) return this.#fn
    this.#firstScope ??= new AttemptScope()
    const [scope, fn] = [this.#firstScope, this.#fn]
    return (context) => scope.run(fn, context)
  }

  onVerdict(verdict: Verdict): void {
    this.#verdict = verdict
    this.#watchers?.follower?.judged(verdict)
  }

  onValue(value: T): void {
    const { retry, shed, clock } = this.#shared
    const { policy } = retry
    shed?.callEnded(this.arrivedMs, undefined)
    const final = policy === undefined || this.#verdict?.retryable === false
    if (!final || this.#watchers?.report !== undefined) return this.#conclude({ value })
    // How long calls take is learnt from those that have a deadline.
    if (policy !== undefined && this.#deadline !== undefined) {
      learnUsual(policy, clock.now() - (this.#last?.startMs ?? this.arrivedMs))
    }
    this.#succeed(value)
  }

  onError(error: unknown): void {
    const { retry, shed } = this.#shared
    shed?.callEnded(this.arrivedMs, error)
    const final = this.#watchers?.report === undefined && retry.policy === undefined
    if (final) this.#fail(error)
    else this.#conclude({ error })
  }

  onStarted(): void {
    this.#entered?.attemptStarted()
  }

  onReleased(outcome: Outcome): void {
    this.#entered?.attemptReleased(outcome)
  }

  /** Ends the call or tries it again, in the caller's async context: a timeout comes from a shared timer. */
  #conclude(end: End<T>): void {
    this.runInAsyncScope(this.#concludeHere, this, end)
  }

  #concludeHere(end: End<T>): void {
    const { retry } = this.#shared
    const options = retry.optionsFor(this.options, this.lane, () => this.#verdict)
    const again = ({ attempt }: { attempt: number }) => this.#tryAgain(attempt)
    new RetryCall(retry.policyNow, again, options, this.#watchers?.report, this.#deadline)
      .resume(end, this.#last?.startMs ?? this.arrivedMs, this.#firstScope)
      .then(
        (value) => this.#succeed(value),
        (error) => this.#fail(error),
      )
  }

  #tryAgain(attempt: number): Promise<T> {
    return new Promise<T>((onValue, onError) => {
      const onVerdict = (verdict: Verdict) => this.onVerdict(verdict)
      const onStarted = () => this.onStarted()
      const onReleased = (outcome: Outcome) => this.onReleased(outcome)
      this.#retry = { onValue, onError, onVerdict, onStarted, onReleased }
      this.attempt = attempt
      this.#verdict = undefined
      // While a call waits to be retried, its lane may be dropped.
      this.lane = this.#shared.lanes.enter(this.options.lane ?? DEFAULT_LANE)
      const nowMs = this.#shared.clock.now()
      const refusal = this.#shared.pipeline.check(this, nowMs)
      if (refusal === undefined) this.#goOn(nowMs)
      else this.refuse(refusal)
    })
  }

  #succeed(value: T): void {
    this.#watchers?.follower?.succeeded()
    this.#settle()
    this.#resolve(value)
  }

  #fail(error: unknown): void {
    this.#watchers?.follower?.failed(error)
    this.#settle()
    this.#reject(error)
  }

  /** The caller has its answer. A streamed body may still be on its way. */
  #settle(): void {
    // A call that waited long is old to the garbage collector: it should not keep its attempt alive.
    this.#last = undefined
    this.#entered?.callEnded()
  }

  /** The attempt does not start. A first attempt that does not start is not tried again. */
  refuse(error: unknown): void {
    const { counters, observers } = this.#shared
    counters.refused(error)
    if (this.#retry !== undefined) return this.#retry.onError(error)
    observers.decisions?.refused(this.#watchers?.follower, error, () => this)
    this.#settle()
    // A promise that is rejected before its caller has it costs four times as much.
    if (this.#starting) void NEXT_TURN.then(() => this.#reject(error))
    else this.#reject(error)
  }

  onLeave(why: LeaveReason): void {
    this.mustLeave(why, this)
  }

  onAborted(reason: unknown): void {
    this.abandon(reason, this)
  }

  /** One of its stays in the queue is over, without permits. */
  mustLeave(why: LeaveReason, queued: QueuedCall): void {
    const { clock, queue } = this.#shared
    this.abandon(queue.leaveError(why, clock.now() - queued.joinedMs), queued)
  }

  abandon(reason: unknown, queued: QueuedCall): void {
    this.refuse(reason)
    this.#shared.queue.left(queued)
  }
}

let resolveMade: (value: unknown) => void
let rejectMade: (error: unknown) => void

/** One for the promises of all calls: a closure for each would be half of a promise more. */
function handOver(resolve: (value: never) => void, reject: (error: unknown) => void): void {
  resolveMade = resolve as (value: unknown) => void
  rejectMade = reject
}
