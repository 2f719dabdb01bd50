/**
 * The vendor's limits, shared by all pods. Calls wait in the queue for their permits; this stage refuses those
 * that could not wait long enough, and passes on what the vendor answers about its limits. Without `limits`
 * there is only the pause of this pod after a 429.
 */
import type { Details, SpillwayError } from '../../core/errors.js'
import type { Verdict } from '../../core/outcome.js'
import { isThenable, swallow } from '../../core/thenable.js'
import type { Clock } from '../../core/time/clock.js'
import type { PiggybackedReport } from '../../shared/circuit-breaker/lane/breaker-client.js'
import type { LimitPort } from '../../shared/permit-queue/ports.js'
import type { RateLimiterFigures } from '../../shared/rate-limiter/api.js'
import type {
  LimitClient,
  LimitPassage,
  LimitReply,
} from '../../shared/rate-limiter/limit-client.js'
import type { LimitSettings } from '../../shared/rate-limiter/limit-settings.js'
import type { Cost, LanePermit } from '../../shared/rate-limiter/permit.js'
import type { MaybePromise } from '../../store/port.js'
import type { Answer, Permits, Stage, StageAttempt, StageCall } from '../pipeline/stage.js'
import type { QueueStage } from './queue.js'
import { limitedError, shortageOf } from './refusal-errors.js'

export interface VendorLimitsOptions {
  book: LimitClient
  remote: boolean
  /** The vendor asked for a pause of a lane. */
  onPause(lane: string, pauseMs: number): void
  /** The breaker's reports that travel with a round trip for this lane. */
  ride(lane: string): PiggybackedReport | undefined
}

/** The limits of one guard, as the queue requests permits from them. */
export class VendorLimits implements LimitPort<LanePermit, LimitReply> {
  readonly remote: boolean
  readonly settings: LimitSettings
  readonly book: LimitClient
  readonly #onPause: VendorLimitsOptions['onPause']
  readonly #ride: VendorLimitsOptions['ride']

  constructor({ book, remote, onPause, ride }: VendorLimitsOptions) {
    this.book = book
    this.remote = remote
    this.settings = book.settings
    this.#onPause = onPause
    this.#ride = ride
  }

  get useWithinMs(): number {
    return this.book.useWithinMs
  }

  checkCost(cost: Cost | undefined): void {
    this.book.checkCost(cost)
  }

  take(
    lane: string,
    costs: readonly (readonly number[])[],
    atMs: number | undefined,
    waitMs: number,
  ): MaybePromise<LimitReply> {
    // With the memory store the breaker reports at once, so nothing is waiting.
    const ride = this.remote && !this.book.alone ? this.#ride(lane) : undefined
    if (ride !== undefined) return this.#takeWithReports(ride, lane, costs, waitMs)
    return this.book.permits.take(lane, costs, { atMs, waitMs })
  }

  /** The breaker is updated first: a permit granted by this reply may be void already. */
  async #takeWithReports(
    ride: PiggybackedReport,
    lane: string,
    costs: readonly (readonly number[])[],
    waitMs: number,
  ): Promise<LimitReply> {
    let trip: LimitReply
    try {
      trip = await this.book.permits.take(lane, costs, { report: ride.report, waitMs })
    } catch (error) {
      ride.lost()
      throw error
    }
    if (trip.view === undefined) ride.lost()
    else ride.arrived(trip.view)
    return trip
  }

  /** For jobs, whose permits are taken in the same round trip as the jobs. */
  passage(lane: string): LimitPassage | undefined {
    return this.book.permits.passage(lane)
  }

  createPermit(lane: string, costs: readonly number[], trip: LimitReply): LanePermit {
    return this.book.createPermit(lane, costs, trip)
  }

  isFresh(trip: LimitReply): boolean {
    return trip.alone === true
  }

  /** Decided by this pod's share, because the store is unreachable. */
  get alone(): boolean {
    return this.book.alone
  }

  /** This pod's share of each limit. */
  get shares(): Record<string, number> {
    return this.book.shares
  }

  refund(permit: LanePermit): void {
    permit.refund()
  }

  /** What the vendor says about its limits: in response headers, or by throttling the call. */
  heed(response: Answer['response'], { outcome, retryAfterMs }: Verdict, permit: LanePermit): void {
    try {
      if (response !== undefined) swallow(this.book.heed(response, permit))
      else if (outcome === 'throttled') {
        const pauseMs = retryAfterMs ?? this.book.fixedPauseMs(permit)
        swallow(this.book.pause(permit.lane, pauseMs, permit.grantedUs))
      }
    } catch {
      // The call has ended: a report that cannot be sent does not fail it.
    }
    if (outcome === 'throttled' && retryAfterMs !== undefined) {
      this.#onPause(permit.lane, retryAfterMs)
    }
  }

  /** How long the store says that the lane is paused; undefined while the store is unreachable. */
  async pausedMs(lane: string): Promise<number | undefined> {
    return this.alone ? undefined : (await this.book.look(lane)).pausedMs
  }

  /** The smallest fraction that is left of any limit, as far as this pod knows. */
  headroom(lane: string): number {
    return this.book.headroom(lane)
  }

  /** As the store counts. */
  figures(lane: string): Promise<RateLimiterFigures> {
    return this.book.figures(lane)
  }

  /** `figures`, for readers that ask every second. */
  look(lane: string): Promise<RateLimiterFigures> {
    return this.book.look(lane)
  }

  close(): Promise<void> {
    return this.book.close()
  }
}

