/**
 * Takes permits of a guard's limits: from the store or, while it is unreachable, by the outage rules of this pod. It
 * counts the granted requests, too, and reports them every few seconds: the store adds up the reports of all
 * pods for `figures()`.
 */
import { RollingCounter } from '../../core/collections/rolling-counter.js'
import type { Clock, Timer } from '../../core/time/clock.js'
import type {
  BreakerReport,
  LaneRef,
  LimitStore,
  MaybePromise,
  TakeReply,
  TakeRequest,
} from '../../store/port.js'
import type { PiggybackedReport } from '../circuit-breaker/lane/breaker-client.js'
import type { StoreWatch } from '../outage/store-watch.js'
import type { LimitPort } from '../permit-queue/ports.js'
import type { EstimateCounts } from './estimate-counts.js'
import { figuresOf } from './figures.js'
import type { OutageLimits } from './outage-limits.js'
import { type Correction, LanePermit, type LimitReply } from './permit.js'
import type { LaneLimits, LimitSettings } from './settings/limit-settings.js'
import type { WakeUps } from './wake-ups.js'

/** A permit request that is part of another store command. */
export interface LimitRequestPart {
  ref: LaneRef
  units: readonly string[]
  arrived(reply: TakeReply, costs: Costs): LimitReply
  failed(error: unknown): void
}

export interface PermitTakerOptions {
  name: string
  pod: string
  store: LimitStore
  clock: Clock
  settings: LimitSettings
  wakeUps: WakeUps
  /** Of a remote store. */
  watch: StoreWatch | undefined
  outage: OutageLimits | undefined
  /** Replies arrive later, so requests of one turn are batched. */
  remote: boolean
  /** Outcomes of the lane that wait to be reported to its breaker; they travel with the request. */
  piggybackReport(lane: string): PiggybackedReport | undefined
  /** Called every few seconds with the requests of the last minute, while there are any. */
  report(requests: number): Promise<void>
  /** The actual cost of a permit is known. */
  onSettle(lane: string, corrections: Correction[]): void
  /** As `onSettle`, for a permit of an outage rule. */
  onSettleAlone(lane: string, corrections: Correction[]): void
  /** Counts reserved against actual costs. */
  estimates: EstimateCounts
}

type Costs = readonly (readonly number[])[]
type Waiter = NonNullable<TakeRequest['waiter']>

const REPORT_MS = 5_000
/** Calls of a queue without a timeout wait for ever; the store needs a finite number. */
const LONGEST_WAIT_US = 86_400_000_000

export class PermitTaker implements LimitPort {
  readonly remote: boolean
  readonly settings: LimitSettings
  readonly #options: PermitTakerOptions
  /** Names the pod when no call waits, too, so that the store counts its share. */
  readonly #withoutWaiting: Waiter
  readonly #lastMinute = new RollingCounter(60_000, 60)
  /** Granted since the last report. */
  #granted = 0
  #reportTimer: Timer | undefined
  #closed = false

  constructor(options: PermitTakerOptions) {
    this.#options = options
    this.remote = options.remote
    this.settings = options.settings
    this.#withoutWaiting = { pod: options.pod, forUs: 0 }
  }

  /** A permit may not be used if its round trip took longer. */
  get useWithinMs(): number {
    return this.settings.useWithinMs
  }

  /** This pod decides, because the store is unreachable or not trusted yet. */
  get alone(): boolean {
    const { watch } = this.#options
    return watch !== undefined && !watch.joined && watch.status !== 'starting'
  }

