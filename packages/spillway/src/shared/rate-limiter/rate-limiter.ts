/**
 * One budget for the whole fleet: so many requests, tokens or anything per time, counted by the
 * store for all pods together. Protects the vendor's contract, and us from its 429s. Not for
 * protecting this pod: the local limiter does that without a round trip.
 */
import type { Clock, Timer } from '../../core/clock.js'
import { currentDeadline } from '../../core/deadline.js'
import { closedError, refuse, SpillwayError } from '../../core/errors.js'
import { clockOption, randomOption } from '../../core/injected.js'
import {
  type Duration,
  duration,
  integer,
  OptionsError,
  object,
  optional,
  text,
  validate,
} from '../../core/options.js'
import { RollingCounter } from '../../core/rolling-counter.js'
import type { LimitSpec } from '../../store/limit-spec.js'
import type { LaneFigures, LaneRef, MaybePromise, Store, TakeReply } from '../../store/port.js'
import { readStore } from '../store-option.js'
import type {
  AcquireOptions,
  Acquisition,
  RateLimiter,
  RateLimiterFigures,
  RateLimiterOptions,
} from './api.js'
import { LaneLine, type Wish } from './lane-line.js'
import { readLimits, type SharedLimit, toUnitLimits, type UnitLimit } from './options.js'
import { type Correction, type Cost, LanePermit, type Permit } from './permit.js'
import { type Sending, Settler } from './settler.js'
import { readVendorHeaders } from './vendor-headers.js'

const DEFAULT_LANE = 'default'
const REPORT_MS = 5_000

const readOptions = object({
  name: text(),
  store: readStore,
  limits: readLimits,
  jitterMs: optional(duration({ min: 1 })),
  maxPauseMs: optional(duration({ min: 0 }), 60_000),
  basePauseMs: optional(duration({ min: 1 }), 500),
  pod: optional(text(), 'pod'),
  clock: clockOption,
  random: randomOption,
})

export function createRateLimiter(options: RateLimiterOptions): RateLimiter {
  return new SharedRateLimiter(validate('rateLimiter', options, readOptions))
}

/** What came back, with the limits it was asked under. */
type Trip = TakeReply & { limits: readonly UnitLimit[] }

class SharedRateLimiter implements RateLimiter {
  readonly name: string
  readonly #options: ReturnType<typeof readOptions>
  readonly #clock: Clock
  readonly #store: Store['limits']
  readonly #jitterMs: number
  readonly #pod: string
  readonly #lanes = new Map<string, LaneLine<LanePermit, Trip>>()
  /** Lanes on which this pod was last told to slow down. */
  readonly #throttled = new Set<string>()
  readonly #settler: Settler
  #limits: readonly UnitLimit[]
  #specs: readonly LimitSpec[]
  #version = 0
  #closed = false
  readonly #requests = new RollingCounter(60_000, 60)
  #reporting: Timer | undefined

