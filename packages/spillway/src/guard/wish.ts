/** What an entry of the room waits for, and what it gets. `P` is the breaker's permit, `L` the limits'. */
import type { Cost } from '../shared/rate-limiter/permit.js'
import type { Entry } from './entry.js'

/** Everything a call needs to start. */
export interface Admission<P = unknown, L = unknown> {
  breaker: P | undefined
  permit: L | undefined
}

/** What a call costs. */
export interface Price {
  readonly cost: Cost | undefined
  /** In numbers, one for each limit, and of which limits these are. */
  costs: readonly number[]
  of: unknown
}

/** What an entry of the room wants. */
export interface Wish<P = unknown, L = unknown> extends Price {
  /** It has everything. */
  admit(admission: Admission<P, L>): void
  refuse(error: unknown): void
}

/** An entry with a wish. What is kept for it is an admission in the making. */
export interface Waiting<P = unknown, L = unknown> extends Entry<Admission<P, L>>, Wish<P, L> {}
