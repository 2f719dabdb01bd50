/** Requests permits from the store or, while it is unreachable, from the outage rules of this pod. */
import type { Clock } from '../../core/time/clock.js'
import type {
  BreakerReport,
  LaneRef,
  LimitStore,
  MaybePromise,
  TakeReply,
} from '../../store/port.js'
import type { StoreWatch } from '../outage/store-watch.js'
import type { LimitSettings } from './limit-settings.js'
import type { UnitLimit } from './options.js'
import type { OutageLimits } from './outage-limits.js'
import type { RequestReport } from './request-report.js'
import type { Waiter, WakeUps } from './wake-ups.js'

/** A reply of the store or of an outage rule, with the limits it was requested under. */
export type LimitReply = TakeReply & {
  under: readonly UnitLimit[]
  /** Decided by this pod, because the store is unreachable. */
  alone?: boolean
}

/** A permit request that is part of another store command. */
export interface LimitPassage {
  ref: LaneRef
  units: readonly string[]
  heard(reply: TakeReply, costs: Costs): LimitReply
  failed(error: unknown): void
}

export interface PermitTakerOptions {
  name: string
  store: LimitStore
  clock: Clock
  settings: LimitSettings
  requests: RequestReport
  wakeUps: WakeUps
  /** Of a remote store. */
  watch: StoreWatch | undefined
  outage: OutageLimits | undefined
}

export interface TakeOptions {
  /** The time, for a store with this clock. */
  atMs?: number | undefined
  /** Outcomes for this guard's breaker, in the same round trip. */
  report?: BreakerReport
  /** How long one of the calls could wait for a permit. */
  waitMs: number
}

type Costs = readonly (readonly number[])[]

export class PermitTaker {
  readonly #options: PermitTakerOptions

  constructor(options: PermitTakerOptions) {
    this.#options = options
  }

  take(
    lane: string,
    costs: Costs,
    { atMs, report, waitMs }: TakeOptions,
  ): MaybePromise<LimitReply> {
    const { name: guard, store, watch, settings, wakeUps } = this.#options
    const waiter = wakeUps.waiterFor(waitMs)
    if (watch !== undefined) return this.#takeWatched(watch, lane, costs, report, waiter)
    const { limits, specs, version } = settings
    const request = { guard, lane, limits: specs, version, costs, atMs, report, waiter }
    const reply = store.take(request)
    return reply instanceof Promise
      ? reply.then((each) => this.#learn(each, limits, waiter))
      : this.#learn(reply, limits, waiter)
  }

  /** For permits that another store command takes; undefined while the store is unreachable. */
  passage(lane: string): LimitPassage | undefined {
    const { watch, settings, outage } = this.#options
    if (watch !== undefined && !watch.joined) return undefined
    const { limits, specs } = settings
    watch?.asked()
    return {
      ref: { ...settings.ref(lane), limits: outage?.specsToRequest(specs) ?? specs },
      units: limits.map(({ unit }) => unit),
      heard: (reply, costs) => {
        watch?.over()
        outage?.replied(lane, specs, costs, reply)
        watch?.heard(reply.nowUs)
        return this.#learn(reply, limits, undefined)
      },
      failed: (error) => {
        watch?.over()
        watch?.failed(error)
      },
    }
  }

  #takeWatched(
    watch: StoreWatch,
    lane: string,
    costs: Costs,
    report: BreakerReport | undefined,
    waiter: Waiter | undefined,
  ): MaybePromise<LimitReply> {
    if (!watch.joined) {
      if (watch.status !== 'starting') return this.#takeAlone(lane, costs)
      return watch.whenStarted().then(() => this.#takeWatched(watch, lane, costs, report, waiter))
    }
    const { name: guard, store, clock, settings } = this.#options
    const { limits, specs, version } = settings
    const outage = this.#options.outage as OutageLimits
    const sentMs = clock.now()
    watch.asked()
    const requested = outage.specsToRequest(specs)
    const reply = store.take({ guard, lane, limits: requested, version, costs, report, waiter })
    return Promise.resolve(reply).then(
      (each) => {
        watch.over()
        outage.replied(lane, specs, costs, each)
        watch.heard(each.nowUs)
        if (each.granted > 0) watch.permitted(clock.now() - sentMs)
        return this.#learn(each, limits, waiter)
      },
      (error) => {
        watch.over()
        watch.failed(error)
        // A call that has waited for the whole command timeout does not wait for the store again.
        if (watch.joined) throw error
        return this.#takeAlone(lane, costs)
      },
    )
  }

  #takeAlone(lane: string, costs: Costs): LimitReply {
    const { settings, requests, outage } = this.#options
    const reply = (outage as OutageLimits).take(lane, settings.specs, costs)
    requests.add(reply.granted)
    return { ...reply, under: settings.limits, alone: true }
  }

  #learn(reply: TakeReply, limits: readonly UnitLimit[], waiter: Waiter | undefined): LimitReply {
    const { requests, wakeUps, settings } = this.#options
    requests.count(reply.granted)
    if (reply.waitUs > 0) wakeUps.replied(reply, waiter)
    if (reply.newer !== undefined) settings.learn(reply.newer)
    const known = reply as LimitReply
    known.under = limits
    return known
  }
}
