/** What all hedged calls of one guard have in common. */
import type { Clock } from '../core/clock.js'
import { emit, listening } from '../core/events.js'
import { isThenable } from '../core/thenable.js'
import { HedgeDelay } from '../local/hedge-delay.js'
import type { RetryBudget } from '../local/retry-budget.js'
import type { MaybePromise } from '../store/port.js'
import type { CallAdmission, Machinery } from './machinery.js'
import type { CheckedGuard } from './options.js'
import type { Price } from './wish.js'

export interface HedgeCounts {
  /** When a second attempt would begin now; nothing: too little is known. */
  delayMs: number | undefined
  /** Second attempts, and those of them that counted. */
  made: number
  won: number
}

export class Hedger {
  readonly delay: HedgeDelay
  made = 0
  won = 0
  readonly #name: string
  readonly #clock: Clock
  readonly #options: NonNullable<CheckedGuard['hedge']>
  readonly #budget: RetryBudget

  constructor(
    name: string,
    options: NonNullable<CheckedGuard['hedge']>,
    budget: RetryBudget,
    clock: Clock,
  ) {
    this.#name = name
    this.#options = options
    this.#budget = budget
    this.#clock = clock
    this.delay = new HedgeDelay(options)
  }

  /** Where a second attempt goes. */
  laneFor(lane: string): string {
    return this.#options.lane ?? lane
  }

  /**
   * Everything a second attempt needs, if all of it is free now and the budget pays for it. It never
   * waits: who waits has no second attempt, and whoever is in the room comes first.
   */
  tryTake(
    machinery: Machinery,
    lane: string,
    price: Price,
  ): MaybePromise<CallAdmission | undefined> {
    const { limits, slots } = machinery
    if (!isFree(machinery, lane, price)) return this.#skip('busy')
    if (!this.#budget.tryRetry(1)) return this.#skip('budget')
    const nowMs = this.#clock.now()
    try {
      if (limits?.remote !== true) {
        return machinery.dispatcher.tryNow(lane, price, nowMs) ?? this.#skip('busy')
      }
      slots.reserve(1, lane)
      const reply = limits.take(lane, [machinery.dispatcher.costsOf(price)], undefined)
      const answered = (trip: Awaited<typeof reply>) => {
        const permit = trip.granted === 0 ? undefined : limits.createPermit(lane, price.costs, trip)
        slots.giveUp(lane)
        const late = this.#clock.now() - nowMs > limits.useWithinMs
        if (permit === undefined) return this.#skip('busy')
        if (late || machinery.closed || !isFree(machinery, lane, price)) {
          limits.refund(permit)
          return this.#skip('busy')
        }
        slots.reserve(1, lane)
        slots.admit()
        return { breaker: machinery.breaker?.enter(lane) as CallAdmission['breaker'], permit }
      }
      const lost = () => {
        slots.giveUp(lane)
        return this.#skip('busy')
      }
      return isThenable(reply) ? reply.then(answered, lost) : answered(reply)
    } catch {
      // The store is in trouble: the first attempt simply goes on.
      return this.#skip('busy')
    }
  }

  /** It was begun for an attempt that is over by now: what it holds goes back. */
  giveBack(
    { breaker, limits, slots, onFree }: Machinery,
    lane: string,
    admission: CallAdmission,
  ): void {
    if (admission.breaker !== undefined) breaker?.exit(admission.breaker, 'ignored')
    if (admission.permit !== undefined) limits?.refund(admission.permit)
    slots.skip(lane)
    onFree()
  }

  begun(delayMs: number): void {
    this.made++
    if (listening()) emit({ type: 'hedge.begun', name: this.#name, delayMs })
  }

  wonBy(delayMs: number): void {
    this.won++
    if (listening()) emit({ type: 'hedge.won', name: this.#name, delayMs })
  }

  counts(): HedgeCounts {
    return { delayMs: this.delay.delayMs(this.#clock.now()), made: this.made, won: this.won }
  }

  #skip(because: 'budget' | 'busy'): undefined {
    if (listening()) emit({ type: 'hedge.skipped', name: this.#name, because })
    return undefined
  }
}

/** Nobody waits, there is a slot, and neither the breaker nor the vendor is in the way. */
function isFree(
  { room, dispatcher, breaker, clock, closed }: Machinery,
  lane: string,
  price: Price,
): boolean {
  if (closed || room.length > 0) return false
  if (breaker !== undefined && !breaker.isClear(lane)) return false
  return dispatcher.spare(lane, price, clock.now()) > 0
}
