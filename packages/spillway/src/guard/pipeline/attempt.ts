/**
 * One attempt of a call, from the moment it has its permits until everything is released. It is also the
 * context that the user's function gets.
 */
import { abandonedWork, allEnded } from '../../core/abandoned-work.js'
import type { LinkedList } from '../../core/collections/linked-list.js'
import { callSafely } from '../../core/events.js'
import {
  answerOf,
  type CallEnd,
  judge,
  type Outcome,
  type OutcomeOptions,
  type Verdict,
} from '../../core/outcome.js'
import type { Clock } from '../../core/time/clock.js'
import { type Deadline, runWithDeadline } from '../../core/time/deadline.js'
import { type AttemptScope, runInScope } from '../../local/retry/retry-call.js'
import { type CallEndListener, TimedCall } from '../../local/timeout/timed-call.js'
import { DEFAULT_LANE } from '../../shared/lanes/lane-names.js'
import type { LaneRegistry } from '../../shared/lanes/lane-registry.js'
import type { Cost } from '../../shared/rate-limiter/permit.js'
import type { RunOptions } from '../run-options.js'
import type { BreakerStage } from '../stages/breaker.js'
import type { TimeoutStage } from '../stages/timeout.js'
import { BodyWatch } from '../stream/body-watch.js'
import { isRelayed, RELAYED, type Relayed } from '../stream/relayed.js'
import { isStreamed, watched } from '../stream/watched-bodies.js'
import type { CallContext, CallFunction } from './context.js'
import type { CallCounters, CallObservers } from './counters.js'
import type { Pipeline } from './pipeline.js'
import type { Answer, Permits, StageAttempt } from './stage.js'
import { type AttemptExit, StreamedAttempt } from './streamed-attempt.js'
import { type AttemptTrace, type CallTrace, tracedFunction } from './trace.js'

/** What all attempts of one guard share. */
export interface AttemptDependencies {
  readonly guard: string
  readonly clock: Clock
  readonly lanes: LaneRegistry
  readonly pipeline: Pipeline
  readonly timeout: TimeoutStage
  /** For probes whose answer is a stream. */
  readonly breaker: BreakerStage | undefined
  /** How the end of an attempt is judged. */
  readonly judging: OutcomeOptions
  readonly counters: CallCounters
  readonly observers: CallObservers
  /** Attempts that run. */
  readonly running: LinkedList<TimedCall<unknown>>
  /** False if functions of the guard make no nested calls, so they need no deadline in their async context. */
  nested: boolean
  /** Set while the guard closes: called when the last attempt has released everything. */
  onIdle: (() => void) | undefined
}

/** Receives the events of an attempt. */
export interface AttemptListener<T> {
  onValue(value: T, verdict: Verdict): void
  onError(error: unknown, verdict: Verdict): void
  onStarted?(): void
  /**
   * Called when everything is released; for a streamed answer after its value. Without an outcome if another attempt
   * has decided the call. `unfinished`: work that continues after the attempt.
   */
  onReleased?(outcome: Outcome | undefined, unfinished: Promise<unknown> | undefined): void
}

/** Inputs of an attempt. */
export interface AttemptParts<T> {
  /** The user's function. */
  readonly fn: CallFunction<T>
  /** Results that nested retries have given up on; undefined if the attempt is not retried. */
  readonly scope?: AttemptScope | undefined
  readonly trace?: CallTrace | undefined
  readonly options: RunOptions
  /** The lane in use: the call's own, or the shared one if that does not exist. */
  readonly lane: string
  readonly permits: Permits
  readonly deadline: Deadline | undefined
  readonly startMs: number
  /** 1 for the first. */
  readonly attempt: number
  readonly hedge: boolean
  /** It is a job, perhaps of a tenant. */
  readonly job?: { readonly tenant: string | undefined }
}

export class GuardAttempt<T> implements CallEndListener<T>, CallContext, StageAttempt, AttemptExit {
  readonly options: RunOptions
  readonly laneInUse: string
  readonly permits: Permits
  readonly attempt: number
  readonly hedge: boolean
  readonly job: boolean
  readonly tenant: string | undefined
  readonly startMs: number
  readonly deadline: Deadline | undefined
  readonly kept: unknown[] = []
  readonly trace: AttemptTrace | undefined
  readonly fn: CallFunction<T>
  readonly scope: AttemptScope | undefined
  readonly #shared: AttemptDependencies
  readonly #timed: TimedCall<T>
  readonly #listener: AttemptListener<T>

  constructor(shared: AttemptDependencies, parts: AttemptParts<T>, listener: AttemptListener<T>) {
    const { options, lane, attempt, hedge, startMs, deadline } = parts
    this.options = options
    this.laneInUse = lane
    this.permits = parts.permits
    this.attempt = attempt
    this.hedge = hedge
    this.job = parts.job !== undefined
    this.tenant = parts.job?.tenant
    this.startMs = startMs
    this.deadline = deadline
    this.fn = parts.fn
    this.scope = parts.scope
    this.trace = parts.trace?.attempt({ lane, attempt, hedge })
    this.#shared = shared
    this.#listener = listener
    this.#timed = new TimedCall(shared.timeout.limits, startMs, deadline, options.signal)
  }

  get signal(): AbortSignal {
    return this.#timed.signal
  }

  onAbort(run: (reason: unknown) => void): void {
    this.#timed.onAbort(run)
  }

  /** The lane name as the caller gave it: the user's function may choose a model by it. */
  get lane(): string {
    return this.#shared.lanes.isOverflow(this.laneInUse)
      ? (this.options.lane ?? DEFAULT_LANE)
      : this.laneInUse
  }

  get guard(): string {
    return this.#shared.guard
  }

