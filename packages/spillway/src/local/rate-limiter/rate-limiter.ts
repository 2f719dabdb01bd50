/**
 * Limits a rate in this pod alone. Smooths what this pod sends. A vendor's limit needs the shared
 * rate limiter, because the vendor counts all pods.
 *
 * Waiting calls are served in order, and only the first one has a timer.
 */

import { WaitList } from '../../core/collections/wait-list.js'
import { closedError, refuse } from '../../core/errors.js'
import { emit, listening } from '../../core/events.js'
import {
  type Duration,
  duration,
  integer,
  OptionsError,
  object,
  oneOf,
  optional,
  text,
  validate,
} from '../../core/options/checks.js'
import type { Clock, Timer } from '../../core/time/clock.js'
import { clockOption } from '../../core/time/clock-options.js'
import { currentDeadline } from '../../core/time/deadline.js'
import type { Algorithm } from './algorithm.js'
import { fixedWindow } from './fixed-window.js'
import { leakyBucket } from './leaky-bucket.js'
import { slidingWindow } from './sliding-window.js'
import { tokenBucket } from './token-bucket.js'

/** Options of `createRateLimiter()`. */
export interface RateLimiterOptions {
  /** Name in errors and events. Default: `limiter`. */
  name?: string
  /** Most units in a window. Range: integers from 1. */
  limit: number
  /** Time in which `limit` units are allowed. Range: from 1 ms. */
  windowMs: Duration
  /**
   * How units are counted. `sliding-window` never grants more than `limit` in any window. Default:
   * `token-bucket`.
   */
  algorithm?: 'token-bucket' | 'leaky-bucket' | 'fixed-window' | 'sliding-window'
  /**
   * `token-bucket` only: units that may be taken at once after a quiet time. Range: integers from 1. Default:
   * `limit`.
   */
  burst?: number
  /** `sliding-window` only: number of slices of the window. Range: integers from 1 to 1,000. Default: 50. */
  slices?: number
  /** The clock to read and to set timers with. Default: the system clock. */
  clock?: Clock
}

/** A rate limiter of this pod. Created by `createRateLimiter()`. */
export interface RateLimiter {
  /** Name in errors, events and snapshots. */
  readonly name: string
  /** Units that can be taken now. */
  readonly remaining: number
  /** Waiting calls. */
  readonly waiting: number
  /** Takes `cost` (default 1) now and returns true, or takes nothing and returns false. */
  tryAcquire(cost?: number): boolean
  /**
   * Takes `cost` as soon as it is free, if that is within `waitMs` and before the deadline of the request.
   * Returns false, having taken nothing, as soon as it is clear that this is impossible.
   * @param options.cost - Units to take. Range: integers from 1 to the limit or burst. Default: 1.
   */
  acquireWithin(
    waitMs: Duration,
    options?: { cost?: number; signal?: AbortSignal },
  ): Promise<boolean>
  /** Milliseconds until `cost` (default 1) could be taken, behind the waiting calls. */
  retryAfterMs(cost?: number): number
  /** Refuses waiting and new calls with SHUTTING_DOWN. */
  close(): void
}

const MAX_SLICES = 1_000
const SHORTEST_WAIT_MS = 0.001

const readOptions = object({
  name: optional(text(), 'limiter'),
  limit: integer({ min: 1 }),
  windowMs: duration({ min: 1 }),
  algorithm: optional(
    oneOf('token-bucket', 'leaky-bucket', 'fixed-window', 'sliding-window'),
    'token-bucket',
  ),
  burst: optional(integer({ min: 1 })),
  slices: optional(integer({ min: 1, max: MAX_SLICES })),
  clock: clockOption,
})

const YES = Promise.resolve(true)
const NO = Promise.resolve(false)

/**
 * Creates a rate limiter of this pod.
 *
 * @example
 * const limiter = createRateLimiter({ limit: 100, windowMs: '1m', algorithm: 'sliding-window' })
 * if (!limiter.tryAcquire()) throw new Error(`try again in ${limiter.retryAfterMs()} ms`)
 */
export function createRateLimiter(options: RateLimiterOptions): RateLimiter {
  return new LocalRateLimiter(validate('rateLimiter', options, readOptions))
}

function createAlgorithm(options: ReturnType<typeof readOptions>): Algorithm {
  const { algorithm, limit, windowMs, burst, slices, clock } = options
  if (burst !== undefined && algorithm !== 'token-bucket') onlyFor('burst', 'token-bucket')
  if (slices !== undefined && algorithm !== 'sliding-window') onlyFor('slices', 'sliding-window')
  switch (algorithm) {
    case 'token-bucket':
      return tokenBucket(limit, windowMs, burst ?? limit)
    case 'leaky-bucket':
      return leakyBucket(limit, windowMs)
    case 'fixed-window':
      return fixedWindow(limit, windowMs, clock.wallMs() - clock.now())
    case 'sliding-window':
      return slidingWindow(limit, windowMs, slices ?? 50)
  }
}

