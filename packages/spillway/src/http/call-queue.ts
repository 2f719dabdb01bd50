/**
 * The queue of a guard without a guard, for servers: at most `limit` calls run at once, the others wait in order of
 * priority and age. While the queue is standing, the newest are served first and the oldest are dropped (CoDel).
 */
import type { CallerSignal } from '../core/abort.js'
import { closedError } from '../core/errors.js'
import {
  type Duration,
  duration,
  integer,
  object,
  optional,
  text,
  validate,
} from '../core/options/checks.js'
import { importanceOf, type Priority } from '../core/options/priority.js'
import type { Random } from '../core/random.js'
import type { Clock } from '../core/time/clock.js'
import { clockOption, randomOption } from '../core/time/clock-options.js'
import { currentDeadline, deadlineError } from '../core/time/deadline.js'
import { fullError, leaveError } from '../guard/stages/refusal-errors.js'
import { DrainTime } from '../local/drain-time.js'
import { ShedWait } from '../local/shed-wait.js'
import { CallQueue } from '../shared/permit-queue/call-queue.js'
import { type LeaveReason, QueuedCall } from '../shared/permit-queue/queued-call.js'

/** Options of `createCallQueue()`. */
export interface StandaloneCallQueueOptions {
  /** Most calls that run at once. Range: integers from 1. */
  limit: number
  /** Most calls that wait. Range: integers from 0. */
  size: number
  /** Longest wait of a call. Range: from 0 ms. Default: 5 seconds. */
  timeoutMs?: Duration
  /**
   * If calls wait longer than this for `intervalMs`, the queue drops calls and serves the newest first. Range:
   * from 1 ms. Default: a tenth of `timeoutMs`.
   */
  targetMs?: Duration
  /**
   * How long the delay must stay above `targetMs` before calls are dropped, and the time between the first two
   * drops. Range: from 1 ms. Default: `targetMs`.
   */
  intervalMs?: Duration
  /** Wait that raises a call by one step of priority. Range: from 1 ms. Default: half of `timeoutMs`. */
  agingMs?: Duration
  /** Name in errors. Default: `queue`. */
  name?: string
  /** Source of time. Default: the system clock. */
  clock?: Clock
  /** Source of random numbers from 0 to 1. Default: `Math.random`. */
  random?: Random
}

/** Options of one call of a `StandaloneCallQueue`. */
export interface QueuedRunOptions {
  /** Importance of the call. Default: `normal`. */
  priority?: Priority
  /** Ends the wait with its reason; the function itself has to heed it. Default: none. */
  signal?: AbortSignal
}

/** A queue of calls with CoDel. Created by `createCallQueue()`. */
export interface StandaloneCallQueue {
  /**
   * Runs the function as soon as fewer than `limit` run. Rejects with what the function throws, or with a
   * `SpillwayError`: `QUEUE_FULL`, `QUEUE_TIMEOUT`, `SHED`, `DEADLINE_EXCEEDED`, `SHUTTING_DOWN`.
   *
   * @example
   * const page = await queue.run(() => render(request), { priority: 'high' })
   */
  run<T>(fn: () => T | PromiseLike<T>, options?: QueuedRunOptions): Promise<T>
  /** State at this moment. */
  snapshot(): CallQueueSnapshot
  /** Refuses waiting and later calls with `SHUTTING_DOWN`. Calls that run go on. */
  close(): void
}

/** State of a `StandaloneCallQueue`. */
export interface CallQueueSnapshot {
  /** Name of the queue. */
  name: string
  /** Calls that run. */
  active: number
  /** Most calls that run at once. */
  limit: number
  /** Calls that wait. */
  waiting: number
  /** Waiting calls by priority. */
  byPriority: Record<Priority, number>
  /** Milliseconds that the oldest call has waited. */
  oldestMs: number
  /** Whether the newest calls are served first and the oldest are dropped. */
  standing: boolean
}

const readOptions = object({
  limit: integer({ min: 1 }),
  size: integer({ min: 0 }),
  timeoutMs: optional(duration({ min: 0 }), 5_000),
  targetMs: optional(duration({ min: 1 })),
  intervalMs: optional(duration({ min: 1 })),
  agingMs: optional(duration({ min: 1 })),
  name: optional(text(), 'queue'),
  clock: clockOption,
  random: randomOption,
})

/**
 * Creates a queue for the calls of a server.
 *
 * @example
 * const queue = createCallQueue({ limit: 50, size: 500, timeoutMs: '2s' })
 */
export function createCallQueue(options: StandaloneCallQueueOptions): StandaloneCallQueue {
  return new ServerCallQueue(validate('callQueue', options, readOptions))
}

/** All calls are in one lane. */
const LANE = ''

class ServerCallQueue implements StandaloneCallQueue {
  readonly #options: ReturnType<typeof readOptions>
  readonly #calls: CallQueue
  readonly #targetMs: number
  readonly #drainTime: DrainTime
  readonly #shedWait: ShedWait
  #active = 0
  #closed = false
  #serving = false

