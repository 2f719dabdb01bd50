/** What an entry of the room waits for, and what it gets. `P` is the breaker's permit, `L` the limits'. */
import type { Cost } from '../shared/rate-limiter/permit.js'
import type { Guest } from './room.js'

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
export interface Wish<P = unknown, L = unknown> extends Price, Guest {
  breaker: P | undefined
  /** Something of this pod is kept for it while the store is asked. */
  reserved: boolean
  admit(admission: Admission<P, L>): void
  refuse(error: unknown): void
}
