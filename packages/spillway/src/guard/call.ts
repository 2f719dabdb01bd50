/**
 * One call on its way through the stages: entered in order, and left in order, exactly once each.
 * Stages 1 to 3 happen once, those from the breaker on once for each attempt.
 */

import type { AsyncResource } from 'node:async_hooks'
import type { CallerSignal } from '../core/abort.js'
import { currentDeadline, Deadline, deadlineError, earlierOf } from '../core/deadline.js'
import { closedError, refuse, SpillwayError } from '../core/errors.js'
import { currentHop } from '../core/hops.js'
import { duration, number, text, validate } from '../core/options.js'
import type { Verdict } from '../core/outcome.js'
import { importanceOf, NORMAL_IMPORTANCE } from '../core/priority.js'
import { isThenable, toPromise } from '../core/thenable.js'
import type { Attempt } from '../local/attempts.js'
import type { Shedder } from '../local/load-shedder/shedder.js'
import { type JudgedRunOptions, learnUsual, RetryCall } from '../local/retry-call.js'
import type { LanePermit as BreakerPermit } from '../shared/circuit-breaker/lane-breaker.js'
import { DEFAULT_LANE } from '../shared/default-lane.js'
import type { Cost } from '../shared/rate-limiter/permit.js'
import type { UserRequest } from '../shared/user-limits/levels.js'
import { type AttemptListener, GuardAttempt } from './attempt.js'
import type { CallFunction } from './context.js'
import type { CallFollower } from './decisions/follower.js'
import { HedgedAttempt } from './hedged-attempt.js'
import type { Hedger } from './hedger.js'
import type { CallAdmission, CallWish, Machinery } from './machinery.js'
import { busyError, fullError, leaveError, limitedError } from './refusals.js'
import type { Entry, Leaving } from './room.js'
import type { RunOptions } from './run-options.js'
import type { Shadow } from './shadow.js'
import type { UserStage } from './shared-stages.js'
import { shedRefusal } from './shed.js'
import { currentOrigin, type Startable } from './starter.js'
import type { CallTrace } from './trace.js'
import { unlessGone } from './unless-gone.js'

const NO_COSTS: readonly number[] = []
const readTimeout = duration({ min: 0 })

export class GuardCall<T> implements AttemptListener<T>, CallWish, Startable {
  readonly cost: Cost | undefined
  costs: readonly number[] = NO_COSTS
  of: unknown
  readonly #machinery: Machinery
  readonly #fn: CallFunction<T>
  readonly #options: RunOptions
  readonly lane: string
  readonly #report: Attempt[] | undefined
  /** Set before it starts, if somebody follows it. */
  trace: CallTrace | undefined
  priority = NORMAL_IMPORTANCE
  arrivedMs = 0
  #deadline: Deadline | undefined
  /** What was taken from the user's limits, until the call has run. */
  #charge: UserRequest | undefined
  /** Nothing stood in the way when it came. */
  #clear = false
  /** What the end of the last attempt meant; nothing while it has not ended, or was refused. */
  #verdict: Verdict | undefined
  /** The last attempt that began. */
  #last: GuardAttempt<T> | undefined
  /** The attempt that waits, if one does: who hears how it ends, and what it got. */
  #end: AttemptListener<T> = this
  #number = 1
  #admission: CallAdmission | undefined
  origin: AsyncResource | undefined
  breaker: BreakerPermit | undefined
  reserved = false
  /** Nearly always nothing: few are followed, and only where somebody asks why. */
  #follower: CallFollower | undefined
  #resolve!: (value: T | PromiseLike<T>) => void
  #reject!: (error: unknown) => void

  constructor(
    machinery: Machinery,
    fn: CallFunction<T>,
    options: RunOptions,
    report: Attempt[] | undefined,
  ) {
    this.#machinery = machinery
    this.#fn = fn
    this.#options = options
    this.lane = options.lane ?? DEFAULT_LANE
    this.cost = options.cost
    this.#report = report
  }

