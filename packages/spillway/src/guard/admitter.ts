/**
 * Gets calls what they need: the breaker's word and the permits of the vendor's limits, for all of
 * them in one trip. What this pod has to give is reserved meanwhile; who does not get everything
 * gives everything back, and goes back to the room.
 */

import { SpillwayError } from '../core/errors.js'
import type { Outcome } from '../core/outcome.js'
import { isThenable } from '../core/thenable.js'
import type { Clock } from '../core/time/clock.js'
import type { MaybePromise, TakeReply } from '../store/port.js'
import type { Gate } from './gate.js'
import { LazyAdmission } from './lazy-admission.js'
import type { LimitGate } from './limit-gate.js'
import type { Room } from './room.js'
import type { Slots } from './slots.js'
import type { Admission, Price, Waiting } from './wish.js'

/** The breaker, as far as an admission needs it. `P` is its permit. */
export interface BreakerGate<P> {
  /** Nothing stands in the way, so entering cannot fail and needs no trip. */
  isClear(lane: string): boolean
  enter(lane: string): P | SpillwayError | Promise<P | SpillwayError>
  exit(permit: P, outcome: Outcome): void
  isPermit(entry: P | SpillwayError): entry is P
}

export interface AdmitterOptions<P, L, R extends TakeReply> {
  clock: Clock
  room: Room
  slots: Slots
  breaker: BreakerGate<P> | undefined
  limits: LimitGate<L, R> | undefined
  storeError(cause: unknown): SpillwayError
}

export interface AdmitterHooks<P, L> {
  /** The store says how long one who wants so much has to wait. */
  blocked(
    gate: Gate,
    reply: TakeReply,
    costs: readonly number[],
    who: Waiting<P, L> | undefined,
  ): void
  /** A trip came to nothing: the store is not asked again before then. */
  lost(gate: Gate, untilMs: number): void
  /** A trip has come back. */
  back(): void
}

/** After this many failed round trips in a row the calls that asked are refused. */
const MOST_LOST_TRIPS = 4
/** Doubles each time: 25, 50, 100 and 200 ms are long enough for a new connection. */
const FIRST_PAUSE_MS = 25
const NO_COSTS: readonly number[] = []

export class Admitter<P, L, R extends TakeReply> {
  readonly #options: AdmitterOptions<P, L, R>
  readonly #hooks: AdmitterHooks<P, L>
  /** Trips under way. */
  #trips = 0
  #onIdle: (() => void) | undefined

  constructor(options: AdmitterOptions<P, L, R>, hooks: AdmitterHooks<P, L>) {
    this.#options = options
    this.#hooks = hooks
  }

  /** Per limit; worked out anew when the limits have changed. */
  costsOf(price: Price): readonly number[] {
    const { limits } = this.#options
    if (limits !== undefined && price.of !== limits.limits) {
      price.costs = limits.costsOf(price.cost)
      price.of = limits.limits
    }
    return price.costs
  }

  /** Everything at once, where nothing stands in the way and the store answers at once. */
  takeNow(gate: Gate, price: Price, atMs: number | undefined): Admission<P, L> | undefined {
    const { limits } = this.#options
    if (limits === undefined) return this.#admission(gate.lane, NO_COSTS, undefined)
    const costs = this.costsOf(price)
    let reply: R
    try {
      reply = limits.take(gate.lane, [costs], atMs) as R
    } catch (error) {
      throw this.#options.storeError(error)
    }
    if (reply.granted > 0) return this.#admission(gate.lane, costs, reply)
    this.#hooks.blocked(gate, reply, costs, undefined)
    return undefined
  }

  /** The same for those who wait: nothing has to be kept for them, and nobody can leave meanwhile. */
  serve(gate: Gate, entries: Waiting<P, L>[], atMs: number | undefined): void {
    const { room, limits } = this.#options
    const { lane } = gate
    let reply: R | undefined
    try {
      const costs = entries.map((entry) => this.costsOf(entry))
      reply = limits?.take(lane, costs, atMs) as R | undefined
    } catch (error) {
      return this.#fail(entries, error)
    }
    gate.lostTrips = 0
    const granted = reply?.granted ?? entries.length
    for (let index = 0; index < granted; index++) {
      const entry = entries[index] as Waiting<P, L>
      const admission = this.#admission(lane, entry.costs, reply)
      room.remove(entry)
      entry.admit(admission)
    }
    const blocker = entries[granted]
    if (blocker === undefined) return
    for (let index = granted; index < entries.length; index++) {
      room.putBack(entries[index] as Waiting<P, L>)
    }
    this.#hooks.blocked(gate, reply as R, blocker.costs, blocker)
  }

