/**
 * The guard of one downstream: its ten stages, in the order of `order.ts`, around every call. What
 * protects the downstream is shared by all pods, what protects this pod is in memory; a call that
 * meets no obstacle passes all of it without waiting for anything but, with a remote store, its
 * permits.
 */
import type { Clock } from '../core/clock.js'
import { closedError } from '../core/errors.js'
import { LinkedList } from '../core/linked-list.js'
import { type Duration, duration, validate } from '../core/options.js'
import { isResponse, type OutcomeOptions } from '../core/outcome.js'
import type { Random } from '../core/random.js'
import type { Attempt } from '../local/attempts.js'
import { tokenBucket } from '../local/rate-limiter/token-bucket.js'
import type { RetryResult } from '../local/retry.js'
import { createRetryBudget, type RetryBudget } from '../local/retry-budget.js'
import type { RetryPolicy } from '../local/retry-call.js'
import type { TimedCall } from '../local/timed-call.js'
import { createDeadlineTimeout, createLocalTimeout, type LocalTimeout } from '../local/timeout.js'
import type { BreakerChange, BreakerSnapshot } from '../shared/circuit-breaker/api.js'
import { type BreakerControls, createControls } from '../shared/circuit-breaker/controls.js'
import { FleetBreaker } from '../shared/circuit-breaker/fleet-breaker.js'
import { isPermit } from '../shared/circuit-breaker/quorum-lane.js'
import { LimitBook } from '../shared/rate-limiter/limit-book.js'
import { createLevels } from '../shared/user-limits/levels.js'
import { UserCharges } from '../shared/user-limits/user-charges.js'
import type { Store } from '../store/port.js'
import { GuardCall } from './call.js'
import { ClosingSign } from './closing.js'
import type { CallFunction } from './context.js'
import { Dispatcher } from './dispatcher.js'
import { asAsked, type Degradable, FallbackChain, type FallbackCount } from './fallback.js'
import { createFetch, type Fetch, type FetchOptions } from './fetch.js'
import { type FleetGuardReport, MOST_LANES, readGuard } from './fleet.js'
import type { Machinery } from './machinery.js'
import type { CheckedGuard } from './options.js'
import { busyError, halfOpenError, limitedError, storeError } from './refusals.js'
import { type Priority, Room } from './room.js'
import type { RunOptions } from './run-options.js'
import { LimitStage, UserStage } from './shared-stages.js'
import { Slots } from './slots.js'
import { Starter } from './starter.js'
import { Tally, type TallySnapshot } from './tally.js'
import { type GuardTimings, Timings } from './timings.js'

export interface GuardSnapshot extends TallySnapshot {
  name: string
  /** The waiting room. */
  room: { waiting: number; size: number; oldestMs: number; byPriority: Record<Priority, number> }
  /** Calls that run, and how many may; infinite without `concurrency`. */
  active: number
  limit: number
  /** Those that were used lately, 100 at most. */
  lanes: string[]
  /** One for each lane that was used. */
  breakers: BreakerSnapshot[]
  /** Retries made in the last seconds, and the calls they are a fraction of. */
  retries: ReturnType<RetryBudget['snapshot']> | undefined
  /** How often each fallback stood in. */
  fallbacks: FallbackCount[]
  closed: boolean
}

export interface Guard {
  readonly name: string
  /**
   * Makes the call, or refuses it with a `SpillwayError`. What the function throws comes out; with
   * fallbacks, only if none of them has an answer.
   */
  run<T>(fn: CallFunction<T>, options?: RunOptions): Promise<T>
  /** The same, with a word on whether the value is what was asked for. */
  runDegradable<T>(fn: CallFunction<T>, options?: RunOptions): Promise<Degradable<T>>
  /** The call alone: without fallbacks and without throwing, and with every attempt. */
  tryRun<T>(fn: CallFunction<T>, options?: RunOptions): Promise<RetryResult<T>>
  /** For operating the breaker by hand, on all pods; nothing without one. */
  readonly breaker: BreakerControls | undefined
  /** `fetch`, guarded: for any client that takes one. The call ends when its body does. */
  readonly fetch: Fetch
  /** The same for calls that have something in common: a lane, a user, a cost. */
  fetchFor(options: RunOptions): Fetch
  snapshot(): GuardSnapshot
  /**
   * Drains: refuses with CLOSED what waits or comes later, lets what runs finish for so long (30
   * seconds unless told otherwise), gives back what it holds and tells the last outcomes.
   */
  close(options?: { graceMs?: Duration }): Promise<void>
}

