/**
 * An admission whose permit is made when somebody asks for it. Nearly all calls end without: it is
 * for those that cost something else than was booked, or that the vendor answers with a word on its
 * limits, or that do not start after all.
 */
import type { TakeReply } from '../store/port.js'
import type { LimitGate } from './limit-gate.js'
import type { Admission } from './wish.js'

export class LazyAdmission<P, L, R extends TakeReply> implements Admission<P, L> {
  breaker: P | undefined
  readonly #limits: LimitGate<L, R>
  readonly #lane: string
  readonly #costs: readonly number[]
  readonly #reply: R
  #permit: L | undefined

  constructor(
    breaker: P | undefined,
    limits: LimitGate<L, R>,
    lane: string,
    costs: readonly number[],
    reply: R,
  ) {
    this.breaker = breaker
    this.#limits = limits
    this.#lane = lane
    this.#costs = costs
    this.#reply = reply
  }

  get permit(): L {
    this.#permit ??= this.#limits.createPermit(this.#lane, this.#costs, this.#reply)
    return this.#permit
  }
}
