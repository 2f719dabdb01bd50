/** One running call with its timers, and with a signal if the function uses it. */
import { AsyncResource } from 'node:async_hooks'
import {
  type AbandonableCall,
  collecting,
  markAbandonedWork,
  noteCall,
} from '../../core/abandoned-work.js'
import { type CallerSignal, onAbort } from '../../core/abort.js'
import type { Linked } from '../../core/collections/linked-list.js'
import { discardResult } from '../../core/discard.js'
import { type Details, readableTime, refuse, SpillwayError } from '../../core/errors.js'
import { callSafely, emit, listening, type TimeoutKind } from '../../core/events.js'
import { isThenable, swallow, toPromise } from '../../core/thenable.js'
import type { Clock, Timer } from '../../core/time/clock.js'
import type { Deadline } from '../../core/time/deadline.js'
import type { Timed, TimerList } from '../../core/time/timer-list.js'
import type { AdaptiveTimeout } from './adaptive-timeout.js'

/** The argument of the user's function. */
export interface TimeoutContext {
  /** Aborted when the time is up or the caller aborts. Created when first read. */
  readonly signal: AbortSignal
  /** The deadline of the call, if any. */
  readonly deadline: Deadline | undefined
  /** Reports that bytes arrived. Ends `firstByteMs` and restarts `idleMs`. */
  readonly progress: () => void
}

/** Settings that all calls of one timeout share. */
export interface CallLimits {
  readonly name: string
  readonly clock: Clock
  /** For the delay that nearly every call has. */
  readonly timers: TimerList
  readonly firstByteTimers: TimerList
  readonly firstByteMs: number | undefined
  readonly idleMs: number | undefined
  /** The limit of each call; undefined if there is none, or if it adapts. */
  readonly fixedMs: number | undefined
  /** A limit that follows the durations of calls. */
  readonly adaptive: AdaptiveTimeout | undefined
}

/** Called once when a call has ended. */
export interface CallEndListener<T> {
  /** `streaming`: the value is only the beginning of a streamed response. */
  onValue(value: T, streaming: boolean): void
  onError(error: unknown): void
}

/** The rest of a response that has begun. */
export interface ComingBody {
  /** The call was given up, so the body is not needed. */
  givenUp(error: unknown): void
}

