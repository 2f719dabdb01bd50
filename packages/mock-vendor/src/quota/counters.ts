/** Counting methods of vendors: sliding windows, token buckets, fixed windows. */
import type { Limit, LimitState } from './contract.js'

/** Units charged for a request. The amount may be corrected when the response has ended. */
export interface Charge {
  readonly atMs: number
  amount: number
}

export interface Counter {
  readonly limit: Limit
  /** Time until the amount fits; 0 if it fits now. An amount that never fits waits for a window. */
  waitMs(nowMs: number, amount: number): number
  charge(nowMs: number, amount: number): Charge
  /** Corrects an earlier charge. */
  correct(charge: Charge, nowMs: number, amount: number): void
  state(nowMs: number): LimitState
}

/** Exact: every charge counts until it is as old as the window. */
export class SlidingWindow implements Counter {
  readonly limit: Limit
  #charges: Charge[] = []
  #used = 0

  constructor(limit: Limit) {
    this.limit = limit
  }

  waitMs(nowMs: number, amount: number): number {
    this.#forget(nowMs)
    let tooMany = this.#used + amount - this.limit.limit
    if (tooMany <= 0) return 0
    for (const charge of this.#charges) {
      tooMany -= charge.amount
      if (tooMany <= 0) return charge.atMs + this.limit.windowMs - nowMs
    }
    return this.limit.windowMs
  }

  charge(atMs: number, amount: number): Charge {
    const charge = { atMs, amount }
    this.#charges.push(charge)
    this.#used += amount
    return charge
  }

  correct(charge: Charge, nowMs: number, amount: number): void {
    this.#forget(nowMs)
    if (this.#charges.includes(charge)) this.#used += amount - charge.amount
    charge.amount = amount
  }

  state(nowMs: number): LimitState {
    this.#forget(nowMs)
    const last = this.#charges.at(-1)
    const resetMs = last === undefined ? 0 : last.atMs + this.limit.windowMs - nowMs
    return { ...this.limit, used: this.#used, resetMs }
  }

  #forget(nowMs: number): void {
    const isExpired = (charge: Charge) => charge.atMs + this.limit.windowMs <= nowMs
    let old = 0
    for (
      let charge = this.#charges[old];
      charge && isExpired(charge);
      charge = this.#charges[++old]
    ) {
      this.#used -= charge.amount
    }
    if (old > 0) this.#charges.splice(0, old)
  }
}

/** Sums of fractions of milliseconds differ from the exact ones by less than this. */
const ROUNDING_MS = 1e-6

/** Full at first, and refilled all the time by the limit for each window. A correction may leave a debt. */
export class TokenBucket implements Counter {
  readonly limit: Limit
  /** Time at which the bucket is full if no more units are charged. */
  #fullAtMs = Number.NEGATIVE_INFINITY

  constructor(limit: Limit) {
    this.limit = limit
  }

  waitMs(nowMs: number, amount: number): number {
    const { limit, windowMs } = this.limit
    // While the bucket is in debt, requests that are charged afterwards are refused, too.
    const needed = Math.max(1, amount)
    const missingMs = this.#missingMs(nowMs) + this.#msFor(needed) - windowMs
    if (missingMs <= ROUNDING_MS) return 0
    return needed > limit ? windowMs : Math.ceil(missingMs - ROUNDING_MS)
  }

  charge(nowMs: number, amount: number): Charge {
    this.#fullAtMs = Math.max(this.#fullAtMs, nowMs) + this.#msFor(amount)
    return { atMs: nowMs, amount }
  }

  correct(charge: Charge, nowMs: number, amount: number): void {
    this.#fullAtMs = Math.max(this.#fullAtMs, nowMs) + this.#msFor(amount - charge.amount)
    charge.amount = amount
  }

  state(nowMs: number): LimitState {
    const { limit, windowMs } = this.limit
    const resetMs = this.#missingMs(nowMs)
    const used = Math.ceil((resetMs * limit) / windowMs - ROUNDING_MS)
    return { ...this.limit, used, resetMs: Math.ceil(resetMs - ROUNDING_MS) }
  }

  #missingMs(nowMs: number): number {
    return Math.max(0, this.#fullAtMs - nowMs)
  }

  /** The time in which an amount is refilled. */
  #msFor(amount: number): number {
    return (amount * this.limit.windowMs) / this.limit.limit
  }
}

/** Restarts at times that do not depend on requests: each minute, or each day. */
export class FixedWindow implements Counter {
  readonly limit: Limit
  readonly #endOf: (nowMs: number) => number
  #endMs = Number.NEGATIVE_INFINITY
  #used = 0

  /** `endOf`: when the window of a time ends. */
  constructor(limit: Limit, endOf = (nowMs: number) => nextMultiple(nowMs, limit.windowMs)) {
    this.limit = limit
    this.#endOf = endOf
  }

  waitMs(nowMs: number, amount: number): number {
    this.#begin(nowMs)
    return this.#used + amount > this.limit.limit ? this.#endMs - nowMs : 0
  }

  charge(nowMs: number, amount: number): Charge {
    this.#begin(nowMs)
    this.#used += amount
    return { atMs: nowMs, amount }
  }

  correct(charge: Charge, nowMs: number, amount: number): void {
    this.#begin(nowMs)
    if (this.#endOf(charge.atMs) === this.#endMs) this.#used += amount - charge.amount
    charge.amount = amount
  }

  state(nowMs: number): LimitState {
    this.#begin(nowMs)
    return { ...this.limit, used: this.#used, resetMs: this.#endMs - nowMs }
  }

  #begin(nowMs: number): void {
    if (nowMs < this.#endMs) return
    this.#endMs = this.#endOf(nowMs)
    this.#used = 0
  }
}

function nextMultiple(nowMs: number, windowMs: number): number {
  return (Math.floor(nowMs / windowMs) + 1) * windowMs
}
