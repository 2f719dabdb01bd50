/**
 * The shared stages, as a guard sees them: the breaker, the vendor's limits and the users' limits,
 * each with an entry, an exit and a way back.
 */
import { SpillwayError } from '../core/errors.js'
import { callSafely } from '../core/events.js'
import { answerOf, type CallEnd, type Verdict } from '../core/outcome.js'
import { swallow } from '../core/thenable.js'
import type { BreakerRide } from '../shared/circuit-breaker/lane-line.js'
import type { LimitPort } from '../shared/permit-queue/ports.js'
import type { RateLimiterFigures } from '../shared/rate-limiter/api.js'
import type { LimitClient, LimitPassage, LimitReply } from '../shared/rate-limiter/limit-client.js'
import type { Cost, LanePermit } from '../shared/rate-limiter/permit.js'
import type { UserRequest } from '../shared/user-limits/levels.js'
import type { UserCharges, UserReply } from '../shared/user-limits/user-charges.js'
import type { MaybePromise } from '../store/port.js'
import { type ChargedCall, type ChargeReader, LaterCharge } from './later-charge.js'
import { storeError } from './refusals.js'
import type { RunOptions } from './run-options.js'
import { standingOf, userLimitedError } from './user-standing.js'

export interface LimitStageOptions {
  book: LimitClient
  remote: boolean
  /** Hears how long a lane is paused, as far as this pod can tell at once. */
  onPause(lane: string, pauseMs: number): void
  /** What of the breaker goes along on a trip for this lane. */
  ride(lane: string): BreakerRide | undefined
}

/** Stage 5. */
export class LimitStage implements LimitPort<LanePermit, LimitReply> {
  readonly remote: boolean
  readonly book: LimitClient
  readonly #onPause: LimitStageOptions['onPause']
  readonly #ride: LimitStageOptions['ride']

  constructor({ book, remote, onPause, ride }: LimitStageOptions) {
    this.book = book
    this.remote = remote
    this.#onPause = onPause
    this.#ride = ride
  }

  get useWithinMs(): number {
    return this.book.useWithinMs
  }

  get limits(): unknown {
    return this.book.limits
  }

  checkCost(cost: Cost | undefined): void {
    this.book.checkCost(cost)
  }

  costsOf(cost: Cost | undefined): readonly number[] {
    return this.book.costsOf(cost)
  }

  take(
    lane: string,
    costs: readonly (readonly number[])[],
    atMs: number | undefined,
    waitMs: number,
  ): MaybePromise<LimitReply> {
    // A store that answers at once is told at once.
    const ride = this.remote && !this.book.alone ? this.#ride(lane) : undefined
    if (ride !== undefined) return this.#takeAlong(ride, lane, costs, waitMs)
    return this.book.take(lane, costs, atMs, waitMs)
  }

  /** The breaker hears first what came back: who was granted a permit may not use it any more. */
  async #takeAlong(
    ride: BreakerRide,
    lane: string,
    costs: readonly (readonly number[])[],
    waitMs: number,
  ): Promise<LimitReply> {
    let trip: LimitReply
    try {
      trip = await this.book.takeAlong(lane, costs, ride.report, waitMs)
    } catch (error) {
      ride.lost()
      throw error
    }
    if (trip.view === undefined) ride.lost()
    else ride.arrived(trip.view)
    return trip
  }

  /** For permits that are taken in a step of somebody else's. */
  passage(lane: string): LimitPassage | undefined {
    return this.book.passage(lane)
  }

  createPermit(lane: string, costs: readonly number[], trip: LimitReply): LanePermit {
    return this.book.createPermit(lane, costs, trip)
  }

  isFresh(trip: LimitReply): boolean {
    return trip.alone === true
  }

  /** Decided by this pod, because the store is away. */
  get alone(): boolean {
    return this.book.alone
  }

  /** This pod's part of each limit. */
  get shares(): Record<string, number> {
    return this.book.shares
  }

  refund(permit: LanePermit): void {
    permit.refund()
  }

  /** The vendor's word: in its answer's headers, or in how the call was judged. */
  heed(end: CallEnd, verdict: Verdict, permit: LanePermit): void {
    const answer = answerOf(end)
    if (answer !== undefined) this.#heedAnswer(answer, permit)
    else if (verdict.outcome === 'throttled') {
      const pauseMs = verdict.retryAfterMs ?? this.book.fixedPauseMs(permit)
      swallowFailure(() => this.book.pause(permit.lane, pauseMs, permit.grantedUs))
    }
    if (verdict.outcome === 'throttled' && verdict.retryAfterMs !== undefined) {
      this.#onPause(permit.lane, verdict.retryAfterMs)
    }
  }

  /** Of nearly every answer there is nothing to tell, so it takes no closure to find that out. */
  #heedAnswer(answer: { status: number; headers: unknown }, permit: LanePermit): void {
    try {
      swallow(this.book.heed(answer, permit))
    } catch {
      // The store will hear of the next one.
    }
  }

  /** For how long the lane is paused, by the store's own word; unknown while it is away. */
  async pausedMs(lane: string): Promise<number | undefined> {
    return this.alone ? undefined : (await this.book.look(lane)).pausedMs
  }

  /** The least that is left of any limit, as a fraction, as far as this pod knows. */
  headroom(lane: string): number {
    return this.book.headroom(lane)
  }

  /** By the store's own word. */
  figures(lane: string): Promise<RateLimiterFigures> {
    return this.book.figures(lane)
  }

  /** The same, for those who look often. */
  look(lane: string): Promise<RateLimiterFigures> {
    return this.book.look(lane)
  }

  close(): Promise<void> {
    return this.book.close()
  }
}

