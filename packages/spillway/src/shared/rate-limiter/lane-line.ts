/**
 * The line for one lane's permits. Whoever asks stands in line; one trip to the store at a time
 * carries everybody who stands there, in order, so an idle pod pays a trip for a call and a busy
 * one a trip for hundreds. The first trip, too, takes along all who ask in one go. When the head of the line has to wait, the line sleeps until exactly the
 * time the store named, and asks nothing meanwhile.
 */

import { Line, type Waiter } from '../../core/collections/wait-list.js'
import { SpillwayError } from '../../core/errors.js'
import { gathering } from '../../core/next-tick-batch.js'
import { isThenable } from '../../core/thenable.js'
import type { Clock, Timer } from '../../core/time/clock.js'
import type { MaybePromise, TakeReply } from '../../store/port.js'
import { ASK_AGAIN_MS } from './pause.js'
import type { Cost } from './permit.js'

export interface Wish<P> {
  /** What it costs, as its caller put it. */
  readonly cost: Cost | undefined
  /** The same in numbers, one per limit, and the limits these are of. */
  costs: readonly number[]
  of: unknown
  /** On its way to the store: what comes back is its answer, even if it is a little late. */
  underWay?: boolean
  /** Until when it is prepared to wait; nothing: it wants what there is, now. */
  readonly untilMs: number | undefined
  permit?: P
  /** If it was refused: how long it would have had to wait, and whether for a pause. */
  retryAfterMs?: number
  paused?: boolean
}

export interface LaneLineOptions<P, R extends Reply> {
  clock: Clock
  /** A permit is worth nothing when its trip took longer than this. */
  useWithinMs: number
  /** The limits in force: they may change while somebody waits, and the costs with them. */
  limits(): unknown
  costsOf(cost: Cost | undefined): readonly number[]
  take(costs: (readonly number[])[]): MaybePromise<R>
  createPermit(costs: readonly number[], reply: R): P
  /** A permit was granted to somebody who has left, and nobody else can use it. */
  giveBack(permit: P): void
}

const NO = Promise.resolve(false)
const MOST_IN_A_TRIP = 256
/** So many trips that failed or came too late, one after the other, are an outage. */
const MOST_LOST_TRIPS = 3

/** `alone`: decided by this pod, now. */
type Reply = TakeReply & { alone?: boolean }

export class LaneLine<P, R extends Reply = Reply> {
  readonly #options: LaneLineOptions<P, R>
  readonly #line: Line<Wish<P>>
  #underWay = false
  #lostTrips = 0
  #blockedUntilMs = Number.NEGATIVE_INFINITY
  /** Who has to wait until then. */
  #blocked: Waiter<Wish<P>> | undefined
  #paused = false
  /** Of a pause: from then on the store is asked again. */
  #askAgainMs = Number.POSITIVE_INFINITY
  #timer: Timer | undefined
  readonly #onIdle: (() => void)[] = []
  readonly #pumpSoon = gathering(() => this.#pump())

