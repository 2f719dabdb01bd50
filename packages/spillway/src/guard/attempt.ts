/**
 * One attempt of a call, from the moment it has everything it needs until everything is given back:
 * the stages from the timeout on, and the way out through those before it.
 */

import { allEnded, unfinishedWork } from '../core/abandoned-work.js'
import { callSafely } from '../core/events.js'
import { type CallEnd, judge, type Outcome, probeOutcome, type Verdict } from '../core/outcome.js'
import { type Deadline, runWithDeadline } from '../core/time/deadline.js'
import type { CallEndListener, TimedCall } from '../local/timeout/timed-call.js'
import { DEFAULT_LANE, OTHER_LANE } from '../shared/default-lane.js'
import type { Cost } from '../shared/rate-limiter/permit.js'
import type { MeteredAttempt } from './attempt-meter.js'
import type { CallContext, CallFunction } from './context.js'
import type { CallAdmission, Machinery } from './machinery.js'
import type { RunOptions } from './run-options.js'
import { BodyWatch } from './stream/body-watch.js'
import { isRelayed, RELAYED, type Relayed } from './stream/relayed.js'
import { isStreamed, watched } from './stream/watched-bodies.js'
import { type AttemptExit, StreamedAttempt } from './streamed-attempt.js'
import { type AttemptTrace, tracedFunction } from './trace.js'

/** Told once how an attempt ended; first what that means. */
export interface AttemptListener<T> {
  onVerdict(verdict: Verdict): void
  onValue(value: T): void
  onError(error: unknown): void
}

/** It is also what the function is given: one object less for each call. */
export class GuardAttempt<T> implements CallEndListener<T>, CallContext, AttemptExit {
  readonly attempt: number
  hedge = false
  trace: AttemptTrace | undefined
  readonly #machinery: Machinery
  readonly #options: RunOptions
  readonly #lane: string
  readonly #admission: CallAdmission
  readonly #timed: TimedCall<T>
  readonly #end: AttemptListener<T>
  #metered: MeteredAttempt | undefined

  /** It has its slot already; `end` hears how it went, when all is given back. */
  constructor(
    machinery: Machinery,
    options: RunOptions,
    lane: string,
    admission: CallAdmission,
    deadline: Deadline | undefined,
    startMs: number,
    attempt: number,
    end: AttemptListener<T>,
  ) {
    this.attempt = attempt
    this.#machinery = machinery
    this.#options = options
    this.#lane = lane
    this.#admission = admission
    this.#end = end
    this.#timed = machinery.timeout.begin<T>(startMs, deadline, options.signal)
    const { breaker } = admission
    if (attempt > 1 && breaker !== undefined) machinery.breaker?.markRepeated(breaker)
  }

  get signal(): AbortSignal {
    return this.#timed.signal
  }

  onAbort(run: (reason: unknown) => void): void {
    this.#timed.onAbort(run)
  }

  /** For the user's function, which may choose a model by it: the name the call came with. */
  get lane(): string {
    return this.#lane === OTHER_LANE ? (this.#options.lane ?? DEFAULT_LANE) : this.#lane
  }

  get startMs(): number {
    return this.#timed.startMs
  }

  /** Nobody waits for it any more. */
  giveUp(error: unknown): void {
    this.#timed.giveUp(error)
  }

  get guard(): string {
    return this.#machinery.name
  }

  get deadline(): Deadline | undefined {
    return this.#timed.deadline
  }

  get progress(): () => void {
    return this.#timed.progress
  }

  /** Bound when looked at, because a context is taken apart: `({ signal, settle }) => …`. */
  get settle(): (actual: Cost) => void {
    return (actual) => this.#admission.permit?.settle(actual)
  }

  get traceHeaders(): Readonly<Record<string, string>> | undefined {
    return this.trace?.headers
  }

  start(given: CallFunction<T>): void {
    const { slots, running, tally, meter } = this.#machinery
    const timed = this.#timed
    this.#metered = meter?.began(this.#lane, this.startMs)
    const fn = this.trace === undefined ? given : tracedFunction(this.trace, given)
    slots.beat(this.startMs)
    tally.attempts++
    running.push(timed as TimedCall<unknown>)
    const plain = this.#options.timeoutMs === undefined
    timed.start<CallContext>(plain ? fn : limited(fn), this, this, isStreamed)
  }

