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
import type { Priority } from '../core/priority.js'
import type { Random } from '../core/random.js'
import { TimerList } from '../core/timer-list.js'
import type { Attempt } from '../local/attempts.js'
import { Shedder, type ShedderSnapshot } from '../local/load-shedder/shedder.js'
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
import type { OutageRule } from '../shared/outage/rules.js'
import type { StoreSnapshot, StoreWatch } from '../shared/outage/store-watch.js'
import { watchOver } from '../shared/outage/watch-over.js'
import { LimitBook } from '../shared/rate-limiter/limit-book.js'
import { createLevels } from '../shared/user-limits/levels.js'
import { LevelsAlone } from '../shared/user-limits/levels-alone.js'
import { UserCharges } from '../shared/user-limits/user-charges.js'
import type { Store } from '../store/port.js'
import { AttemptMeter } from './attempt-meter.js'
import { GuardCall } from './call.js'
import { ClosingSign } from './closing.js'
import type { CallFunction } from './context.js'
import { Dispatcher } from './dispatcher.js'
import { asAsked, type Degradable, FallbackChain, type FallbackCount } from './fallback.js'
import { createFetch, type Fetch, type FetchOptions } from './fetch.js'
import { type FleetGuardReport, MOST_LANES, readGuard } from './fleet.js'
import { type HedgeCounts, Hedger } from './hedger.js'
import { JobGate } from './jobs/job-gate.js'
import { type LaneLimitSnapshot, LaneLimits } from './lane-limits.js'
import { LaneThrottles } from './lane-throttles.js'
import type { Machinery } from './machinery.js'
import type { CheckedGuard } from './options.js'
import { busyError, halfOpenError, limitedError, storeError } from './refusals.js'
import { Room } from './room.js'
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
  /** The load shedder's signals; nothing without `shed`. */
  shed: ShedderSnapshot | undefined
  /** One for each lane that was used, with `concurrency.adaptive`. */
  laneLimits: LaneLimitSnapshot[]
  /** The same with `throttle`. */
  throttles: ReturnType<LaneThrottles['snapshots']>
  /** Second attempts; nothing without `hedge`. */
  hedges: HedgeCounts | undefined
  /** Retries made in the last seconds, and the calls they are a fraction of. */
  retries: ReturnType<RetryBudget['snapshot']> | undefined
  /** How the store stands for this guard; nothing, where there is none but memory. */
  store: GuardStoreSnapshot | undefined
  /** How often each fallback stood in. */
  fallbacks: FallbackCount[]
  closed: boolean
}

export interface GuardStoreSnapshot extends StoreSnapshot {
  /** What goes while the store is away: of each limit, of the breaker, of each level of user limits. */
  rules: {
    limits: Record<string, OutageRule>
    breaker: OutageRule | undefined
    userLimits: Record<string, OutageRule>
  }
  /** They are in force: for limits, for breaker and user limits. */
  inForce: { limits: boolean; breaker: boolean }
  /** This pod's part of each limit. */
  shares: Record<string, number>
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
  /** How many pods there are, as long as nobody has said. */
  expectedPods: number
}

const DEFAULT_GRACE_MS = 30_000
const DEFAULT_UNREAD_MS = 60_000
const NO_OPTIONS: RunOptions = {}

