/**
 * Refuses calls early that this pod could not handle in time, the least important first, so that it
 * stays up and admitted calls get a good answer. Use it where requests come in, before any work is
 * done for them. In front of a downstream use the `shed` stage of a guard, which knows the guard's
 * queue.
 */

import { closedError, refuse, type SpillwayError } from '../../core/errors.js'
import { callSafely, emit, listening } from '../../core/events.js'
import { func, object, optional, text, validate } from '../../core/options/checks.js'
import { importanceOf, NORMAL_IMPORTANCE, type Priority } from '../../core/options/priority.js'
import type { Random } from '../../core/random.js'
import { isThenable, toPromise } from '../../core/thenable.js'
import type { Clock } from '../../core/time/clock.js'
import { clockOption, randomOption } from '../../core/time/clock-options.js'
import { currentDeadline } from '../../core/time/deadline.js'
import { type ShedOptions, shedFields } from './options.js'
import { figureOf } from './pressure-gauge.js'
import {
  type RefusedCall,
  type ShedCall,
  Shedder,
  type ShedderSnapshot,
  type ShedReason,
} from './shedder.js'

/** Options of `createLoadShedder()`. */
export interface LoadShedderOptions extends ShedOptions {
  /** Name in errors, events and snapshots. Default: `shedder`. */
  name?: string
  /** Number of waiting calls, compared with `maxQueue`. The application keeps that queue. Default: 0. */
  waiting?: () => number
  /** The clock to read and to set timers with. Default: the system clock. */
  clock?: Clock
  /** Source of random numbers from 0 to 1. Default: `Math.random`. */
  random?: Random
}

/** What is known of a request before any work is done for it. */
export interface ShedRequest extends ShedCall {
  /** Priority of the call; `critical` is never refused. Default: `normal`. */
  priority?: Priority | undefined
}

/** State and counts of a load shedder. */
export interface LoadShedderSnapshot extends ShedderSnapshot {
  /** Name in errors, events and snapshots. */
  name: string
  /** Calls in flight. */
  inFlight: number
  /** Calls that were admitted since it was created. */
  admitted: number
  /** Calls that were refused since it was created. */
  shed: number
}

/** An admitted call. */
export interface ShedVisit {
  /** Ends the call. May be called more than once. */
  end(): void
}

/** Refuses calls while the pod is overloaded. Created by `createLoadShedder()`. */
export interface LoadShedder {
  /** Name in errors, events and snapshots. */
  readonly name: string
  /** The highest of the signals; 1 is the limit. */
  readonly pressure: number
  /** Runs `fn`, or refuses with SHED. */
  run<T>(fn: () => T | PromiseLike<T>, request?: ShedRequest): Promise<T>
  /** For servers: undefined means refused. Otherwise call `end` when the request is over. */
  enter(request?: ShedRequest): ShedVisit | undefined
  /**
   * For servers: the admitted call, whose `end` has to be called when the request is over, or the refusal with its
   * reason and `retryAfterMs`.
   *
   * @example
   * const visit = shedder.admit({ endpoint: '/search' })
   * if (visit instanceof SpillwayError) return answer(visit.status, visit.retryAfterMs)
   */
  admit(request?: ShedRequest): ShedVisit | SpillwayError
  /** Why a call would be refused now, or undefined. Does not count as a call. */
  check(request?: ShedRequest): ShedReason | undefined
  /** State and counts at this moment. */
  snapshot(): LoadShedderSnapshot
  /** Refuses everything with SHUTTING_DOWN and stops its timer. */
  close(): void
}

const readOptions = object({
  ...shedFields,
  name: optional(text(), 'shedder'),
  waiting: optional(func<() => number>()),
  clock: clockOption,
  random: randomOption,
})

const NOTHING_KNOWN: ShedRequest = {}

/**
 * Creates a load shedder, which refuses calls while this process is overloaded.
 *
 * @example
 * const shedder = createLoadShedder({ cpu: 0.9, loopDelayMs: 100, maxInFlight: 500 })
 * await shedder.run(() => handle(request), { priority: 'low' })
 */
