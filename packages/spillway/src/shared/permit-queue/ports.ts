/** Interfaces of the dispatcher to the queued calls, the breaker, the limits and this pod's capacity. */
import type { SpillwayError } from '../../core/errors.js'
import type { Outcome } from '../../core/outcome.js'
import type { MaybePromise } from '../../store/port.js'
import type { BreakerPermit } from '../circuit-breaker/api.js'
import type { Cost, LanePermit, LimitReply } from '../rate-limiter/permit.js'
import type { QueuedCall } from './queued-call.js'

/** Everything an attempt needs to start. */
export interface AttemptPermits {
  breaker: BreakerPermit | undefined
  /** Of the vendor's limits. */
  permit: LanePermit | undefined
  /** The attempt must not start later: it could exceed the vendor's window. Set if the store is remote. */
  useByMs?: number
}

/** The cost of a call, by unit and as numbers. */
export interface CallCost {
  readonly cost: Cost | undefined
  /** One number per limit, and the limits these numbers belong to: limits may change while a call waits. */
  costs: readonly number[]
  costsUnder: unknown
}

/** A queued call that waits for its permits. During a round trip it holds the ones granted so far. */
export interface PermitCall extends QueuedCall<AttemptPermits>, CallCost {
  /** It has everything it needs. */
  admit(permits: AttemptPermits): void
  refuse(error: unknown): void
}

/** The circuit breaker. */
export interface BreakerPort {
  /** Nothing is known against a call, so `enter` succeeds without a round trip. */
  isClear(lane: string): boolean
  enter(lane: string): BreakerPermit | SpillwayError | Promise<BreakerPermit | SpillwayError>
  exit(permit: BreakerPermit, outcome: Outcome): void
}

/** The vendor's limits. */
export interface LimitPort {
  /** Replies arrive later, so requests of one turn are batched. */
  readonly remote: boolean
  /** A permit may not be used if its round trip took longer than this. */
  readonly useWithinMs: number
  /** Cost of a call under the current limits, and the pool of its lane. */
  readonly settings: {
    of(lane: string): {
      readonly pool?: string | undefined
      costsOf(call: CallCost): readonly number[]
    }
  }
  /**
   * Requests permits for a prefix of the calls. `atMs`: the time, for a store with this clock. `waitMs`: how
   * long one of the calls could wait for a permit; the store then wakes this pod when capacity becomes free.
   */
  take(
    lane: string,
    costs: readonly (readonly number[])[],
    atMs: number | undefined,
    waitMs: number,
  ): MaybePromise<LimitReply>
  createPermit(lane: string, costs: readonly number[], reply: LimitReply): LanePermit
  /** The remaining pause of a lane; undefined if it cannot be read. */
  pausedMs(lane: string): Promise<number | undefined>
}

/** Slots and pace of this pod. */
export interface Capacity {
  /** No slot is free, independent of the pace. */
  readonly full: boolean
  /** Calls that could start now, in a lane or in any. */
  free(nowMs: number, lane?: string): number
  /** How long until the pace allows a call; 0 if slots are missing, too. */
  paceWaitMs(nowMs: number): number
  /** Slots of a single lane, if lanes have separate limits. */
  readonly lanes?: { free(lane: string): number } | undefined
  /** Holds slots during a round trip. */
  reserve(count: number, lane: string): void
  /** Gives one of them back. */
  giveUp(lane: string): void
  /** Turns one of them into the slot of a running call. */
  admit(): void
  /** Takes a slot for a call that starts at once. */
  start(lane: string): void
}
