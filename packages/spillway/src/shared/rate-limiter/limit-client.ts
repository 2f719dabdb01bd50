/**
 * The limits of a guard as this pod uses them: takes permits (`permits`), settles them, passes vendor feedback and
 * changes of limits on to the store, and counts what this pod spends while the store is unreachable. The
 * permit queue decides which call waits for which limit.
 */
import { SpillwayError, storeUnavailable } from '../../core/errors.js'
import { longestPauseMs, type VendorFailure } from '../../core/failures/error-kind.js'
import type { Clock } from '../../core/time/clock.js'
import type { LimitSpec } from '../../store/limit-spec.js'
import type {
  FeedbackReply,
  LaneRef,
  LimitStore,
  MaybePromise,
  SettleRequest,
} from '../../store/port.js'
import type { PiggybackedReport } from '../circuit-breaker/lane/breaker-client.js'
import { DEFAULT_LANE, isOverflowLane } from '../lanes/lane-names.js'
import type { LaneRegistry } from '../lanes/lane-registry.js'
import type { Spender } from '../outage/store-status.js'
import type { StoreWatch } from '../outage/store-watch.js'
import type { RateLimiterFigures } from './api.js'
import { EstimateCounts } from './estimate-counts.js'
import { type AnswerFeedback, FeedbackReader, type LaneFeedback } from './feedback-reader.js'
import { figuresOf } from './figures.js'
import { LearnedEvents } from './learned-events.js'
import type { readLimits, UnitLimit } from './options.js'
import { OutageLimits } from './outage-limits.js'
import type { Correction, Cost, LanePermit } from './permit.js'
import { PermitTaker } from './permit-taker.js'
import { type LimitOptions, LimitSettings } from './settings/limit-settings.js'
import { type SettlementBatch, SettlementSender } from './settlement-sender.js'
import { WakeUps } from './wake-ups.js'

export interface LimitClientOptions extends LimitOptions {
  name: string
  store: LimitStore
  /** Unique for this process. */
  pod: string
  clock: Clock
  basePauseMs: number
  maxPauseMs: number
  /** The guard's lanes. */
  registry: LaneRegistry
  /** Replies arrive later, so requests of one turn are batched. */
  remote: boolean
  /** Of a remote store; the client starts it. */
  watch?: StoreWatch | undefined
  /** Capacity of a lane may have become free: its waiting calls ask again. */
  onGivenBack(lane: string): void
  /** Limits were changed, by this pod or by another one: all waiting calls ask again. */
  onLimitsChanged(): void
  /** Outcomes of a lane that wait to be reported to its breaker, and travel with a permit request. */
  piggybackReport?(lane: string): PiggybackedReport | undefined
}

/** How long settlements for a remote store are collected. */
const COLLECT_SETTLEMENTS_MS = 5

export class LimitClient implements Spender {
  readonly name: string
  readonly #options: LimitClientOptions
  readonly #store: LimitStore
  /** The limits in force, and what a call costs under them. */
  readonly settings: LimitSettings
  readonly #settlements: SettlementSender
  readonly #feedback: FeedbackReader
  readonly #learned: LearnedEvents
  readonly #watch: StoreWatch | undefined
  readonly #outage: OutageLimits | undefined
  readonly #wakeUps: WakeUps
  /** Requests permits. */
  readonly permits: PermitTaker
  /** Reserved against actual costs, since the pod started. */
  readonly estimates: EstimateCounts

