/**
 * One limit for the whole fleet: requests, tokens or any other unit per time, counted by the store for all pods
 * together. It protects the vendor, and this fleet from the vendor's 429s. To protect a single pod use the local
 * limiter, which needs no round trip.
 */
import { closedError, refuse, SpillwayError } from '../../core/errors.js'
import {
  type Duration,
  duration,
  integer,
  object,
  optional,
  text,
  together,
  validate,
} from '../../core/options/checks.js'
import { NORMAL_IMPORTANCE } from '../../core/options/priority.js'
import type { Clock } from '../../core/time/clock.js'
import { clockOption, randomOption } from '../../core/time/clock-options.js'
import { currentDeadline } from '../../core/time/deadline.js'
import { DEFAULT_LANE } from '../lanes/lane-names.js'
import { LaneRegistry, readMaxLanes } from '../lanes/lane-registry.js'
import { watchStore } from '../outage/store-watch.js'
import { CallQueue } from '../permit-queue/call-queue.js'
import { PermitDispatcher } from '../permit-queue/permit-dispatcher.js'
import type { AttemptPermits, Capacity, PermitCall } from '../permit-queue/ports.js'
import { QueuedCall } from '../permit-queue/queued-call.js'
import { createPodId } from '../pod-id.js'
import { readStore } from '../store-option.js'
import type {
  AcquireOptions,
  Acquisition,
  RateLimiterFigures,
  SharedRateLimiter,
  SharedRateLimiterOptions,
} from './api.js'
import { LimitClient } from './limit-client.js'
import { readLimits, type SharedLimit } from './options.js'
import type { Cost, LanePermit, Permit } from './permit.js'
import { checkPools, readLaneEntries, readPools } from './settings/lane-entries.js'

const readFields = object({
  name: text(),
  store: readStore,
  limits: readLimits,
  lanes: optional(readLaneEntries),
  pools: optional(readPools),
  jitterMs: optional(duration({ min: 1 })),
  maxPauseMs: optional(duration({ min: 0 }), 60_000),
  basePauseMs: optional(duration({ min: 1 }), 500),
  maxLanes: readMaxLanes,
  pod: optional(text(), 'pod'),
  expectedPods: optional(integer({ min: 1 }), 1),
  clock: clockOption,
  random: randomOption,
})
const readOptions = together(readFields, checkPools)

/**
 * Creates rate limits that all pods share.
 *
 * @example
 * const limiter = createSharedRateLimiter({ name: 'openai', store, limits: [{ limit: 500, windowMs: '1m' }] })
 * const { allowed } = await limiter.acquireWithin('2s')
 */
export function createSharedRateLimiter(options: SharedRateLimiterOptions): SharedRateLimiter {
  return new QueuedRateLimiter(validate('sharedRateLimiter', options, readOptions))
}

/** A limiter does not run calls, so it has no slots and no pace. */
const UNLIMITED: Capacity = {
  full: false,
  free: () => Number.POSITIVE_INFINITY,
  paceWaitMs: () => 0,
  reserve() {},
  giveUp() {},
  admit() {},
  start() {},
}

class QueuedRateLimiter implements SharedRateLimiter {
  readonly name: string
  readonly #clock: Clock
  readonly #client: LimitClient
  readonly #lanes: LaneRegistry
  readonly #queue: CallQueue
  readonly #dispatcher: PermitDispatcher
  readonly #shared: RequestDependencies
  #closed = false