export interface GuardSurroundings {
  store: Store
  /** The store is in this process and goes by the same clock. */
  sameClock: boolean
  /** This pod, and no other that ever was. */
  pod: string
  clock: Clock
  random: Random
}

const DEFAULT_GRACE_MS = 30_000
const NO_OPTIONS: RunOptions = {}

export class SharedGuard implements Guard {
  readonly name: string
  readonly #machinery: Machinery
  readonly #closing: ClosingSign
  readonly #budget: RetryBudget | undefined
  readonly breaker: BreakerControls | undefined
  readonly fetch: Fetch
  readonly #fetching: FetchOptions
  readonly #fallback: FallbackChain | undefined
  #closed: Promise<void> | undefined
  #onIdle: (() => void) | undefined

  constructor(name: string, options: CheckedGuard, around: GuardSurroundings) {
    this.name = name
    const { clock, random } = around
    this.#closing = new ClosingSign(clock)
    const { queue, pace, concurrency } = options
    const queueMs = queue?.timeoutMs ?? Number.POSITIVE_INFINITY
    const room = new Room({
      clock,
      size: queue?.size ?? 0,
      timeoutMs: queueMs,
      targetMs: queue?.targetMs ?? Math.max(1, queueMs / 10),
      agingMs: queue?.agingMs ?? Math.max(1, queueMs / 2),
    })
    const slots = new Slots(
      () => concurrency?.limit ?? Number.POSITIVE_INFINITY,
      pace && tokenBucket(pace.limit, pace.windowMs, pace.burst ?? pace.limit),
    )
    const limits = this.#createLimits(options, around)
    const users = createUsers(name, options, around.store)
    const timeout = createTimeout(name, options, clock)
    // Last, because it begins to listen at once: nothing that complains comes after it.
    const breaker = this.#createBreaker(options, around)
    const dispatcher = new Dispatcher({
      clock,
      room,
      slots,
      breaker: breaker && {
        isClear: (lane) => breaker.isClear(lane),
        enter: (lane) => breaker.enter(lane),
        exit: (permit, outcome) => breaker.exit(permit, outcome),
        isPermit,
      },
      limits,
      patient: queue !== undefined,
      limitedError: (lane, retryAfterMs, paused) => limitedError(name, lane, retryAfterMs, paused),
      busyError: (stage) => busyError(name, stage, slots, clock.now()),
      storeError: (cause) => storeError(name, cause),
    })
    this.#budget = this.#createBudget(options, clock)
    const judging = judgingOf(name, options)
    const retriedHeader = options.fetch?.hops?.retried
    const retry = options.retry && {
      ...this.#retryPolicy(options.retry, judging, clock, random),
      ...(retriedHeader !== undefined && {
        retriedBelow: (value: unknown) => isResponse(value) && value.headers.has(retriedHeader),
      }),
    }
    this.#machinery = {
      name,
      store: around.store,
      sameClock: around.sameClock,
      clock,
      options,
      room,
      slots,
      starter: new Starter(),
      dispatcher,
      breaker,
      limits,
      users,
      timeout,
      retry,
      once: this.#retryPolicy(ONCE, judging, clock, random),
      judging,
      tally: new Tally(),
      running: new LinkedList<TimedCall<unknown>>(),
      overdue: new Set(),
      timings: undefined,
      closed: false,
      onFree: () => this.#onFree(),
    }
    const { fallback } = options
    this.#fallback = fallback && new FallbackChain(name, fallback, clock, judging)
    this.breaker = breaker && createControls(breaker, around.pod)
    const { hops, ...fetching } = options.fetch ?? {}
    this.#fetching = definedOf({ ...fetching, hops }) as FetchOptions
    this.fetch = this.fetchFor(NO_OPTIONS)
    if (breaker !== undefined) this.#heedBreaker(breaker, options.breaker?.per === 'vendor')
  }

  /** The fleet's, and this pod's own where there is a quorum. */
  #heedBreaker(breaker: FleetBreaker, everywhere: boolean): void {
    const { dispatcher } = this.#machinery
    const heed = ({ lane, to }: BreakerChange) => {
      const where = everywhere ? undefined : lane
      // An open breaker empties the room at once: those calls fail fast, they do not wait.
      if (to === 'open' || to === 'isolated') {
        dispatcher.empty(where, (each) => breaker.refuse(each))
      }
      // Whoever still waits did not hear that it was open. Those who come now may be probes.
      if (to === 'half-open') dispatcher.empty(where, (each) => halfOpenError(this.name, each))
    }
    breaker.onChange(heed)
    breaker.onOwnChange(heed)
  }

  run<T>(fn: CallFunction<T>, options: RunOptions = NO_OPTIONS): Promise<T> {
    if (this.#fallback === undefined) return this.#call(fn, options)
    return this.runDegradable(fn, options).then(({ value }) => value)
  }

  runDegradable<T>(fn: CallFunction<T>, options: RunOptions = NO_OPTIONS): Promise<Degradable<T>> {
    if (this.#fallback === undefined) return this.#call(fn, options).then(asAsked)
    return this.#fallback.run(() => this.#call(fn, options), fn, options)
  }

  #call<T>(fn: CallFunction<T>, options: RunOptions): Promise<T> {
    return new GuardCall(this.#machinery, fn, options, undefined).start()
  }

  async tryRun<T>(fn: CallFunction<T>, options: RunOptions = NO_OPTIONS): Promise<RetryResult<T>> {
    const attempts: Attempt[] = []
    try {
      const value = await new GuardCall(this.#machinery, fn, options, attempts).start()
      return { ok: true, value, attempts }
    } catch (error) {
      return { ok: false, error, attempts }
    }
  }

  fetchFor(options: RunOptions): Fetch {
    return createFetch(
      // A request is for one downstream: no other guard could send it.
      (fn, own) => this.#call(fn, own),
      this.#machinery.clock,
      this.#fetching,
      options,
    )
  }

  snapshot(): GuardSnapshot {
    const { room, slots, breaker, tally, clock, options, closed, dispatcher } = this.#machinery
    return {
      name: this.name,
      ...tally.snapshot(),
      room: {
        waiting: room.length,
        size: options.queue?.size ?? 0,
        oldestMs: room.oldestWaitMs(clock.now()),
        byPriority: room.lengthsByPriority(),
      },
      active: slots.active,
      limit: slots.limit,
      lanes: [...dispatcher.lanes()].slice(0, MOST_LANES),
      breakers: breaker?.snapshots() ?? [],
      retries: this.#budget?.snapshot(),
      fallbacks: this.#fallback?.counts() ?? [],
      closed,
    }
  }

  /** How it stands in the whole fleet; other pods use these lanes. */
  readFleet(lanes: Iterable<string>): Promise<FleetGuardReport> {
    const { name, breaker, limits, dispatcher } = this.#machinery
    return readGuard({ name, breaker, limits, lanes: [...dispatcher.lanes(), ...lanes] })
  }

  /** From now on it measures how long calls wait and take. */
  timings(): GuardTimings {
    this.#machinery.timings ??= new Timings(this.name)
    return this.#machinery.timings
  }

  get closed(): boolean {
    return this.#machinery.closed
  }

  async close({ graceMs = DEFAULT_GRACE_MS }: { graceMs?: Duration } = {}): Promise<void> {
    const ms = validate('graceMs', graceMs, duration({ min: 0 }))
    this.#closed ??= this.#drain()
    // Of two that close it, the less patient one decides.
    const patience = this.#machinery.clock.schedule(ms, () => this.#giveUp())
    try {
      await this.#closed
    } finally {
      patience.cancel()
    }
  }

  async #drain(): Promise<void> {
    const { dispatcher, running, breaker, limits, room } = this.#machinery
    this.#machinery.closed = true
    this.#closing.close()
    for (const letGo of this.#machinery.overdue) letGo()
    dispatcher.empty(undefined, () => closedError('room', this.name))
    const tripsOver = dispatcher.close()
    if (running.length > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve
      })
    }
    await tripsOver
    room.close()
    await Promise.all([breaker?.close(), limits?.close()])
  }

  /** Their callers hear of it, and what they held comes back. Each takes itself off the list. */
  #giveUp(): void {
    const { running } = this.#machinery
    while (running.first !== undefined) running.first.giveUp(closedError('call', this.name))
  }

  #onFree(): void {
    const { room, dispatcher, running } = this.#machinery
    if (running.length === 0) this.#onIdle?.()
    if (room.length > 0) dispatcher.freed()
  }

  #createBreaker(options: CheckedGuard, around: GuardSurroundings): FleetBreaker | undefined {
    if (options.breaker === undefined) return undefined
    const { store, pod, clock } = around
    return new FleetBreaker({ name: this.name, store, pod, clock, policy: options.breaker })
  }

  #createLimits(options: CheckedGuard, around: GuardSurroundings): LimitStage | undefined {
    if (options.limits === undefined) return undefined
    const { store, pod, clock } = around
    const { limits, jitterMs, basePauseMs, maxPauseMs } = options
    const book = new LimitBook({
      name: this.name,
      store: store.limits,
      pod,
      clock,
      limits,
      jitterMs,
      basePauseMs,
      maxPauseMs,
      onGivenBack: (lane) => this.#machinery.dispatcher.unblock(lane),
    })
    return new LimitStage({
      book,
      remote: store.remote,
      onPause: (lane, pauseMs) => {
        const untilMs = clock.now() + Math.min(pauseMs, maxPauseMs)
        this.#machinery.dispatcher.pauseUntil(lane, untilMs)
      },
      ride: (lane) => this.#machinery.breaker?.ride(lane),
    })
  }

  /** No retry while the room backs up or all slots are in use; calls ask their lane's breaker. */
  #createBudget({ retry }: CheckedGuard, clock: Clock): RetryBudget | undefined {
    if (retry === undefined) return undefined
    return createRetryBudget({
      ratio: retry.budget,
      retries: retry.attempts - 1,
      clock,
      conditions: () => {
        const { room, slots } = this.#machinery
        return {
          queueWaitMs: room.oldestWaitMs(clock.now()),
          slotsInUse: slots.active / slots.limit,
        }
      },
    })
  }

  #retryPolicy(
    retry: NonNullable<CheckedGuard['retry']>,
    judging: OutcomeOptions,
    clock: Clock,
    random: Random,
  ): RetryPolicy {
    return {
      ...retry,
      name: this.name,
      budget: this.#budget,
      classify: judging.classify,
      clock,
      random,
      usualMs: 0,
      closing: this.#closing,
    }
  }
}