  onValue(value: T, goesOn: boolean): void {
    if (goesOn) return this.#end.onValue(this.#stream(value))
    if (this.#isPlain(value)) {
      this.#end.onVerdict(SUCCESS)
      if (this.#metered !== undefined) this.#machinery.meter?.succeeded(this.#metered)
      this.leave('success', undefined)
    } else this.#finish({ value })
    this.#end.onValue(value)
  }

  onError(error: unknown): void {
    if (this.trace !== undefined) this.#tell(this.trace, (trace) => trace.failed(error))
    this.#finish({ error })
    this.#end.onError(error)
  }

  /** The answer has only begun: the call ends when its body does. */
  #stream(value: T): T {
    const beginning: CallEnd = { value }
    const begun = this.#judge(beginning)
    this.#end.onVerdict(begun)
    this.#heed(beginning, begun)
    // Its first byte says how busy the downstream is; how long its body is does not.
    this.#endMeter(beginning, begun)
    // A status such as 404 is all that a probe waits for.
    if (begun.outcome === 'ignored') this.#exitProbe(beginning, begun)
    // It has failed already, whatever else its body says; a retry must not stand in its own way.
    const failed = begun.retryable
    if (failed) this.leave(begun.outcome, undefined)
    const relayed = isRelayed(value as object) ? (value as unknown as Relayed) : undefined
    const streamed = new StreamedAttempt(
      this.#machinery,
      this.#admission,
      this.#lane,
      failed ? undefined : begun.outcome,
      this,
      relayed !== undefined,
    )
    const call = this.#timed as TimedCall<unknown>
    const watch = new BodyWatch(this.#machinery.bodies, call, relayed !== undefined, streamed)
    try {
      if (relayed === undefined) return watched(value, watch)
      const owner = relayed[RELAYED](watch)
      streamed.owner = owner
      watch.begin(owner)
    } catch {
      // What cannot be watched is taken to be whole, as any other value.
      watch.complete()
    }
    return value
  }

  #finish(end: CallEnd): void {
    const verdict = this.#judge(end)
    this.#end.onVerdict(verdict)
    this.#heed(end, verdict)
    this.#endMeter(end, verdict)
    this.#exitProbe(end, verdict)
    this.leave(verdict.outcome, workBehind(end, this.#timed))
  }

  /**
   * Leaves every stage, whatever the outcome. The slot comes last: whoever gets it should already
   * know that the vendor wants a pause, or that the circuit has just opened.
   */
  leave(outcome: Outcome, work: Promise<unknown> | undefined): void {
    const { running, tally, timings, clock } = this.#machinery
    timings?.ended(this.attempt, clock.now() - this.startMs)
    running.remove(this.#timed as TimedCall<unknown>)
    tally.outcomes[outcome]++
    if (this.trace !== undefined) this.#tell(this.trace, (trace) => trace.end(outcome))
    this.exitBreaker(outcome)
    this.#freeSlot(work)
  }

  /** A tracer that throws does not keep the attempt from its end. */
  #tell(trace: AttemptTrace, tell: (trace: AttemptTrace) => void): void {
    callSafely(this.#machinery.name, 'tracer', () => tell(trace), undefined)
  }

  /** A second attempt of the same call begins beside this one, on the same lane. */
  hedgedBy(second: GuardAttempt<T>): void {
    const first = this.#admission.breaker
    const beside = second.#admission.breaker
    if (first !== undefined && beside !== undefined) this.#machinery.breaker?.hedge(first, beside)
  }

  /** Once: a streamed probe may have succeeded before its stream ends. */
  exitBreaker(outcome: Outcome): void {
    const { breaker: permit } = this.#admission
    if (permit === undefined) return
    this.#admission.breaker = undefined
    const { breaker } = this.#machinery
    breaker?.exit(permit, outcome)
  }

  #endMeter(end: CallEnd, verdict: Verdict): void {
    if (this.#metered !== undefined) this.#machinery.meter?.ended(this.#metered, end, verdict)
  }

  #exitProbe(end: CallEnd, verdict: Verdict): void {
    if (this.#admission.breaker?.probe !== true) return
    this.exitBreaker(probeOutcome(end, verdict))
  }

  /** What the vendor said about its limits. */
  #heed(end: CallEnd, verdict: Verdict): void {
    const { limits, counted } = this.#machinery
    const { permit } = this.#admission
    if (counted !== undefined && permit !== undefined) counted.heed(end, verdict, permit)
    // In shadow nobody pauses.
    else if (counted !== limits) return
    else if (verdict.outcome === 'throttled') this.#pauseHere(verdict)
  }

  /** Says nothing but that it came, as most values do: then there is nothing to judge. */
  #isPlain(value: unknown): boolean {
    const { classify, slowMs } = this.#machinery.judging
    return (
      (typeof value !== 'object' || value === null) &&
      classify === undefined &&
      slowMs === undefined
    )
  }

  #judge(end: CallEnd): Verdict {
    const { judging, clock } = this.#machinery
    end.durationMs = clock.now() - this.startMs
    end.signal = this.#options.signal
    return judge(end, judging)
  }

  /** There are no shared limits to pause: this pod pauses by itself. */
  #pauseHere({ retryAfterMs }: Verdict): void {
    const { dispatcher, clock, options } = this.#machinery
    const pauseMs = Math.min(retryAfterMs ?? options.basePauseMs, options.maxPauseMs)
    dispatcher.pauseUntil(this.#lane, clock.now() + pauseMs)
  }

  /** A call that timed out keeps its slot while its work goes on: the socket is still open. */
  #freeSlot(work: Promise<unknown> | undefined): void {
    const { slots, closed } = this.#machinery
    if (work !== undefined && !closed) return this.#freeLater(work)
    slots.end(this.#lane)
    this.#machinery.onFree()
  }

  #freeLater(work: Promise<unknown>): void {
    const { slots, clock, options, overdue } = this.#machinery
    const letGo = () => {
      if (!overdue.delete(letGo)) return
      timer.cancel()
      slots.end(this.#lane)
      this.#machinery.onFree()
    }
    const timer = clock.schedule(options.concurrency?.graceMs ?? 0, letGo)
    timer.unref()
    overdue.add(letGo)
    work.then(letGo, letGo)
  }
}

/** Everything that is called inside heeds the deadline of this call. */
function limited<T>(fn: CallFunction<T>): CallFunction<T> {
  return (context) => runWithDeadline(context.deadline, () => fn(context))
}

/** What goes on although the call is over: its own work, or what that has left behind in turn. */
function workBehind(
  end: CallEnd,
  { leftBehind }: TimedCall<unknown>,
): Promise<unknown> | undefined {
  if (leftBehind !== undefined) return allEnded([leftBehind])
  return 'error' in end ? unfinishedWork(end.error) : undefined
}

const SUCCESS: Verdict = Object.freeze({ outcome: 'success', retryable: false })
