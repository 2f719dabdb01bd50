/**
 * An end to waiting: for one call (`callMs`), for its first sign of life (`firstByteMs`), between
 * two of them (`idleMs`), for everything inside, retries included (`totalMs`); and never past the
 * deadline of the request. The caller is told at once; the call is asked to stop through its signal
 * and cannot be forced: what holds a slot for it keeps holding (see bulkhead).
 */
import { onAbort } from '../core/abort.js'
import { type Clock, systemClock, type Timer } from '../core/clock.js'
import {
  currentDeadline,
  Deadline,
  deadlineError,
  earlierOf,
  runWithDeadline,
} from '../core/deadline.js'
import { type Details, refuse, SpillwayError } from '../core/errors.js'
import { emit, listening } from '../core/events.js'
import {
  type Duration,
  duration,
  having,
  OptionsError,
  object,
  optional,
  text,
  validate,
} from '../core/options.js'
import { isThenable, toPromise } from '../core/thenable.js'
import { TimerList } from '../core/timer-list.js'
import { markUnfinished } from '../core/unfinished.js'
import { AdaptiveLimit, type AdaptiveOptions, readAdaptive } from './adaptive-limit.js'

export interface TimeoutOptions {
  /** Stands in errors and events. Default: `timeout`. */
  name?: string
  /** Longest time for one call. */
  callMs?: Duration
  /** Longest time for everything inside: sets a deadline that all mechanisms in there heed. */
  totalMs?: Duration
  /** Longest time until the call first reports progress. */
  firstByteMs?: Duration
  /** Longest time between two reports of progress. */
  idleMs?: Duration
  /** Lets the call's limit follow what calls really take, beginning with `callMs`. */
  adaptive?: AdaptiveOptions
  /** Default: the system's clock. */
  clock?: Clock
}

/** What the function is given. */
export interface TimeoutContext {
  /** Aborted when the time is up or the caller aborts. Made when first looked at. */
  readonly signal: AbortSignal
  /** The moment all must be over, if there is one. */
  readonly deadline: Deadline | undefined
  /** Reports a sign of life: bytes arrived. Ends `firstByteMs`, restarts `idleMs`. */
  readonly progress: () => void
}

export interface Timeout {
  readonly name: string
  /** What a call would be given now, in milliseconds; nothing without `callMs`. */
  readonly callMs: number | undefined
  /** Fails with CALL_TIMEOUT, DEADLINE_EXCEEDED, or the signal's reason if the caller aborts. */
  run<T>(
    fn: (context: TimeoutContext) => T | PromiseLike<T>,
    options?: { signal?: AbortSignal },
  ): Promise<T>
}

const limit = () => optional(duration({ min: 1 }))

const readOptions = object({
  name: optional(text(), 'timeout'),
  callMs: limit(),
  totalMs: limit(),
  firstByteMs: limit(),
  idleMs: limit(),
  adaptive: optional(readAdaptive),
  clock: optional(having<Clock>('a clock', 'now', 'schedule'), systemClock),
})

type Options = ReturnType<typeof readOptions>

export function createTimeout(options: TimeoutOptions): Timeout {
  const { name, callMs, totalMs, firstByteMs, idleMs, ...rest } = validate(
    'timeout',
    options,
    readOptions,
  )
  if ((callMs ?? totalMs ?? firstByteMs ?? idleMs) === undefined) {
    complain('timeout', 'needs one of callMs, totalMs, firstByteMs, idleMs')
  }
  if (rest.adaptive !== undefined && callMs === undefined) {
    complain('timeout.adaptive', 'needs callMs to begin with')
  }
  return new LocalTimeout({ name, callMs, totalMs, firstByteMs, idleMs, ...rest })
}

function complain(path: string, message: string): never {
  throw new OptionsError([{ path, message }])
}

class LocalTimeout implements Timeout {
  readonly name: string
  readonly clock: Clock
  readonly firstByteMs: number | undefined
  readonly idleMs: number | undefined
  readonly timers: TimerList
  readonly #callMs: number | undefined
  readonly #totalMs: number | undefined
  readonly #adaptive: AdaptiveLimit | undefined

  constructor(options: Options) {
    const { adaptive, callMs, clock } = options
    this.name = options.name
    this.clock = clock
    this.firstByteMs = options.firstByteMs
    this.idleMs = options.idleMs
    this.#callMs = callMs
    this.#totalMs = options.totalMs
    this.#adaptive = adaptive && new AdaptiveLimit(callMs as number, adaptive)
    this.timers = new TimerList(clock, callMs ?? Number.NaN)
  }

  get callMs(): number | undefined {
    return this.#adaptive?.limitMs(this.clock.now()) ?? this.#callMs
  }

  run<T>(
    fn: (context: TimeoutContext) => T | PromiseLike<T>,
    options?: { signal?: AbortSignal },
  ): Promise<T> {
    const signal = options?.signal
    if (signal?.aborted) return refuse(signal.reason)
    const nowMs = this.clock.now()
    const deadline = this.#deadline(nowMs)
    if (deadline !== undefined && deadline.atMs <= nowMs) {
      return refuse(deadlineError('timeout', this.name))
    }
    const limitMs = this.#adaptive?.limitMs(nowMs) ?? this.#callMs
    const call = new TimedCall<T>(this, nowMs, limitMs, deadline, signal)
    let result: T | PromiseLike<T>
    try {
      result = this.#totalMs === undefined ? fn(call) : runWithDeadline(deadline, () => fn(call))
    } catch (error) {
      call.end()
      return refuse(error)
    }
    if (isThenable(result)) return call.watch(toPromise(result))
    call.end()
    return Promise.resolve(result)
  }