  /** A store in this process that throws is not away: there is nothing to wait for. */
  #fail(entries: readonly Waiting<P, L>[], error: unknown): void {
    const { room, storeError } = this.#options
    for (const entry of entries) {
      room.remove(entry)
      entry.refuse(storeError(error))
    }
    // What was free still is: for the next in turn.
    this.#hooks.back()
  }

  #admission(lane: string, costs: readonly number[], reply: R | undefined): Admission<P, L> {
    const { limits } = this.#options
    const breaker = this.#enter(lane)
    if (limits === undefined || reply === undefined) return { breaker, permit: undefined }
    return new LazyAdmission(breaker, limits, lane, costs, reply)
  }

  /** Takes a slot, and has the word of a breaker that does not stand in the way. */
  #enter(lane: string): P | undefined {
    const { slots, breaker } = this.#options
    slots.reserve(1, lane)
    slots.admit()
    return breaker?.enter(lane) as P | undefined
  }

  /** Resolves when nobody is on a trip any more, and what it brought has been given back. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#trips === 0) resolve()
      else this.#onIdle = resolve
    })
  }

  admit(gate: Gate, entries: Waiting<P, L>[]): void {
    const { slots, breaker } = this.#options
    slots.reserve(entries.length, gate.lane)
    for (const entry of entries) entry.held = { breaker: undefined, permit: undefined }
    if (breaker === undefined) return this.#askLimits(gate, entries)
    const waiting: Promise<void>[] = []
    for (const entry of entries) {
      const answer = breaker.enter(gate.lane)
      if (isThenable(answer)) waiting.push(answer.then((each) => this.#afterBreaker(entry, each)))
      else this.#afterBreaker(entry, answer)
    }
    if (waiting.length === 0) return this.#askLimits(gate, entries)
    this.#leave(gate, entries)
    void Promise.all(waiting).then(() => {
      this.#return(gate)
      this.#askLimits(gate, entries)
      this.#hooks.back()
    })
  }

  #afterBreaker(entry: Waiting<P, L>, answer: P | SpillwayError): void {
    const { breaker, room } = this.#options
    if (breaker?.isPermit(answer) === true) {
      if (entry.held !== undefined) entry.held.breaker = answer
      // Gone while the breaker was asked.
      if (entry.state === 'gone') this.#release(entry, false)
      return
    }
    this.#release(entry, false)
    if (entry.state === 'gone') return
    room.remove(entry)
    entry.refuse(answer)
  }

  #leave(gate: Gate, entries: Waiting<P, L>[]): void {
    this.#trips++
    gate.underWay = true
    gate.asking = entries as Waiting[]
  }

  #return(gate: Gate): void {
    gate.underWay = false
    gate.asking = []
    if (--this.#trips === 0) this.#onIdle?.()
  }

  #askLimits(gate: Gate, all: readonly Waiting<P, L>[]): void {
    const { limits, clock } = this.#options
    const entries = all.filter(({ state }) => state === 'asking')
    if (entries.length === 0) return
    if (limits === undefined) {
      for (const entry of entries) this.#start(entry, undefined)
      return
    }
    const askedMs = clock.now()
    let reply: MaybePromise<R>
    try {
      reply = limits.take(
        gate.lane,
        entries.map((entry) => this.costsOf(entry)),
        undefined,
      )
    } catch (error) {
      return this.#lost(gate, entries, error)
    }
    if (!isThenable(reply)) return this.#answered(gate, entries, reply)
    this.#leave(gate, entries)
    reply.then(
      (each) => {
        this.#return(gate)
        this.#back(gate, entries, each, askedMs)
        this.#hooks.back()
      },
      (error) => {
        this.#return(gate)
        this.#lost(gate, entries, error)
        this.#hooks.back()
      },
    )
  }

  #back(gate: Gate, entries: Waiting<P, L>[], reply: R, askedMs: number): void {
    const { limits, clock } = this.#options
    const tookMs = clock.now() - askedMs
    // A refusal does not go bad.
    const inTime =
      reply.granted === 0 || limits?.isFresh(reply) === true || tookMs <= (limits?.useWithinMs ?? 0)
    if (inTime) return this.#answered(gate, entries, reply)
    // Granted so long ago that using it now could exceed the vendor's window.
    for (const { costs } of entries.slice(0, reply.granted)) {
      limits?.refund(limits.createPermit(gate.lane, costs, reply))
    }
    // No reason to give up: the store answers, and if it stays too slow, outage rules replace it.
    gate.lostTrips = Math.max(1, gate.lostTrips)
    const took = `${Math.round(tookMs)} ms`
    const error = new Error(`the store took ${took} to answer`)
    this.#askAgain(gate, entries, error, clock.now() + FIRST_PAUSE_MS)
  }

  #answered(gate: Gate, entries: Waiting<P, L>[], reply: R): void {
    const { limits } = this.#options
    gate.lostTrips = 0
    const refused = entries.slice(reply.granted)
    for (const entry of entries.slice(0, reply.granted)) {
      const permit = limits?.createPermit(gate.lane, entry.costs, reply)
      if (entry.state === 'asking') this.#start(entry, permit)
      else this.#passOn(entry, permit, refused)
    }
    for (const entry of refused) this.#release(entry, true)
    const [blocker] = refused
    if (blocker !== undefined) this.#hooks.blocked(gate, reply, blocker.costs, blocker)
  }

  /** Its caller has left: the permit goes to the next who wants the same, else back. */
  #passOn(left: Waiting<P, L>, permit: L | undefined, others: readonly Waiting<P, L>[]): void {
    const taker = others.find(
      ({ state, costs }) =>
        state === 'asking' && costs.every((cost, index) => cost === left.costs[index]),
    )
    this.#release(left, false)
    if (taker !== undefined) return this.#start(taker, permit)
    if (permit !== undefined) this.#options.limits?.refund(permit)
  }

  #start(entry: Waiting<P, L>, permit: L | undefined): void {
    const { room, slots } = this.#options
    const admission = entry.held as Admission<P, L>
    entry.held = undefined
    admission.permit = permit
    room.remove(entry)
    slots.admit()
    entry.admit(admission)
  }

  /** Gives back what was reserved for it, and its place in the room if it still wants one. */
  #release(entry: Waiting<P, L>, comesBack: boolean): void {
    const { breaker, slots, room } = this.#options
    const { held } = entry
    // Somebody else's permit was passed on to it, or it has left and everything is back.
    if (held === undefined) return
    entry.held = undefined
    slots.giveUp(entry.lane)
    if (held.breaker !== undefined) breaker?.exit(held.breaker, 'ignored')
    if (comesBack) room.putBack(entry)
  }

  /**
   * The store may have granted something; if so it is spent. Asks again, a little later each time: a new
   * connection takes a moment, and calls can wait for it in the queue.
   */
  #lost(gate: Gate, entries: readonly Waiting<P, L>[], error: unknown): void {
    const pauseMs = FIRST_PAUSE_MS * 2 ** gate.lostTrips
    // A refusal comes from an outage rule that lets no call through: asking again would not help.
    const giveUp = ++gate.lostTrips > MOST_LOST_TRIPS || error instanceof SpillwayError
    if (giveUp) gate.lostTrips = 0
    const untilMs = giveUp ? undefined : this.#options.clock.now() + pauseMs
    this.#askAgain(gate, entries, error, untilMs)
  }

  /** Calls with time left ask again at `untilMs`. Without it, and without time, they are refused. */
  #askAgain(
    gate: Gate,
    entries: readonly Waiting<P, L>[],
    error: unknown,
    untilMs: number | undefined,
  ): void {
    const { room, clock, storeError } = this.#options
    const nowMs = clock.now()
    for (const entry of entries) {
      // A call with time left waits: until it runs out, the store may be back or be replaced by outage rules.
      const comesBack = untilMs !== undefined && room.untilMs(entry) > nowMs
      this.#release(entry, comesBack)
      if (comesBack || entry.state === 'gone') continue
      room.remove(entry)
      entry.refuse(storeError(error))
    }
    if (untilMs !== undefined) this.#hooks.lost(gate, untilMs)
  }
}