function onlyFor(option: string, algorithm: string): never {
  const message = `has an effect only with algorithm '${algorithm}'`
  throw new OptionsError([{ path: `rateLimiter.${option}`, message }])
}

class LocalRateLimiter implements RateLimiter {
  readonly name: string
  readonly #clock: Clock
  readonly #algorithm: Algorithm
  readonly #waitList: WaitList
  #timer: Timer | undefined
  #closed = false

  constructor(options: ReturnType<typeof readOptions>) {
    this.name = options.name
    this.#clock = options.clock
    this.#algorithm = createAlgorithm(options)
    this.#waitList = new WaitList(options.clock, options.windowMs, () => this.#serve())
  }

  get remaining(): number {
    return this.#waitList.length > 0 ? 0 : this.#algorithm.remaining(this.#clock.now())
  }

  get waiting(): number {
    return this.#waitList.length
  }

  tryAcquire(cost = 1): boolean {
    this.#checkCost(cost)
    if (this.#closed) throw closedError('pace', this.name)
    if (this.#waitList.length === 0 && this.#algorithm.tryTake(this.#clock.now(), cost)) return true
    this.#noteRefusal(cost)
    return false
  }

  acquireWithin(
    waitMs: Duration,
    { cost = 1, signal }: { cost?: number; signal?: AbortSignal } = {},
  ): Promise<boolean> {
    let maxWaitMs: number
    try {
      this.#checkCost(cost)
      maxWaitMs = this.#maxWaitMs(waitMs)
    } catch (error) {
      return refuse(error)
    }
    if (signal?.aborted) return refuse(signal.reason)
    if (this.#closed) return refuse(closedError('pace', this.name))
    const now = this.#clock.now()
    const late = maxWaitMs < 0
    if (!late && this.#waitList.length === 0 && this.#algorithm.tryTake(now, cost)) return YES
    if (late || this.#algorithm.waitMs(now, cost, this.#waitList.cost) > maxWaitMs) {
      this.#noteRefusal(cost)
      return NO
    }
    const admitted = this.#waitList.join({ maxWaitMs, cost, signal }).then((yes) => {
      if (!yes) this.#noteRefusal(cost)
      return yes
    })
    this.#serve()
    return admitted
  }

  retryAfterMs(cost = 1): number {
    this.#checkCost(cost)
    return this.#algorithm.waitMs(this.#clock.now(), cost, this.#waitList.cost)
  }

  close(): void {
    this.#closed = true
    this.#waitList.close(() => closedError('pace', this.name))
    this.#timer?.cancel()
  }

  /** Admits waiting calls that fit, then sleeps until the next one does. */
  #serve(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    const now = this.#clock.now()
    let head = this.#waitList.head
    while (head !== undefined && this.#algorithm.tryTake(now, head.cost, head.sinceMs)) {
      this.#waitList.admit(head)
      head = this.#waitList.head
    }
    if (head === undefined) return
    // After rounding, the wait can be 0 for a call that did not fit; time has to pass.
    const delayMs = Math.max(SHORTEST_WAIT_MS, this.#algorithm.waitMs(now, head.cost, 0))
    this.#timer = this.#clock.schedule(delayMs, () => this.#serve())
  }

  /** Below zero once the deadline has passed. Then nothing may be taken, even if it is free. */
  #maxWaitMs(waitMs: Duration): number {
    const willingMs = typeof waitMs === 'number' && waitMs >= 0 ? waitMs : readWait(waitMs)
    const deadline = currentDeadline()
    if (deadline === undefined) return willingMs
    return deadline.expired ? -1 : Math.min(willingMs, deadline.remainingMs())
  }

  #noteRefusal(cost: number): void {
    if (!listening()) return
    const retryAfterMs = this.retryAfterMs(cost)
    emit({ type: 'limiter.refused', name: this.name, cost, retryAfterMs })
  }

  #checkCost(cost: number): void {
    const { capacity } = this.#algorithm
    if (Number.isInteger(cost) && cost >= 1 && cost <= capacity) return
    validate(`${this.name}.cost`, cost, integer({ min: 1, max: capacity }))
  }
}

function readWait(waitMs: unknown): number {
  return validate('waitMs', waitMs, duration({ min: 0 }))
}
