/**
 * The books of a vendor's limits, as this pod keeps them: which limits are in force, what a call
 * costs under them, and everything that is asked of the store or told to it. Who waits for what, and
 * in which order, is not its business: the rate limiter has a line for that, a guard its room.
 */
import { isDeepStrictEqual } from 'node:util'
import { RollingCounter } from '../../core/collections/rolling-counter.js'
import { SpillwayError } from '../../core/errors.js'
import type { Clock, Timer } from '../../core/time/clock.js'
import type { LimitSpec } from '../../store/limit-spec.js'
import type {
  BreakerReport,
  LaneRef,
  LimitStore,
  MaybePromise,
  SettleRequest,
  TakeReply,
  TakeRequest,
} from '../../store/port.js'
import { DEFAULT_LANE } from '../default-lane.js'
import type { LaneRegistry } from '../lanes/lane-registry.js'
import type { Spender } from '../outage/store-status.js'
import type { StoreWatch } from '../outage/store-watch.js'
import type { RateLimiterFigures } from './api.js'
import { Costs } from './costs.js'
import { figuresOf } from './figures.js'
import { LimitsAlone } from './limits-alone.js'
import {
  type readLimits,
  toUnitLimits,
  type UnitLimit,
  unknownUnit,
  usualJitterMs,
} from './options.js'
import { type Correction, type Cost, LanePermit } from './permit.js'
import { type Sending, Settler } from './settler.js'
import { readVendorHeaders, type VendorWord } from './vendor-headers.js'
import { type VendorLeft, VendorWords } from './vendor-words.js'

export interface LimitBookOptions {
  name: string
  store: LimitStore
  /** This pod, and no other that ever was. */
  pod: string
  clock: Clock
  limits: ReturnType<typeof readLimits>
  jitterMs: number | undefined
  basePauseMs: number
  maxPauseMs: number
  /** The guard's lanes: names of calls are resolved by it. */
  lanes: LaneRegistry
  /** Over a remote store; the book starts it. */
  watch?: StoreWatch | undefined
  /** The book of the same name that this one takes the place of. */
  before?: LimitBook | undefined
  /** Something was given back on this lane: perhaps nobody need wait any longer. */
  onGivenBack(lane: string): void
  /** Limits were changed, by this pod or by another one: waiting calls ask again. */
  onLimitsChanged(): void
}

/** What came back, with the limits it was asked under. */
export type Trip = TakeReply & {
  under: readonly UnitLimit[]
  /** Decided by this pod, now: the store is away. */
  alone?: boolean
}

/** What somebody says who takes permits in a step of its own, and who hears what came back. */
export interface LimitPassage {
  ref: LaneRef
  units: readonly string[]
  heard(reply: TakeReply, costs: readonly (readonly number[])[]): Trip
  failed(error: unknown): void
}

const REPORT_MS = 5_000
/** A queue without a timeout lets calls wait for ever; a number for the store has to be finite. */
const LONGEST_WAIT_US = 86_400_000_000

type WaitListEntry = NonNullable<TakeRequest['waiter']>
/** Over a network: what calls really cost is told so late, and then of many at once. */
const SETTLE_TOGETHER_MS = 5

export class LimitBook implements Spender {
  readonly name: string
  /** A permit is worth nothing when its trip took longer than this. */
  readonly useWithinMs: number
  readonly #jitterMs: number
  readonly #options: LimitBookOptions
  readonly #store: LimitStore
  readonly #clock: Clock
  readonly #settler: Settler
  readonly #costs: Costs
  #limits: readonly UnitLimit[]
  #specs: readonly LimitSpec[]
  #version = 0
  /** Somebody has changed limits in the store, here or on another pod. */
  #isChanged = false
  readonly #words: VendorWords
  readonly #requests = new RollingCounter(60_000, 60)
  /** Permits that are not in there yet: every few seconds is good enough. */
  #granted = 0
  #reporting: Timer | undefined
  #closed = false
  /** Set from the first call that waits on: until then there is nothing to wake. */
  #stopListening: (() => void) | undefined
  #lastWaiter: WaitListEntry | undefined
  readonly #watch: StoreWatch | undefined
  readonly #alone: LimitsAlone | undefined