/** Stage 2. */
export class UserStage implements ChargeReader {
  readonly #charges: UserCharges
  readonly #name: string

  constructor(name: string, charges: UserCharges) {
    this.#name = name
    this.#charges = charges
  }

  /** What was charged, or why not; nothing, if no level applies. A store that is not here tells `call` later. */
  charge(
    subject: RunOptions,
    atMs: number | undefined,
    call: ChargedCall,
  ): UserRequest | SpillwayError | LaterCharge | undefined {
    const request = this.#charges.requestFor(subject, 1)
    if (request === undefined) return undefined
    const charges = this.#charges
    if (!charges.remote) return this.answer(subject, request, charges.chargeHere(request, atMs))
    const later = new LaterCharge(this, subject, request, call)
    let reply: UserReply | undefined
    try {
      reply = charges.ask(request, later)
    } catch (error) {
      if (error instanceof SpillwayError) return error
      throw error
    }
    return reply === undefined ? later : this.answer(subject, request, reply)
  }

  /** The same for who is no call: nobody there leaves before the store has answered. */
  promiseCharge(subject: RunOptions): Promise<UserRequest | SpillwayError | undefined> {
    return new Promise((onCharged) => {
      const charge = this.charge(subject, undefined, { onCharged, runInAsyncScope })
      if (!(charge instanceof LaterCharge)) onCharged(charge)
    })
  }

  refund(request: UserRequest): void {
    this.#charges.refund(request)
  }

  /** The store's reply, as the call hears it. */
  answer(subject: RunOptions, request: UserRequest, reply: UserReply): UserRequest | SpillwayError {
    if (reply.refusedBy === 0) {
      if (reply.tightest > 0) this.#tellStanding(subject, request, reply)
      return reply.alone === undefined ? request : { ...request, alone: reply.alone }
    }
    return userLimitedError(this.#name, request, reply, reply.alone !== undefined)
  }

  /** The same where there was none. */
  failure(error: unknown): SpillwayError {
    const cause = (error as { cause?: unknown } | null | undefined)?.cause
    return storeError(this.#name, cause ?? error, 'user-limit')
  }

  #tellStanding({ onUserLimit }: RunOptions, request: UserRequest, reply: UserReply): void {
    if (onUserLimit === undefined) return
    const tell = () => swallow(onUserLimit(standingOf(request, reply)))
    callSafely(this.#name, 'onUserLimit', tell, undefined)
  }
}

/** Promises keep their own async context. */
function runInAsyncScope<A>(run: (argument: A) => void, self: unknown, argument: A): void {
  run.call(self, argument)
}

/** What cannot be told now is not worth failing a call for that has already ended. */
function swallowFailure(tell: () => unknown): void {
  try {
    swallow(tell())
  } catch {
    // The store will hear of the next one.
  }
}