export class TimedCall<T>
  implements TimeoutContext, AbandonableCall, Linked<TimedCall<unknown>>, Timed
{
  /** Its neighbours in its owner's list. */
  before: TimedCall<unknown> | undefined
  after: TimedCall<unknown> | undefined
  /** Its neighbours in a timer list, until it answers. */
  sooner: Timed | undefined
  later: Timed | undefined
  timed = false
  fromMs: number
  #timers: TimerList
  leftBehind: Promise<T> | undefined
  readonly deadline: Deadline | undefined
  readonly #limits: CallLimits
  readonly startMs: number
  readonly #limitMs: number | undefined
  /** Milliseconds between the start of the call and its deadline. */
  readonly #leftMs: number
  readonly #callerSignal: CallerSignal | undefined
  #controller: AbortController | undefined
  #onAborted: ((reason: unknown) => void) | undefined
  #context: AsyncResource | undefined
  #forgetSignal: (() => void) | undefined
  /** Timer of the whole call, if its limit is not the usual one. */
  #timer: Timer | undefined
  /** Timer until the next report of progress, once there was one. */
  #silenceTimer: Timer | undefined
  /** Whether there was any progress. */
  #alive = false
  #work: Promise<T> | undefined
  #end: CallEndListener<T> | undefined
  #over = false
  #streaming = false
  /** Time until the response began. Measured if there is a limit for the first byte. */
  answerMs = 0
  /** The rest of a response that has begun. */
  body: ComingBody | undefined
  #givenUp: { error: unknown } | undefined

  constructor(
    limits: CallLimits,
    startMs: number,
    deadline: Deadline | undefined,
    signal: CallerSignal | undefined,
  ) {
    this.#limits = limits
    this.#timers = limits.timers
    this.fromMs = startMs
    this.startMs = startMs
    this.#limitMs = limits.adaptive?.limitMs(startMs) ?? limits.fixedMs
    this.deadline = deadline
    this.#callerSignal = signal
    this.#leftMs =
      deadline === undefined ? Number.POSITIVE_INFINITY : Math.max(0, deadline.atMs - startMs)
    if (collecting) noteCall(this)
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      // Listeners run in the async context of the call and not in that of a shared timer. An
      // AsyncResource costs a hundredth of `AsyncLocalStorage.snapshot()`.
      this.#context = new AsyncResource('SpillwaySignal', CONTEXT_OPTIONS)
      if (this.#givenUp !== undefined) this.#controller.abort(this.#givenUp.error)
    }
    return this.#controller.signal
  }

  /** For callers that need no signal. */
  onAbort(run: (reason: unknown) => void): void {
    if (this.#givenUp === undefined) this.#onAborted = run
    else run(this.#givenUp.error)
  }

  /**
   * Bound when read, because functions destructure their context: `({ signal, progress }) => …`.
   */
  get progress(): () => void {
    return () => {
      if (this.#over) return
      this.#silenceTimer?.cancel()
      this.#firstSign()
      const { idleMs, clock } = this.#limits
      if (idleMs === undefined) return
      this.#silenceTimer = clock.schedule(idleMs, () => this.#timeUp('idle', idleMs))
    }
  }

  /** Before the first byte, `firstByteMs` may have been the earliest limit. */
  #firstSign(): void {
    if (this.#alive) return
    this.#alive = true
    if (this.#work === undefined || this.#streaming) return
    this.#disarm()
    this.#arm()
  }

  run(fn: (context: TimeoutContext) => T | PromiseLike<T>): Promise<T> {
    let early: { error: unknown } | undefined
    const promise = new Promise<T>((resolve, reject) => {
      this.start(fn, this, {
        onValue: resolve,
        onError: (error) => {
          // A promise that is created rejected costs four times as much.
          if (this.#work === undefined) early = { error }
          else reject(error)
        },
      })
    })
    return early === undefined ? promise : refuse(early.error)
  }

  /**
   * `isStreamed` returns whether an object is only the beginning of a response. Then the call is not over
   * yet.
   */
  start<C>(
    fn: (context: C) => T | PromiseLike<T>,
    context: C,
    end: CallEndListener<T>,
    isStreamed: (value: T) => boolean = never,
  ): void {
    this.#end = end
    let result: T | PromiseLike<T>
    let work: Promise<T> | undefined
    try {
      result = fn(context)
      if (result instanceof Promise) work = result
      else if (isThenable(result)) work = toPromise(result)
    } catch (error) {
      this.end()
      return end.onError(error)
    }
    if (work === undefined) return this.#answered(result as T, isStreamed)
    this.#work = work
    this.#arm()
    const signal = this.#callerSignal
    if (signal !== undefined) {
      this.#forgetSignal = onAbort(signal, () => this.giveUp(signal.reason))
    }
    work.then(
      (value) => {
        // The call was given up, so the response is not read.
        if (this.#over) return void discardResult(value)
        if (this.#limits.adaptive !== undefined) this.#record(this.#limits.adaptive)
        this.#answered(value, isStreamed)
      },
      (error) => {
        if (this.#over) return
        this.end()
        end.onError(error)
      },
    )
  }

  #answered(value: T, isStreamed: (value: T) => boolean): void {
    const begun = typeof value === 'object' && isStreamed(value)
    if (begun) this.#answerBegan()
    else this.end()
    this.#end?.onValue(value, begun)
  }

  /** No bytes of the response arrived for as long as its limits allow. */
  silent(begun: boolean): void {
    const { firstByteMs, idleMs } = this.#limits
    if (begun || firstByteMs === undefined) this.#timeUp('idle', idleMs as number)
    else this.#timeUp('firstByte', firstByteMs)
  }

  /** The time limit of the call ends when the response begins; the deadline does not. */
  #answerBegan(): void {
    this.#streaming = true
    if (this.#limits.firstByteMs !== undefined) {
      this.answerMs = this.#limits.clock.now() - this.startMs
    }
    this.#disarm()
    this.#silenceTimer?.cancel()
    this.#arm()
    const signal = this.#callerSignal
    // The signal of a function that answered synchronously was not watched so far.
    if (signal !== undefined && this.#forgetSignal === undefined) {
      this.#forgetSignal = onAbort(signal, () => this.giveUp(signal.reason))
    }
  }

  end(): void {
    this.#over = true
    this.#disarm()
    this.#silenceTimer?.cancel()
    this.#forgetSignal?.()
  }

  /**
   * Starts the timer of the earliest limit. All limits count from the start of the call, including the
   * synchronous part of its function. A response that has begun is limited by the deadline only.
   */
  #arm(): void {
    const { timers, firstByteTimers, firstByteMs, clock } = this.#limits
    const [callMs, deadlineMs] = [this.#streaming ? undefined : this.#limitMs, this.#leftMs]
    const earliestMs = Math.min(callMs ?? Number.POSITIVE_INFINITY, deadlineMs)
    if (!this.#alive && !this.#streaming && firstByteMs !== undefined && firstByteMs < earliestMs) {
      this.#timers = firstByteTimers
      firstByteTimers.add(this)
    } else if (earliestMs === callMs && callMs === timers.delayMs) {
      this.#timers = timers
      timers.add(this)
    } else if (earliestMs < Number.POSITIVE_INFINITY) {
      const kind = earliestMs === callMs ? 'call' : 'deadline'
      const leftMs = this.startMs + earliestMs - clock.now()
      this.#timer = clock.schedule(leftMs, () => this.#timeUp(kind, earliestMs))
    }
  }

  #disarm(): void {
    if (this.timed) this.#timers.remove(this)
    this.#timer?.cancel()
  }

  onTimeUp(): void {
    const { timers, firstByteMs } = this.#limits
    if (this.#timers === timers) this.#timeUp('call', this.#limitMs as number)
    else this.#timeUp('firstByte', firstByteMs as number)
  }

  #timeUp(kind: CallTimeoutKind, limitMs: number): void {
    const { name } = this.#limits
    if (listening()) emit({ type: 'timeout.fired', name, kind, limitMs })
    // Only the duration of a call that reached its own limit is meaningful.
    const { adaptive } = this.#limits
    if (kind === 'call' && adaptive !== undefined) this.#record(adaptive)
    const elapsedMs = this.#limits.clock.now() - this.startMs
    this.giveUp(timeoutError({ name, kind, limitMs, elapsedMs, called: true }))
  }

  /** The call succeeded, or was cut off by this limit. */
  #record(adaptive: AdaptiveTimeout): void {
    const nowMs = this.#limits.clock.now()
    adaptive.record(nowMs, nowMs - this.startMs)
  }

  get givenUp(): boolean {
    return this.#givenUp !== undefined
  }

  /** Ends the call with `error` although its work is still running. */
  giveUp(error: unknown): void {
    if (this.#over) return
    this.end()
    this.#givenUp = { error }
    if (!this.#streaming) this.leftBehind = this.#work
    if (this.leftBehind !== undefined) markAbandonedWork(error, this.leftBehind)
    this.#context?.runInAsyncScope(() => this.#controller?.abort(error))
    if (this.#onAborted !== undefined) this.#callOnAborted(this.#onAborted, error)
    if (!this.#streaming) this.#end?.onError(error)
    this.body?.givenUp(error)
  }

  /** A listener that throws does not prevent the end of the call. */
  #callOnAborted(run: (reason: unknown) => void, error: unknown): void {
    callSafely(this.#limits.name, 'onAbort', () => swallow(run(error)), undefined)
  }
}

const never = () => false

/** The resource has no destroy hook. */
const CONTEXT_OPTIONS = { requireManualDestroy: true }

/** Connecting has a separate timeout. */
type CallTimeoutKind = Exclude<TimeoutKind, 'connect'>

const EXPLAIN: Record<CallTimeoutKind, (details: Details) => string> = {
  call: ({ name, limitMs }) =>
    `${name}: timed out, no answer within ${readableTime(limitMs)} (timeout.callMs)`,
  firstByte: ({ name, limitMs }) =>
    `${name}: timed out, no first byte within ${readableTime(limitMs)} (timeout.firstByteMs)`,
  idle: ({ name, limitMs }) =>
    `${name}: timed out, no data for ${readableTime(limitMs)} (timeout.idleMs)`,
  deadline: ({ name, limitMs }) =>
    `${name}: timed out, no answer in the ${readableTime(limitMs)} that were left of the deadline`,
}

function timeoutError(details: Details & { kind: CallTimeoutKind }): SpillwayError {
  const code = details.kind === 'deadline' ? 'DEADLINE_EXCEEDED' : 'CALL_TIMEOUT'
  const explain = EXPLAIN[details.kind]
  return new SpillwayError({ code, stage: 'timeout', scope: 'local', details, explain })
}