const ONCE: NonNullable<CheckedGuard['retry']> = {
  attempts: 1,
  budget: 0,
  backoff: 'constant',
  baseMs: 1,
  maxMs: 1,
  jitter: 'none',
  maxRetryAfterMs: 0,
  where: 'anywhere',
}

function judgingOf(name: string, { breaker, classify }: CheckedGuard): OutcomeOptions {
  const slowMs = breaker?.slowMs
  return {
    name,
    ...(slowMs !== undefined && { slowMs }),
    ...(classify !== undefined && { classify }),
  }
}

function createUsers(name: string, options: CheckedGuard, store: Store): UserStage | undefined {
  if (options.userLimits === undefined) return undefined
  return new UserStage(name, new UserCharges(store, createLevels(options.userLimits, name)))
}

function createTimeout(name: string, { timeout }: CheckedGuard, clock: Clock): LocalTimeout {
  const { callMs, firstByteMs, idleMs, adaptive } = timeout ?? {}
  if ((callMs ?? firstByteMs ?? idleMs) === undefined) return createDeadlineTimeout(name, clock)
  return createLocalTimeout({
    name,
    clock,
    ...(callMs !== undefined && { callMs }),
    ...(firstByteMs !== undefined && { firstByteMs }),
    ...(idleMs !== undefined && { idleMs }),
    ...(adaptive !== undefined && { adaptive: definedOf(adaptive) }),
  })
}

function definedOf<T extends object>(options: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  ) as never
}