  start(): Promise<T> {
    const { clock, users, limits, counted, dispatcher, name, tally, sameClock, decisions } =
      this.#machinery
    const { signal, priority, timeoutMs, needsMs } = this.#options
    tally.calls++
    if (signal?.aborted) return refuse(signal.reason)
    this.arrivedMs = clock.now()
    this.#deadline = currentDeadline()
    try {
      if (typeof this.lane !== 'string' || this.lane === '') validate('lane', this.lane, text())
      if (priority !== undefined) this.priority = importanceOf(priority)
      if (timeoutMs !== undefined) this.#limitTime(timeoutMs)
      if (needsMs !== undefined && !(needsMs >= 0)) validate('needsMs', needsMs, number({ min: 0 }))
    } catch (error) {
      return refuse(error)
    }
    if (decisions !== undefined) {
      this.#follower = decisions.begin(this.#options, this.lane, this.priority, this.arrivedMs)
    }
    if ((this.#deadline?.remainingMs() ?? Number.POSITIVE_INFINITY) <= (needsMs ?? 0)) {
      return this.#refuse(deadlineError('room', name))
    }
    const early = this.#shedOrOpen()
    if (early !== undefined) return this.#refuse(early)
    let charge: ReturnType<UserStage['charge']>
    try {
      // Now: in the room a mistake of one call would be everybody's.
      if (this.cost !== undefined) counted?.checkCost(this.cost)
      const known = this.#knownRefusal()
      if (known !== undefined) return this.#refuse(known)
      if (limits !== undefined) dispatcher.costsOf(this)
      if (users === undefined) return this.#attempts()
      const options = this.#follower === undefined ? this.#options : this.#follower.listening()
      charge = users.charge(options, sameClock ? this.arrivedMs : undefined)
    } catch (error) {
      return refuse(error)
    }
    return isThenable(charge) ? this.#chargedLater(toPromise(charge)) : this.#charged(charge)
  }

  #limitTime(timeoutMs: NonNullable<RunOptions['timeoutMs']>): void {
    const ms =
      typeof timeoutMs === 'number' && timeoutMs >= 0
        ? timeoutMs
        : validate('timeoutMs', timeoutMs, readTimeout)
    const { clock } = this.#machinery
    this.#deadline = earlierOf(this.#deadline, new Deadline(this.arrivedMs + ms, clock))
  }

  /** The cheapest reasons first. */
  #shedOrOpen(): SpillwayError | undefined {
    const { name, closed, breaker, throttles, shadow } = this.#machinery
    if (closed) return closedError('room', name)
    const shed = shedRefusal(this.#machinery, this, this.#options)
    if (shadow !== undefined) return this.#unlessSpared(shadow, shed)
    const refused = shed ?? breaker?.refuse(this.lane)
    if (throttles === undefined || refused !== undefined) return refused
    return throttles.refuse(this.lane, this.arrivedMs)
  }