  take(
    lane: string,
    costs: Costs,
    atMs: number | undefined,
    waitMs: number,
  ): MaybePromise<LimitReply> {
    const { name: guard, pod, store, watch, settings } = this.#options
    const forUs = Math.min(Math.ceil(waitMs * 1_000), LONGEST_WAIT_US)
    const waiter = waitMs > 0 ? { pod, forUs } : this.#withoutWaiting
    if (watch !== undefined) {
      const outcomes = this.alone ? undefined : this.#options.piggybackReport(lane)
      if (outcomes === undefined) return this.#takeRemote(watch, lane, costs, undefined, waiter)
      return this.#takeWithReport(watch, lane, costs, outcomes, waiter)
    }
    const own = settings.of(lane)
    const { limits, specs, version, pool } = own
    const reply = store.take({ guard, lane, pool, limits: specs, version, costs, atMs, waiter })
    return reply instanceof Promise
      ? reply.then((each) => this.#learn(each, own, limits, waiter))
      : this.#learn(reply, own, limits, waiter)
  }

  createPermit(lane: string, costs: readonly number[], reply: LimitReply): LanePermit {
    const { onSettle, onSettleAlone, estimates } = this.#options
    const { under: limits, capacities, stamps, nowUs } = reply
    let booked = costs
    for (let index = 0; index < costs.length; index++) {
      if ((costs[index] as number) <= (capacities[index] as number)) continue
      booked = costs.map((cost, each) => Math.min(cost, capacities[each] as number))
      break
    }
    const settle = reply.alone === true ? onSettleAlone : onSettle
    return new LanePermit(lane, limits, booked, stamps, nowUs, settle, estimates)
  }

  /** How long the store says that the lane is paused; undefined while the store is unreachable. */
  async pausedMs(lane: string): Promise<number | undefined> {
    if (this.alone) return undefined
    return figuresOf(await this.#options.store.figures(this.settings.ref(lane))).pausedMs
  }

  /** For permits that another store command takes; undefined while the store is unreachable. */
  requestPart(lane: string): LimitRequestPart | undefined {
    const { watch, settings, outage } = this.#options
    if (watch !== undefined && !watch.joined) return undefined
    const own = settings.of(lane)
    const ref = own.ref(lane)
    const { limits } = own
    watch?.commandSent()
    return {
      ref: { ...ref, limits: outage?.specsToRequest(ref.limits) ?? ref.limits },
      units: limits.map(({ unit }) => unit),
      arrived: (reply, costs) => {
        watch?.commandEnded()
        outage?.replied(ref, costs, reply)
        watch?.replied(reply.nowUs)
        return this.#learn(reply, own, limits, undefined)
      },
      failed: (error) => {
        watch?.commandEnded()
        watch?.failed(error)
      },
    }
  }

  /** Reports the requests of the last minute now. */
  async reportRequests(): Promise<void> {
    const nowMs = this.#options.clock.now()
    this.#lastMinute.add(nowMs, this.#granted)
    this.#granted = 0
    await this.#options.report(this.#lastMinute.total(nowMs))
  }

  close(): void {
    this.#closed = true
    this.#reportTimer?.cancel()
  }

  /** The breaker is updated first: a permit granted by this reply may be void already. */
  async #takeWithReport(
    watch: StoreWatch,
    lane: string,
    costs: Costs,
    outcomes: PiggybackedReport,
    waiter: Waiter,
  ): Promise<LimitReply> {
    let reply: LimitReply
    try {
      reply = await this.#takeRemote(watch, lane, costs, outcomes.report, waiter)
    } catch (error) {
      outcomes.lost()
      throw error
    }
    if (reply.view === undefined) outcomes.lost()
    else outcomes.arrived(reply.view)
    return reply
  }

  #takeRemote(
    watch: StoreWatch,
    lane: string,
    costs: Costs,
    report: BreakerReport | undefined,
    waiter: Waiter,
  ): MaybePromise<LimitReply> {
    if (!watch.joined) {
      if (watch.status !== 'starting') return this.#takeAlone(lane, costs)
      return watch.whenStarted().then(() => this.#takeRemote(watch, lane, costs, report, waiter))
    }
    const { store, clock, settings } = this.#options
    const own = settings.of(lane)
    const ref = own.ref(lane)
    const { limits } = own
    const outage = this.#options.outage as OutageLimits
    const sentMs = clock.now()
    watch.commandSent()
    const requested = outage.specsToRequest(ref.limits)
    const reply = store.take({ ...ref, limits: requested, costs, report, waiter })
    return Promise.resolve(reply).then(
      (each) => {
        watch.commandEnded()
        outage.replied(ref, costs, each)
        watch.replied(each.nowUs)
        if (each.granted > 0) watch.permitted(clock.now() - sentMs)
        const known = this.#learn(each, own, limits, waiter)
        known.sentMs = sentMs
        return known
      },
      (error) => {
        watch.commandEnded()
        watch.failed(error)
        // A call that has waited for the whole command timeout does not wait for the store again.
        if (watch.joined) throw error
        return this.#takeAlone(lane, costs)
      },
    )
  }

  #takeAlone(lane: string, costs: Costs): LimitReply {
    const { settings, outage } = this.#options
    const own = settings.of(lane)
    const reply = (outage as OutageLimits).take(own.ref(lane), costs)
    this.#granted += reply.granted
    return { ...reply, under: own.limits, alone: true }
  }

  /** `limits`: those of the lane when the request was sent. */
  #learn(
    reply: TakeReply,
    own: LaneLimits,
    limits: LaneLimits['limits'],
    waiter: Waiter | undefined,
  ): LimitReply {
    this.#granted += reply.granted
    if (reply.granted > 0 && this.#reportTimer === undefined) this.#scheduleReport()
    // The call waits, and the store may wake it.
    if (waiter !== undefined && reply.waitUs > 0 && reply.waitUs <= waiter.forUs) {
      this.#options.wakeUps.listen()
    }
    if (reply.newer !== undefined) own.learn(reply.newer)
    const known = reply as LimitReply
    known.under = limits
    return known
  }

  #scheduleReport(): void {
    this.#reportTimer = this.#options.clock.schedule(REPORT_MS, () => {
      this.#reportTimer = undefined
      if (!this.#closed) void this.reportRequests().catch(() => {})
    })
    this.#reportTimer.unref()
  }
}
