/** What users of the shared circuit breaker type. */

import type { SpillwayError } from '../../core/errors.js'
import type { Duration } from '../../core/options/checks.js'
import type { Outcome } from '../../core/outcome.js'
import type { Random } from '../../core/random.js'
import type { Clock } from '../../core/time/clock.js'
import type { Store } from '../../store/port.js'
import type { BreakerPolicy } from './options.js'

export interface CircuitBreakerOptions extends BreakerPolicy {
  /** The downstream: all pods that use this name share its breaker. */
  name: string
  /** Default: a memory store, for this process alone. */
  store?: Store
  /**
   * Lanes that this pod keeps at the same time; calls of further lanes share the lane `(other)`. At least 1.
   * Default: 1,000.
   */
  maxLanes?: number
  /** This pod's name; a random part is added, so that a restarted pod is another one. */
  pod?: string
  /** Default: the system's clock. */
  clock?: Clock
  /** Default: `Math.random`. */
  random?: Random
}

export type BreakerStateName = 'closed' | 'open' | 'half-open' | 'isolated'

/** Goes with a call, and comes back with its outcome. */
export interface BreakerPermit {
  readonly lane: string
  /** One of the few that may run while it is half-open. */
  readonly probe: boolean
}

export type BreakerAnswer =
  | { allowed: true; permit: BreakerPermit }
  /** Not thrown, but fit for it. */
  | { allowed: false; error: SpillwayError }

export interface BreakerChange {
  name: string
  lane: string
  from: BreakerStateName
  to: BreakerStateName
}

export interface BreakerSnapshot {
  name: string
  lane: string
  state: BreakerStateName
  /** Milliseconds until it is no longer open, or isolated. */
  untilMs: number | undefined
  /** Finished calls in the window, of the whole fleet, and those of them that failed or were slow. */
  calls: number
  failures: number
  slow: number
  /** Calls in flight that count in the rates, of the whole fleet. */
  inFlight: number
  consecutiveFailures: number
  /** While it is half-open. */
  probes: number
  successes: number
  /** With a quorum: this pod refuses on its own, because it alone saw failures. `state` is the fleet's. */
  selfIsolated: boolean
  /** Milliseconds since the store last said how things are. */
  ageMs: number
}

export interface LaneOption {
  /** Model, API key: what fails separately. Default: one lane for all. */
  lane?: string
}

export interface CircuitBreaker {
  readonly name: string
  /** May a call be made now? If so, tell how it ended with `record`. Never waits for a turn. */
  allow(options?: LaneOption): Promise<BreakerAnswer>
  /** How a call ended. Without a permit: a call that was made as things are now. */
  record(outcome: Outcome, of?: BreakerPermit | LaneOption): void
  /** Asks, calls, judges and records. Refuses with CIRCUIT_OPEN. */
  run<T>(fn: () => T | PromiseLike<T>, options?: LaneOption & { signal?: AbortSignal }): Promise<T>
  /** Looking takes nothing, and asks nobody. */
  state(options?: LaneOption): BreakerStateName
  snapshot(options?: LaneOption): BreakerSnapshot
  /**
   * Hears of every change of every lane, on whatever pod it was caused; returns what stops it. Not of a
   * pod that isolates itself: that changes nothing for the fleet.
   */
  onChange(listener: (change: BreakerChange) => unknown): () => void
  /**
   * Refuses everything on all pods, until everybody who isolated it has released it, or their time
   * is over. Default for `holder`: this pod, until it restarts.
   */
  isolate(forMs: Duration, options?: LaneOption & { holder?: string }): Promise<void>
  /** Ends one holder's isolation. */
  release(options?: LaneOption & { holder?: string }): Promise<void>
  /** Opens it now, on all pods, for as long as failures would. */
  trip(options?: LaneOption): Promise<void>
  /** Closes it now, on all pods, and forgets what was counted. Isolations stay. */
  reset(options?: LaneOption): Promise<void>
  /** Resolves when everything recorded so far has been told to the store. */
  flush(): Promise<void>
  /** Refuses with CLOSED what comes later; resolves when all outcomes are told. */
  close(): Promise<void>
}
