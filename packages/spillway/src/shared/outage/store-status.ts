/** The state of the store as a guard sees it, and what the watch needs from a guard's limits. */

/**
 * - `starting`: not connected yet, for a short time;
 * - `shared`: normal operation;
 * - `unreachable`: the store is unreachable;
 * - `untrusted`: it is reachable but has lost data, so limits are not shared yet;
 * - `off`: `SPILLWAY_SHARED=off`.
 */
export type StoreStatus = 'starting' | 'shared' | 'unreachable' | 'untrusted' | 'off'

/** State of a store. */
export interface StoreSnapshot {
  /** Whether the store is reachable. */
  status: StoreStatus
  /** Milliseconds since the status changed. */
  forMs: number
  /** The reason of a problem, if any. */
  why: string | undefined
  /** The number of pods that share the limits. */
  pods: number
  /** How many of these have not reported; their shares are reserved for them. */
  missing: number
  /** A warning for the operator. */
  warning: string | undefined
}

/** Spends units of limits and reports them to the store: the limits of a guard. */
export interface Spender {
  /** Until when units spent at this time of the store count. */
  countsUntilUs(usedUs: number): number
  /** Replies that take longer are useless. */
  readonly usableMs: number
  /** Replies so far are no longer valid: waiting calls have to ask again. */
  wake(): void
  /** The store is another one, so earlier reports are lost. */
  forgotten(): void
  /** Reports units spent during the outage; rejects if it cannot. */
  report(): Promise<void>
  /** Reads the units left. */
  refresh(): void
  /** The store is used again from now on. */
  returned(): void
}