  constructor(options: ReturnType<typeof readOptions>) {
    this.#options = options
    const { clock, random, size, timeoutMs, intervalMs } = options
    const targetMs = options.targetMs ?? Math.max(1, timeoutMs / 10)
    const agingMs = options.agingMs ?? Math.max(1, timeoutMs / 2)
    const codel = { targetMs, intervalMs: intervalMs ?? targetMs }
    this.#calls = new CallQueue({ clock, size, timeoutMs, agingMs, ...codel })
    this.#targetMs = targetMs
    this.#drainTime = new DrainTime(random)
    this.#shedWait = new ShedWait(random)
  }

  run<T>(fn: () => T | PromiseLike<T>, options: QueuedRunOptions = {}): Promise<T> {
    const { name, clock, limit, size } = this.#options
    const { signal } = options
    const nowMs = clock.now()
    return new Promise<T>((resolve, reject) => {
      if (this.#closed) return reject(closedError('queue', name))
      if (signal?.aborted === true) return reject(signal.reason)
      if (currentDeadline()?.expired) return reject(deadlineError('queue', name))
      const priority = importanceOf(options.priority ?? 'normal')
      const start = () => this.#start(fn, resolve, reject)
      if (this.#active < limit && this.#calls.length === 0) return start()
      const call = new WaitingCall(nowMs, priority, signal, start, {
        onLeave: (why) => reject(this.#leaveError(why, clock.now() - nowMs)),
        onAborted: reject,
      })
      const joined = this.#calls.join(call, nowMs, 0)
      if (joined) this.#drainTime.queued(nowMs, this.#calls.length === 1)
      else reject(fullError(name, this.#calls.length, size, this.#drainMs(nowMs)))
    })
  }

  snapshot(): CallQueueSnapshot {
    const { name, limit, clock } = this.#options
    return {
      name,
      active: this.#active,
      limit,
      waiting: this.#calls.length,
      byPriority: this.#calls.lengthsByPriority(),
      oldestMs: this.#calls.oldestWaitMs(clock.now()),
      standing: this.#calls.standing,
    }
  }

  close(): void {
    this.#closed = true
    const error = closedError('queue', this.#options.name)
    for (const call of this.#calls.list(LANE)) {
      this.#calls.remove(call)
      call.onAborted(error)
    }
    this.#calls.close()
  }

  #start<T>(
    fn: () => T | PromiseLike<T>,
    resolve: (value: T) => void,
    reject: (error: unknown) => void,
  ): void {
    this.#active++
    const { clock } = this.#options
    const startMs = clock.now()
    // A promise, so that a function that throws and one that rejects end alike.
    new Promise<T>((settle) => settle(fn())).then(resolve, reject).finally(() => {
      this.#active--
      const nowMs = clock.now()
      this.#drainTime.ended(nowMs, nowMs - startMs)
      this.#serve()
    })
  }

  #serve(): void {
    // Dropping or starting a call may call this method again; the running loop covers that.
    if (this.#serving) return
    this.#serving = true
    const { clock, limit } = this.#options
    while (this.#active < limit) {
      const call = this.#calls.take(LANE, clock.now()) as WaitingCall | undefined
      if (call === undefined) break
      this.#calls.remove(call)
      call.runInAsyncScope(call.start)
    }
    this.#serving = false
  }

  #leaveError(why: LeaveReason, waitedMs: number) {
    const { name, limit } = this.#options
    return leaveError(name, why, {
      waitedMs,
      waiting: this.#calls.length,
      active: this.#active,
      limit,
      targetMs: this.#targetMs,
      retryAfterMs: this.#retryAfterMs(why),
    })
  }

  #retryAfterMs(why: LeaveReason): number | undefined {
    // The caller's deadline has passed, so waiting does not help.
    if (why === 'deadline') return undefined
    const nowMs = this.#options.clock.now()
    return why === 'overload' ? this.#shedWait.nextMs(nowMs) : this.#drainMs(nowMs)
  }

  /** When the calls that wait now will have started. */
  #drainMs(nowMs: number): number {
    const { limit } = this.#options
    return this.#drainTime.retryAfterMs(nowMs, Math.max(1, this.#calls.length), limit)
  }
}

class WaitingCall extends QueuedCall {
  readonly lane = LANE
  readonly deadlineMs: number

  constructor(
    readonly arrivedMs: number,
    readonly priority: number,
    readonly signal: CallerSignal | undefined,
    readonly start: () => void,
    readonly leaving: { onLeave(why: LeaveReason): void; onAborted(reason: unknown): void },
  ) {
    super()
    this.deadlineMs = arrivedMs + (currentDeadline()?.remainingMs() ?? Number.POSITIVE_INFINITY)
  }

  onLeave(why: LeaveReason): void {
    this.leaving.onLeave(why)
  }

  onAborted(reason: unknown): void {
    this.leaving.onAborted(reason)
  }
}
