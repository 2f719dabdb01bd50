/**
 * Runs at most `limit` calls at once; further calls wait in a bounded queue. Protects this pod's
 * sockets, memory and event loop from one slow downstream, so give each downstream its own. It does
 * not protect the downstream: a fleet of n pods sends n times as much.
 *
 * A slot is freed when the work behind it has ended. A call that timed out or was aborted keeps its
 * slot while its work is still running, for at most `graceMs`, because its socket is still open.
 */

import {
  type AbandonableCall,
  abandonedWork,
  allEnded,
  collectCalls,
} from '../../core/abandoned-work.js'
import { WaitList } from '../../core/collections/wait-list.js'
import {
  closedError,
  counted,
  type Details,
  type ErrorCode,
  readableTime,
  refuse,
  SpillwayError,
} from '../../core/errors.js'
import { callSafely, emit, listening } from '../../core/events.js'
import {
  type Duration,
  duration,
  having,
  integer,
  object,
  optional,
  text,
  validate,
} from '../../core/options/checks.js'
import type { Random } from '../../core/random.js'
import { isThenable, toPromise } from '../../core/thenable.js'
import type { Clock } from '../../core/time/clock.js'
import { clockOption, randomOption } from '../../core/time/clock-options.js'
import { currentDeadline, deadlineError } from '../../core/time/deadline.js'
import { DrainTime } from '../drain-time.js'
import type { PodMetrics } from '../pod-metrics/pod-metrics.js'
import { createRegistry, type Registry } from '../registry.js'

/** Options of `createBulkhead()`. */
export interface BulkheadOptions {
  /** Name in errors, events and snapshots. Default: `bulkhead`. */
  name?: string
  /** Most concurrent calls. Range: integers from 1. */
  limit: number
  /** Where calls wait for a slot. Default: none, they are refused. */
  queue?: {
    /** Most waiting calls. Range: integers from 0. */
    size: number
    /** Longest wait. Range: from 0 ms. Default: 5 seconds. */
    timeoutMs?: Duration
  }
  /**
   * How long work may continue after its call timed out before its slot is reused. Range: from 0 ms. Default:
   * 30 seconds.
   */
  graceMs?: Duration
  /** Receives the waiting time of each call that got a slot. Default: none. */
  metrics?: Pick<PodMetrics, 'recordQueueWait'>
  /** The clock to read and to set timers with. Default: the system clock. */
  clock?: Clock
  /** Source of random numbers from 0 to 1. Default: `Math.random`. */
  random?: Random
}

/** State of a bulkhead. */
export interface BulkheadSnapshot {
  /** Name in errors, events and snapshots. */
  name: string
  /** Calls that may run at once. */
  limit: number
  /** Calls that run. */
  active: number
  /** Calls that wait. */
  waiting: number
  /** Calls that could start now. */
  available: number
}

/** Limits how many calls run at once. Created by `createBulkhead()`. */
export interface Bulkhead {
  /** Name in errors, events and snapshots. */
  readonly name: string
  /** Calls that may run at once. */
  readonly limit: number
  /** Slots in use. */
  readonly active: number
  /** Waiting calls. */
  readonly waiting: number
  /** Free slots. */
  readonly available: number
  /**
   * Runs `fn` once there is a slot. Refuses with QUEUE_FULL, QUEUE_TIMEOUT, DEADLINE_EXCEEDED or
   * SHUTTING_DOWN. The signal ends the wait but not the call.
   */
  run<T>(fn: () => T | PromiseLike<T>, options?: { signal?: AbortSignal }): Promise<T>
  /** State and counts at this moment. */
  snapshot(): BulkheadSnapshot
  /** Refuses new and waiting calls; resolves when the running ones have ended. */
  close(): Promise<void>
}

export const bulkheadFields = {
  name: optional(text(), 'bulkhead'),
  limit: integer({ min: 1 }),
  queue: optional(
    object({ size: integer({ min: 0 }), timeoutMs: optional(duration({ min: 0 }), 5_000) }),
    { size: 0, timeoutMs: 0 },
  ),
  graceMs: optional(duration({ min: 0 }), 30_000),
  metrics: optional(having<Pick<PodMetrics, 'recordQueueWait'>>('pod metrics', 'recordQueueWait')),
  clock: clockOption,
  random: randomOption,
}

const readOptions = object(bulkheadFields)

