/**
 * Permits without a wait: if no call waits, nothing is in the way and the store is in this process, a call gets all
 * its permits at once and synchronously.
 */
import type { SpillwayError } from '../../core/errors.js'
import type { BreakerPermit } from '../circuit-breaker/api.js'
import type { LanePermit, LimitReply } from '../rate-limiter/permit.js'
import type { CallQueue } from './call-queue.js'
import type { LaneBlocks } from './lane-block.js'
import type { AttemptPermits, BreakerPort, CallCost, Capacity, LimitPort } from './ports.js'

export interface ImmediatePermitsOptions {
  queue: CallQueue
  capacity: Capacity
  breaker: BreakerPort | undefined
  limits: LimitPort | undefined
  /** Whether calls may wait for a permit. */
  mayWait: boolean
  /** The store uses this clock, so it can be given the time. Default: false. */
  sameClock?: boolean
  storeError(cause: unknown): SpillwayError
}

/** A call that is not queued yet. Without a deadline it waits for nothing. */
export type NewPermitCall = CallCost & { readonly deadlineMs?: number }

const NO_COSTS: readonly number[] = []

export class ImmediatePermits {
  readonly #options: ImmediatePermitsOptions
  readonly #blocks: LaneBlocks

  constructor(options: ImmediatePermitsOptions, blocks: LaneBlocks) {
    this.#options = options
    this.#blocks = blocks
  }

  /** All permits of an attempt, or nothing. */
  take(lane: string, call: NewPermitCall, nowMs: number): AttemptPermits | undefined {
    const { queue, breaker, limits, capacity, mayWait, sameClock } = this.#options
    // Slots and pace are shared by all lanes, so a call that waits in any of them comes first.
    if (queue.length > 0 || limits?.remote === true) return undefined
    if (breaker?.isClear(lane) === false || capacity.free(nowMs, lane) <= 0) return undefined
    if (this.#blocks.blockOf(lane, call, nowMs) !== undefined) return undefined
    if (limits === undefined) return this.grant(lane, NO_COSTS, undefined)
    const { deadlineMs } = call
    const waits = mayWait && deadlineMs !== undefined
    const waitMs = waits ? Math.max(0, Math.min(queue.timeoutMs, deadlineMs - nowMs)) : 0
    const costs = limits.settings.of(lane).costsOf(call)
    let reply: LimitReply
    try {
      reply = limits.take(lane, [costs], sameClock ? nowMs : undefined, waitMs) as LimitReply
    } catch (error) {
      throw this.#options.storeError(error)
    }
    if (reply.granted > 0) return this.grant(lane, costs, reply)
    this.#blocks.block(this.#blocks.of(lane), reply, costs, undefined)
    return undefined
  }

  /** Takes a slot and the permit of a clear breaker. `reply`: the limits have granted theirs. */
  grant(lane: string, costs: readonly number[], reply: LimitReply | undefined): AttemptPermits {
    const { limits, capacity, breaker } = this.#options
    capacity.start(lane)
    const entered = breaker?.enter(lane) as BreakerPermit | undefined
    if (limits === undefined || reply === undefined) return { breaker: entered, permit: undefined }
    return new LazyPermits(entered, limits, lane, costs, reply)
  }
}

/**
 * Creates the permit of the limits when it is first read. Most calls never read theirs: only those do whose
 * cost has to be settled, whose response carries limit headers, or that do not start after all.
 */
class LazyPermits implements AttemptPermits {
  breaker: BreakerPermit | undefined
  readonly #limits: LimitPort
  readonly #lane: string
  readonly #costs: readonly number[]
  readonly #reply: LimitReply
  #permit: LanePermit | undefined

  constructor(
    breaker: BreakerPermit | undefined,
    limits: LimitPort,
    lane: string,
    costs: readonly number[],
    reply: LimitReply,
  ) {
    this.breaker = breaker
    this.#limits = limits
    this.#lane = lane
    this.#costs = costs
    this.#reply = reply
  }

  get permit(): LanePermit {
    this.#permit ??= this.#limits.createPermit(this.#lane, this.#costs, this.#reply)
    return this.#permit
  }
}
