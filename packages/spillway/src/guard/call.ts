/**
 * One call on its way through the stages: entered in order, and left in order, exactly once each.
 * Stages 1 to 3 happen once, those from the breaker on once for each attempt.
 */
import type { Clock } from '../core/clock.js'
import {
  currentDeadline,
  Deadline,
  deadlineError,
  earlierOf,
  runWithDeadline,
} from '../core/deadline.js'
import { closedError, refuse, type SpillwayError } from '../core/errors.js'
import { callSafely } from '../core/events.js'
import { duration, validate } from '../core/options.js'
import {
  type CallEnd,
  isResponse,
  judge,
  type OutcomeOptions,
  type Verdict,
} from '../core/outcome.js'
import { isThenable, toPromise } from '../core/thenable.js'
import { unfinishedWork } from '../core/unfinished.js'
import type { Attempt } from '../local/attempts.js'
import { RetryCall, type RetryPolicy } from '../local/retry-call.js'
import type { TimedCall } from '../local/timed-call.js'
import type { LocalTimeout } from '../local/timeout.js'
import type { FleetBreaker } from '../shared/circuit-breaker/fleet-breaker.js'
import type { LanePermit as BreakerPermit } from '../shared/circuit-breaker/lane-breaker.js'
import type { Trip } from '../shared/rate-limiter/limit-book.js'
import type { LanePermit as LimitPermit } from '../shared/rate-limiter/permit.js'
import type { UserRequest } from '../shared/user-limits/user-charges.js'
import { AttemptContext, type CallContext } from './context.js'
import type { Dispatcher } from './dispatcher.js'
import type { CheckedGuard, RunOptions } from './options.js'
import { readPriority } from './options.js'
import { fullError, leaveError, limitedError, shedByHookError, shedError } from './refusals.js'
import { Entry, PRIORITIES, type Room } from './room.js'
import type { LimitStage, UserStage } from './shared-stages.js'
import type { Slots } from './slots.js'
import type { Tally } from './tally.js'
import type { Admission, Wish } from './wish.js'

/** What all calls of one guard have in common. */
export interface Machinery {
  readonly name: string
  readonly clock: Clock
  readonly options: CheckedGuard
  readonly room: Room
  readonly slots: Slots
  readonly dispatcher: Dispatcher<BreakerPermit, LimitPermit, Trip>
  readonly breaker: FleetBreaker | undefined
  readonly limits: LimitStage | undefined
  readonly users: UserStage | undefined
  readonly timeout: LocalTimeout
  readonly retry: RetryPolicy | undefined
  /** A single attempt, for those who want to be told of it. */
  readonly once: RetryPolicy
  readonly judging: OutcomeOptions
  readonly tally: Tally
  /** Calls that run. */
  readonly running: Set<TimedCall<unknown>>
  closed: boolean
  /** Told when a slot has come free. */
  onFree(): void
}

type CallAdmission = Admission<BreakerPermit, LimitPermit>

export type CallFunction<T> = (context: CallContext) => T | PromiseLike<T>

const DEFAULT_LANE = 'default'
const NORMAL = PRIORITIES.indexOf('normal')
const readTimeout = duration({ min: 0 })

export class GuardCall<T> {
  readonly #machinery: Machinery
  readonly #fn: CallFunction<T>
  readonly #options: RunOptions
  readonly #lane: string
  readonly #report: Attempt[] | undefined
  #priority = NORMAL
  #arrivedMs = 0
  #deadline: Deadline | undefined
  /** What was taken from the user's limits, until the call has run. */
  #charge: UserRequest | undefined

  constructor(
    machinery: Machinery,
    fn: CallFunction<T>,
    options: RunOptions,
    report: Attempt[] | undefined,
  ) {
    this.#machinery = machinery
    this.#fn = fn
    this.#options = options
    this.#lane = options.lane ?? DEFAULT_LANE
    this.#report = report
  }