export function createLoadShedder(options: LoadShedderOptions): LoadShedder {
  return new LocalLoadShedder(validate('loadShedder', options, readOptions))
}

class LocalLoadShedder implements LoadShedder {
  readonly name: string
  readonly #clock: Clock
  readonly #waiting: (() => number) | undefined
  readonly #shedder: Shedder
  #inFlight = 0
  #admitted = 0
  #shed = 0
  #closed = false

  constructor(options: ReturnType<typeof readOptions>) {
    const { name, clock, random, waiting } = options
    this.name = name
    this.#clock = clock
    this.#waiting = waiting
    this.#shedder = new Shedder(name, options, clock, random)
  }

  get pressure(): number {
    return this.#shedder.snapshot(this.#countWaiting(), this.#inFlight).pressure
  }

  run<T>(fn: () => T | PromiseLike<T>, request: ShedRequest = NOTHING_KNOWN): Promise<T> {
    let visit: ShedVisit | SpillwayError
    try {
      visit = this.admit(request)
    } catch (error) {
      return refuse(error)
    }
    if (!('end' in visit)) return refuse(visit)
    let result: T | PromiseLike<T>
    try {
      result = fn()
    } catch (error) {
      visit.end()
      return refuse(error)
    }
    if (!isThenable(result)) {
      visit.end()
      return Promise.resolve(result)
    }
    const promise = toPromise(result)
    promise.then(visit.end, visit.end)
    return promise
  }

  enter(request: ShedRequest = NOTHING_KNOWN): ShedVisit | undefined {
    const visit = this.admit(request)
    return 'end' in visit ? visit : undefined
  }

  admit(request: ShedRequest = NOTHING_KNOWN): ShedVisit | SpillwayError {
    if (this.#closed) return closedError('shed', this.name)
    const nowMs = this.#clock.now()
    this.#shedder.arrive()
    const call = this.#callOf(request)
    const reason = this.#decide(request, call, nowMs)
    if (reason === undefined) return this.#begin(nowMs)
    this.#note(reason, request)
    return this.#shedder.refusal(reason, call, nowMs, '')
  }

  check(request: ShedRequest = NOTHING_KNOWN): ShedReason | undefined {
    return this.#decide(request, this.#callOf(request), this.#clock.now())
  }

  snapshot(): LoadShedderSnapshot {
    const { name } = this
    const shedder = this.#shedder.snapshot(this.#countWaiting(), this.#inFlight)
    const counts = { inFlight: this.#inFlight, admitted: this.#admitted, shed: this.#shed }
    return { name, ...shedder, ...counts }
  }

  close(): void {
    this.#closed = true
    this.#shedder.close()
  }

  #decide(request: ShedRequest, call: RefusedCall, nowMs: number): ShedReason | undefined {
    const { importance, deadlineMs, waiting, inFlight } = call
    return this.#shedder.decide(importance, request, deadlineMs, nowMs, waiting, inFlight)
  }

  /** Data about a call, and the current counts. */
  #callOf({ priority, tier }: ShedRequest): RefusedCall {
    return {
      importance: priority === undefined ? NORMAL_IMPORTANCE : importanceOf(priority),
      tier,
      deadlineMs: this.#shedder.options.inTime ? (currentDeadline()?.atMs ?? Infinity) : Infinity,
      waiting: this.#countWaiting(),
      inFlight: this.#inFlight,
    }
  }

  #countWaiting(): number {
    const waiting = this.#waiting
    if (waiting === undefined) return 0
    return callSafely(this.name, 'waiting', () => figureOf(waiting()), 0)
  }

  #begin(nowMs: number): ShedVisit {
    this.#inFlight++
    this.#admitted++
    let over = false
    const end = () => {
      if (over) return
      over = true
      this.#inFlight--
      if (!this.#shedder.timesCalls) return
      const endMs = this.#clock.now()
      this.#shedder.record(endMs, endMs - nowMs)
    }
    return { end }
  }

  #note(reason: ShedReason, { tier, priority }: ShedRequest): void {
    this.#shed++
    if (!listening()) return
    const { name, pressure } = this
    emit({ type: 'shedder.refused', name, reason, pressure, tier, priority: priority ?? 'normal' })
  }
}