export interface VendorLimitStageOptions {
  readonly guard: string
  readonly clock: Clock
  /** Undefined without the option `limits`. */
  readonly limits: VendorLimits | undefined
  readonly queue: QueueStage
  readonly basePauseMs: number
  readonly maxPauseMs: number
}

export class VendorLimitStage implements Stage {
  readonly name = 'vendor-limit'
  readonly scope = 'shared'
  readonly per = 'attempt'
  readonly #options: VendorLimitStageOptions

  constructor(options: VendorLimitStageOptions) {
    this.#options = options
  }

  /** The lane is blocked for longer than this call can wait. */
  check(call: StageCall, nowMs: number): SpillwayError | undefined {
    const { limits, queue } = this.#options
    if (call.cost !== undefined && call.kind === 'call') limits?.checkCost(call.cost)
    // Computed now: the caller may change the object later.
    if (limits !== undefined) queue.dispatcher.costsOf(call)
    return queue.blockedTooLong(call, nowMs)
  }

  answered({ laneInUse, permits }: StageAttempt, { verdict, response }: Answer): void {
    const throttled = verdict.outcome === 'throttled'
    if (!throttled && response === undefined) return
    const { limits } = this.#options
    if (limits === undefined) {
      if (throttled) this.#pauseHere(laneInUse, verdict)
    } else if (permits.permit !== undefined) limits.heed(response, verdict, permits.permit)
  }

  cancel(_lane: string, { permit }: Permits): void {
    if (permit !== undefined) this.#options.limits?.refund(permit)
  }

  /**
   * In shadow mode: the store is asked beside the attempt, so that trying out a limit slows nothing down. The
   * permit counts if there is one; a store that does not answer has decided nothing.
   */
  wouldRefuse({
    laneInUse: lane,
    options,
    permits,
  }: StageAttempt): MaybePromise<SpillwayError | undefined> {
    const { limits, guard: name } = this.#options
    if (limits === undefined) return undefined
    const costs = limits.settings.costsOf(options.cost)
    const decided = (trip: LimitReply): SpillwayError | undefined => {
      if (trip.granted > 0) {
        permits.permit = limits.createPermit(lane, costs, trip)
        return undefined
      }
      return limitedError({
        name,
        lane,
        retryAfterMs: trip.waitUs / 1_000,
        paused: trip.paused,
        alone: trip.alone === true,
        shortage: shortageOf(trip.under, costs, trip.left),
      })
    }
    try {
      const reply = limits.take(lane, [costs], undefined, 0)
      return isThenable(reply) ? reply.then(decided, () => undefined) : decided(reply)
    } catch {
      return undefined
    }
  }

  passed({ options }: StageCall, permits: Permits | undefined): Details | undefined {
    const { limits } = this.#options
    if (limits === undefined) return undefined
    return { alone: limits.alone, ...(permits?.permit !== undefined && options.cost) }
  }

  /** Without shared limits this pod pauses alone. */
  #pauseHere(lane: string, { retryAfterMs }: Verdict): void {
    const { queue, clock, basePauseMs, maxPauseMs } = this.#options
    const pauseMs = Math.min(retryAfterMs ?? basePauseMs, maxPauseMs)
    queue.dispatcher.pauseUntil(lane, clock.now() + pauseMs)
  }
}