  constructor(options: LaneLineOptions<P, R>) {
    this.#options = options
    this.#line = new Line(
      options.clock,
      Number.NaN,
      () => this.#afterDesertion(),
      ({ underWay }) => underWay !== true,
    )
  }

  /** How long the head of the line still has to wait, as far as we know. */
  get blockedMs(): number {
    return Math.max(0, this.#blockedUntilMs - this.#options.clock.now())
  }

  /** Nothing waits, nothing is requested, and no pause is known. */
  get isIdle(): boolean {
    return !this.#underWay && this.#line.length === 0 && this.blockedMs === 0
  }

  /** True when the wish has its permit; false when it was refused, which it then tells about. */
  ask(wish: Wish<P>, signal: AbortSignal | undefined): Promise<boolean> {
    // What the last one waited for in vain was what it wanted; nobody is left who does. A pause is
    // for everybody.
    if (this.#line.length === 0 && !this.#paused) this.#unblock()
    if (this.#cannotWait(wish)) {
      this.#explain(wish)
      return NO
    }
    const patienceMs =
      wish.untilMs === undefined ? undefined : Math.max(0, wish.untilMs - this.#options.clock.now())
    const answer = this.#line.join({ wish, signal, patienceMs })
    if (!this.#underWay) this.#pumpSoon()
    return answer
  }

  /** Something was given back: perhaps the head of the line need not wait any longer. */
  wake(): void {
    if (!this.#paused) this.#unblock()
    this.#pump()
  }

  /** Resolves when nothing is under way any more: what is granted yet goes back. */
  close(createError: () => unknown): Promise<void> {
    this.#line.close(createError)
    this.#timer?.cancel()
    return new Promise((resolve) => {
      if (this.#underWay) this.#onIdle.push(resolve)
      else resolve()
    })
  }

  /** The head of the line waits for a time that this wish cannot wait for. */
  #cannotWait({ untilMs }: Wish<P>): boolean {
    return this.#isBlocked() && (untilMs === undefined || untilMs < this.#blockedUntilMs)
  }

  #isBlocked(): boolean {
    // Nearly always nothing blocks, and then there is no need to ask for the time.
    return this.#blockedUntilMs > 0 && this.#wakeMs > this.#options.clock.now()
  }

  get #wakeMs(): number {
    return Math.min(this.#blockedUntilMs, this.#askAgainMs)
  }

  #explain(wish: Wish<P>): void {
    wish.retryAfterMs = this.blockedMs
    wish.paused = this.#paused
  }

  /** The new head of the line may want less than the one that left. */
  #afterDesertion(): void {
    if (this.#line.head !== this.#blocked && !this.#paused) this.#unblock()
    this.#pump()
  }

  #unblock(): void {
    this.#blockedUntilMs = Number.NEGATIVE_INFINITY
  }

  #pump(): void {
    while (!this.#underWay && this.#line.length > 0 && !this.#isBlocked()) {
      const waiters = this.#line.first(MOST_IN_A_TRIP)
      const askedMs = this.#options.clock.now()
      let reply: MaybePromise<R>
      try {
        reply = this.#options.take(waiters.map(({ wish }) => this.#prepare(wish)))
      } catch (error) {
        this.#lost(waiters, error)
        continue
      }
      if (!isThenable(reply)) {
        this.#answered(waiters, reply)
        continue
      }
      this.#underWay = true
      for (const { wish } of waiters) wish.underWay = true
      reply.then(
        (each) => this.#back(waiters, () => this.#arrived(waiters, each, askedMs)),
        (error) => this.#back(waiters, () => this.#lost(waiters, error)),
      )
    }
    this.#sleep()
  }

  #prepare(wish: Wish<P>): readonly number[] {
    const limits = this.#options.limits()
    if (wish.of !== limits) {
      wish.costs = this.#options.costsOf(wish.cost)
      wish.of = limits
    }
    return wish.costs
  }

  #back(waiters: readonly Waiter<Wish<P>>[], handle: () => void): void {
    this.#underWay = false
    for (const { wish } of waiters) wish.underWay = false
    handle()
    const now = this.#options.clock.now()
    for (const waiter of waiters) {
      if (waiter.waiting && (waiter.wish.untilMs ?? now + 1) < now) this.#dismiss(waiter)
    }
    this.#pump()
    if (!this.#underWay) for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  #arrived(waiters: Waiter<Wish<P>>[], reply: R, askedMs: number): void {
    const tookMs = this.#options.clock.now() - askedMs
    // A refusal does not go bad.
    const inTime =
      tookMs <= this.#options.useWithinMs || reply.granted === 0 || reply.alone === true
    if (inTime) return this.#answered(waiters, reply)
    // Granted so long ago that using it now could exceed the vendor's window. It goes back, because
    // we know it was not used, and everybody asks again.
    for (const { wish } of waiters.slice(0, reply.granted)) {
      this.#options.giveBack(this.#options.createPermit(wish.costs, reply))
    }
    const took = `${Math.round(tookMs)} ms`
    this.#lost(
      waiters,
      new Error(`the store took ${took} to answer; raise jitterMs if that is usual`),
    )
  }

  #answered(waiters: Waiter<Wish<P>>[], reply: R): void {
    this.#lostTrips = 0
    const refused = waiters.slice(reply.granted)
    for (const waiter of waiters.slice(0, reply.granted)) {
      this.#grant(waiter, this.#options.createPermit(waiter.wish.costs, reply), refused)
    }
    if (reply.waitUs === 0) return
    // The wait is that of the first refused request. If it was aborted meanwhile, the next one asks.
    if (refused[0]?.waiting === false && !reply.paused) return
    const nowMs = this.#options.clock.now()
    this.#blockedUntilMs = nowMs + reply.waitUs / 1_000
    this.#askAgainMs = reply.paused ? nowMs + ASK_AGAIN_MS : Number.POSITIVE_INFINITY
    this.#blocked = refused.find(({ waiting }) => waiting)
    this.#paused = reply.paused
    this.#thinOut(this.#blocked)
  }

  /**
   * Whoever cannot wait as long as the head of the line has to is told now, not later. If the head
   * itself cannot, those go with it who want as much; the others may ask for what they want.
   */
  #thinOut(head: Waiter<Wish<P>> | undefined): void {
    if (head === undefined) return
    const headLeaves = !this.#paused && this.#cannotWait(head.wish)
    for (const waiter of this.#line.first(this.#line.length)) {
      const stays = headLeaves && !wantsAsMuch(waiter, head)
      if (!stays && this.#cannotWait(waiter.wish)) this.#dismiss(waiter)
    }
    if (headLeaves) this.#unblock()
  }

  /** If its caller has left, a permit goes to the next who wants the same, else back. */
  #grant(waiter: Waiter<Wish<P>>, permit: P, others: readonly Waiter<Wish<P>>[]): void {
    const taker = waiter.waiting ? waiter : others.find((each) => wantsSame(each, waiter))
    if (taker === undefined) return this.#options.giveBack(permit)
    taker.wish.permit = permit
    this.#line.admit(taker)
  }

  #dismiss(waiter: Waiter<Wish<P>>): void {
    this.#explain(waiter.wish)
    this.#line.dismiss(waiter)
  }

  /** Nobody knows whether the store granted anything; if so it is spent. Ask again, a few times. */
  #lost(waiters: readonly Waiter<Wish<P>>[], error: unknown): void {
    // Without an outage rule that lets anybody through, there is nothing to ask again for.
    if (++this.#lostTrips < MOST_LOST_TRIPS && !(error instanceof SpillwayError)) return
    this.#lostTrips = 0
    for (const waiter of waiters) if (waiter.waiting) this.#line.fail(waiter, error)
  }

  /** One timer, for the head of the line. */
  #sleep(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    if (this.#underWay || this.#line.length === 0) return
    const delayMs = Math.max(0, this.#wakeMs - this.#options.clock.now())
    this.#timer = this.#options.clock.schedule(delayMs, () => this.#pump())
  }
}

function wantsAsMuch<P>(one: Waiter<Wish<P>>, other: Waiter<Wish<P>>): boolean {
  return one.wish.costs.every((cost, index) => cost >= (other.wish.costs[index] ?? 0))
}

function wantsSame<P>(one: Waiter<Wish<P>>, other: Waiter<Wish<P>>): boolean {
  const { costs } = other.wish
  return one.waiting && one.wish.costs.every((cost, index) => cost === costs[index])
}
