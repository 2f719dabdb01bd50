/**
 * One call on its way through the stages: entered in order, and left in order, exactly once each.
 * Stages 1 to 3 happen once, those from the breaker on once for each attempt.
 *
 * Ten thousand may wait: a call is one object of few fields, and what only some calls have is apart.
 */
import type { CallerSignal } from '../core/abort.js'
import { refuse, SpillwayError } from '../core/errors.js'
import type { Verdict } from '../core/outcome.js'
import { type Deadline, deadlineError } from '../core/time/deadline.js'
import type { Shedder } from '../local/load-shedder/shedder.js'
import { type Attempt, AttemptScope } from '../local/retry/attempts.js'
import { learnUsual, RetryCall } from '../local/retry/retry-call.js'
import { DEFAULT_LANE } from '../shared/default-lane.js'
import { type LeaveReason, QueuedCall } from '../shared/permit-queue/queued-call.js'
import type { Cost } from '../shared/rate-limiter/permit.js'
import type { UserRequest } from '../shared/user-limits/levels.js'
import { Refusal, takeNow, tooLate, tryNow } from './admitting.js'
import { type AttemptListener, GuardAttempt } from './attempt.js'
import type { CallFunction } from './context.js'
import type { CallFollower } from './decisions/follower.js'
import { giveBack } from './free-now.js'
import { HedgedAttempt } from './hedged-attempt.js'
import type { Hedger } from './hedger.js'
import { noPlaceError, waitRefusal } from './known-refusals.js'
import { type ChargedCall, LaterCharge, type LeavingCall } from './later-charge.js'
import type { CallAdmission, Machinery, WaitingCall } from './machinery.js'
import { QueuedRetry } from './queue/queued-retry.js'
import type { ResumableCall } from './queue/resume.js'
import { leaveError } from './refusals.js'
import type { RunOptions } from './run-options.js'
import { mayHedge, mayRetry, retryOptions } from './second-tries.js'
import type { UserStage } from './shared-stages.js'
import type { CallTrace } from './trace.js'

const NO_COSTS: readonly number[] = []

/** Who wants to know what becomes of a call. */
export interface CallWatchers {
  /** Gets a line for each attempt. */
  report?: Attempt[] | undefined
  trace?: CallTrace | undefined
  /** Few are followed, and only where somebody asks why. */
  follower?: CallFollower | undefined
}

type End<T> = { value: T } | { error: unknown }

/** An attempt after the first. */
interface Retry<T> {
  readonly attempt: number
  /** Hears how it ends. */
  readonly end: AttemptListener<T>
}

/** An attempt, with a second one beside it or not. */
interface Begun<T> {
  start(fn: CallFunction<T>): void
}