  /**
   * `before`: the client of the guard that this one replaces. It is not one of the options, which are kept: the clients
   * of all earlier guards would stay in memory.
   */
  constructor(options: LimitClientOptions, before?: LimitClient) {
    const { name, pod, clock, watch, registry: lanes } = options
    this.name = name
    this.#options = options
    this.estimates = before?.estimates ?? new EstimateCounts()
    this.#store = options.store
    this.settings = new LimitSettings(name, options)
    this.#feedback = new FeedbackReader({
      clock,
      lanes,
      basePauseMs: options.basePauseMs,
      send: (lane, feedback) => this.#sendFeedback(lane, feedback),
    })
    this.#learned = new LearnedEvents(name, clock, lanes)
    this.#settlements = new SettlementSender({
      clock,
      pod,
      collectMs: watch === undefined ? 0 : COLLECT_SETTLEMENTS_MS,
      send: (batch) => this.#settle(batch),
      onFreed: (lane) => options.onGivenBack(lane),
    })
    this.#wakeUps = new WakeUps(options)
    this.#watch = watch
    if (before !== undefined) this.#succeed(before)
    this.#outage = watch && this.#outageLimits(watch, before)
    this.permits = new PermitTaker({
      name,
      pod,
      store: options.store,
      clock,
      remote: options.remote,
      settings: this.settings,
      wakeUps: this.#wakeUps,
      watch,
      outage: this.#outage,
      piggybackReport: (lane) => options.piggybackReport?.(lane),
      report: async (requests) => {
        this.#feedback.sweep(clock.now())
        if (!this.alone) await options.store.report({ guard: name, pod, requests })
      },
      onSettle: this.#onSettle,
      onSettleAlone: this.#onSettleAlone,
      estimates: this.estimates,
    })
    watch?.start(this)
  }

  get usableMs(): number {
    return this.settings.useWithinMs
  }

  get windowMs(): number {
    return this.settings.windowMs
  }

  countsUntilUs(usedUs: number): number {
    return this.settings.countsUntilUs(usedUs)
  }

  /** Why this pod decides about permits; undefined if the store does. */
  get outageReason(): string | undefined {
    return this.alone ? this.#watch?.problem : undefined
  }

  /** Permits are decided by this pod, because the store is unreachable or not trusted yet. */
  get alone(): boolean {
    return this.permits.alone
  }

  /** This pod's share of each limit during an outage, by id. */
  get shares(): Record<string, number> {
    return this.#outage?.shares(this.settings.all().map(({ spec }) => spec)) ?? {}
  }

  /** As `shares`, of the limits of one lane. */
  sharesOf(lane: string): Record<string, number> {
    return this.#outage?.shares(this.settings.of(lane).specs) ?? {}
  }

  checkCost(cost: Cost | undefined): void {
    this.settings.checkCost(cost)
  }

  checkLimit(unit: string): UnitLimit {
    return this.settings.checkLimit(unit)
  }

  /** Passes on what a vendor's response says about its limits. Undefined if it says nothing new. */
  updateFromResponse(answer: AnswerFeedback, permit: LanePermit): MaybePromise<number> | undefined {
    const { limits } = this.settings.of(permit.lane)
    return this.#feedback.updateFromResponse(answer, permit, limits)
  }

  /** Returns the time until which the lane is paused. */
  pause(lane: string, pauseMs: number | undefined): MaybePromise<number> {
    const pauseUs = pauseMs === undefined ? undefined : toUs(pauseMs)
    return this.#sendFeedback(lane, { grantedUs: 0, throttled: true, pauseUs, left: [] })
  }

  /** The vendor refused a call without a readable response. Returns the time until which the lane is paused. */
  throttled(permit: LanePermit, failure: Partial<VendorFailure>): MaybePromise<number> {
    const { lane, grantedUs } = permit
    const pauseMs = failure.retryAfterMs ?? this.#feedback.fixedPauseMs(permit)
    const pauseUs = pauseMs === undefined ? undefined : toUs(pauseMs)
    const refused = permit.refused(this.settings.of(lane).limits)
    const feedback = { throttled: true, pauseUs, left: [], refused, failure }
    return this.#sendFeedback(lane, { grantedUs, ...feedback })
  }

  async change(limits: ReturnType<typeof readLimits>, lane: string): Promise<void> {
    await this.settings.change(limits, (specs) =>
      this.#store.change({ ...this.settings.ref(lane), limits: specs }),
    )
    this.#options.onLimitsChanged()
  }

  async override(unit: string, limit: number, forMs: number, lane: string): Promise<void> {
    const { id } = this.checkLimit(unit).spec
    const override = { id, limit, forUs: toUs(forMs) }
    await this.#store.change({ ...this.settings.ref(lane), override })
    this.#options.onLimitsChanged()
  }

  async figures(lane: string): Promise<RateLimiterFigures> {
    await this.permits.reportRequests()
    return this.look(lane)
  }

  /** As `figures`, without reporting this pod's requests first. */
  async look(lane: string): Promise<RateLimiterFigures> {
    return figuresOf(await this.#store.figures(this.settings.ref(lane)))
  }

  /** The smallest remaining fraction of any limit, as far as this pod knows without a round trip. */
  headroom(lane: string): number {
    const ref = this.settings.ref(lane)
    if (this.#outage !== undefined) return this.#outage.headroom(ref)
    const figures = this.#store.figures(ref)
    if (figures instanceof Promise) return 1
    if (figures.pausedUntilUs > figures.nowUs) return 0
    return Math.min(1, ...figures.limits.map(({ limit, remaining }) => remaining / limit))
  }

  /** Resolves when all settlements were sent. */
  async close(): Promise<void> {
    this.permits.close()
    this.#wakeUps.close()
    this.#feedback.close()
    this.#learned.close()
    await this.#settlements.close()
    await this.#watch?.close(this)
  }

  wake(): void {
    for (const lane of this.#outage?.lanes(this.windowMs * 1_000) ?? []) {
      this.#options.onGivenBack(lane)
    }
  }

  forgotten(): void {
    this.#outage?.forgotten()
  }

  report(): Promise<void> {
    const outage = this.#outage as OutageLimits
    return outage.report(this.settings, (at, spent, sequence) =>
      // A separate sequence, because settlements may be resent at the same time.
      this.#store.book({
        ...(at as LaneRef),
        pod: `${this.#options.pod}/alone`,
        sequence,
        spent,
      }),
    )
  }

  /** Reads the remaining units, for a later outage of the store. */
  refresh(): void {
    const outage = this.#outage as OutageLimits
    outage.sweep(this.settings)
    const lanes = outage.lanes(this.windowMs * 1_000)
    for (const lane of lanes.length === 0 ? [DEFAULT_LANE] : lanes) {
      void this.#read(outage, lane).catch(() => {})
    }
  }

  returned(): void {
    // Units used after the last report.
    void this.report().catch(() => {})
  }

  storeError(error: unknown): SpillwayError {
    if (error instanceof SpillwayError) return error
    return storeUnavailable('vendor-limit', this.name, error)
  }

  /** Keeps the spending that the replaced client has recorded for this pod. */
  #outageLimits(watch: StoreWatch, before: LimitClient | undefined): OutageLimits {
    const { name, registry } = this.#options
    const known = before === undefined ? undefined : before.#outage
    const outage = known ?? new OutageLimits(name, watch, registry)
    outage.setRules(this.settings.outageRules)
    return outage
  }

  #succeed(before: LimitClient): void {
    const limits = this.settings.succeed(before.settings)
    if (limits === undefined) return
    const reply = this.#store.change({ ...this.settings.ref(DEFAULT_LANE), limits })
    if (!(reply instanceof Promise)) return this.settings.reached(reply)
    reply.then(
      (version) => this.settings.reached(version),
      () => {},
    )
  }

  async #read(outage: OutageLimits, lane: string): Promise<void> {
    const ref = this.settings.ref(lane)
    const figures = await this.#store.figures(ref)
    // The message about the change may have been lost.
    if (figures.version > ref.version) this.#options.onLimitsChanged()
    if (this.#watch?.joined === true) outage.noteFigures(ref, figures)
  }

  readonly #onSettle = (lane: string, corrections: Correction[]): void => {
    this.#outage?.correct(this.settings.ref(lane), corrections, true)
    this.#settlements.add(lane, corrections)
  }

  /** For a permit of an outage rule: after the outage its settlement is reported to the store. */
  readonly #onSettleAlone = (lane: string, corrections: Correction[]): void => {
    if (!this.alone) return this.#onSettle(lane, corrections)
    const ref = this.settings.ref(lane)
    this.#outage?.correct(ref, corrections, false)
    queueMicrotask(() => {
      for (const each of this.#sharing(ref)) this.#options.onGivenBack(each)
    })
  }

  /** The lane, and recently used ones that share its pool: the store, which would wake them, is unreachable. */
  #sharing({ lane, pool }: LaneRef): string[] {
    if (pool === undefined) return [lane]
    const used = this.#outage?.lanes(this.windowMs * 1_000) ?? []
    return [lane, ...used.filter((each) => each !== lane && this.settings.of(each).pool === pool)]
  }

  #settle({ lane, sequence, corrections }: SettlementBatch): MaybePromise<number> {
    const { specs, version, pool } = this.settings.of(lane)
    const settlements: SettleRequest['settlements'][number][] = []
    for (const { id, stamp, delta } of corrections) {
      const limit = specs.findIndex((spec) => spec.id === id)
      if (limit !== -1) settlements.push({ limit, stamp, delta })
    }
    const { pod } = this.#settlements
    // One literal, as in `take`: a spread takes about 4 µs in a profile, and every call is settled.
    return this.#store.settle({
      guard: this.name,
      lane,
      pool,
      limits: specs,
      version,
      pod,
      sequence,
      settlements,
    })
  }

  #sendFeedback(lane: string, { failure = {}, ...feedback }: LaneFeedback): MaybePromise<number> {
    const { basePauseMs, maxPauseMs } = this.#options
    const basePauseUs = toUs(basePauseMs)
    const isOneModel = !isOverflowLane(lane)
    const maxPauseUs = toUs(isOneModel ? longestPauseMs(failure, maxPauseMs) : maxPauseMs)
    // A pause by an operator is for all pods, so it needs the store.
    if (this.alone && feedback.grantedUs > 0) {
      if (!feedback.throttled) return 0
      const outage = this.#outage as OutageLimits
      const ref = this.settings.ref(lane)
      return outage.pause(ref, feedback.pauseUs, basePauseUs, maxPauseUs)
    }
    const pauses = { basePauseUs, maxPauseUs }
    const ref = this.settings.ref(lane)
    const reply = this.#store.feedback({ ...ref, ...feedback, ...pauses })
    if (!(reply instanceof Promise)) return this.#onFeedbackReply(lane, ref.limits, reply)
    return reply.then((each) => this.#onFeedbackReply(lane, ref.limits, each))
  }

  #onFeedbackReply(lane: string, specs: readonly LimitSpec[], reply: FeedbackReply): number {
    const { learned, effective, pausedUntilUs } = reply
    const spec = learned === undefined ? undefined : specs[learned]
    if (spec !== undefined) {
      this.#learned.changed({ lane, limit: spec.id, configured: spec.limit, effective })
    }
    return pausedUntilUs
  }
}

function toUs(ms: number): number {
  return Math.ceil(ms * 1_000)
}
