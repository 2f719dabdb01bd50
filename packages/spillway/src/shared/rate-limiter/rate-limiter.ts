/**
 * One budget for the whole fleet: so many requests, tokens or anything per time, counted by the
 * store for all pods together. Protects the vendor's contract, and us from its 429s. Not for
 * protecting this pod: the local limiter does that without a round trip.
 */

import { closedError, refuse, type SpillwayError } from '../../core/errors.js'
import {
  type Duration,
  duration,
  integer,
  object,
  optional,
  text,
  validate,
} from '../../core/options/checks.js'
import type { Clock } from '../../core/time/clock.js'
import { clockOption, randomOption } from '../../core/time/clock-options.js'
import { currentDeadline } from '../../core/time/deadline.js'
import { DEFAULT_LANE } from '../default-lane.js'
import { LaneMap } from '../lanes/lane-map.js'
import { LaneRegistry, readMaxLanes } from '../lanes/lane-registry.js'
import { watchOver } from '../outage/watch-over.js'
import { createPodId } from '../pod-id.js'
import { readStore } from '../store-option.js'
import type {
  AcquireOptions,
  Acquisition,
  RateLimiter,
  RateLimiterFigures,
  RateLimiterOptions,
} from './api.js'
import { LaneLine, type Wish } from './lane-line.js'
import { LimitBook, type Trip } from './limit-book.js'
import { readLimits, type SharedLimit } from './options.js'
import type { LanePermit, Permit } from './permit.js'

const readOptions = object({
  name: text(),
  store: readStore,
  limits: readLimits,
  jitterMs: optional(duration({ min: 1 })),
  maxPauseMs: optional(duration({ min: 0 }), 60_000),
  basePauseMs: optional(duration({ min: 1 }), 500),
  maxLanes: readMaxLanes,
  pod: optional(text(), 'pod'),
  expectedPods: optional(integer({ min: 1 }), 1),
  clock: clockOption,
  random: randomOption,
})

export function createRateLimiter(options: RateLimiterOptions): RateLimiter {
  return new SharedRateLimiter(validate('rateLimiter', options, readOptions))
}

class SharedRateLimiter implements RateLimiter {
  readonly name: string
  readonly #clock: Clock
  readonly #book: LimitBook
  readonly #registry: LaneRegistry
  readonly #lanes: LaneMap<LaneLine<LanePermit, Trip>>
  #closed = false

  constructor(options: ReturnType<typeof readOptions>) {
    const { name, store, random, ...rest } = options
    this.name = name
    this.#clock = options.clock
    const pod = createPodId(options.pod, random)
    this.#registry = new LaneRegistry({ name, clock: options.clock, maxLanes: options.maxLanes })
    this.#lanes = new LaneMap(this.#registry, {
      create: (lane) => this.#createLine(lane),
      isIdle: (line) => line.isIdle,
    })
    this.#book = new LimitBook({
      ...rest,
      name,
      store: store.limits,
      pod,
      lanes: this.#registry,
      watch: watchOver(store, { ...options, pod }),
      onGivenBack: (lane) => this.#lanes.get(lane)?.wake(),
    })
  }

  acquire(options: AcquireOptions = {}): Promise<Acquisition> {
    return this.#ask(options, undefined)
  }

  acquireWithin(waitMs: Duration, options: AcquireOptions = {}): Promise<Acquisition> {
    try {
      const ms = validate('waitMs', waitMs, duration({ min: 0 }))
      return this.#ask(options, this.#clock.now() + ms)
    } catch (error) {
      return refuse(error)
    }
  }

  async takeUpTo(count: number, options: AcquireOptions = {}): Promise<Permit[]> {
    const most = validate('count', count, integer({ min: 1 }))
    const asked = await Promise.all(Array.from({ length: most }, () => this.acquire(options)))
    return asked.flatMap((each) => (each.allowed ? [each.permit] : []))
  }

  async heed(answer: { status: number; headers: unknown }, permit: Permit): Promise<void> {
    await this.#heard(() => this.#book.heed(answer, permit as LanePermit))
  }

  async pauseFor(
    pauseMs: Duration,
    { lane = DEFAULT_LANE }: { lane?: string } = {},
  ): Promise<void> {
    const ms = validate('pauseMs', pauseMs, duration({ min: 0 }))
    await this.#heard(() => this.#book.pause(lane, ms))
  }

  async setLimits(limits: readonly SharedLimit[]): Promise<void> {
    const checked = validate('rateLimiter.limits', limits, readLimits)
    await this.#heard(() => this.#book.change(checked, DEFAULT_LANE))
  }

  async override(unit: string, limit: number, forMs: Duration): Promise<void> {
    this.#book.checkLimit(unit)
    const ms = validate('forMs', forMs, duration({ min: 0 }))
    const checked = validate('limit', limit, integer({ min: 1 }))
    await this.#heard(() => this.#book.override(unit, checked, ms, DEFAULT_LANE))
  }

  figures({ lane = DEFAULT_LANE }: { lane?: string } = {}): Promise<RateLimiterFigures> {
    return this.#heard(() => this.#book.figures(lane))
  }

  async close(): Promise<void> {
    this.#closed = true
    const lanes = [...this.#lanes.values()]
    await Promise.all(lanes.map((lane) => lane.close(() => this.#closedError())))
    await this.#book.close()
  }

  #ask(options: AcquireOptions, untilMs: number | undefined): Promise<Acquisition> {
    const { lane = DEFAULT_LANE, signal, cost } = options
    if (signal?.aborted) return refuse(signal.reason)
    if (this.#closed) return refuse(this.#closedError())
    let costs: readonly number[]
    try {
      this.#book.checkCost(cost)
      costs = this.#book.costsOf(cost)
    } catch (error) {
      return refuse(error)
    }
    const of = this.#book.limits
    const wish: Wish<LanePermit> = { cost, costs, of, untilMs: this.#earlier(untilMs) }
    const line = this.#lanes.of(this.#registry.enter(lane))
    return line.ask(wish, signal).then(
      (allowed): Acquisition => {
        const { permit, retryAfterMs = line.blockedMs, paused = false } = wish
        if (!allowed || permit === undefined) {
          return { allowed: false, retryAfterMs, paused, alone: this.#book.alone }
        }
        return { allowed: true, permit }
      },
      (error) => {
        throw signal?.aborted && error === signal.reason ? error : this.#book.storeError(error)
      },
    )
  }

  /** Nobody waits past the deadline of the request. */
  #earlier(untilMs: number | undefined): number | undefined {
    const deadline = currentDeadline()
    if (untilMs === undefined || deadline === undefined) return untilMs
    return Math.min(untilMs, this.#clock.now() + deadline.remainingMs())
  }

  #createLine(name: string): LaneLine<LanePermit, Trip> {
    const book = this.#book
    return new LaneLine<LanePermit, Trip>({
      clock: this.#clock,
      useWithinMs: book.useWithinMs,
      limits: () => book.limits,
      costsOf: (cost) => book.costsOf(cost),
      take: (costs) => book.take(name, costs),
      createPermit: (costs, trip) => book.createPermit(name, costs, trip),
      giveBack: (permit) => permit.refund(),
    })
  }

  #closedError(): SpillwayError {
    return closedError('vendor-limit', this.name)
  }

  /** What the store says; if it says nothing, that is what the error says. */
  async #heard<T>(ask: () => T | PromiseLike<T>): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      throw this.#book.storeError(error)
    }
  }
}