  constructor(options: ReturnType<typeof readOptions>) {
    this.name = options.name
    this.#options = options
    this.#clock = options.clock
    this.#store = options.store.limits
    this.#jitterMs = options.jitterMs ?? usualJitterMs(options.limits)
    this.#limits = toUnitLimits(options.limits, this.#jitterMs)
    this.#specs = specsOf(this.#limits)
    this.#pod = `${options.pod}-${Math.floor(options.random() * 2 ** 48).toString(36)}`
    const send = ({ lane, sequence, corrections }: Sending) => {
      const settlements = corrections.flatMap(({ id, stamp, delta }) => {
        const limit = this.#specs.findIndex((spec) => spec.id === id)
        return limit === -1 ? [] : [{ limit, stamp, delta }]
      })
      return this.#store.settle({ ...this.#ref(lane), pod: this.#pod, sequence, settlements })
    }
    this.#settler = new Settler(options.clock, send, (lane) => this.#lanes.get(lane)?.wake())
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
    const throttled = answer.status === 429
    const word = readVendorHeaders(answer.headers, this.#clock.wallMs())
    const left = word.left.flatMap(({ unit, remaining, resetMs }) => {
      const limit = this.#limits.findIndex((each) => each.unit === unit)
      return limit === -1 ? [] : [{ limit, remaining, resetUs: toUs(resetMs) }]
    })
    // An answer that says nothing is news only after one that told us to slow down.
    const recovered = !throttled && this.#throttled.delete(permit.lane)
    if (throttled) this.#throttled.add(permit.lane)
    if (!throttled && !recovered && left.length === 0) return
    const { retryAfterMs } = word
    await this.#feedback(permit.lane, {
      grantedUs: (permit as LanePermit).grantedUs,
      throttled,
      pauseUs: retryAfterMs === undefined ? undefined : toUs(retryAfterMs),
      left,
    })
  }

  async pauseFor(
    pauseMs: Duration,
    { lane = DEFAULT_LANE }: { lane?: string } = {},
  ): Promise<void> {
    const pauseUs = toUs(validate('pauseMs', pauseMs, duration({ min: 0 })))
    await this.#feedback(lane, { grantedUs: 0, throttled: true, pauseUs, left: [] })
  }

  async setLimits(limits: readonly SharedLimit[]): Promise<void> {
    const checked = validate('rateLimiter.limits', limits, readLimits)
    const next = toUnitLimits(checked, this.#jitterMs)
    const ref = { ...this.#ref(DEFAULT_LANE), limits: specsOf(next) }
    this.#version = await this.#heard(() => this.#store.change(ref))
    this.#limits = next
    this.#specs = specsOf(next)
  }

  async override(unit: string, limit: number, forMs: Duration): Promise<void> {
    const known = this.#limits.find((each) => each.unit === unit || each.spec.id === unit)
    if (known === undefined) {
      const units = this.#limits.map((each) => each.spec.id).join(', ')
      throw new OptionsError([{ path: 'unit', message: `no limit on '${unit}'; known: ${units}` }])
    }
    const forUs = toUs(validate('forMs', forMs, duration({ min: 0 })))
    const checked = validate('limit', limit, integer({ min: 1 }))
    const override = { id: known.spec.id, limit: checked, forUs }
    await this.#heard(() => this.#store.change({ ...this.#ref(DEFAULT_LANE), override }))
  }

  async figures({ lane = DEFAULT_LANE }: { lane?: string } = {}): Promise<RateLimiterFigures> {
    await this.#heard(() => this.#report())
    const figures: LaneFigures = await this.#heard(() => this.#store.figures(this.#ref(lane)))
    const { limits, requestsLastMinute } = figures
    const pausedMs = Math.max(0, figures.pausedUntilUs - figures.nowUs) / 1_000
    return { pausedMs, requestsLastMinute, limits }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#reporting?.cancel()
    const lanes = [...this.#lanes.values()]
    await Promise.all(lanes.map((lane) => lane.close(() => this.#closedError())))
    await this.#settler.drain()
  }

  #ask(options: AcquireOptions, untilMs: number | undefined): Promise<Acquisition> {
    const { lane = DEFAULT_LANE, signal } = options
    if (signal?.aborted) return refuse(signal.reason)
    if (this.#closed) return refuse(this.#closedError())
    let costs: number[]
    try {
      costs = this.#costs(options.cost)
    } catch (error) {
      return refuse(error)
    }
    const wish: Wish<LanePermit> = {
      cost: options.cost,
      costs,
      of: this.#limits,
      untilMs: this.#earlier(untilMs),
    }
    const line = this.#lane(lane)
    return line.ask(wish, signal).then(
      (allowed): Acquisition => {
        const { permit, retryAfterMs = line.blockedMs, paused = false } = wish
        if (!allowed || permit === undefined) return { allowed: false, retryAfterMs, paused }
        this.#count()
        return { allowed: true, permit }
      },
      (error) => {
        throw this.#storeError(error, signal)
      },
    )
  }

  /** Nobody waits past the deadline of the request. */
  #earlier(untilMs: number | undefined): number | undefined {
    const deadline = currentDeadline()
    if (untilMs === undefined || deadline === undefined) return untilMs
    return Math.min(untilMs, this.#clock.now() + deadline.remainingMs())
  }

  /** For the figures of others: told in the background, only while there is something to tell. */
  #count(): void {
    this.#requests.add(this.#clock.now(), 1)
    if (this.#reporting !== undefined) return
    this.#reporting = this.#clock.schedule(REPORT_MS, () => {
      this.#reporting = undefined
      if (!this.#closed) void this.#report().catch(() => {})
    })
    this.#reporting.unref()
  }

  async #report(): Promise<void> {
    const requests = this.#requests.total(this.#clock.now())
    await this.#store.report({ guard: this.name, pod: this.#pod, requests })
  }

  /** Per limit. The store lowers what could never be granted. */
  #costs(cost: Cost | undefined): number[] {
    const costs: number[] = []
    for (const { unit } of this.#limits) {
      const units = cost?.[unit] ?? (unit === 'requests' ? 1 : 0)
      if (!(units >= 0)) validate(`cost.${unit}`, units, integer({ min: 0 }))
      costs.push(Math.ceil(units))
    }
    return costs
  }

  #lane(name: string): LaneLine<LanePermit, Trip> {
    const known = this.#lanes.get(name)
    if (known !== undefined) return known
    const onSettle = (of: string, corrections: Correction[]) => this.#settler.add(of, corrections)
    const lane = new LaneLine<LanePermit, Trip>({
      clock: this.#clock,
      useWithinMs: this.#jitterMs,
      limits: () => this.#limits,
      costsOf: (cost) => this.#costs(cost),
      take: (costs) => this.#take(name, costs),
      createPermit: (costs, { limits, capacities, stamps, nowUs }) => {
        const booked = costs.every((cost, index) => cost <= (capacities[index] as number))
          ? costs
          : costs.map((cost, index) => Math.min(cost, capacities[index] as number))
        return new LanePermit(name, limits, booked, stamps, nowUs, onSettle)
      },
      giveBack: (permit) => permit.refund(),
    })
    this.#lanes.set(name, lane)
    return lane
  }

  #take(lane: string, costs: (readonly number[])[]): MaybePromise<Trip> {
    const limits = this.#limits
    // Written out: copying one object into another is what would cost most here.
    const { name: guard } = this
    const reply = this.#store.take({
      guard,
      lane,
      limits: this.#specs,
      version: this.#version,
      costs,
    })
    return reply instanceof Promise
      ? reply.then((each) => this.#learn(each, limits))
      : this.#learn(reply, limits)
  }

  /** Another pod may have changed the limits. */
  #learn(reply: TakeReply, limits: readonly UnitLimit[]): Trip {
    const { newer } = reply
    const trip = Object.assign(reply, { limits })
    if (newer === undefined || newer.version <= this.#version) return trip
    this.#version = newer.version
    this.#limits = this.#limits.map(({ unit }, index) => ({
      unit,
      spec: newer.limits[index] as LimitSpec,
    }))
    this.#specs = newer.limits
    return trip
  }

  async #feedback(
    lane: string,
    word: {
      grantedUs: number
      throttled: boolean
      pauseUs: number | undefined
      left: { limit: number; remaining: number; resetUs: number }[]
    },
  ): Promise<void> {
    const { basePauseMs, maxPauseMs } = this.#options
    const pauses = { basePauseUs: toUs(basePauseMs), maxPauseUs: toUs(maxPauseMs) }
    await this.#heard(() => this.#store.feedback({ ...this.#ref(lane), ...word, ...pauses }))
  }

  #ref(lane: string): LaneRef {
    return { guard: this.name, lane, limits: this.#specs, version: this.#version }
  }

  #closedError(): SpillwayError {
    return closedError('vendor-limit', this.name)
  }

  /** What the store says; if it says nothing, that is what the error says. */
  async #heard<T>(ask: () => MaybePromise<T>): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      throw this.#storeError(error, undefined)
    }
  }

  #storeError(error: unknown, signal: AbortSignal | undefined): unknown {
    if (error instanceof SpillwayError || (signal?.aborted && error === signal.reason)) return error
    return new SpillwayError({
      code: 'STORE_UNAVAILABLE',
      stage: 'vendor-limit',
      scope: 'shared',
      details: { name: this.name },
      explain: ({ name }) => `${name}: the store did not answer`,
      cause: error,
    })
  }
}

function specsOf(limits: readonly UnitLimit[]): LimitSpec[] {
  return limits.map(({ spec }) => spec)
}

function usualJitterMs(limits: readonly { windowMs: number }[]): number {
  const shortestMs = Math.min(...limits.map(({ windowMs }) => windowMs))
  return Math.min(100, Math.max(10, shortestMs / 20))
}

function toUs(ms: number): number {
  return Math.ceil(ms * 1_000)
}