  constructor(options: ReturnType<typeof readOptions>) {
    const { name, store, random, clock, ...rest } = options
    this.name = name
    this.#clock = clock
    const pod = createPodId(options.pod, random)
    const registry = new LaneRegistry({ name, clock, maxLanes: options.maxLanes })
    this.#lanes = registry
    const client = new LimitClient({
      ...rest,
      name,
      store: store.limits,
      pod,
      clock,
      registry,
      // Requests of one turn share a round trip, with any store.
      remote: true,
      watch: watchStore(store, { ...options, pod }),
      onGivenBack: (lane) => this.#dispatcher.unblock(lane),
      onLimitsChanged: () => this.#dispatcher.unblockAll(),
    })
    this.#client = client
    registry.shareOverflow(client.settings)
    // Requests wait in the order of their arrival, each until its own deadline.
    this.#queue = new CallQueue({
      clock,
      size: Number.POSITIVE_INFINITY,
      timeoutMs: Number.POSITIVE_INFINITY,
      targetMs: Number.POSITIVE_INFINITY,
      agingMs: Number.POSITIVE_INFINITY,
    })
    this.#dispatcher = new PermitDispatcher({
      clock,
      queue: this.#queue,
      capacity: UNLIMITED,
      lanes: registry,
      breaker: undefined,
      limits: client.permits,
      mayWait: true,
      limitedError: ({ paused }, retryAfterMs) => this.#limitedError(retryAfterMs, paused),
      busyError: () => this.#limitedError(0, false),
      storeError: (cause) => client.storeError(cause),
    })
    this.#shared = { dispatcher: this.#dispatcher, client }
  }

  acquire(options: AcquireOptions = {}): Promise<Acquisition> {
    return this.#acquire(options, undefined)
  }

  acquireWithin(waitMs: Duration, options: AcquireOptions = {}): Promise<Acquisition> {
    try {
      const ms = validate('waitMs', waitMs, duration({ min: 0 }))
      return this.#acquire(options, this.#clock.now() + ms)
    } catch (error) {
      return refuse(error)
    }
  }

  async takeUpTo(count: number, options: AcquireOptions = {}): Promise<Permit[]> {
    const most = validate('count', count, integer({ min: 1 }))
    const acquired = await Promise.all(Array.from({ length: most }, () => this.acquire(options)))
    return acquired.flatMap((each) => (each.allowed ? [each.permit] : []))
  }

  async updateFromResponse(
    response: { status: number; headers: unknown },
    permit: Permit,
  ): Promise<void> {
    await this.#orStoreError(() => this.#client.updateFromResponse(response, permit as LanePermit))
  }

  /** The name of `updateFromResponse` before the first release. Not part of the interface. */
  heed(): never {
    throw new TypeError('limiter.heed() was renamed: use limiter.updateFromResponse()')
  }

  async pauseFor(
    pauseMs: Duration,
    { lane = DEFAULT_LANE }: { lane?: string } = {},
  ): Promise<void> {
    const ms = validate('pauseMs', pauseMs, duration({ min: 0 }))
    await this.#orStoreError(() => this.#client.pause(lane, ms))
  }

  async setLimits(limits: readonly SharedLimit[]): Promise<void> {
    const checked = validate('sharedRateLimiter.limits', limits, readLimits)
    await this.#orStoreError(() => this.#client.change(checked, DEFAULT_LANE))
  }

  async override(unit: string, limit: number, forMs: Duration): Promise<void> {
    this.#client.checkLimit(unit)
    const ms = validate('forMs', forMs, duration({ min: 0 }))
    const checked = validate('limit', limit, integer({ min: 1 }))
    await this.#orStoreError(() => this.#client.override(unit, checked, ms, DEFAULT_LANE))
  }

  figures({ lane = DEFAULT_LANE }: { lane?: string } = {}): Promise<RateLimiterFigures> {
    return this.#orStoreError(() => this.#client.figures(lane))
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#dispatcher.empty(undefined, () => this.#closedError())
    await this.#dispatcher.close()
    this.#queue.close()
    await this.#client.close()
  }

  /** Without `untilMs` the request takes only what is free now. */
  #acquire(options: AcquireOptions, untilMs: number | undefined): Promise<Acquisition> {
    try {
      const { lane = DEFAULT_LANE, signal, cost } = options
      if (signal?.aborted) return refuse(signal.reason)
      if (this.#closed) return refuse(this.#closedError())
      // Checked and computed now: the caller may change the object later.
      this.#client.checkCost(cost)
      const request = new PermitRequest(this.#shared, {
        lane: this.#lanes.enter(lane),
        signal,
        cost,
        nowMs: this.#clock.now(),
        untilMs: this.#earlier(untilMs),
      })
      this.#join(request)
      return request.answer
    } catch (error) {
      return refuse(error)
    }
  }

  #join(request: PermitRequest): void {
    const dispatcher = this.#dispatcher
    const nowMs = request.arrivedMs
    const refusal = dispatcher.blocks.refusalOf(request, nowMs)
    if (refusal !== undefined) return request.refuse(refusal)
    this.#queue.join(request, nowMs, 0)
    dispatcher.arrived(request)
  }

  /** No request waits past the deadline of its caller. */
  #earlier(untilMs: number | undefined): number | undefined {
    const deadline = currentDeadline()
    if (untilMs === undefined || deadline === undefined) return untilMs
    return Math.min(untilMs, this.#clock.now() + deadline.remainingMs())
  }

  #limitedError(retryAfterMs: number, paused: boolean): SpillwayError {
    return new SpillwayError({
      code: 'VENDOR_LIMITED',
      stage: 'vendor-limit',
      scope: 'shared',
      retryAfterMs,
      details: { name: this.name, paused },
      explain: ({ name }) => `${name}: the limit is reached`,
    })
  }

  #closedError(): SpillwayError {
    return closedError('vendor-limit', this.name)
  }

  async #orStoreError<T>(command: () => T | PromiseLike<T>): Promise<T> {
    try {
      return await command()
    } catch (error) {
      throw this.#client.storeError(error)
    }
  }
}