  /** The same where some stages only report. */
  #unlessSpared(shadow: Shadow, shed: SpillwayError | undefined): SpillwayError | undefined {
    const { breaker, throttles } = this.#machinery
    const { lane } = this
    if (shed !== undefined && !shadow.spares(shed, lane, this.#options)) return shed
    const open = breaker?.refuse(lane)
    if (open !== undefined) return open
    shadow.noteOpen(lane, this.#options)
    const throttled = throttles?.refuse(lane, this.arrivedMs)
    if (throttled === undefined || shadow.spares(throttled, lane, this.#options)) return undefined
    return throttled
  }

  /** What this pod knows without asking anybody, and before anybody is charged. */
  #knownRefusal(): SpillwayError | undefined {
    const { room, dispatcher } = this.#machinery
    const nowMs = this.arrivedMs
    this.#clear = dispatcher.isClear(this.lane, nowMs)
    if (this.#clear) return undefined
    const limited = this.#limited(nowMs)
    if (limited !== undefined) return limited
    const spare = dispatcher.spare(this.lane, this, nowMs)
    return room.hasPlace(this.priority, spare) ? undefined : this.#noPlace()
  }

  /** The lane is known to be blocked for longer than this call can wait. */
  #limited(nowMs: number): SpillwayError | undefined {
    const { name, dispatcher, limits } = this.#machinery
    const ms = dispatcher.blockedMs(this.lane, this, nowMs)
    if (ms === 0 || ms <= this.#patienceMs()) return undefined
    return limitedError(name, this.lane, ms, dispatcher.isPaused(this.lane), limits?.alone === true)
  }

  /** Without a room it is what it would wait for that is missing. */
  #noPlace(): SpillwayError {
    const { name, room, slots, clock, options } = this.#machinery
    if (options.queue !== undefined) return fullError(name, room.length, options.queue.size)
    const stage = slots.paceWaitMs(clock.now()) > 0 ? 'pace' : 'concurrency'
    return busyError(name, stage, slots, clock.now())
  }

  #patienceMs(): number {
    const queueMs = this.#machinery.options.queue?.timeoutMs ?? 0
    return Math.min(queueMs, this.#deadline?.remainingMs() ?? queueMs)
  }

  #charged(charge: UserRequest | SpillwayError | undefined): Promise<T> {
    if (!(charge instanceof Error)) this.#charge = charge
    else if (this.#machinery.shadow?.spares(charge, this.lane, this.#options) !== true) {
      return this.#refuse(charge)
    }
    return this.#attempts()
  }

  /** The store is being asked; neither the caller's signal nor its deadline waits for that. */
  #chargedLater(charge: Promise<UserRequest | SpillwayError | undefined>): Promise<T> {
    const { clock, users, name } = this.#machinery
    return unlessGone(charge, {
      clock,
      signal: this.#options.signal,
      deadline: this.#deadline,
      tooLate: () => deadlineError('user-limit', name),
      onGone: (error) => this.#notRun(error),
      onLate: (each) => {
        if (each !== undefined && !(each instanceof Error)) users?.refund(each)
      },
    }).then((each) => this.#charged(each))
  }

  /**
   * The first attempt. Nearly every call ends with it, so retrying begins only when there is
   * something to try again.
   */
  #attempts(): Promise<T> {
    const { budget, clock, store } = this.#machinery
    if (this.#follower !== undefined) this.#follower.entered()
    if (budget !== undefined) budget.recordRequest(this.arrivedMs)
    // With a store that answers at once, no time has passed since the call came.
    const nowMs = store.remote ? clock.now() : this.arrivedMs
    const admission = this.#clear && !store.remote ? this.#takeNow(nowMs) : this.#tryNow(nowMs)
    if (admission instanceof Refusal) return this.#refuse(admission.error)
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
      if (this.#follower !== undefined) this.#follow(this.#follower)
      if (admission === undefined) this.#wait(nowMs)
      else this.#start(admission, nowMs)
    })
  }

  /** Whoever follows it hears how it ends. */
  #follow(follower: CallFollower): void {
    const [resolve, reject] = [this.#resolve, this.#reject]
    this.#resolve = (value) => {
      follower.succeeded()
      resolve(value)
    }
    this.#reject = (error) => {
      follower.failed(error)
      reject(error)
    }
  }

  onVerdict(verdict: Verdict): void {
    this.#verdict = verdict
    if (this.#follower !== undefined) this.#follower.judged(verdict)
  }

  onValue(value: T): void {
    const { retry, shedder } = this.#machinery
    if (shedder !== undefined) this.#noteLatency(shedder)
    const final = retry === undefined || this.#verdict?.retryable === false
    if (!final || this.#report !== undefined) return this.#retry({ value })
    // How long calls take is learnt from those that have a deadline.
    if (retry !== undefined && this.#deadline !== undefined) {
      learnUsual(retry, this.#machinery.clock.now() - (this.#last?.startMs ?? this.arrivedMs))
    }
    this.#resolve(value)
  }

  onError(error: unknown): void {
    const { retry, shedder } = this.#machinery
    if (shedder !== undefined && isTimeout(error)) this.#noteLatency(shedder)
    if (this.#report === undefined && retry === undefined) this.#reject(error)
    else this.#retry({ error })
  }

  /** How long its caller has waited for the answer, or for its first byte. */
  #noteLatency(shedder: Shedder): void {
    if (!shedder.timesCalls) return
    const nowMs = this.#machinery.clock.now()
    shedder.record(nowMs, nowMs - this.arrivedMs)
  }

  #retry(end: { value: T } | { error: unknown }): void {
    const { retry, once, breaker } = this.#machinery
    const policy = this.#mayRetry() ? (retry ?? once) : once
    const { signal, idempotent, idempotencyKey } = this.#options
    const options: JudgedRunOptions = {
      ...(signal !== undefined && { signal }),
      ...(idempotent !== undefined && { idempotent }),
      ...(idempotencyKey !== undefined && { idempotencyKey }),
      judged: () => this.#verdict,
      mayRetry: () => breaker === undefined || breaker.state(this.lane) === 'closed',
    }
    const again = ({ attempt }: { attempt: number }) => this.#attempt(attempt)
    new RetryCall(policy, again, options, this.#report, this.#deadline)
      .resume(end, this.#last?.startMs ?? this.arrivedMs)
      .then(this.#resolve, this.#reject)
  }

  /** A request that came in as a retry is not tried again here: tiers would multiply. */
  #mayRetry(): boolean {
    const hop = currentHop()
    if (hop === undefined) return true
    return hop.attempt === 1 && this.#machinery.options.retry?.where !== 'edge'
  }

  /** Another attempt. */
  #attempt(attempt: number): Promise<T> {
    const { clock } = this.#machinery
    const nowMs = clock.now()
    this.#verdict = undefined
    const admission = this.#tryNow(nowMs)
    if (admission instanceof Refusal) return this.#refuse(admission.error)
    this.#number = attempt
    return new Promise<T>((onValue, onError) => {
      this.#end = { onValue, onError, onVerdict: (verdict) => this.onVerdict(verdict) }
      if (admission === undefined) this.#wait(nowMs)
      else this.#start(admission, nowMs)
    })
  }

  /** Everything at once; nothing, if it has to wait for something. */
  #tryNow(nowMs: number): CallAdmission | Refusal | undefined {
    const { dispatcher, closed, name } = this.#machinery
    const { signal } = this.#options
    if (signal?.aborted) return new Refusal(signal.reason)
    if (closed) return new Refusal(closedError('room', name))
    if (this.#deadline?.expired === true) return new Refusal(deadlineError('room', name))
    let admission: CallAdmission | undefined
    try {
      admission = dispatcher.tryNow(this.lane, this, nowMs)
    } catch (error) {
      return new Refusal(error)
    }
    if (admission !== undefined) return admission
    const limited = this.#limited(nowMs)
    return limited === undefined ? undefined : new Refusal(limited)
  }

  /** The way was free when the call came, and it has come this moment. */
  #takeNow(nowMs: number): CallAdmission | Refusal | undefined {
    const { dispatcher, sameClock } = this.#machinery
    const atMs = sameClock ? nowMs : undefined
    return dispatcher.takeNow(this.lane, this, atMs) ?? this.#tryNow(nowMs)
  }

  #start(admission: CallAdmission, startMs: number): void {
    this.#charge = undefined
    if (this.#number === 1) this.#machinery.timings?.began(startMs - this.arrivedMs)
    if (this.#follower !== undefined) this.#follower.begins(this.#number, admission, startMs)
    const { hedger, shadow } = this.#machinery
    if (shadow !== undefined) shadow.begin(this.lane, admission, startMs, this.#options)
    if (hedger !== undefined && this.#mayHedge(admission)) {
      return this.#startHedged(hedger, admission, startMs)
    }
    this.#last = new GuardAttempt(
      this.#machinery,
      this.#options,
      this.lane,
      admission,
      this.#deadline,
      startMs,
      this.#number,
      this.#end,
    )
    if (this.trace !== undefined) {
      const facts = { lane: this.lane, attempt: this.#number, hedge: false }
      this.#last.trace = this.trace.attempt(facts)
    }
    this.#last.start(this.#fn)
  }

  /** By the rules of a retry. A probe has to say for itself how the downstream is. */
  #mayHedge({ breaker }: CallAdmission): boolean {
    const { idempotent, idempotencyKey } = this.#options
    return (
      breaker?.probe !== true &&
      (idempotent !== false || Boolean(idempotencyKey)) &&
      this.#mayRetry()
    )
  }

  #startHedged(hedger: Hedger, admission: CallAdmission, startMs: number): void {
    const call = {
      machinery: this.#machinery,
      fn: this.#fn,
      options: this.#options,
      lane: this.lane,
      deadline: this.#deadline,
      attempt: this.#number,
      trace: this.trace,
    }
    const hedged = new HedgedAttempt<T>(hedger, call, admission, startMs, this.#end)
    this.#last = hedged.first
    hedged.start()
  }

  #wait(nowMs: number): void {
    const { room, dispatcher } = this.#machinery
    this.origin = currentOrigin()
    if (this.#follower !== undefined) this.#follower.waits(nowMs)
    const entry = room.join(this, nowMs, dispatcher.spare(this.lane, this, nowMs))
    if (entry === undefined) this.refuse(this.#noPlace())
    else dispatcher.arrived(entry)
  }

  admit(admission: CallAdmission): void {
    this.#admission = admission
    this.#machinery.starter.startSoon(this)
  }

  /** It has waited, and has what it wanted. */
  begin(): void {
    const admission = this.#admission as CallAdmission
    this.#admission = undefined
    this.origin = undefined
    const late = this.#tooLate(admission)
    if (late === undefined) this.#start(admission, this.#machinery.clock.now())
    else this.#refuseAttempt(late.error)
  }

  refuse(error: unknown): void {
    this.#notRun(error)
    this.#refuseAttempt(error)
  }

  /** A first attempt that did not begin is not tried again. */
  #refuseAttempt(error: unknown): void {
    if (this.#end === this) this.#reject(error)
    else this.#end.onError(error)
  }

  onLeave(why: Leaving, entry: Entry): void {
    const { name, clock, dispatcher, room, slots } = this.#machinery
    this.refuse(leaveError(name, why, clock.now() - entry.enteredMs, room.length, slots))
    dispatcher.left(entry)
  }

  onAborted(reason: unknown, entry: Entry): void {
    this.refuse(reason)
    this.#machinery.dispatcher.left(entry)
  }

  get deadlineMs(): number {
    return this.#deadline?.atMs ?? Number.POSITIVE_INFINITY
  }

  get signal(): CallerSignal | undefined {
    return this.#options.signal
  }

  /** Meanwhile it may have become too late: then what was granted goes back. */
  #tooLate(admission: CallAdmission): Refusal | undefined {
    const { breaker, limits, slots, name, closed } = this.#machinery
    const { signal } = this.#options
    const late = this.#deadline?.expired === true
    if (!late && !closed && signal?.aborted !== true) return undefined
    if (admission.breaker !== undefined) breaker?.exit(admission.breaker, 'ignored')
    if (admission.permit !== undefined) limits?.refund(admission.permit)
    slots.skip(this.lane)
    this.#machinery.onFree()
    const ours = late ? deadlineError('room', name) : closedError('room', name)
    const error = signal?.aborted === true ? signal.reason : ours
    this.#notRun(error)
    return new Refusal(error)
  }

  #facts() {
    const { lane, priority: importance, arrivedMs } = this
    return { options: this.#options, lane, importance, arrivedMs }
  }

  #refuse(error: unknown): Promise<never> {
    this.#notRun(error)
    return refuse(error)
  }

  /** Nothing is taken by a call that does not run. */
  #notRun(error: unknown): void {
    const { users, tally, decisions } = this.#machinery
    tally.refused(error)
    if (decisions !== undefined && this.#last === undefined) {
      decisions.refused(this.#follower, error, () => this.#facts())
    }
    if (this.#charge === undefined) return
    users?.refund(this.#charge)
    this.#charge = undefined
  }
}

/** Other failures may be quick, and would look like good answers. */
function isTimeout(error: unknown): boolean {
  return error instanceof SpillwayError && error.stage === 'timeout'
}

/** Why not, told apart from what was asked for. */
class Refusal {
  constructor(readonly error: unknown) {}
}