/** Bulkheads by name. */
export type BulkheadRegistry = Registry<Bulkhead, Omit<BulkheadOptions, 'name'>>

/**
 * Creates bulkheads by name, one for each downstream.
 *
 * @example
 * const bulkheads = createBulkheadRegistry({ limit: 10 })
 * await bulkheads.get('payments').run(() => charge(order))
 */
export function createBulkheadRegistry(defaults: Omit<BulkheadOptions, 'name'>): BulkheadRegistry {
  // Validates the defaults now and not when the first downstream is called.
  createBulkhead(defaults)
  return createRegistry(defaults, createBulkhead)
}

/**
 * Creates a bulkhead: at most `limit` calls at once, with a bounded queue.
 *
 * @example
 * const bulkhead = createBulkhead({ limit: 10, queue: { size: 50, timeoutMs: '2s' } })
 * await bulkhead.run(() => query(sql))
 */
export function createBulkhead(options: BulkheadOptions): Bulkhead {
  return new SlotBulkhead(validate('bulkhead', options, readOptions))
}

class SlotBulkhead implements Bulkhead {
  readonly name: string
  readonly limit: number
  active = 0
  readonly #size: number
  readonly #timeoutMs: number
  readonly #graceMs: number
  readonly #clock: Clock
  readonly #metrics: Pick<PodMetrics, 'recordQueueWait'> | undefined
  readonly #waitList: WaitList
  readonly #drainTime: DrainTime
  /** For each slot whose work is still running after its call: frees the slot early. */
  readonly #overdue = new Set<() => void>()
  #closed = false
  #idle: (() => void)[] = []

  constructor(options: ReturnType<typeof readOptions>) {
    this.name = options.name
    this.limit = options.limit
    this.#size = options.queue.size
    this.#timeoutMs = options.queue.timeoutMs
    this.#graceMs = options.graceMs
    this.#clock = options.clock
    this.#metrics = options.metrics
    this.#waitList = new WaitList(options.clock, this.#timeoutMs)
    this.#drainTime = new DrainTime(options.random)
  }

  get waiting(): number {
    return this.#waitList.length
  }

  get available(): number {
    return this.limit - this.active
  }

  run<T>(fn: () => T | PromiseLike<T>, options?: { signal?: AbortSignal }): Promise<T> {
    const signal = options?.signal ?? undefined
    if (signal?.aborted) return refuse(signal.reason)
    if (this.#closed) return refuse(closedError('concurrency', this.name))
    const deadline = currentDeadline()
    if (deadline?.expired) return refuse(this.#tooLate())
    if (this.active < this.limit) {
      this.active++
      if (this.#metrics !== undefined) this.#noteWait(0)
      return this.#drainTime.isUnknown ? this.#startTimed(fn, this.#clock.now()) : this.#start(fn)
    }
    if (this.#waitList.length >= this.#size) return refuse(this.#refusal('QUEUE_FULL'))
    const sinceMs = this.#clock.now()
    this.#drainTime.queued(sinceMs, this.#waitList.length === 0)
    const maxWaitMs = Math.min(this.#timeoutMs, deadline?.remainingMs() ?? this.#timeoutMs)
    // Continues in the caller's promise chain, so that `fn` sees the caller's async context and not
    // that of the call that freed the slot.
    return this.#waitList.join({ maxWaitMs, signal }).then((admitted) => {
      if (admitted && !signal?.aborted && !deadline?.expired) {
        const nowMs = this.#clock.now()
        this.#noteWait(nowMs - sinceMs)
        return this.#startTimed(fn, nowMs)
      }
      if (admitted) this.#release()
      signal?.throwIfAborted()
      throw deadline?.expired ? this.#tooLate() : this.#refusal('QUEUE_TIMEOUT')
    })
  }

  snapshot(): BulkheadSnapshot {
    const { name, limit, active, waiting, available } = this
    return { name, limit, active, waiting, available }
  }

  close(): Promise<void> {
    this.#closed = true
    this.#waitList.close(() => closedError('concurrency', this.name))
    for (const freeSlot of this.#overdue) freeSlot()
    return new Promise((resolve) => {
      if (this.active === 0) resolve()
      else this.#idle.push(resolve)
    })
  }

  /** Like `#start`, for calls that have waited. Their durations are used to estimate how long others will wait. */
  #startTimed<T>(fn: () => T | PromiseLike<T>, startMs: number): Promise<T> {
    const promise = this.#start(fn)
    const ended = () => {
      const nowMs = this.#clock.now()
      this.#drainTime.ended(nowMs, nowMs - startMs)
    }
    promise.then(ended, ended)
    return promise
  }

  /** Runs `fn` in a slot that was already taken. */
  #start<T>(fn: () => T | PromiseLike<T>): Promise<T> {
    let result: T | PromiseLike<T>
    let calls: readonly AbandonableCall[] | undefined
    try {
      result = collectCalls(fn, (began) => {
        calls = began
      })
      if (isThenable(result)) {
        const promise = toPromise(result)
        if (calls !== undefined) return this.#holdFor(promise, calls)
        return promise.then(this.#onValue, this.#onError) as Promise<T>
      }
    } catch (error) {
      this.#release()
      return refuse(error)
    }
    this.#release()
    return Promise.resolve(result)
  }

  // Created once and not per call.
  readonly #onValue = (value: unknown): unknown => {
    this.#release()
    return value
  }

  readonly #onError = (error: unknown): never => {
    this.#releaseAfter(abandonedWork(error))
    throw error
  }

  /** `fn` started calls that may leave work running, for any result. */
  #holdFor<T>(promise: Promise<T>, calls: readonly AbandonableCall[]): Promise<T> {
    const release = () => {
      const left = calls.flatMap(({ leftBehind }) => leftBehind ?? [])
      this.#releaseAfter(left.length === 0 ? undefined : allEnded(left))
    }
    return promise.then(
      (value) => {
        release()
        return value
      },
      (error) => {
        release()
        throw error
      },
    )
  }