export class SharedGuard implements Guard {
  readonly name: string
  readonly #machinery: Machinery
  readonly #closing: ClosingSign
  readonly #budget: RetryBudget | undefined
  readonly breaker: BreakerControls | undefined
  readonly fetch: Fetch
  readonly #fetching: FetchOptions
  readonly #watch: StoreWatch | undefined
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
    const lanes = createLaneLimits(name, options, clock)
    const slots = new Slots(
      () => concurrency?.limit ?? Number.POSITIVE_INFINITY,
      pace && tokenBucket(pace.limit, pace.windowMs, pace.burst ?? pace.limit),
      lanes,
    )
    const throttles = options.throttle && new LaneThrottles(name, options.throttle, random)
    const watch = createWatch(name, options, around)
    this.#watch = watch
    const limits = this.#createLimits(options, around, watch)
    const users = createUsers(name, options, around, watch)
    const timeout = createTimeout(name, options, clock)
    // Last, because it begins to listen at once: nothing that complains comes after it.
    const breaker = this.#createBreaker(options, around, watch)
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
      limitedError: (lane, retryAfterMs, paused) =>
        limitedError(name, lane, retryAfterMs, paused, limits?.alone === true),
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
      unreadTimers: new TimerList(clock, options.timeout?.unreadMs ?? DEFAULT_UNREAD_MS, {
        keepsAlive: false,
      }),
      retry,
      budget: this.#budget,
      shedder: options.shed && new Shedder(name, options.shed, clock, random),
      throttles,
      hedger: options.hedge && new Hedger(name, options.hedge, this.#budget as RetryBudget, clock),
      meter: (lanes ?? throttles) && new AttemptMeter(clock, lanes, throttles),
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
    // With limits, their book has started it.
    if (limits === undefined) watch?.start(undefined)
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
    const { shedder, throttles, hedger } = this.#machinery
    const waiting = room.length === 0 ? 0 : dispatcher.crowd(clock.now())
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
      limit: Math.min(slots.limit, slots.lanes?.total ?? slots.limit),
      lanes: [...dispatcher.lanes()].slice(0, MOST_LANES),
      breakers: breaker?.snapshots() ?? [],
      shed: shedder?.snapshot(waiting, slots.active),
      laneLimits: slots.lanes?.snapshots() ?? [],
      throttles: throttles?.snapshots(clock.now()) ?? [],
      hedges: hedger?.counts(),
      retries: this.#budget?.snapshot(),
      store: this.#storeSnapshot(),
      fallbacks: this.#fallback?.counts() ?? [],
      closed,
    }
  }

  #storeSnapshot(): GuardStoreSnapshot | undefined {
    const watch = this.#watch
    if (watch === undefined) return undefined
    const { options, limits } = this.#machinery
    const ofLimits = options.limits?.map(({ unit, outage }) => [unit, outage]) ?? []
    const ofLevels = options.userLimits?.map(({ per, outage }) => [per, outage]) ?? []
    return {
      ...watch.snapshot(),
      rules: {
        limits: Object.fromEntries(ofLimits),
        breaker: options.breaker?.outage,
        userLimits: Object.fromEntries(ofLevels),
      },
      inForce: {
        limits: limits?.alone === true && watch.status !== 'starting',
        breaker: !watch.reachable,
      },
      shares: limits?.shares ?? {},
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

  /** For job queues that go by this guard. */
  jobGate(lane: string | undefined): JobGate {
    return new JobGate(this.#machinery, lane)
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
    const { dispatcher, running, breaker, limits, room, shedder } = this.#machinery
    this.#machinery.closed = true
    shedder?.close()
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
    if (limits === undefined) await this.#watch?.close()
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

  #createBreaker(
    options: CheckedGuard,
    around: GuardSurroundings,
    watch: StoreWatch | undefined,
  ): FleetBreaker | undefined {
    if (options.breaker === undefined) return undefined
    const { store, pod, clock } = around
    return new FleetBreaker({ name: this.name, store, pod, clock, policy: options.breaker, watch })
  }

  #createLimits(
    options: CheckedGuard,
    around: GuardSurroundings,
    watch: StoreWatch | undefined,
  ): LimitStage | undefined {
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
      watch,
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
  #createBudget({ retry, hedge }: CheckedGuard, clock: Clock): RetryBudget | undefined {
    if (retry === undefined && hedge === undefined) return undefined
    return createRetryBudget({
      ...(retry !== undefined && { ratio: retry.budget }),
      // A hedge counts as a first retry; how often a call is tried its policy knows.
      retries: Math.max((retry?.attempts ?? 1) - 1, hedge === undefined ? 0 : 1),
      clock,
      conditions: () => {
        const { room, slots } = this.#machinery
        return {
          queueWaitMs: room.oldestWaitMs(clock.now()),
          slotsInUse: Math.max(slots.active / slots.limit, slots.lanes?.used ?? 0),
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

function createLaneLimits(
  name: string,
  { concurrency }: CheckedGuard,
  clock: Clock,
): LaneLimits | undefined {
  if (concurrency?.adaptive === undefined) return undefined
  return new LaneLimits(name, { ...concurrency, adaptive: concurrency.adaptive }, clock)
}

function createUsers(
  name: string,
  { userLimits }: CheckedGuard,
  { store, clock, random }: GuardSurroundings,
  watch: StoreWatch | undefined,
): UserStage | undefined {
  if (userLimits === undefined) return undefined
  const alone = watch && new LevelsAlone(name, watch, clock, random)
  return new UserStage(name, new UserCharges(store, createLevels(userLimits, name), alone))
}

function createWatch(
  name: string,
  { limits, breaker, userLimits }: CheckedGuard,
  { store, ...around }: GuardSurroundings,
): StoreWatch | undefined {
  const shares = (limits ?? breaker ?? userLimits) !== undefined
  return shares ? watchOver(store, { name, ...around }) : undefined
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
