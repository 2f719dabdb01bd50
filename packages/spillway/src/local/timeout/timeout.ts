/**
 * Limits the time of one call (`callMs`), of its first byte (`firstByteMs`), between two reports of
 * progress (`idleMs`), and of everything inside, including retries (`totalMs`). Never exceeds the
 * deadline of the request. The caller gets its error at once. The call's signal is aborted, but its
 * work cannot be forced to stop, so a bulkhead keeps its slot until it ends.
 */

import { refuse } from '../../core/errors.js'
import {
  type Duration,
  duration,
  type OptionProblem,
  OptionsError,
  object,
  optional,
  text,
  validate,
} from '../../core/options/checks.js'
import type { Clock } from '../../core/time/clock.js'
import { clockOption } from '../../core/time/clock-options.js'
import {
  currentDeadline,
  Deadline,
  deadlineError,
  earlierOf,
  runWithDeadline,
} from '../../core/time/deadline.js'
import { TimerList } from '../../core/time/timer-list.js'
import { type AdaptiveOptions, AdaptiveTimeout, readAdaptive } from './adaptive-timeout.js'
import { type CallLimits, TimedCall, type TimeoutContext } from './timed-call.js'

/** Options of `createTimeout()`. */
export interface TimeoutOptions {
  /** Name in errors and events. Default: `timeout`. */
  name?: string
  /** Longest time for one call. Range: from 1 ms. Default: no limit. */
  callMs?: Duration
  /**
   * Longest time for everything inside: sets a deadline that all nested mechanisms follow. Range: from 1 ms.
   * Default: no limit.
   */
  totalMs?: Duration
  /** Longest time until the call first reports progress, such as the first byte. Range: from 1 ms. Default: no limit. */
  firstByteMs?: Duration
  /** Longest time between two reports of progress, such as bytes of an answer. Range: from 1 ms. Default: no limit. */
  idleMs?: Duration
  /** Lets the limit follow the measured duration of calls, starting with `callMs`. Default: off. */
  adaptive?: AdaptiveOptions
  /** The clock to read and to set timers with. Default: the system clock. */
  clock?: Clock
}

/** Limits the time of calls. Created by `createTimeout()`. */
export interface Timeout {
  /** Name in errors, events and snapshots. */
  readonly name: string
  /** The limit of a call that begins now, in milliseconds; undefined without `callMs`. */
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
  clock: clockOption,
})

type Options = ReturnType<typeof readOptions>

/**
 * Creates a timeout, which aborts calls that take too long.
 *
 * @example
 * const timeout = createTimeout({ callMs: '5s' })
 * await timeout.run(({ signal }) => fetch(url, { signal }))
 */
export function createTimeout(options: TimeoutOptions): Timeout {
  return createLocalTimeout(options)
}

/** Like `createTimeout`, for mechanisms that begin calls themselves. */
export function createLocalTimeout(options: TimeoutOptions): LocalTimeout {
  const { name, callMs, totalMs, firstByteMs, idleMs, ...rest } = validate(
    'timeout',
    options,
    readOptions,
  )
  if ((callMs ?? totalMs ?? firstByteMs ?? idleMs) === undefined) {
    const message = 'needs one of callMs, totalMs, firstByteMs, idleMs'
    throw new OptionsError([{ path: 'timeout', message }])
  }
  const problems: OptionProblem[] = []
  checkAdaptive({ callMs, adaptive: rest.adaptive }, 'timeout', problems)
  if (problems.length > 0) throw new OptionsError(problems)
  return new LocalTimeout({ name, callMs, totalMs, firstByteMs, idleMs, ...rest })
}

/** Checks that an adaptive limit has a starting value and consistent bounds. */
export function checkAdaptive(
  { callMs, adaptive }: Pick<Options, 'callMs' | 'adaptive'>,
  path: string,
  problems: OptionProblem[],
): void {
  if (adaptive !== undefined && callMs === undefined) {
    problems.push({ path: `${path}.adaptive`, message: 'needs callMs as its initial value' })
  }
  const { minMs, maxMs = callMs } = adaptive ?? {}
  if (minMs !== undefined && maxMs !== undefined && minMs > maxMs) {
    const message = `must not be above maxMs, which is ${maxMs} ms`
    problems.push({ path: `${path}.adaptive.minMs`, message })
  }
}

/** Without `callMs` only the deadline of the request applies. */
export function createDeadlineTimeout(name: string, clock: Clock): LocalTimeout {
  return new LocalTimeout({ ...validate('timeout', { name, clock }, readOptions) })
}

export class LocalTimeout implements Timeout, CallLimits {
  readonly name: string
  readonly clock: Clock
  readonly firstByteMs: number | undefined
  readonly idleMs: number | undefined
  readonly timers: TimerList
  readonly firstByteTimers: TimerList
  readonly fixedMs: number | undefined
  readonly adaptive: AdaptiveTimeout | undefined
  readonly #totalMs: number | undefined

  constructor(options: Options) {
    const { adaptive, callMs, clock } = options
    this.name = options.name
    this.clock = clock
    this.firstByteMs = options.firstByteMs
    this.idleMs = options.idleMs
    this.fixedMs = callMs
    this.adaptive = adaptive && new AdaptiveTimeout(callMs as number, adaptive)
    this.#totalMs = options.totalMs
    // Without `callMs` there is no usual delay, and NaN equals none.
    this.timers = new TimerList(clock, callMs ?? Number.NaN)
    this.firstByteTimers = new TimerList(clock, options.firstByteMs ?? Number.NaN)
  }

  get callMs(): number | undefined {
    return this.adaptive?.limitMs(this.clock.now()) ?? this.fixedMs
  }

  run<T>(
    fn: (context: TimeoutContext) => T | PromiseLike<T>,
    options?: { signal?: AbortSignal },
  ): Promise<T> {
    const signal = options?.signal ?? undefined
    if (signal?.aborted) return refuse(signal.reason)
    const nowMs = this.clock.now()
    const deadline = this.#deadline(nowMs)
    if (deadline?.expired) {
      return refuse(deadlineError('timeout', this.name))
    }
    const call = new TimedCall<T>(this, nowMs, deadline, signal)
    if (this.#totalMs === undefined) return call.run(fn)
    return call.run((context) => runWithDeadline(deadline, fn, context))
  }

  #deadline(nowMs: number): Deadline | undefined {
    const current = currentDeadline()
    if (this.#totalMs === undefined) return current
    return earlierOf(current, new Deadline(nowMs + this.#totalMs, this.clock))
  }
}
