/**
 * Requests the permits of queued calls: the breaker's, and those of the limits for all of them in one round
 * trip. Slots are held meanwhile. A call that does not get everything returns everything, and returns to its
 * position in the queue. If the store replies synchronously, nothing has to be held.
 */
import { SpillwayError } from '../../core/errors.js'
import { isThenable } from '../../core/thenable.js'
import type { Clock } from '../../core/time/clock.js'
import type { MaybePromise, TakeReply } from '../../store/port.js'
import type { BreakerPermit } from '../circuit-breaker/api.js'
import type { LimitReply } from '../rate-limiter/permit.js'
import type { ImmediatePermits, ImmediatePermitsOptions } from './immediate-permits.js'
import type { LaneBlock } from './lane-block.js'
import type { PermitCall } from './ports.js'

export interface PermitRequestsOptions extends ImmediatePermitsOptions {
  clock: Clock
}

export interface PermitRequestEvents {
  /** The store refused a call of this cost. */
  onRefused(
    block: LaneBlock,
    reply: TakeReply,
    costs: readonly number[],
    call: PermitCall | undefined,
  ): void
  /** A round trip had no usable reply; the next one starts at `untilMs`. */
  onLost(block: LaneBlock, untilMs: number): void
  /** A round trip has ended, or slots are still free. */
  onEnd(): void
}

/** At this many lost round trips in a row the calls on the last one are refused. */
const MAX_LOST_ROUND_TRIPS = 5
/** Permits that were not used in time reach the store within this time, before the calls ask again. */
export const RETURN_MS = 25
/** Doubles each time: 25, 50, 100 and 200 ms are long enough for a new connection. */
const FIRST_RETRY_MS = 25

export class PermitRequests {
  readonly #options: PermitRequestsOptions
  readonly #immediate: ImmediatePermits
  readonly #events: PermitRequestEvents
  #inFlight = 0
  #onIdle: (() => void) | undefined

  constructor(
    options: PermitRequestsOptions,
    immediate: ImmediatePermits,
    events: PermitRequestEvents,
  ) {
    this.#options = options
    this.#immediate = immediate
    this.#events = events
  }

  /** For calls that were taken out of the queue. */
  request(block: LaneBlock, calls: PermitCall[], atMs: number | undefined): void {
    const { breaker } = this.#options
    if (breaker === undefined || breaker.isClear(block.lane)) {
      return this.#requestLimits(block, calls, atMs)
    }
    this.#hold(block, calls)
    const waiting: Promise<void>[] = []
    for (const call of calls) {
      const answer = breaker.enter(block.lane)
      if (isThenable(answer)) waiting.push(answer.then((each) => this.#afterBreaker(call, each)))
      else this.#afterBreaker(call, answer)
    }
    if (waiting.length === 0) {
      this.#requestLimits(block, this.#stillRequesting(calls), atMs)
      // Slots of calls that the breaker refused are free for the next ones.
      return this.#events.onEnd()
    }
    this.#begin(block, calls)
    void Promise.all(waiting).then(() => {
      this.#end(block)
      this.#requestLimits(block, this.#stillRequesting(calls), undefined)
      this.#events.onEnd()
    })
  }

  /** Resolves when no round trip is in flight, and unused permits were returned. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#inFlight === 0) resolve()
      else this.#onIdle = resolve
    })
  }

  #afterBreaker(call: PermitCall, answer: BreakerPermit | SpillwayError): void {
    const { queue } = this.#options
    if (!(answer instanceof SpillwayError)) {
      if (call.held !== undefined) call.held.breaker = answer
      // It has left meanwhile.
      if (call.state === 'gone') this.#release(call)
      return
    }
    this.#release(call)
    if (call.state === 'gone') return
    queue.remove(call)
    call.refuse(answer)
  }

  /** A call may leave after its own reply of the breaker, while others of the batch wait for theirs. */
  #stillRequesting(calls: readonly PermitCall[]): PermitCall[] {
    return calls.filter((call) => {
      if (call.state === 'requesting') return true
      this.#release(call)
      return false
    })
  }

  #requestLimits(block: LaneBlock, calls: PermitCall[], atMs: number | undefined): void {
    const { limits, clock } = this.#options
    if (calls.length === 0) return
    if (limits === undefined) {
      for (const call of calls) this.#start(block, call, undefined)
      return
    }
    const sentMs = clock.now()
    let reply: MaybePromise<LimitReply>
    try {
      const settings = limits.settings.of(block.lane)
      const costs = calls.map((call) => settings.costsOf(call))
      reply = limits.take(block.lane, costs, atMs, this.#longestWaitMs(calls, sentMs))
    } catch (error) {
      // Not an outage, which would be a rejection: the store is in this process, or an outage rule refuses.
      this.#refuse(calls, error)
      return this.#events.onEnd()
    }
    if (!isThenable(reply)) return this.#answered(block, calls, reply)
    // With a breaker that is not clear, the calls hold their slots already.
    if (calls[0]?.held === undefined) this.#holdWithBreaker(block, calls)
    this.#begin(block, calls)
    reply.then(
      (each) => {
        this.#end(block)
        this.#arrived(block, calls, each, sentMs)
        this.#events.onEnd()
      },
      (error) => {
        this.#end(block)
        this.#lost(block, calls, error)
        this.#events.onEnd()
      },
    )
  }

  /** The longest time that any of these calls can wait for a permit. */
  #longestWaitMs(calls: readonly PermitCall[], nowMs: number): number {
    const { mayWait, queue } = this.#options
    let longestMs = 0
    if (mayWait) {
      for (const call of calls) longestMs = Math.max(longestMs, queue.giveUpMs(call) - nowMs)
    }
    return longestMs
  }