  /** The call that began at `startMs` succeeded or was cut off. */
  record(startMs: number): void {
    if (this.#adaptive === undefined) return
    const nowMs = this.clock.now()
    this.#adaptive.record(nowMs, nowMs - startMs)
  }

  #deadline(nowMs: number): Deadline | undefined {
    const current = currentDeadline()
    if (this.#totalMs === undefined) return current
    return earlierOf(current, new Deadline(nowMs + this.#totalMs, this.clock))
  }
}

type Kind = 'call' | 'firstByte' | 'idle' | 'deadline'

/** One call under way: its timers, and its signal if anybody looks at it. */
class TimedCall<T> implements TimeoutContext {
  readonly deadline: Deadline | undefined
  readonly #timeout: LocalTimeout
  readonly #startMs: number
  readonly #limitMs: number | undefined
  readonly #callerSignal: AbortSignal | undefined
  #controller: AbortController | undefined
  #forgetSignal: (() => void) | undefined
  /** For the call as a whole. */
  #timer: Pick<Timer, 'cancel'> | undefined
  /** For the next sign of life. */
  #silenceTimer: Pick<Timer, 'cancel'> | undefined
  #work: Promise<T> | undefined
  #reject: ((error: unknown) => void) | undefined
  #over = false
  #givenUp: { error: unknown } | undefined

  constructor(
    timeout: LocalTimeout,
    startMs: number,
    limitMs: number | undefined,
    deadline: Deadline | undefined,
    signal: AbortSignal | undefined,
  ) {
    this.#timeout = timeout
    this.#startMs = startMs
    this.#limitMs = limitMs
    this.deadline = deadline
    this.#callerSignal = signal
    this.#expectLife('firstByte', timeout.firstByteMs)
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#givenUp !== undefined) this.#controller.abort(this.#givenUp.error)
    }
    return this.#controller.signal
  }

  /** Bound when looked at, because a context is taken apart: `({ signal, progress }) => …`. */
  get progress(): () => void {
    return () => {
      this.#silenceTimer?.cancel()
      this.#expectLife('idle', this.#timeout.idleMs)
    }
  }

  watch(work: Promise<T>): Promise<T> {
    this.#work = work
    return new Promise((resolve, reject) => {
      this.#reject = reject
      this.#limit()
      const signal = this.#callerSignal
      if (signal !== undefined) {
        this.#forgetSignal = onAbort(signal, () => this.#giveUp(signal.reason))
      }
      work.then(
        (value) => {
          if (this.#over) return
          this.end()
          this.#timeout.record(this.#startMs)
          resolve(value)
        },
        (error) => {
          if (this.#over) return
          this.end()
          reject(error)
        },
      )
    })
  }

  end(): void {
    this.#over = true
    this.#timer?.cancel()
    this.#silenceTimer?.cancel()
    this.#forgetSignal?.()
  }

  /** Arms the call's own limit, or the deadline where that is earlier. */
  #limit(): void {
    const { timers, clock } = this.#timeout
    const limitMs = this.#limitMs ?? Number.POSITIVE_INFINITY
    if (this.deadline !== undefined && this.deadline.atMs - this.#startMs < limitMs) {
      const leftMs = this.deadline.atMs - clock.now()
      this.#timer = timers.schedule(leftMs, () => this.#timeUp('deadline', leftMs))
    } else if (this.#limitMs !== undefined) {
      this.#timer = timers.schedule(limitMs, () => this.#timeUp('call', limitMs))
    }
  }

  #expectLife(kind: Kind, limitMs: number | undefined): void {
    if (limitMs === undefined || this.#over) return
    this.#silenceTimer = this.#timeout.timers.schedule(limitMs, () => this.#timeUp(kind, limitMs))
  }

  #timeUp(kind: Kind, limitMs: number): void {
    const { name } = this.#timeout
    if (listening()) emit({ type: 'timeout.fired', name, kind, limitMs })
    this.#timeout.record(this.#startMs)
    const elapsedMs = this.#timeout.clock.now() - this.#startMs
    this.#giveUp(timeoutError({ name, kind, limitMs, elapsedMs, called: true }))
  }

  #giveUp(error: unknown): void {
    this.end()
    this.#givenUp = { error }
    if (this.#work !== undefined) markUnfinished(error, this.#work)
    this.#controller?.abort(error)
    this.#reject?.(error)
  }
}

const EXPLAIN: Record<Kind, (details: Details) => string> = {
  call: ({ name, limitMs }) => `${name}: no answer within ${limitMs} ms`,
  firstByte: ({ name, limitMs }) => `${name}: no first byte within ${limitMs} ms`,
  idle: ({ name, limitMs }) => `${name}: nothing more for ${limitMs} ms`,
  deadline: ({ name, limitMs }) =>
    `${name}: no answer in the ${limitMs} ms that were left of the deadline`,
}

function timeoutError(details: Details & { kind: Kind }): SpillwayError {
  const code = details.kind === 'deadline' ? 'DEADLINE_EXCEEDED' : 'CALL_TIMEOUT'
  const explain = EXPLAIN[details.kind]
  return new SpillwayError({ code, stage: 'timeout', scope: 'local', details, explain })
}