  start(): Promise<T> {
    const { clock, users, name, tally } = this.#machinery
    const { signal, priority, timeoutMs } = this.#options
    tally.calls++
    if (signal?.aborted) return refuse(signal.reason)
    this.#arrivedMs = clock.now()
    this.#deadline = currentDeadline()
    try {
      if (priority !== undefined) this.#priority = readImportance(priority)
      if (timeoutMs !== undefined) this.#limitTime(timeoutMs)
      this.#machinery.limits?.checkUnits(this.#options.cost)
    } catch (error) {
      return refuse(error)
    }
    if (this.#deadline?.expired === true) return this.#refuse(deadlineError('room', name))
    const known = this.#knownRefusal()
    if (known !== undefined) return this.#refuse(known)
    if (users === undefined) return this.#attempts()
    let charge: ReturnType<UserStage['charge']>
    try {
      charge = users.charge(this.#options)
    } catch (error) {
      return refuse(error)
    }
    return isThenable(charge)
      ? toPromise(charge).then((each) => this.#charged(each))
      : this.#charged(charge)
  }

  #limitTime(timeoutMs: NonNullable<RunOptions['timeoutMs']>): void {
    const ms =
      typeof timeoutMs === 'number' && timeoutMs >= 0
        ? timeoutMs
        : validate('timeoutMs', timeoutMs, readTimeout)
    const { clock } = this.#machinery
    this.#deadline = earlierOf(this.#deadline, new Deadline(this.#arrivedMs + ms, clock))
  }

  /** What this pod knows without asking anybody, and before anybody is charged. */
  #knownRefusal(): SpillwayError | undefined {
    const { name, closed, room, breaker, dispatcher, options } = this.#machinery
    if (closed) return closedError('room', name)
    const shed = this.#shed()
    if (shed !== undefined) return shed
    const open = breaker?.knownRefusal(this.#lane)
    if (open !== undefined) return open
    const { ms, paused } = dispatcher.blockedMs(this.#lane)
    if (ms > 0 && ms > this.#patienceMs()) return limitedError(name, this.#lane, ms, paused)
    if (room.hasPlace(this.#priority, dispatcher.spare(this.#lane))) return undefined
    return fullError(name, room.length, options.queue?.size ?? 0)
  }

  #shed(): SpillwayError | undefined {
    const { name, room, options } = this.#machinery
    const { shed } = options
    if (shed === undefined || this.#priority === 0) return undefined
    const { length: waiting } = room
    const { maxQueue, when } = shed
    if (maxQueue !== undefined && waiting >= maxQueue) return shedError(name, waiting, maxQueue)
    if (when === undefined) return undefined
    const { user, tier } = this.#options
    const priority = PRIORITIES[this.#priority] as (typeof PRIORITIES)[number]
    const question = { priority, user, tier, waiting }
    return callSafely(name, 'shed.when', () => when(question) === true, false)
      ? shedByHookError(name, waiting)
      : undefined
  }

  #patienceMs(): number {
    const queueMs = this.#machinery.options.queue?.timeoutMs ?? 0
    return Math.min(queueMs, this.#deadline?.remainingMs() ?? queueMs)
  }

  #charged(charge: UserRequest | SpillwayError | undefined): Promise<T> {
    if (charge instanceof Error) return this.#refuse(charge)
    this.#charge = charge
    return this.#attempts()
  }

  #attempts(): Promise<T> {
    const { retry } = this.#machinery
    if (retry === undefined && this.#report === undefined) return this.#attempt(1)
    const policy = retry ?? this.#machinery.once
    return new RetryCall(
      policy,
      ({ attempt }) => this.#attempt(attempt),
      this.#options,
      this.#report,
      this.#deadline,
    ).start()
  }

  #attempt(attempt: number): Promise<T> {
    const { dispatcher, closed, name } = this.#machinery
    const { signal } = this.#options
    if (signal?.aborted) return this.#refuse(signal.reason)
    if (closed) return this.#refuse(closedError('room', name))
    if (this.#deadline?.expired === true) return this.#refuse(deadlineError('room', name))
    let admission: CallAdmission | undefined
    try {
      admission = dispatcher.tryNow(this.#lane, this.#options.cost)
    } catch (error) {
      return this.#refuse(error)
    }
    if (admission !== undefined) return this.#begin(admission, attempt)
    return this.#wait().then((each) => this.#beginLater(each, attempt))
  }

  #wait(): Promise<CallAdmission> {
    const { room, dispatcher, clock, name, options } = this.#machinery
    return new Promise((resolve, reject) => {
      const nowMs = clock.now()
      const wish: Wish<BreakerPermit, LimitPermit> = {
        cost: this.#options.cost,
        costs: [],
        of: undefined,
        breaker: undefined,
        reserved: false,
        admit: resolve,
        refuse: (error) => {
          this.#notRun(error)
          reject(error)
        },
      }
      const entry: Entry<typeof wish> = new Entry(
        {
          lane: this.#lane,
          priority: this.#priority,
          arrivedMs: this.#arrivedMs,
          deadlineMs: this.#deadline?.atMs ?? Number.POSITIVE_INFINITY,
          signal: this.#options.signal,
        },
        wish,
        (why) => wish.refuse(leaveError(name, why, clock.now() - entry.enteredMs)),
        (reason) => wish.refuse(reason),
      )
      if (room.join(entry, nowMs, dispatcher.spare(this.#lane))) dispatcher.arrived(this.#lane)
      else wish.refuse(fullError(name, room.length, options.queue?.size ?? 0))
    })
  }

  /** In a continuation of the caller's, so that `fn` sees the caller's async context. */
  #beginLater(admission: CallAdmission, attempt: number): Promise<T> {
    const { signal } = this.#options
    const late = this.#deadline?.expired === true
    if (!late && signal?.aborted !== true) return this.#begin(admission, attempt)
    const { breaker, limits, slots, name } = this.#machinery
    if (admission.breaker !== undefined) breaker?.exit(admission.breaker, 'ignored')
    if (admission.permit !== undefined) limits?.refund(admission.permit)
    slots.skip()
    this.#machinery.onFree()
    return this.#refuse(signal?.aborted === true ? signal.reason : deadlineError('room', name))
  }

  #begin(admission: CallAdmission, attempt: number): Promise<T> {
    const { clock, slots, timeout, running, tally } = this.#machinery
    const startMs = clock.now()
    slots.beat(startMs)
    this.#charge = undefined
    tally.attempts++
    const timed = timeout.begin<T>(startMs, this.#deadline, this.#options.signal)
    const context = new AttemptContext(timed, attempt, admission.permit)
    running.add(timed as TimedCall<unknown>)
    const call = () => this.#fn(context)
    return timed
      .run(
        this.#options.timeoutMs === undefined ? call : () => runWithDeadline(this.#deadline, call),
      )
      .then(
        (value) => {
          this.#end({ value }, admission, startMs, timed)
          return value
        },
        (error) => {
          this.#end({ error }, admission, startMs, timed)
          throw error
        },
      )
  }

  /** Leaves every stage, in the reverse order, whatever the outcome. */
  #end(end: CallEnd, admission: CallAdmission, startMs: number, timed: TimedCall<T>): void {
    const { breaker, limits, clock, running, tally } = this.#machinery
    running.delete(timed as TimedCall<unknown>)
    const verdict = this.#judge(end, clock.now() - startMs)
    tally.outcomes[verdict.outcome]++
    this.#freeSlot('error' in end ? unfinishedWork(end.error) : undefined)
    if (limits !== undefined) limits.heed(end, verdict, admission.permit as LimitPermit)
    else if (verdict.outcome === 'throttled') this.#pauseHere(verdict)
    if (admission.breaker !== undefined) breaker?.exit(admission.breaker, verdict.outcome)
  }

  #judge(end: CallEnd, durationMs: number): Verdict {
    const { judging } = this.#machinery
    const plain =
      'value' in end &&
      judging.classify === undefined &&
      judging.slowMs === undefined &&
      !isResponse(end.value)
    if (plain) return SUCCESS
    end.durationMs = durationMs
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
    const { slots, clock, options, closed } = this.#machinery
    const free = () => {
      slots.end()
      this.#machinery.onFree()
    }
    if (work === undefined || closed) return free()
    let held = true
    const letGo = () => {
      if (!held) return
      held = false
      timer.cancel()
      free()
    }
    const timer = clock.schedule(options.concurrency?.graceMs ?? 0, letGo)
    timer.unref()
    work.then(letGo, letGo)
  }

  #refuse(error: unknown): Promise<never> {
    this.#notRun(error)
    return refuse(error)
  }

  /** Nothing is taken by a call that does not run. */
  #notRun(error: unknown): void {
    const { users, tally } = this.#machinery
    tally.refused(error)
    if (this.#charge === undefined) return
    users?.refund(this.#charge)
    this.#charge = undefined
  }
}

const SUCCESS: Verdict = Object.freeze({ outcome: 'success', retryable: false })

function readImportance(priority: unknown): number {
  const importance = (PRIORITIES as readonly unknown[]).indexOf(priority)
  if (importance >= 0) return importance
  return PRIORITIES.indexOf(validate('priority', priority, readPriority))
}