  #begin(block: LaneBlock, calls: readonly PermitCall[]): void {
    this.#inFlight++
    block.inFlight = true
    block.wokenInFlight = false
    block.requesting = calls
  }

  #end(block: LaneBlock): void {
    block.inFlight = false
    block.requesting = []
    if (--this.#inFlight === 0) this.#onIdle?.()
  }

  #arrived(block: LaneBlock, calls: PermitCall[], reply: LimitReply, sentMs: number): void {
    const { limits, clock } = this.#options
    const tookMs = clock.now() - (reply.sentMs ?? sentMs)
    // A refusal is usable however late it is.
    const inTime =
      reply.granted === 0 || reply.alone === true || tookMs <= (limits?.useWithinMs ?? 0)
    if (inTime) return this.#answered(block, calls, reply)
    // The grants are too old: using them now could exceed the vendor's window. They were not used, so they go back.
    for (const { costs } of calls.slice(0, reply.granted)) {
      limits?.createPermit(block.lane, costs, reply).refund()
    }
    // No reason for a waiting call to give up: the store replies, and if it stays too slow, outage rules
    // replace it.
    block.lostRoundTrips = Math.max(1, block.lostRoundTrips)
    block.lateReplies++
    const took = `${Math.round(tookMs)} ms`
    const error = new Error(`the store took ${took} to answer; raise jitterMs if that is usual`)
    this.#retry(block, calls, error, clock.now() + RETURN_MS)
  }

  #answered(block: LaneBlock, calls: PermitCall[], reply: LimitReply): void {
    // Calls of an earlier batch may still wait until their unused permits were returned.
    if (!block.isBlocked(this.#options.clock.now())) block.lostRoundTrips = 0
    block.lateReplies = 0
    const { granted } = reply
    for (let index = 0; index < granted; index++) {
      const call = calls[index] as PermitCall
      if (call.state === 'requesting') this.#start(block, call, reply)
      else this.#passPermitOn(block, call, reply, calls)
    }
    const blocker = calls[granted]
    if (blocker === undefined) return
    const { costs } = blocker
    // The last one first: that way each goes to the front of its queue.
    for (let index = calls.length - 1; index >= granted; index--) {
      const call = calls[index] as PermitCall
      this.#release(call)
      this.#options.queue.putBack(call)
    }
    this.#events.onRefused(block, reply, costs, blocker)
  }

  /** The caller has left: the permit goes to the next call of the same cost, or back to the store. */
  #passPermitOn(block: LaneBlock, left: PermitCall, reply: LimitReply, calls: PermitCall[]): void {
    const { limits } = this.#options
    const nextCall = calls
      .slice(reply.granted)
      .find(
        ({ state, costs }) =>
          state === 'requesting' && costs.every((cost, index) => cost === left.costs[index]),
      )
    this.#release(left)
    if (nextCall !== undefined) return this.#start(block, nextCall, reply)
    limits?.createPermit(block.lane, left.costs, reply).refund()
  }

  #start(block: LaneBlock, call: PermitCall, reply: LimitReply | undefined): void {
    const { queue, capacity, limits } = this.#options
    const { held } = call
    call.held = undefined
    queue.remove(call)
    if (held === undefined) return call.admit(this.#immediate.grant(block.lane, call.costs, reply))
    if (limits !== undefined && reply !== undefined) {
      held.permit = limits.createPermit(block.lane, call.costs, reply)
      if (reply.sentMs !== undefined) held.useByMs = reply.sentMs + limits.useWithinMs
    }
    capacity.admit()
    call.admit(held)
  }

  /** Holds a slot for each call. */
  #hold(block: LaneBlock, calls: readonly PermitCall[]): void {
    this.#options.capacity.reserve(calls.length, block.lane)
    for (const call of calls) call.held = { breaker: undefined, permit: undefined }
  }

  #holdWithBreaker(block: LaneBlock, calls: readonly PermitCall[]): void {
    const { breaker } = this.#options
    this.#hold(block, calls)
    if (breaker === undefined) return
    for (const call of calls) {
      if (call.held !== undefined) call.held.breaker = breaker.enter(block.lane) as BreakerPermit
    }
  }

  /** Releases what is held for a call. A call that has started or left holds nothing. */
  #release(call: PermitCall): void {
    const { breaker, capacity } = this.#options
    const { held } = call
    if (held === undefined) return
    call.held = undefined
    capacity.giveUp(call.lane)
    if (held.breaker !== undefined) breaker?.exit(held.breaker, 'ignored')
  }

  /** The store may have granted permits; those count as spent. Asks again, a little later each time. */
  #lost(block: LaneBlock, calls: readonly PermitCall[], error: unknown): void {
    const pauseMs = FIRST_RETRY_MS * 2 ** block.lostRoundTrips
    // A refusal comes from an outage rule that allows no call: asking again would not help.
    const giveUp = ++block.lostRoundTrips >= MAX_LOST_ROUND_TRIPS || error instanceof SpillwayError
    if (giveUp) {
      block.lostRoundTrips = 0
      return this.#refuse(calls, error)
    }
    this.#retry(block, calls, error, this.#options.clock.now() + pauseMs)
  }

  /** Calls with time left ask again at `untilMs`: until then, the store may reply or be replaced. */
  #retry(block: LaneBlock, calls: readonly PermitCall[], error: unknown, untilMs: number): void {
    const { queue, clock } = this.#options
    const nowMs = clock.now()
    const tooLate = block.lateReplies >= MAX_LOST_ROUND_TRIPS
    for (let index = calls.length - 1; index >= 0; index--) {
      const call = calls[index] as PermitCall
      if (call.mayWait ? queue.giveUpMs(call) <= nowMs : tooLate) {
        this.#refuse([call], error)
        continue
      }
      this.#release(call)
      queue.putBack(call)
    }
    this.#events.onLost(block, untilMs)
  }

  #refuse(calls: readonly PermitCall[], error: unknown): void {
    const { queue, storeError } = this.#options
    for (const call of calls) {
      this.#release(call)
      if (call.state === 'gone') continue
      queue.remove(call)
      call.refuse(storeError(error))
    }
  }
}
