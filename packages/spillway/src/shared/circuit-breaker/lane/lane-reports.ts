/**
 * Decides what one lane reports to the store, and when: outcomes, the number of calls in flight while that
 * matters, and the ends of probes.
 */
import type { Clock, Timer } from '../../../core/time/clock.js'
import {
  type BreakerSpec,
  FAILURE,
  NOTHING,
  REPEATED_FAILURE,
  REPEATED_SUCCESS,
  SLOW,
  SUCCESS,
  sliceUsOf,
} from '../../../store/breaker-spec.js'
import type { BreakerView, MaybePromise } from '../../../store/port.js'
import type { LaneTraffic } from './lane-traffic.js'
import { type PendingReport, type Report, Reporter } from './reporter.js'

export interface LaneReportsOptions {
  clock: Clock
  spec: BreakerSpec
  flushMs: number
  traffic: LaneTraffic
  /** The last known state. */
  view(): BreakerView
  send(report: Report): MaybePromise<void>
}

/**
 * While the fleet's window holds fewer calls, successes are reported at once. Failures of other pods are
 * reported at once, too, and would be nearly all that the store knows.
 */
const FEW_CALLS = 100

/** Growth of the number of calls in flight that is reported, in calls and as a share. */
const REPORTED_GROWTH = 1
const REPORTED_GROWTH_SHARE = 0.1
/** Calls that end sooner are not reported while they are in flight. */
const GROWTH_DELAY_MS = 10

/** Calls in flight that keep the breaker closed are reported again at these intervals. */
const SHORTEST_RECHECK_MS = 25
const LONGEST_RECHECK_MS = 1_000

/** Without a window of time, a report older than this is not sent again. */
const STALE_MS = 60_000

/**
 * Numbers the reports of this process, of all lanes. A lane that was dropped and created again must not start
 * from 1: the store would take its first reports for old ones.
 */
let lastReport = 0

export class LaneReports {
  readonly #options: LaneReportsOptions
  readonly #reporter: Reporter
  readonly #fewCalls: number
  readonly #sliceMs: number
  #growthTimer: Timer | undefined
  #recheckTimer: Timer | undefined
  #closed = false

  constructor(options: LaneReportsOptions) {
    this.#options = options
    const { clock, spec, flushMs, traffic, view, send } = options
    const hasTime = spec.windowUs > 0
    this.#sliceMs = hasTime ? sliceUsOf(spec.windowUs) / 1_000 : Number.POSITIVE_INFINITY
    this.#fewCalls = Math.min(
      spec.windowCalls || Number.POSITIVE_INFINITY,
      Math.max(FEW_CALLS, 2 * spec.minimumCalls),
    )
    this.#reporter = new Reporter({
      clock,
      flushMs: () => (view().calls < this.#fewCalls ? 0 : flushMs),
      staleMs: hasTime ? spec.windowUs / 1_000 : STALE_MS,
      nextNumber: () => ++lastReport,
      traffic: () => traffic.report(clock.now()),
      send,
    })
  }

  /** Everything was reported, or given up. */
  get isIdle(): boolean {
    return this.#reporter.isIdle
  }

  startGeneration(generation: number): void {
    this.#reporter.begin(generation)
  }

  /** `ageMs`: how long ago the call began. `repeated`: it does not count in the rates. */
  outcome(kind: number, repeated: boolean, ageMs: number): void {
    if (kind === NOTHING) return
    // A window of calls has no slices.
    const slicesAgo = ageMs < this.#sliceMs ? 0 : Math.floor(ageMs / this.#sliceMs)
    if (kind === FAILURE) this.#reporter.add(repeated ? REPEATED_FAILURE : FAILURE)
    else if (repeated) this.#reporter.addLater(REPEATED_SUCCESS)
    else if (kind === SLOW) this.#reporter.add(SLOW, slicesAgo)
    else this.#reporter.addLater(SUCCESS, slicesAgo)
  }

  endProbe(id: string, kind: number): void {
    this.#reporter.endProbe(id, kind)
  }

  /** Waiting outcomes, for a request that leaves for the store now. */
  piggyback(): PendingReport | undefined {
    return this.#reporter.piggyback()
  }

  /**
   * A call has begun. While the window holds few calls, the store has to know the calls in flight of all pods,
   * not only of those that report failures. The reports of a busy lane carry the number anyway.
   */
  callBegan(nowMs: number): void {
    const { traffic, clock, view } = this.#options
    if (this.#growthTimer !== undefined || view().calls >= this.#fewCalls) return
    const countsMs = traffic.nextCountingMs(nowMs)
    if (countsMs === undefined || this.#closed) return
    const delayMs = Math.max(GROWTH_DELAY_MS, countsMs - nowMs)
    this.#growthTimer = clock.schedule(delayMs, () => this.#reportGrowth())
    this.#growthTimer.unref()
  }

  /**
   * The state is known anew. If only calls in flight keep the breaker closed, no outcome may follow: they may
   * all be hanging. Then the number of those that still count is reported again when it has changed.
   */
  stateChanged({ kind, calls, failures, slow, inFlight, consecutive }: BreakerView): void {
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
    this.#recheckTimer = clock.schedule(delayMs, () => this.#reporter.sendNow())
    this.#recheckTimer.unref()
  }

  flush(): Promise<void> {
    return this.#reporter.flush()
  }

  /** Outcomes of calls that end later are still reported. */
  stopTimers(): void {
    this.#closed = true
    this.#growthTimer?.cancel()
    this.#recheckTimer?.cancel()
  }

  /** Sends the rest now, and does not retry. */
  close(): Promise<void> {
    return this.#reporter.close()
  }

  #reportGrowth(): void {
    this.#growthTimer = undefined
    const { traffic, clock } = this.#options
    const nowMs = clock.now()
    const reported = traffic.reportedInFlight
    const growth = Math.max(REPORTED_GROWTH, REPORTED_GROWTH_SHARE * reported)
    if (traffic.inFlight(nowMs) >= reported + growth) this.#reporter.sendNow()
    this.callBegan(nowMs)
  }
}
