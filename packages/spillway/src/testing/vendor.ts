/**
 * A simulated downstream in virtual time: has a duration, a capacity and limits, can fail, hang,
 * slow down and throttle, and records all calls.
 */
import { onAbort } from '../core/abort.js'
import { ArrivalLog } from '../core/collections/arrival-log.js'
import {
  arrayOf,
  type Duration,
  duration,
  func,
  having,
  integer,
  number,
  object,
  oneOf,
  optional,
  positive,
  text,
  validate,
} from '../core/options/checks.js'
import type { Random } from '../core/random.js'
import type { Clock } from '../core/time/clock.js'
import { Contract } from './contract.js'
import { type Distribution, drawing, readDistribution } from './distribution.js'
import { Job, LimitedCapacity } from './limited-capacity.js'
import { answerOf, errorOf, type VendorAnswer } from './vendor-answer.js'

/** A limit of a simulated vendor. */
export interface VendorLimit {
  /** Units in any window. Range: integers from 1. */
  limit: number
  /** Length of the window. Range: from 0 ms. */
  windowMs: Duration
  /** The counted unit. Default: `requests`. */
  unit?: string
}

/** Options of `createVendor()`. */
export interface VendorOptions {
  /** The clock it runs on. */
  clock: Clock
  /** Source of randomness, so that runs can be repeated. */
  random: Random
  /** How long a call takes once it is being processed. Range: from 0 ms. */
  serviceMs: Distribution
  /** Time until a call arrives. Range: from 0 ms. Default: 0. */
  travelMs?: Distribution
  /** Calls processed at once. Range: integers from 1. Default: any number. */
  capacity?: number
  /** Calls beyond the capacity wait, or share it and are all slower. Default: `queue`. */
  beyondCapacity?: 'queue' | 'slow'
  /** Calls beyond these are answered with 429 and `Retry-After`, and do not count. Default: none. */
  limits?: readonly VendorLimit[]
  /** Share of the calls answered with 503. Range: 0 to 1. Default: 0. */
  failureRate?: number
  /** Share of the calls never answered. Range: 0 to 1. Default: 0. */
  hangRate?: number
  /**
   * Responses other than 2xx are returned as by `fetch`, or thrown as by most SDKs. Default:
   * `response`.
   */
  answers?: 'response' | 'throw'
}

/** Options of one call to a simulated vendor. */
export interface VendorCallOptions {
  /** On abort the call fails with its reason and frees its capacity. Default: none. */
  signal?: AbortSignal | undefined
  /** Cost by unit. Default: `requests` 1, other units 0. */
  cost?: Readonly<Record<string, number>> | undefined
}

/** How calls ended. Calls in flight are not included. */
export interface VendorCalls {
  /** Requests that succeeded. */
  succeeded: number
  /** Requests that failed. */
  failed: number
  /** Answered with 429. */
  throttled: number
  /** Aborted by the caller. */
  aborted: number
}

/** A simulated vendor in virtual time. Created by `createVendor()`. */
export interface Vendor {
  /** Sends one request. */
  call(options?: VendorCallOptions): Promise<VendorAnswer>
  /** Answers everything with 503, including calls in flight. */
  failAll(): void
  /** Answers this share with 503. */
  failSome(share: number): void
  /** Never answers this share of the calls that arrive from now on. */
  hangSome(share: number): void
  /** Takes `factor` times as long, also for calls in flight. */
  brownOut(factor: number): void
  /** Changes the capacity; `recover` does not undo that. */
  resize(capacity: number): void
  /** Changes each limit to this multiple of the initial one; `recover` does not undo that. Range: above 0. */
  scaleLimits(factor: number): void
  /** Answers calls of the next `forMs` with 429 and the time left. */
  throttle(forMs: Duration): void
  /** Undoes all of the above. Calls that hang go on hanging. */
  recover(): void
  /** Counts of requests. */
  readonly calls: Readonly<VendorCalls>
  /** When each call arrived, including refused ones: a copy, in order. */
  readonly arrivals: Float64Array
  /** Requests that have arrived. */
  readonly arrivalCount: number
  /** Calls in flight: processed, waiting or hanging. */
  readonly atOnce: number
  /** The most calls in flight so far. */
  readonly mostAtOnce: number
  /** Calls that wait for capacity. */
  readonly waiting: number
  /**
   * The most units that arrived in any window of this length, wherever it begins, whatever became
   * of them. Two calls exactly this far apart are in different windows. Default unit: `requests`.
   */
  mostInAnyWindow(windowMs: Duration, unit?: string): number
}