  constructor(options: LimitBookOptions) {
    this.name = options.name
    this.#options = options
    this.#store = options.store
    this.#clock = options.clock
    this.#words = new VendorWords(options.lanes)
    this.#jitterMs = options.jitterMs ?? usualJitterMs(options.limits)
    // The other half is for the way to the vendor.
    this.useWithinMs = this.#jitterMs / 2
    this.#limits = toUnitLimits(options.limits, this.#jitterMs)
    this.#specs = specsOf(this.#limits)
    this.#costs = new Costs(this.#limits)
    this.#settler = new Settler(
      options.clock,
      options.pod,
      options.watch === undefined ? 0 : SETTLE_TOGETHER_MS,
      (sending) => this.#settle(sending),
      (lane) => options.onGivenBack(lane),
    )
    const { watch, before } = options
    this.#watch = watch
    if (before !== undefined) this.#succeed(before)
    if (watch === undefined) return
    const rules = this.#limits.map(
      ({ spec }, index) => [spec.id, options.limits[index]?.outage ?? 'share'] as const,
    )
    // What this pod has used it has used, whoever kept the books.
    const known = before === undefined ? undefined : before.#alone
    this.#alone = known ?? new LimitsAlone(options.name, watch, options.lanes)
    this.#alone.goBy(new Map(rules))
    watch.start(this)
  }

  /**
   * These limits are newer than the other's. Each trip brings them along, so mostly nobody has to be told. But
   * where somebody has changed limits in the store, these are the newest now; and where a window is another one,
   * counts have to be made anew, which takes a new version. That one says nothing of the limits themselves: whoever
   * starts later goes by its own.
   */
  #succeed(before: LimitBook): void {
    this.#version = before.#version
    this.#isChanged = before.#isChanged
    const otherWindow = this.#specs.some(({ id, windowUs, slices }) => {
      const was = before.#specs.find((each) => each.id === id)
      return was !== undefined && (was.windowUs !== windowUs || was.slices !== slices)
    })
    if (!this.#isChanged && !otherWindow) return
    const limits = this.#isChanged ? this.#specs : []
    const told = this.#store.change({ ...this.#ref(DEFAULT_LANE), limits })
    const heard = (version: number) => {
      this.#version = Math.max(this.#version, version)
    }
    if (told instanceof Promise) told.then(heard, () => {})
    else heard(told)
  }

  /** Limits are decided by this pod, because the store is away or not trusted yet. */
  get alone(): boolean {
    return this.#watch !== undefined && !this.#watch.joined && this.#watch.status !== 'starting'
  }

  /** This pod's part of each limit, by id. */
  get shares(): Record<string, number> {
    return this.#alone?.shares(this.#specs) ?? {}
  }

  /** The limits in force: others, when they have changed. */
  get limits(): readonly UnitLimit[] {
    return this.#limits
  }

  /** Throws where a unit is unknown, or a number no cost. */
  checkCost(cost: Cost | undefined): void {
    this.#costs.check(cost, this.#limits)
  }

  /** Per limit, of a cost that was checked. The store lowers what could never be granted. */
  costsOf(cost: Cost | undefined): readonly number[] {
    return this.#costs.of(cost, this.#limits)
  }

  take(
    lane: string,
    costs: readonly (readonly number[])[],
    atMs: number | undefined,
    waitMs: number,
  ): MaybePromise<Trip> {
    const waiter = this.#waiterFor(waitMs)
    if (this.#watch !== undefined) {
      return this.#takeWatched(this.#watch, lane, costs, undefined, waiter)
    }
    const limits = this.#limits
    // Written out: copying one object into another is what would cost most here.
    const { name: guard } = this
    const reply = this.#store.take({
      guard,
      lane,
      limits: this.#specs,
      version: this.#version,
      costs,
      atMs,
      waiter,
    })
    return reply instanceof Promise
      ? reply.then((each) => this.#learn(each, limits, waiter))
      : this.#learn(reply, limits, waiter)
  }

  /** For permits that are taken in a step of somebody else's; nothing while the store is away. */
  passage(lane: string): LimitPassage | undefined {
    const watch = this.#watch
    if (watch !== undefined && !watch.joined) return undefined
    const limits = this.#limits
    const specs = this.#specs
    const alone = this.#alone
    watch?.asked()
    return {
      ref: { ...this.#ref(lane), limits: alone?.specsToAsk(specs) ?? specs },
      units: limits.map(({ unit }) => unit),
      heard: (reply, costs) => {
        watch?.over()
        alone?.heard(lane, specs, costs, reply)
        watch?.heard(reply.nowUs)
        return this.#learn(reply, limits)
      },
      failed: (error) => {
        watch?.over()
        watch?.failed(error)
      },
    }
  }

  /** The same, with outcomes for this guard's breaker on the same trip. */
  async takeAlong(
    lane: string,
    costs: readonly (readonly number[])[],
    report: BreakerReport,
    waitMs: number,
  ): Promise<Trip> {
    const waiter = this.#waiterFor(waitMs)
    if (this.#watch !== undefined) {
      return this.#takeWatched(this.#watch, lane, costs, report, waiter)
    }
    const limits = this.#limits
    const reply = await this.#store.take({ ...this.#ref(lane), costs, report, waiter })
    return this.#learn(reply, limits, waiter)
  }

  /** Through the store while it is there; by this pod's own books while it is not. */
  #takeWatched(
    watch: StoreWatch,
    lane: string,
    costs: readonly (readonly number[])[],
    report: BreakerReport | undefined,
    waiter: WaitListEntry | undefined,
  ): MaybePromise<Trip> {
    if (!watch.joined) {
      if (watch.status !== 'starting') return this.#takeAlone(lane, costs)
      return watch.whenStarted().then(() => this.#takeWatched(watch, lane, costs, report, waiter))
    }
    const limits = this.#limits
    const specs = this.#specs
    const alone = this.#alone as LimitsAlone
    const sentMs = this.#clock.now()
    watch.asked()
    // Written out, as in `take`.
    const reply = this.#store.take({
      guard: this.name,
      lane,
      limits: alone.specsToAsk(specs),
      version: this.#version,
      costs,
      report,
      waiter,
    })
    return Promise.resolve(reply).then(
      (each) => {
        watch.over()
        alone.heard(lane, specs, costs, each)
        watch.heard(each.nowUs)
        if (each.granted > 0) watch.permitted(this.#clock.now() - sentMs)
        return this.#learn(each, limits, waiter)
      },
      (error) => {
        watch.over()
        watch.failed(error)
        // Whoever has waited for the store as long as that does not wait for it again.
        if (watch.joined) throw error
        return this.#takeAlone(lane, costs)
      },
    )
  }

  #takeAlone(lane: string, costs: readonly (readonly number[])[]): Trip {
    const limits = this.#limits
    const reply = (this.#alone as LimitsAlone).take(lane, this.#specs, costs)
    this.#granted += reply.granted
    return { ...reply, under: limits, alone: true }
  }

  createPermit(lane: string, costs: readonly number[], trip: Trip): LanePermit {
    const { under: limits, capacities, stamps, nowUs } = trip
    let booked = costs
    for (let index = 0; index < costs.length; index++) {
      if ((costs[index] as number) <= (capacities[index] as number)) continue
      booked = costs.map((cost, each) => Math.min(cost, capacities[each] as number))
      break
    }
    const onSettle = trip.alone === true ? this.#onSettleAlone : this.#onSettle
    return new LanePermit(lane, limits, booked, stamps, nowUs, onSettle)
  }

  /** Heeds what a vendor's answer says about its limits. Nothing, if it says nothing new. */
  heed(
    answer: { status: number; headers: unknown },
    permit: LanePermit,
  ): MaybePromise<number> | undefined {
    const { lane, grantedUs } = permit
    const nowMs = this.#clock.now()
    const good = answer.status < 400
    if (good && this.#words.heardEnough(lane, nowMs)) return undefined
    const word = readVendorHeaders(answer.headers, this.#clock.wallMs())
    const throttled = asksForPause(answer.status, word)
    const news = this.#words.hear(lane, { word, good, throttled }, this.#limits, nowMs)
    if (news === undefined) return undefined
    const pauseMs = word.retryAfterMs ?? this.fixedPauseMs(permit)
    const pauseUs = pauseMs === undefined ? undefined : toUs(pauseMs)
    return this.#feedback(lane, { grantedUs, pauseUs, ...news })
  }

  /** The pause after a 429 without `Retry-After`, if it must not grow. */
  fixedPauseMs({ basePauseOnly }: LanePermit): number | undefined {
    return basePauseOnly ? this.#options.basePauseMs : undefined
  }

  /** Answers with the milliseconds the lane is paused for. */
  pause(lane: string, pauseMs: number | undefined, grantedUs = 0): MaybePromise<number> {
    const pauseUs = pauseMs === undefined ? undefined : toUs(pauseMs)
    return this.#feedback(lane, { grantedUs, throttled: true, pauseUs, left: [] })
  }

  async change(limits: ReturnType<typeof readLimits>, lane: string): Promise<void> {
    const next = toUnitLimits(limits, this.#jitterMs)
    this.#version = await this.#store.change({ ...this.#ref(lane), limits: specsOf(next) })
    this.#isChanged = true
    this.#limits = next
    this.#specs = specsOf(next)
    this.#costs.learn(next)
    this.#options.onLimitsChanged()
  }

  /** There is a limit on this unit, or an error. */
  checkLimit(unit: string): UnitLimit {
    const known = this.#limits.find((each) => each.unit === unit || each.spec.id === unit)
    if (known !== undefined) return known
    const ids = this.#limits.map((each) => each.spec.id)
    throw unknownUnit('unit', unit, ids)
  }

  async override(unit: string, limit: number, forMs: number, lane: string): Promise<void> {
    const { id } = this.checkLimit(unit).spec
    const override = { id, limit, forUs: toUs(forMs) }
    await this.#store.change({ ...this.#ref(lane), override })
    this.#options.onLimitsChanged()
  }

  async figures(lane: string): Promise<RateLimiterFigures> {
    await this.#report()
    return this.look(lane)
  }

  /** The same without telling anything. */
  async look(lane: string): Promise<RateLimiterFigures> {
    return figuresOf(await this.#store.figures(this.#ref(lane)))
  }

  /** Resolves when all settlements are sent. */
  async close(): Promise<void> {
    this.#closed = true
    this.#reporting?.cancel()
    this.#stopListening?.()
    this.#words.close()
    await this.#settler.drain()
    await this.#watch?.close(this)
  }

  /** The least that is left of any limit, as a fraction, as far as this pod knows without asking. */
  headroom(lane: string): number {
    if (this.#alone !== undefined) return this.#alone.headroom(lane, this.#specs)
    const figures = this.#store.figures(this.#ref(lane))
    // A store in this process answers at once.
    if (figures instanceof Promise) return 1
    if (figures.pausedUntilUs > figures.nowUs) return 0
    return Math.min(1, ...figures.limits.map(({ limit, remaining }) => remaining / limit))
  }

  get windowMs(): number {
    return Math.max(...this.#specs.map(({ windowUs }) => windowUs)) / 1_000
  }

  get usableMs(): number {
    return this.useWithinMs
  }

  wake(): void {
    for (const lane of this.#alone?.lanes(this.windowMs * 1_000) ?? []) {
      this.#options.onGivenBack(lane)
    }
  }

  forgotten(): void {
    this.#alone?.forgotten()
  }

  tell(): Promise<void> {
    return (this.#alone as LimitsAlone).tell(this.#specs, (lane, spent, sequence) =>
      // Numbers of its own: settlements may be sent again while this is under way.
      this.#store.book({
        ...this.#ref(lane),
        pod: `${this.#options.pod}/alone`,
        sequence,
        spent,
      }),
    )
  }

  /** So that this pod knows what is left, should the store go away; and what was spent meanwhile. */
  refresh(): void {
    const alone = this.#alone as LimitsAlone
    const specs = this.#specs
    alone.sweep(specs)
    const lanes = alone.lanes(this.windowMs * 1_000)
    for (const lane of lanes.length === 0 ? [DEFAULT_LANE] : lanes) {
      void this.#look(alone, lane, specs).catch(() => {})
    }
  }

  async #look(alone: LimitsAlone, lane: string, specs: readonly LimitSpec[]): Promise<void> {
    const figures = await this.#store.figures(this.#ref(lane))
    // The message about it may have been lost.
    if (figures.version > this.#version) this.#options.onLimitsChanged()
    if (this.#watch?.joined === true) alone.saw(lane, specs, figures)
  }

  returned(): void {
    // What came in after the last telling.
    void this.tell().catch(() => {})
  }

  readonly #onSettle = (lane: string, corrections: Correction[]): void => {
    this.#alone?.correct(lane, this.#specs, corrections, true)
    this.#settler.add(lane, corrections)
  }

  /** The store is told what is left of it afterwards; if it has been told already, of this as well. */
  readonly #onSettleAlone = (lane: string, corrections: Correction[]): void => {
    if (!this.alone) return this.#onSettle(lane, corrections)
    this.#alone?.correct(lane, this.#specs, corrections, false)
    queueMicrotask(() => this.#options.onGivenBack(lane))
  }

  #settle({ lane, sequence, corrections }: Sending): MaybePromise<void> {
    const specs = this.#specs
    const settlements: SettleRequest['settlements'][number][] = []
    for (const { id, stamp, delta } of corrections) {
      const limit = specs.findIndex((spec) => spec.id === id)
      if (limit !== -1) settlements.push({ limit, stamp, delta })
    }
    // Written out, as in `take`: this is for every call whose cost was an estimate.
    return this.#store.settle({
      guard: this.name,
      lane,
      limits: specs,
      version: this.#version,
      pod: this.#settler.pod,
      sequence,
      settlements,
    })
  }

  /** Another pod may have changed the limits. */
  #learn(reply: TakeReply, limits: readonly UnitLimit[], waiter?: WaitListEntry): Trip {
    this.#count(reply.granted)
    const { waitUs } = reply
    if (waiter !== undefined && waitUs > 0 && waitUs <= waiter.forUs) this.#listen()
    const { newer } = reply
    const trip = reply as Trip
    trip.under = limits
    if (newer === undefined || newer.version <= this.#version) return trip
    this.#version = newer.version
    if (isDeepStrictEqual(newer.limits, this.#specs)) return trip
    this.#isChanged = true
    this.#limits = this.#limits.map(({ unit }, index) => ({
      unit,
      spec: newer.limits[index] as LimitSpec,
    }))
    this.#specs = newer.limits
    return trip
  }

  /** Mostly the same as for the last request, because calls without a deadline can wait equally long. */
  #waiterFor(waitMs: number): WaitListEntry | undefined {
    if (waitMs <= 0) return undefined
    const forUs = Math.min(toUs(waitMs), LONGEST_WAIT_US)
    if (this.#lastWaiter?.forUs !== forUs) this.#lastWaiter = { pod: this.#options.pod, forUs }
    return this.#lastWaiter
  }

  /** Hears when capacity becomes free for calls of this pod that wait. */
  #listen(): void {
    if (this.#stopListening !== undefined || this.#closed) return
    const { pod, onGivenBack, onLimitsChanged } = this.#options
    this.#stopListening = this.#store.watch(pod, {
      onFreed: (guard, lane) => {
        if (guard !== this.name) return
        if (lane === undefined) onLimitsChanged()
        else onGivenBack(lane)
      },
      onGap: onLimitsChanged,
    })
  }

  /** For the figures of others: told in the background, only while there is something to tell. */
  #count(granted: number): void {
    this.#granted += granted
    if (this.#reporting !== undefined || granted === 0) return
    this.#reporting = this.#clock.schedule(REPORT_MS, () => {
      this.#reporting = undefined
      this.#words.sweep(this.#clock.now())
      if (!this.#closed) void this.#report().catch(() => {})
    })
    this.#reporting.unref()
  }

  async #report(): Promise<void> {
    if (this.alone) return
    const nowMs = this.#clock.now()
    this.#requests.add(nowMs, this.#granted)
    this.#granted = 0
    const requests = this.#requests.total(nowMs)
    await this.#store.report({ guard: this.name, pod: this.#options.pod, requests })
  }

  #feedback(
    lane: string,
    word: {
      grantedUs: number
      throttled: boolean
      pauseUs: number | undefined
      left: readonly VendorLeft[]
    },
  ): MaybePromise<number> {
    const { basePauseMs, maxPauseMs } = this.#options
    // What somebody says by hand is for all pods or for none.
    if (this.alone && word.grantedUs > 0) {
      if (!word.throttled) return 0
      const [baseUs, maxUs] = [toUs(basePauseMs), toUs(maxPauseMs)]
      return (this.#alone as LimitsAlone).pause(lane, word.pauseUs, baseUs, maxUs)
    }
    const pauses = { basePauseUs: toUs(basePauseMs), maxPauseUs: toUs(maxPauseMs) }
    return this.#store.feedback({ ...this.#ref(lane), ...word, ...pauses })
  }

  #ref(lane: string): LaneRef {
    return { guard: this.name, lane, limits: this.#specs, version: this.#version }
  }

  storeError(error: unknown): SpillwayError {
    if (error instanceof SpillwayError) return error
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

/** A vendor that is overloaded or out of service may also say for how long. */
function asksForPause(status: number, { retryAfterMs }: VendorWord): boolean {
  return status === 429 || ((status === 503 || status === 529) && retryAfterMs !== undefined)
}

function specsOf(limits: readonly UnitLimit[]): LimitSpec[] {
  return limits.map(({ spec }) => spec)
}

function toUs(ms: number): number {
  return Math.ceil(ms * 1_000)
}