export class GuardCall<T>
  extends QueuedCall<CallAdmission>
  implements AttemptListener<T>, WaitingCall, ResumableCall<CallAdmission>, ChargedCall, LeavingCall
{
  /** As the guard's lanes resolve it: its own, or the one it shares. */
  lane: string
  costs: readonly number[] = NO_COSTS
  costsUnder: unknown
  readonly priority: number
  readonly arrivedMs: number
  readonly #machinery: Machinery
  readonly #fn: CallFunction<T>
  readonly #options: RunOptions
  /** Nearly always nothing. */
  readonly #watchers: CallWatchers | undefined
  readonly #deadline: Deadline | undefined
  /** What was taken from the user's limits, until the call has run. */
  #charge: UserRequest | undefined
  /** What the end of the last attempt meant; nothing while it has not ended, or was refused. */
  #verdict: Verdict | undefined
  /** The last attempt that began. */
  #last: GuardAttempt<T> | undefined
  #retry: Retry<T> | undefined
  /** Of the first attempt, if it may be retried. */
  #firstScope: AttemptScope | undefined
  #resolve!: (value: T | PromiseLike<T>) => void
  #reject!: (error: unknown) => void

  constructor(
    machinery: Machinery,
    fn: CallFunction<T>,
    options: RunOptions,
    watchers: CallWatchers | undefined,
    lane: string,
    importance: number,
    arrivedMs: number,
    deadline: Deadline | undefined,
  ) {
    super()
    this.#machinery = machinery
    this.#fn = fn
    this.#options = options
    this.#watchers = watchers
    this.lane = lane
    this.priority = importance
    this.arrivedMs = arrivedMs
    this.#deadline = deadline
  }

  get cost(): Cost | undefined {
    return this.#options.cost
  }

  get deadlineMs(): number {
    return this.#deadline?.atMs ?? Number.POSITIVE_INFINITY
  }

  get signal(): CallerSignal | undefined {
    return this.#options.signal
  }

  /** Nothing was known against it when it came, which was just now. */
  start(): Promise<T> {
    const { users, limits, counted, dispatcher, sameClock, lanes } = this.#machinery
    let clear: boolean
    let charge: ReturnType<UserStage['charge']>
    try {
      // Now: in the room a mistake of one call would be everybody's.
      if (this.cost !== undefined) counted?.checkCost(this.cost)
      // Whether nothing stands in the way.
      clear = lanes.has(this.lane) && dispatcher.isClear(this.lane, this.arrivedMs)
      const known = clear ? undefined : waitRefusal(this.#machinery, this)
      if (known !== undefined) return this.#refuse(known)
      if (limits !== undefined) dispatcher.costsOf(this)
      if (users === undefined) return this.#attempts(clear)
      const options = this.#watchers?.follower?.listening() ?? this.#options
      charge = users.charge(options, sameClock ? this.arrivedMs : undefined, this)
    } catch (error) {
      return refuse(error)
    }
    if (charge instanceof LaterCharge) return this.#chargedLater(charge)
    const refusal = this.#keepCharge(charge)
    return refusal === undefined ? this.#attempts(clear) : this.#refuse(refusal)
  }

  /** Why the call may not go on, if that is so. */
  #keepCharge(charge: UserRequest | SpillwayError | undefined): SpillwayError | undefined {
    if (!(charge instanceof Error)) this.#charge = charge
    else if (this.#machinery.shadow?.spares(charge, this.lane, this.#options) !== true) {
      return charge
    }
    return undefined
  }

  /** The store is being asked. */
  #chargedLater(later: LaterCharge): Promise<T> {
    const answer = this.#promise()
    later.heed(this, this.#deadline, this.#machinery.clock)
    return answer
  }

  onCharged(charge: UserRequest | SpillwayError): void {
    try {
      const refusal = this.#keepCharge(charge)
      if (refusal !== undefined) return this.refuse(refusal)
      const nowMs = this.#enter()
      const admission = tryNow(this.#machinery, this, this.#deadline, nowMs)
      if (admission instanceof Refusal) return this.refuse(admission.error)
      this.#proceed(admission, nowMs)
    } catch (error) {
      this.#reject(error)
    }
  }

  onChargeLate(): void {
    this.refuse(deadlineError('user-limit', this.#machinery.name))
  }

  onChargeLeft(reason: unknown): void {
    this.refuse(reason)
  }

  /**
   * The first attempt. Nearly every call ends with it, so retrying begins only when there is
   * something to try again. `clear`: nothing stands in the way, and the call has come this moment.
   */
  #attempts(clear: boolean): Promise<T> {
    const expected = this.lane
    const nowMs = this.#enter()
    const { store } = this.#machinery
    const admission =
      clear && this.lane === expected && !store.remote
        ? takeNow(this.#machinery, this, this.#deadline, nowMs)
        : tryNow(this.#machinery, this, this.#deadline, nowMs)
    if (admission instanceof Refusal) return this.#refuse(admission.error)
    const answer = this.#promise()
    this.#proceed(admission, nowMs)
    return answer
  }

  /** Its user's limits are behind it. Answers with what time it is. */
  #enter(): number {
    const { budget, clock, store } = this.#machinery
    this.#enterLane()
    this.#watchers?.follower?.entered()
    if (budget !== undefined) budget.recordRequest(this.arrivedMs)
    // With a store that answers at once, no time has passed since the call came.
    return store.remote ? clock.now() : this.arrivedMs
  }

  /** For each attempt: while the call waits to be retried, its lane may be dropped. */
  #enterLane(): void {
    this.lane = this.#machinery.lanes.enter(this.#options.lane ?? DEFAULT_LANE)
  }

  #promise(): Promise<T> {
    const answer = new Promise<T>(handOver)
    this.#resolve = resolveMade
    this.#reject = rejectMade
    return answer
  }

  #proceed(admission: CallAdmission | undefined, nowMs: number): void {
    if (this.#watchers?.follower !== undefined) this.#tellEnd(this.#watchers.follower)
    this.#go(admission, nowMs)
  }

  /** At once, or through the room. */
  #go(admission: CallAdmission | undefined, nowMs: number): void {
    try {
      if (admission === undefined) this.#wait(nowMs)
      else this.#start(admission, nowMs)
    } catch (error) {
      this.refuse(error)
    }
  }

  /** Whoever follows it hears how it ends. */
  #tellEnd(follower: CallFollower): void {
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
    this.#watchers?.follower?.judged(verdict)
  }

  onValue(value: T): void {
    const { retry, shedder } = this.#machinery
    if (shedder !== undefined) this.#noteLatency(shedder)
    const final = retry === undefined || this.#verdict?.retryable === false
    if (!final || this.#watchers?.report !== undefined) return this.#concludeInContext({ value })
    // How long calls take is learnt from those that have a deadline.
    if (retry !== undefined && this.#deadline !== undefined) {
      learnUsual(retry, this.#machinery.clock.now() - (this.#last?.startMs ?? this.arrivedMs))
    }
    this.#letGo()
    this.#resolve(value)
  }

  onError(error: unknown): void {
    const { retry, shedder } = this.#machinery
    if (shedder !== undefined && isTimeout(error)) this.#noteLatency(shedder)
    if (this.#watchers?.report !== undefined || retry !== undefined) {
      return this.#concludeInContext({ error })
    }
    this.#letGo()
    this.#reject(error)
  }

  /**
   * A call that has waited is old to the garbage collector, which looks at the old seldom; what it
   * still points to is kept until then, although it is over.
   */
  #letGo(): void {
    this.#last = undefined
  }

  /** How long its caller has waited for the answer, or for its first byte. */
  #noteLatency(shedder: Shedder): void {
    if (!shedder.timesCalls) return
    const nowMs = this.#machinery.clock.now()
    shedder.record(nowMs, nowMs - this.arrivedMs)
  }

  /** That was it, or it is tried again, in its caller's async context: a timeout comes from that of a shared timer. */
  #concludeInContext(end: End<T>): void {
    this.runInAsyncScope(this.#conclude, this, end)
  }

  #conclude(end: End<T>): void {
    const { retry, once } = this.#machinery
    const policy = mayRetry(this.#machinery) ? (retry ?? once) : once
    const options = retryOptions(this.#machinery, this.#options, this.lane, () => this.#verdict)
    const again = ({ attempt }: { attempt: number }) => this.#attempt(attempt)
    new RetryCall(policy, again, options, this.#watchers?.report, this.#deadline)
      .resume(end, this.#last?.startMs ?? this.arrivedMs, this.#firstScope)
      .then(this.#resolve, this.#reject)
  }

  /** Another attempt. */
  #attempt(attempt: number): Promise<T> {
    const nowMs = this.#machinery.clock.now()
    this.#verdict = undefined
    this.#enterLane()
    const admission = tryNow(this.#machinery, this, this.#deadline, nowMs)
    if (admission instanceof Refusal) return this.#refuse(admission.error)
    return new Promise<T>((onValue, onError) => {
      const onVerdict = (verdict: Verdict) => this.onVerdict(verdict)
      this.#retry = { attempt, end: { onValue, onError, onVerdict } }
      if (admission === undefined) this.#wait(nowMs)
      else this.#start(admission, nowMs)
    })
  }

  #start(admission: CallAdmission, startMs: number): void {
    let attempt: Begun<T>
    try {
      attempt = this.#begun(admission, startMs)
    } catch (error) {
      giveBack(this.#machinery, this.lane, admission)
      throw error
    }
    this.#charge = undefined
    attempt.start(this.#function())
  }

  /** A first attempt that may be retried runs in a scope; the scope of a later one is in place already. */
  #function(): CallFunction<T> {
    if (this.#machinery.retry === undefined || this.#retry !== undefined) return this.#fn
    this.#firstScope ??= new AttemptScope()
    const [scope, fn] = [this.#firstScope, this.#fn]
    return (context) => scope.run(() => fn(context))
  }

  /** The attempt that has everything now. */
  #begun(admission: CallAdmission, startMs: number): Begun<T> {
    const { hedger, shadow, timings } = this.#machinery
    const attempt = this.#retry?.attempt ?? 1
    if (attempt === 1) timings?.began(startMs - this.arrivedMs)
    this.#watchers?.follower?.begins(attempt, admission, startMs)
    if (shadow !== undefined) shadow.begin(this.lane, admission, startMs, this.#options)
    if (hedger !== undefined && mayHedge(this.#machinery, this.#options, admission)) {
      return this.#hedged(hedger, admission, startMs)
    }
    const begun = new GuardAttempt<T>(
      this.#machinery,
      this.#options,
      this.lane,
      admission,
      this.#deadline,
      startMs,
      attempt,
      this.#retry?.end ?? this,
    )
    const trace = this.#watchers?.trace
    if (trace !== undefined) {
      begun.trace = trace.attempt({ lane: this.lane, attempt, hedge: false })
    }
    this.#last = begun
    return begun
  }

  #hedged(hedger: Hedger, admission: CallAdmission, startMs: number): Begun<T> {
    const call = {
      machinery: this.#machinery,
      fn: this.#function(),
      options: this.#options,
      lane: this.lane,
      deadline: this.#deadline,
      attempt: this.#retry?.attempt ?? 1,
      trace: this.#watchers?.trace,
    }
    const end = this.#retry?.end ?? this
    const hedged = new HedgedAttempt<T>(hedger, call, admission, startMs, end)
    this.#last = hedged.first
    return hedged
  }

  #wait(nowMs: number): void {
    const { room, dispatcher, starter } = this.#machinery
    this.#watchers?.follower?.waits(nowMs)
    const spare = room.full ? dispatcher.spare(this.lane, this, nowMs) : 0
    const stay = this.#retry === undefined ? this : new QueuedRetry(this, starter)
    if (room.join(stay, nowMs, spare)) dispatcher.arrived(stay)
    else this.refuse(noPlaceError(this.#machinery))
  }

  admit(admission: CallAdmission): void {
    this.#machinery.starter.resumeSoon(this, admission)
  }

  /** It has waited, and has what it wanted. */
  begin(admission: CallAdmission): void {
    const late = tooLate(this.#machinery, this.signal, this.#deadline)
    if (late === undefined) return this.#go(admission, this.#machinery.clock.now())
    giveBack(this.#machinery, this.lane, admission)
    this.refuse(late.error)
  }

  refuse(error: unknown): void {
    this.#notRun(error)
    // A first attempt that did not begin is not tried again.
    if (this.#retry === undefined) this.#reject(error)
    else this.#retry.end.onError(error)
  }

  onLeave(why: LeaveReason): void {
    this.mustLeave(why, this)
  }

  onAborted(reason: unknown): void {
    this.abandon(reason, this)
  }

  /** One of its stays in the room is over, and it has got nothing. */
  mustLeave(why: LeaveReason, stay: QueuedCall): void {
    const { name, clock, room, slots } = this.#machinery
    const waitedMs = clock.now() - stay.joinedMs
    this.abandon(leaveError(name, why, waitedMs, room.length, slots), stay)
  }

  abandon(reason: unknown, stay: QueuedCall): void {
    this.refuse(reason)
    this.#machinery.dispatcher.left(stay)
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
      decisions.refused(this.#watchers?.follower, error, () => this.#facts())
    }
    if (this.#charge === undefined) return
    users?.refund(this.#charge)
    this.#charge = undefined
  }
}

let resolveMade: (value: unknown) => void
let rejectMade: (error: unknown) => void

/** One for the promises of all calls: a function each, and its closure, would be half of a promise more. */
function handOver(resolve: (value: never) => void, reject: (error: unknown) => void): void {
  resolveMade = resolve as (value: unknown) => void
  rejectMade = reject
}

/** Other failures may be quick, and would look like good answers. */
function isTimeout(error: unknown): boolean {
  return error instanceof SpillwayError && error.stage === 'timeout'
}