  #noteWait(waitMs: number): void {
    const note = () => this.#metrics?.recordQueueWait(waitMs)
    callSafely(this.name, 'metrics', note, undefined)
  }

  #releaseAfter(work: Promise<unknown> | undefined): void {
    // Closing waits for calls but not for work that they left running.
    if (work === undefined || this.#closed) return this.#release()
    const freeSlot = () => {
      if (!this.#overdue.delete(freeSlot)) return
      timer.cancel()
      this.#release()
    }
    this.#overdue.add(freeSlot)
    const timer = this.#clock.schedule(this.#graceMs, () => {
      if (listening()) {
        emit({ type: 'bulkhead.overdue', name: this.name, graceMs: this.#graceMs })
      }
      freeSlot()
    })
    timer.unref()
    work.then(freeSlot, freeSlot)
  }

  /** Passes the slot to the first waiting call, or frees it. */
  #release(): void {
    const next = this.#waitList.head
    if (next !== undefined) return this.#waitList.admit(next)
    this.active--
    if (this.active > 0 || this.#idle.length === 0) return
    for (const resolve of this.#idle.splice(0)) resolve()
  }

  #tooLate(): SpillwayError {
    this.#noteRefusal('DEADLINE_EXCEEDED')
    return deadlineError('concurrency', this.name)
  }

  #noteRefusal(code: ErrorCode): void {
    if (!listening()) return
    const { name, active, limit, waiting } = this
    emit({ type: 'bulkhead.refused', name, code, active, waiting, limit })
  }

  #refusal(code: 'QUEUE_FULL' | 'QUEUE_TIMEOUT'): SpillwayError {
    const { name, active, limit, waiting } = this
    this.#noteRefusal(code)
    const explain = code === 'QUEUE_FULL' ? explainFull : explainTimeout
    // Written out, because spreading the snapshot would double the cost of a refusal.
    const details = { name, active, limit, waiting, size: this.#size, timeoutMs: this.#timeoutMs }
    const calls = Math.max(1, waiting)
    const retryAfterMs = this.#drainTime.retryAfterMs(this.#clock.now(), calls, limit)
    return new SpillwayError({
      code,
      stage: 'concurrency',
      scope: 'local',
      retryAfterMs,
      details,
      explain,
    })
  }
}

function explainFull({ name, active, limit, waiting, size }: Details): string {
  return `${name}: ${active} of ${counted(limit, 'slots')} in use, ${waiting} of ${size} queued`
}

function explainTimeout({ name, timeoutMs, limit }: Details): string {
  return `${name}: none of ${counted(limit, 'slots')} came free within ${readableTime(timeoutMs)}`
}