const SHARE = number({ min: 0, max: 1 })

const readOptions = object({
  clock: having<Clock>('a clock', 'now', 'wallMs', 'schedule', 'pollTurn'),
  random: func<Random>(),
  serviceMs: readDistribution,
  travelMs: optional(readDistribution, 0),
  capacity: optional(integer({ min: 1 })),
  beyondCapacity: optional(oneOf('queue', 'slow'), 'queue'),
  limits: optional(
    arrayOf(
      object({
        limit: integer({ min: 1 }),
        windowMs: duration({ min: 0 }),
        unit: optional(text(), 'requests'),
      }),
    ),
    [],
  ),
  failureRate: optional(SHARE, 0),
  hangRate: optional(SHARE, 0),
  answers: optional(oneOf('response', 'throw'), 'response'),
})

/**
 * Creates a simulated vendor in virtual time.
 *
 * @example
 * const vendor = createVendor({ clock, random, serviceMs: 200, limits: [{ limit: 60, windowMs: '1m' }] })
 * const { status } = await clock.until(vendor.call())
 */
export function createVendor(options: VendorOptions): Vendor {
  return new VirtualVendor(validate('vendor', options, readOptions))
}

/**
 * A refusal takes some time. Otherwise a caller that retries at once would loop without time
 * passing.
 */
const REFUSAL_MS = 1

/** One call, from its caller's side. */
interface Visit {
  readonly options: VendorCallOptions
  readonly resolve: (answer: VendorAnswer) => void
  readonly reject: (error: unknown) => void
  state: 'travelling' | 'inside' | 'over'
  job: Job | undefined
  forget: (() => void) | undefined
}

class VirtualVendor implements Vendor {
  readonly calls: VendorCalls = { succeeded: 0, failed: 0, throttled: 0, aborted: 0 }
  atOnce = 0
  mostAtOnce = 0
  readonly #options: ReturnType<typeof readOptions>
  readonly #clock: Clock
  readonly #capacityModel: LimitedCapacity
  readonly #contracts: readonly Contract[]
  readonly #drawServiceMs: () => number
  readonly #drawTravelMs: () => number
  readonly #requests = new ArrivalLog()
  /** Units other than requests. */
  readonly #units = new Map<string, ArrivalLog>()
  #failShare: number
  #hangShare: number
  #throttledUntilMs = Number.NEGATIVE_INFINITY

  constructor(options: ReturnType<typeof readOptions>) {
    const { clock, random, capacity = Number.POSITIVE_INFINITY, beyondCapacity } = options
    this.#options = options
    this.#clock = clock
    this.#capacityModel = new LimitedCapacity({ clock, capacity, beyondCapacity })
    this.#contracts = options.limits.map((limit) => new Contract(limit))
    this.#drawServiceMs = drawing(options.serviceMs, random)
    this.#drawTravelMs = drawing(options.travelMs, random)
    this.#failShare = options.failureRate
    this.#hangShare = options.hangRate
  }

