/** What users of the shared rate limiter type. */

import type { Duration } from '../../core/options/checks.js'
import type { Random } from '../../core/random.js'
import type { Clock } from '../../core/time/clock.js'
import type { Store } from '../../store/port.js'
import type { SharedLimit } from './options.js'
import type { Cost, Permit } from './permit.js'

export interface RateLimiterOptions {
  /** The vendor: all pods that use this name share its limits. */
  name: string
  store: Store
  /** All of them hold for every call: all are charged, or none. */
  limits: readonly SharedLimit[]
  /**
   * How much later than its permit was granted a call may reach the vendor: half of it for getting
   * the permit, half for the way to the vendor. Windows are wider by this much, and a permit that
   * took longer than its half to get is not used. Default: a twentieth of the shortest window, 10 to
   * 100 ms.
   */
  jitterMs?: Duration
  /** The longest pause a vendor may talk us into. Default: 60 seconds. */
  maxPauseMs?: Duration
  /** The first pause after a 429 that does not say how long; doubles each time. Default: 500 ms. */
  basePauseMs?: Duration
  /**
   * Lanes that this pod keeps at the same time; calls of further lanes share the lane `(other)`. At least 1.
   * Default: 1,000.
   */
  maxLanes?: number
  /** This pod's name; a random part is added, so that a restarted pod is another one. */
  pod?: string
  /** How many pods there are, for sharing limits out as long as the store has never answered. Default: 1. */
  expectedPods?: number
  /** Default: the system's clock. */
  clock?: Clock
  /** Default: `Math.random`. */
  random?: Random
}

export interface AcquireOptions {
  /** Model, API key: what the vendor counts separately. Default: one lane for all. */
  lane?: string
  /**
   * By unit. `requests` is 1 unless said otherwise, other units 0; one without a limit is a mistake.
   * An estimate will do: settle it.
   */
  cost?: Cost
  signal?: AbortSignal
}

export type Acquisition =
  | { allowed: true; permit: Permit }
  | {
      allowed: false
      /** Milliseconds until it could be allowed. */
      retryAfterMs: number
      /** The vendor asked us to pause. */
      paused: boolean
      /** The store is away, and this pod's own share is used up. */
      alone: boolean
    }

export interface RateLimiter {
  readonly name: string
  /** Takes a permit if there is one now. */
  acquire(options?: AcquireOptions): Promise<Acquisition>
  /** Waits for one, at most so long and never past the deadline; says no as soon as that is clear. */
  acquireWithin(waitMs: Duration, options?: AcquireOptions): Promise<Acquisition>
  /** As many permits as there are now, up to so many. */
  takeUpTo(count: number, options?: AcquireOptions): Promise<Permit[]>
  /**
   * Heeds what a vendor's answer says about its limits: its status and its headers. A 429 pauses the
   * lane for all pods; so do 503 and 529 if they say for how long.
   */
  heed(answer: { status: number; headers: unknown }, permit: Permit): Promise<void>
  /** Lets nobody through for so long, on all pods. */
  pauseFor(pauseMs: Duration, options?: { lane?: string }): Promise<void>
  /** Changes the limits for the whole fleet; what was counted goes on counting. */
  setLimits(limits: readonly SharedLimit[]): Promise<void>
  /** Another limit for one unit, for a while, for the whole fleet. */
  override(unit: string, limit: number, forMs: Duration): Promise<void>
  /** What is used and left, of one lane. */
  figures(options?: { lane?: string }): Promise<RateLimiterFigures>
  /** Refuses with CLOSED whoever waits or comes later; resolves when all settlements are sent. */
  close(): Promise<void>
}

export interface RateLimiterFigures {
  /** Milliseconds the lane is still paused for. */
  pausedMs: number
  /** Permits granted in the last minute to the whole fleet, on all lanes; pods report every 5 s. */
  requestsLastMinute: number
  limits: readonly {
    id: string
    limit: number
    used: number
    remaining: number
    /** Until one unit is free, if nobody takes it before; 0: one is. Pauses are not in it. */
    nextFreeMs: number
  }[]
}
