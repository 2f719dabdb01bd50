/** What an entry of the room waits for, and what it gets. `P` is the breaker's permit, `L` the limits'. */
import type { Cost } from '../shared/rate-limiter/permit.js'

/** Everything a call needs to start. */
export interface Admission<P = unknown, L = unknown> {
  breaker: P | undefined
  permit: L | undefined
}

/** What an entry of the room wants. */
export interface Wish<P = unknown, L = unknown> {
  readonly cost: Cost | undefined
  /** In numbers, and of which limits. */
  costs: readonly number[]
  of: unknown
  breaker: P | undefined
  /** Something of this pod is kept for it while the store is asked. */
  reserved: boolean
  admit(admission: Admission<P, L>): void
  refuse(error: unknown): void
}