  get nested(): boolean {
    return this.#shared.nested
  }

  get progress(): () => void {
    return this.#timed.progress
  }

  /** Bound when it is read, because a context is destructured: `({ signal, settle }) => …`. */
  get settle(): (actual: Cost) => void {
    return (actual) => this.permits.permit?.settle(actual)
  }

  get traceHeaders(): Readonly<Record<string, string>> | undefined {
    return this.trace?.headers
  }

  /** Ends the attempt with `error`, although its function may still run. */
  giveUp(error: unknown): void {
    this.#timed.giveUp(error)
  }

  start(): void {
    const { pipeline, running, counters } = this.#shared
    pipeline.started(this)
    this.#listener.onStarted?.()
    counters.attempts++
    running.push(this.#timed as TimedCall<unknown>)
    this.#timed.start<this>(callFunction, this, this, isStreamed)
  }

  onValue(value: T, streaming: boolean): void {
    if (streaming) return this.#stream(value)
    const { judging } = this.#shared
    const isObject = typeof value === 'object' && value !== null
    // A primitive value is a success, unless `classify` or `slowMs` may say otherwise.
    if (isObject || judging.classify !== undefined || judging.slowMs !== undefined) {
      return this.#listener.onValue(value, this.#finish({ value }))
    }
    this.#shared.pipeline.answered(this, PLAIN_SUCCESS)
    this.leave('success', undefined)
    this.#listener.onValue(value, SUCCESS)
  }

  onError(error: unknown): void {
    if (this.trace !== undefined) this.#report(this.trace, (trace) => trace.failed(error))
    this.#listener.onError(error, this.#finish({ error }))
  }

  /** Releases every stage, for any outcome. */
  leave(outcome: Outcome, unfinished: Promise<unknown> | undefined): void {
    const { pipeline, running, counters, observers, clock } = this.#shared
    observers.timings?.ended(this.attempt, clock.now() - this.startMs)
    running.remove(this.#timed as TimedCall<unknown>)
    counters.outcomes[outcome]++
    if (this.trace !== undefined) this.#report(this.trace, (trace) => trace.end(outcome))
    pipeline.release(this, outcome, unfinished)
    this.#listener.onReleased?.(outcome, unfinished)
    if (running.length === 0) this.#shared.onIdle?.()
  }

  /** The answer has only begun: the attempt ends when its body does. */
  #stream(value: T): void {
    const end: CallEnd = { value }
    const verdict = this.#judge(end)
    const response = answerOf(end)
    this.#shared.pipeline.answered(this, { end, verdict, response, streaming: true })
    // The attempt has failed already, so its slot is released before the body ends. A retry needs it.
    const failed = verdict.retryable
    if (failed) this.leave(verdict.outcome, undefined)
    const relayed = isRelayed(value as object) ? (value as unknown as Relayed) : undefined
    const streamed = new StreamedAttempt(
      this.#shared,
      this,
      failed ? undefined : verdict.outcome,
      relayed !== undefined,
    )
    const call = this.#timed as TimedCall<unknown>
    const { bodies } = this.#shared.timeout
    const watch = new BodyWatch(bodies, call, relayed !== undefined, streamed)
    let answer = value
    try {
      if (relayed === undefined) answer = watched(value, watch)
      else {
        const owner = relayed[RELAYED](watch)
        streamed.owner = owner
        watch.begin(owner)
      }
    } catch {
      // A body that cannot be watched counts as complete, as any other value.
      watch.complete()
    }
    this.#listener.onValue(answer, verdict)
  }

  #finish(end: CallEnd): Verdict {
    const verdict = this.#judge(end)
    const response = answerOf(end)
    this.#shared.pipeline.answered(this, { end, verdict, response, streaming: false })
    this.leave(verdict.outcome, abandonedBy(end, this.#timed))
    return verdict
  }

  /** A tracer that throws does not prevent the end of the attempt. */
  #report(trace: AttemptTrace, report: (trace: AttemptTrace) => void): void {
    callSafely(this.#shared.guard, 'tracer', () => report(trace), undefined)
  }

  #judge(end: CallEnd): Verdict {
    const { judging, clock } = this.#shared
    end.durationMs = clock.now() - this.startMs
    end.signal = this.options.signal
    return judge(end, judging)
  }
}

/** Calls the user's function, in the async context of its deadline, its retries and its trace. */
function callFunction<T>(attempt: GuardAttempt<T>): T | PromiseLike<T> {
  const { scope, trace, deadline } = attempt
  const fn = trace === undefined ? attempt.fn : tracedFunction(trace, attempt.fn)
  if (!attempt.nested) return fn(attempt)
  // Without `timeoutMs` the deadline is the one that the async context already has.
  if (attempt.options.timeoutMs === undefined) {
    return scope === undefined ? fn(attempt) : runInScope(scope, fn, attempt)
  }
  if (scope === undefined) return runWithDeadline(deadline, fn, attempt)
  return runWithDeadline(
    deadline,
    runInScope<[CallContext], T | PromiseLike<T>>,
    scope,
    fn,
    attempt,
  )
}

/** Work that continues after the call: its own, or work that it has abandoned. */
function abandonedBy(
  end: CallEnd,
  { leftBehind }: TimedCall<unknown>,
): Promise<unknown> | undefined {
  if (leftBehind !== undefined) return allEnded([leftBehind])
  return 'error' in end ? abandonedWork(end.error) : undefined
}

const SUCCESS: Verdict = Object.freeze({ outcome: 'success', retryable: false })
const PLAIN_SUCCESS: Answer = Object.freeze({
  end: { value: undefined },
  verdict: SUCCESS,
  response: undefined,
  streaming: false,
})
