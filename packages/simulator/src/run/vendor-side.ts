/** The vendor of a run. Records every call that it receives. */

import type { CallContext, Clock } from 'spillway'
import type { Random } from 'spillway/testing'
import {
  createVendor,
  type Vendor,
  type VendorAnswer,
  type VendorCallOptions,
} from 'spillway/testing'
import type { BreakerState, RunRecord } from '../measure/run-record.js'
import type { CheckedVendorEvent } from '../scenario/events.js'
import type { CheckedVendor } from '../scenario/read-scenario.js'
import { drawFrom } from '../scenario/spread.js'

/** Time until all pods have received the state of the breaker. Calls before that are not probes. */
const BREAKER_DELAY_MS = 20
const FOREVER = 1e9
const STEPS = 20

export type Caller = Pick<CallContext, 'onAbort'>

export class VendorSide {
  readonly #vendor: Vendor
  readonly #plan: CheckedVendor
  readonly #clock: Clock
  readonly #record: RunRecord
  #probes = 0
  #breaker: { state: BreakerState; sinceMs: number } = { state: 'closed', sinceMs: 0 }
  #throttledBefore = 0
  #limitFactor = 1

  constructor(plan: CheckedVendor, clock: Clock, random: Random, record: RunRecord) {
    this.#plan = plan
    this.#clock = clock
    this.#record = record
    const { capacity, beyondCapacity, limits, failureRate, hangRate } = plan
    this.#vendor = createVendor({
      clock,
      random,
      serviceMs: drawFrom(plan.serviceMs),
      travelMs: drawFrom(plan.travelMs),
      ...(capacity !== undefined && { capacity }),
      beyondCapacity,
      limits,
      failureRate,
      hangRate,
      answers: 'throw',
    })
  }

  /** Whether the vendor stops working when a caller leaves. */
  get cancels(): boolean {
    return this.#plan.cancels
  }

  /** Records the first attempt of a call. */
  noteFirstAttempt(): void {
    this.#record.firstAttempts[this.#record.at(this.#clock.now())]!++
  }

  /** `caller` is aborted when the caller leaves, even if the vendor continues. */
  call(options?: VendorCallOptions, caller?: Caller): Promise<VendorAnswer> {
    const nowMs = this.#clock.now()
    const at = this.#record.at(nowMs)
    this.#record.vendorCalls[at]!++
    const answer = this.#vendor.call(options)
    const { atOnce } = this.#vendor
    if (atOnce > this.#record.vendorAtOnce[at]!) this.#record.vendorAtOnce[at] = atOnce
    if (this.#breaker.state !== 'closed' && nowMs >= this.#breaker.sinceMs + BREAKER_DELAY_MS) {
      this.#noteProbe(answer, caller)
    }
    return answer
  }

  #noteProbe(answer: Promise<unknown>, caller: Caller | undefined): void {
    this.#probes++
    if (this.#probes > this.#record.probesAtOnce) this.#record.probesAtOnce = this.#probes
    let over = false
    const end = () => {
      if (!over) this.#probes--
      over = true
    }
    answer.then(end, end)
    caller?.onAbort(end)
  }

  noteBreakerState(state: BreakerState): void {
    if (state === this.#breaker.state) return
    if (this.#breaker.state === 'closed') this.#breaker.sinceMs = this.#clock.now()
    this.#breaker.state = state
  }

  apply(what: CheckedVendorEvent): void {
    const vendor = this.#vendor
    if (what === 'pause') vendor.brownOut(FOREVER)
    else if (what === 'fail') vendor.failAll()
    else if (what === 'hang') vendor.hangSome(1)
    else if (what === 'recover') vendor.recover()
    else if ('fail' in what) vendor.failSome(what.fail)
    else if ('hang' in what) vendor.hangSome(what.hang)
    else if ('slow' in what) vendor.brownOut(what.slow)
    else if ('throttleMs' in what) vendor.throttle(what.throttleMs)
    else if ('limits' in what) this.#scaleLimits(what.limits)
    else if ('capacity' in what) vendor.resize(what.capacity)
    else this.#startSlowly(what.slowStart)
  }

  #scaleLimits(factor: number): void {
    this.#limitFactor = factor
    this.#vendor.scaleLimits(factor)
  }

  #startSlowly({ from, overMs }: { from: number; overMs: number }): void {
    const { capacity = from } = this.#plan
    this.#vendor.resize(from)
    for (let step = 1; step <= STEPS; step++) {
      const now = Math.max(1, Math.round(from + ((capacity - from) * step) / STEPS))
      this.#clock.schedule((overMs * step) / STEPS, () => this.#vendor.resize(now))
    }
  }

  /** Called at the end of an interval. */
  sample(at: number): void {
    this.#record.throttled[at]! += this.#vendor.calls.throttled - this.#throttledBefore
    this.#throttledBefore = this.#vendor.calls.throttled
    this.#record.allowed[at] = this.#allowedWithin(this.#record.stretchMs)
    const { vendorAtOnce } = this.#record
    if (at + 1 < vendorAtOnce.length) vendorAtOnce[at + 1] = this.#vendor.atOnce
  }

  #allowedWithin(ms: number): number {
    const [first] = this.#plan.limits
    if (first?.unit !== 'requests') return Number.POSITIVE_INFINITY
    return (first.limit * this.#limitFactor * ms) / first.windowMs
  }

  /** The share of its contract that was used. */
  finish(): void {
    const [first] = this.#plan.limits
    this.#record.worstWindows = this.#plan.limits.map(
      ({ limit, windowMs, unit }) => this.#vendor.mostInAnyWindow(windowMs, unit) / limit,
    )
    if (first === undefined || first.unit !== 'requests') return
    this.#record.windowUse = windowUse(this.#vendor.arrivals, first, this.#record)
  }
}

/** The fullest window that ended in each interval, as a share of the limit. */
function windowUse(
  arrivals: Float64Array,
  { limit, windowMs }: { limit: number; windowMs: number },
  record: RunRecord,
): number[] {
  const use = new Array<number>(record.stretches + 1).fill(0)
  let oldest = 0
  for (let newest = 0; newest < arrivals.length; newest++) {
    while (arrivals[oldest]! + windowMs <= arrivals[newest]!) oldest++
    const at = record.at(arrivals[newest]!)
    use[at] = Math.max(use[at]!, (newest - oldest + 1) / limit)
  }
  return use.slice(0, record.stretches)
}