/** Dependencies that all requests of one limiter share. */
interface RequestDependencies {
  readonly dispatcher: PermitDispatcher
  readonly client: LimitClient
}

interface PermitRequestParts {
  readonly lane: string
  readonly signal: AbortSignal | undefined
  readonly cost: Cost | undefined
  readonly nowMs: number
  readonly untilMs: number | undefined
}

/** A request for one permit, in the queue. */
class PermitRequest extends QueuedCall<AttemptPermits> implements PermitCall {
  readonly lane: string
  readonly priority = NORMAL_IMPORTANCE
  readonly arrivedMs: number
  readonly deadlineMs: number
  readonly signal: AbortSignal | undefined
  readonly cost: Cost | undefined
  costs: readonly number[] = []
  costsUnder: unknown
  readonly answer: Promise<Acquisition>
  readonly #mayWait: boolean
  readonly #shared: RequestDependencies
  #resolve!: (answer: Acquisition) => void
  #reject!: (error: unknown) => void

  constructor(
    shared: RequestDependencies,
    { lane, signal, cost, nowMs, untilMs }: PermitRequestParts,
  ) {
    super()
    this.lane = lane
    this.signal = signal
    this.cost = cost
    shared.client.settings.of(lane).costsOf(this)
    this.arrivedMs = nowMs
    this.deadlineMs = untilMs ?? Number.POSITIVE_INFINITY
    this.#mayWait = untilMs !== undefined
    this.#shared = shared
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  override get mayWait(): boolean {
    return this.#mayWait
  }

  /** A permit may become free at the very time of the deadline, and a reply in flight may bring one. */
  override mayExpire(): boolean {
    this.#shared.dispatcher.dispatch()
    return this.state !== 'requesting'
  }

  admit({ permit }: AttemptPermits): void {
    this.#resolve({ allowed: true, permit: permit as LanePermit })
  }

  /** A limit that is used up is an answer; any other refusal is an error. */
  refuse(error: unknown): void {
    if (!(error instanceof SpillwayError) || error.code !== 'VENDOR_LIMITED') {
      return this.#reject(error)
    }
    const { retryAfterMs = 0, details } = error
    const paused = details.paused === true
    this.#resolve({ allowed: false, retryAfterMs, paused, byOutageRule: this.#shared.client.alone })
  }

  onLeave(): void {
    const { blocks } = this.#shared.dispatcher
    this.refuse(blocks.limitedError(this, blocks.waitMs(this.lane, this.deadlineMs)))
    this.#shared.dispatcher.left(this)
  }

  onAborted(reason: unknown): void {
    this.#reject(reason)
    this.#shared.dispatcher.left(this)
  }
}
