/**
 * Decides when one lane reports its number of calls in flight although no call has ended: when the number has
 * grown while the fleet's window holds few calls, and while only calls in flight keep the breaker closed.
 */
import type { Clock, Timer } from '../../../core/time/clock.js'
import type { BreakerSpec } from '../../../store/breaker-spec.js'
import type { BreakerView } from '../../../store/port.js'
import type { LaneTraffic } from './lane-traffic.js'
import { fewCallsOf } from './reporter.js'

export interface InFlightReportsOptions {
  clock: Clock
  spec: BreakerSpec
  traffic: LaneTraffic
  sendNow(): void
}

/** Growth of the number of calls in flight that is reported, in calls and as a share. */
const REPORTED_GROWTH = 1
const REPORTED_GROWTH_SHARE = 0.1
/** Calls that end sooner are not reported while they are in flight. */
const GROWTH_DELAY_MS = 10

/** Calls in flight that keep the breaker closed are reported again at these intervals. */
const SHORTEST_RECHECK_MS = 25
const LONGEST_RECHECK_MS = 1_000

export class InFlightReports {
  readonly #options: InFlightReportsOptions
  readonly #fewCalls: number
  /** The fleet's window holds so few calls that `callBegan` matters. Changed here only. */
  fewCalls = true
  #growthTimer: Timer | undefined
  #recheckTimer: Timer | undefined
  #closed = false

  constructor(options: InFlightReportsOptions) {
    this.#options = options
    this.#fewCalls = fewCallsOf(options.spec)
  }

  /**
   * A call has begun while the window holds few calls: the store has to know the calls in flight of all pods, not
   * only of those that report failures. The reports of a busy lane carry the number anyway.
   */
  callBegan(nowMs: number): void {
    if (this.#growthTimer !== undefined) return
    const { traffic, clock } = this.#options
    const countsMs = traffic.nextCountingMs(nowMs)
    if (countsMs === undefined || this.#closed) return
    const delayMs = Math.max(GROWTH_DELAY_MS, countsMs - nowMs)
    this.#growthTimer = clock.schedule(delayMs, () => this.#reportGrowth())
    this.#growthTimer.unref()
  }

  /**
   * A new state was received. If only calls in flight keep the breaker closed, no outcome may follow, because they
   * may all be hanging. Then the number of calls that still count is reported whenever it changes.
   */
  stateChanged({ kind, calls, failures, slow, inFlight, consecutive }: BreakerView): void {
    this.fewCalls = calls < this.#fewCalls
    this.#recheckTimer?.cancel()
    this.#recheckTimer = undefined
    const { spec, clock, traffic } = this.#options
    const { minimumCalls, failureRate, slowRate } = spec
    if (kind !== 0 || inFlight === 0 || this.#closed) return
    const enough = calls > 0 && calls >= minimumCalls
    const bad =
      (spec.consecutive > 0 && consecutive >= spec.consecutive) ||
      (enough && failureRate > 0 && failures / calls >= failureRate) ||
      (enough && slowRate > 0 && slow / calls >= slowRate)
    if (!bad) return
    const changeMs = (traffic.nextChangeMs ?? Number.POSITIVE_INFINITY) - clock.now()
    const delayMs = Math.min(LONGEST_RECHECK_MS, Math.max(SHORTEST_RECHECK_MS, changeMs))
    this.#recheckTimer = clock.schedule(delayMs, () => this.#options.sendNow())
    this.#recheckTimer.unref()
  }

  stopTimers(): void {
    this.#closed = true
    this.#growthTimer?.cancel()
    this.#recheckTimer?.cancel()
  }

  #reportGrowth(): void {
    this.#growthTimer = undefined
    const { traffic, clock } = this.#options
    const nowMs = clock.now()
    const reported = traffic.reportedInFlight
    const growth = Math.max(REPORTED_GROWTH, REPORTED_GROWTH_SHARE * reported)
    if (traffic.inFlight(nowMs) >= reported + growth) this.#options.sendNow()
    if (this.fewCalls) this.callBegan(nowMs)
  }
}