  call(options: VendorCallOptions = {}): Promise<VendorAnswer> {
    return new Promise((resolve, reject) => {
      const { signal } = options
      if (signal?.aborted) return reject(signal.reason)
      const nothing = { job: undefined, forget: undefined }
      const visit: Visit = { options, resolve, reject, state: 'travelling', ...nothing }
      if (signal !== undefined) visit.forget = onAbort(signal, () => this.#abort(visit, signal))
      const travelMs = this.#drawTravelMs()
      if (travelMs === 0) this.#arrive(visit)
      else this.#clock.schedule(travelMs, () => this.#arrive(visit))
    })
  }

  failAll(): void {
    this.#failShare = 1
  }

  failSome(share: number): void {
    this.#failShare = validate('share', share, SHARE)
  }

  hangSome(share: number): void {
    this.#hangShare = validate('share', share, SHARE)
  }

  resize(capacity: number): void {
    this.#capacityModel.resize(validate('capacity', capacity, integer({ min: 1 })))
  }

  brownOut(factor: number): void {
    this.#capacityModel.slowDown(validate('factor', factor, positive()))
  }

  scaleLimits(factor: number): void {
    const scale = validate('factor', factor, positive())
    for (const contract of this.#contracts) contract.scale(scale)
  }

  throttle(forMs: Duration): void {
    const ms = validate('forMs', forMs, duration({ min: 0 }))
    this.#throttledUntilMs = this.#clock.now() + ms
  }

  recover(): void {
    this.#failShare = this.#options.failureRate
    this.#hangShare = this.#options.hangRate
    this.#capacityModel.slowDown(1)
    this.#throttledUntilMs = Number.NEGATIVE_INFINITY
  }

  get arrivals(): Float64Array {
    return this.#requests.times
  }

  get arrivalCount(): number {
    return this.#requests.length
  }

  get waiting(): number {
    return this.#capacityModel.waiting
  }

  mostInAnyWindow(windowMs: Duration, unit = 'requests'): number {
    const ms = validate('windowMs', windowMs, duration({ min: 0 }))
    return this.#logOf(unit)?.mostIn(ms) ?? 0
  }

  #arrive(visit: Visit): void {
    const nowMs = this.#clock.now()
    this.#note(nowMs, visit.options.cost)
    // Aborted on its way.
    if (visit.state === 'over') return
    visit.state = 'inside'
    this.atOnce++
    this.mostAtOnce = Math.max(this.mostAtOnce, this.atOnce)
    const waitMs = this.#refusedForMs(nowMs, visit.options.cost)
    if (waitMs > 0) {
      this.#clock.schedule(REFUSAL_MS, () => this.#answer(visit, 429, waitMs - REFUSAL_MS))
      return
    }
    for (const contract of this.#contracts) {
      contract.charge(nowMs, costOf(visit.options.cost, contract.unit))
    }
    visit.job = new Job(this.#drawWorkMs(), () => this.#finish(visit))
    this.#capacityModel.add(visit.job)
  }

  #note(nowMs: number, cost: VendorCallOptions['cost']): void {
    this.#requests.add(nowMs, costOf(cost, 'requests'))
    if (cost === undefined) return
    for (const unit of Object.keys(cost)) {
      if (unit === 'requests') continue
      const log = this.#units.get(unit) ?? new ArrivalLog()
      this.#units.set(unit, log)
      log.add(nowMs, costOf(cost, unit))
    }
  }

  #logOf(unit: string): ArrivalLog | undefined {
    return unit === 'requests' ? this.#requests : this.#units.get(unit)
  }

  /** How long the vendor wants the caller to wait; 0: accepted. */
  #refusedForMs(nowMs: number, cost: VendorCallOptions['cost']): number {
    let waitMs = Math.max(0, this.#throttledUntilMs - nowMs)
    for (const contract of this.#contracts) {
      waitMs = Math.max(waitMs, contract.waitMs(nowMs, costOf(cost, contract.unit)))
    }
    return waitMs
  }

  #drawWorkMs(): number {
    if (this.#drawFault(this.#hangShare)) return Number.POSITIVE_INFINITY
    return this.#drawServiceMs()
  }

  #drawFault(share: number): boolean {
    return share === 1 || (share > 0 && this.#options.random() < share)
  }

  #finish(visit: Visit): void {
    this.#answer(visit, this.#drawFault(this.#failShare) ? 503 : 200, undefined)
  }

  #answer(visit: Visit, status: number, waitMs: number | undefined): void {
    if (visit.state === 'over') return
    this.#leave(visit)
    if (status === 200) this.calls.succeeded++
    else if (status === 429) this.calls.throttled++
    else this.calls.failed++
    // In whole seconds, rounded up, so that the caller does not return too early.
    const headers =
      waitMs === undefined ? undefined : { 'retry-after': String(Math.ceil(waitMs / 1_000)) }
    if (status === 200 || this.#options.answers === 'response') {
      visit.resolve(answerOf(status, headers))
    } else visit.reject(errorOf(status, headers))
  }

  #abort(visit: Visit, signal: AbortSignal): void {
    this.#leave(visit)
    this.calls.aborted++
    if (visit.job !== undefined) this.#capacityModel.remove(visit.job)
    visit.reject(signal.reason)
  }

  #leave(visit: Visit): void {
    if (visit.state === 'inside') this.atOnce--
    visit.state = 'over'
    visit.forget?.()
  }
}

function costOf(cost: VendorCallOptions['cost'], unit: string): number {
  return cost?.[unit] ?? (unit === 'requests' ? 1 : 0)
}
