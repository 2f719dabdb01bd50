/** The public interface of the shared circuit breaker. */

import type { SpillwayError } from '../../core/errors.js'
import type { Duration } from '../../core/options/checks.js'
import type { Outcome } from '../../core/outcome.js'
import type { Random } from '../../core/random.js'
import type { Clock } from '../../core/time/clock.js'
import type { Store } from '../../store/port.js'
import type { BreakerPolicy } from './options.js'

/** Options of `createCircuitBreaker()`. */
export interface CircuitBreakerOptions extends BreakerPolicy {
  /** The downstream: all pods that use this name share its breaker. */
  name: string
  /** The store that the pods share. Default: a memory store, for this process alone. */
  store?: Store
  /**
   * Lanes that this pod keeps at the same time; calls of further lanes share the lane `(other)`. Range:
   * integers from 1. Default: 1,000.
   */
  maxLanes?: number
  /** Name of this pod. A random part is added, so that a restarted pod has another name. Default: `pod`. */
  pod?: string
  /** The clock to read and to set timers with. Default: the system clock. */
  clock?: Clock
  /** Source of random numbers from 0 to 1. Default: `Math.random`. */
  random?: Random
}

/** State of a breaker. */
export type BreakerStateName = 'closed' | 'open' | 'half-open' | 'isolated'

/** Allows one call. It is returned with the outcome of the call. */
export interface BreakerPermit {
  /** The lane it is for. */
  readonly lane: string
  /** Whether the call is one of the few that run while the breaker is half-open. */
  readonly probe: boolean
  /** Every change of state begins a generation. Outcomes of an earlier one change nothing. */
  readonly generation: number
  /** Identifies a probe in the store; undefined for other calls. */
  readonly probeId: string | undefined
}

/** A permit of a breaker, or its refusal. */
export type BreakerAnswer =
  | { allowed: true; permit: BreakerPermit }
  /** Returned, not thrown. */
  | { allowed: false; error: SpillwayError }

/** A change of a breaker's state. */
export interface BreakerChange {
  /** Name of the breaker. */
  name: string
  /** The lane whose breaker changed. */
  lane: string
  /** The state before. */
  from: BreakerStateName
  /** The state now. */
  to: BreakerStateName
}

/** State of a breaker, as this pod knows it. */
export interface BreakerSnapshot {
  /** Name of the breaker. */
  name: string
  /** The lane. */
  lane: string
  /** The state now. */
  state: BreakerStateName
  /** Milliseconds until it is no longer open, or isolated. */
  untilMs: number | undefined
  /** Finished calls in the window, of the whole fleet. */
  calls: number
  /** Failures in the window. */
  failures: number
  /** Slow calls in the window. */
  slow: number
  /** Calls in flight that count in the rates, of the whole fleet. */
  inFlight: number
  /** Failures since the last success. */
  consecutiveFailures: number
  /** Probes that are running. */
  probes: number
  /** Probes that have succeeded, while it is half-open. */
  successes: number
  /** With a quorum: this pod refuses by its own breaker, because only this pod saw failures. `state` is the fleet's. */
  selfIsolated: boolean
  /** Milliseconds since the store last returned or published the state. */
  ageMs: number
}

/** The lane that a command applies to. */
export interface LaneOption {
  /** The model or API key, which fail separately. Default: one lane for all. */
  lane?: string
}

/** A circuit breaker that all pods share. Created by `createCircuitBreaker()`. */
export interface CircuitBreaker {
  /** Name in errors, events and snapshots. */
  readonly name: string
  /** Requests a permit. Report the outcome of an allowed call with `record`. Calls never queue. */
  allow(options?: LaneOption): Promise<BreakerAnswer>
  /** Reports the outcome of a call. Without a permit it counts as a call in the present state. */
  record(outcome: Outcome, of?: BreakerPermit | LaneOption): void
  /** Requests a permit, runs the function, judges and records its outcome. Refuses with CIRCUIT_OPEN. */
  run<T>(fn: () => T | PromiseLike<T>, options?: LaneOption & { signal?: AbortSignal }): Promise<T>
  /** The state this pod knows. Takes no permit and makes no round trip. */
  state(options?: LaneOption): BreakerStateName
  /** State and counts at this moment. */
  snapshot(options?: LaneOption): BreakerSnapshot
  /**
   * Calls the listener on every change of every lane, whichever pod caused it. Returns a function that removes
   * the listener. A pod that isolates itself changes nothing for the fleet, so that is not reported here.
   */
  onChange(listener: (change: BreakerChange) => unknown): () => void
  /**
   * Refuses all calls on all pods until every holder has released it or its time is over. Default for `holder`:
   * this pod, until it restarts.
   */
  isolate(forMs: Duration, options?: LaneOption & { holder?: string }): Promise<void>
  /** Ends one holder's isolation. */
  release(options?: LaneOption & { holder?: string }): Promise<void>
  /** Opens it on all pods, for the same time as failures would. */
  trip(options?: LaneOption): Promise<void>
  /** Closes it on all pods and clears its counts. Isolations stay. */
  reset(options?: LaneOption): Promise<void>
  /** Resolves when all recorded outcomes have been reported to the store. */
  flush(): Promise<void>
  /** Refuses later calls with SHUTTING_DOWN. Resolves when all outcomes have been reported. */
  close(): Promise<void>
}
