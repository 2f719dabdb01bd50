/** Public interface of the shared rate limiter. */

import type { Duration } from '../../core/options/checks.js'
import type { Random } from '../../core/random.js'
import type { Clock } from '../../core/time/clock.js'
import type { Store } from '../../store/port.js'
import type { SharedLimit } from './options.js'
import type { Cost, Permit } from './permit.js'
import type { LaneEntry, LimitPool } from './settings/lane-entries.js'

/** Options of `createSharedRateLimiter()`. */
export interface SharedRateLimiterOptions {
  /** Name of the vendor: all pods that use it share the limits. */
  name: string
  /** The store that the pods share. */
  store: Store
  /** Every call needs a permit of each limit: all are charged, or none. */
  limits: readonly SharedLimit[]
  /** Lanes with other limits than `limits`: the first entry that matches counts. Default: none. */
  lanes?: readonly LaneEntry[]
  /** Limits that several lanes share, by name. Default: none. */
  pools?: Readonly<Record<string, LimitPool>>
  /**
   * How much later than its permit was granted a call may reach the vendor: half of it for the round trip to
   * the store, half for the way to the vendor. Windows are longer by this time, and a permit whose round trip
   * took more than half of it is not used. Range: from 1 ms. Default: a twentieth of the shortest window, 10 to
   * 100 ms.
   */
  jitterMs?: Duration
  /**
   * The longest pause that a vendor's response can cause, except until the reset of a spent quota. Range: from 0 ms.
   * Default: 60 seconds.
   */
  maxPauseMs?: Duration
  /** The first pause after a 429 without a duration; doubles each time. Range: from 1 ms. Default: 500 ms. */
  basePauseMs?: Duration
  /**
   * Lanes that this pod keeps at the same time; calls of further lanes share the lane `(other)`. Range:
   * integers from 1. Default: 1,000.
   */
  maxLanes?: number
  /** Name of this pod. A random part is added, so that a restarted pod has another name. Default: `pod`. */
  pod?: string
  /**
   * Number of pods. While the store is unreachable, limits are divided by it or by the last known number of pods,
   * whichever is larger. Range: integers from 1. Default: 1.
   */
  expectedPods?: number
  /** The clock to read and to set timers with. Default: the system clock. */
  clock?: Clock
  /** Source of random numbers from 0 to 1. Default: `Math.random`. */
  random?: Random
}

/** Options of one acquisition. */
export interface AcquireOptions {
  /** What the vendor counts separately, such as a model or an API key. Default: one lane for all calls. */
  lane?: string
  /**
   * Cost by unit. A unit without a limit is an error. An estimate is enough if it is settled later. Default: 1
   * for `requests`, 0 for other units.
   */
  cost?: Cost
  /** Ends the wait. Default: none. */
  signal?: AbortSignal
}

/** What was acquired of a limit, or why nothing was. */
export type Acquisition =
  | { allowed: true; permit: Permit }
  | {
      allowed: false
      /** Milliseconds until it could be allowed. */
      retryAfterMs: number
      /** The vendor asked for a pause. */
      paused: boolean
      /** Decided by this pod's outage rule, because it cannot rely on the store. */
      byOutageRule: boolean
    }

/** Rate limits that all pods share. Created by `createSharedRateLimiter()`. */
export interface SharedRateLimiter {
  /** Name in errors, events and snapshots. */
  readonly name: string
  /** Takes a permit if one is free now. */
  acquire(options?: AcquireOptions): Promise<Acquisition>
  /** Waits for a permit, at most `waitMs` and never past the deadline. Refuses as soon as that is too short. */
  acquireWithin(waitMs: Duration, options?: AcquireOptions): Promise<Acquisition>
  /** Takes the permits that are free now, at most `count`. */
  takeUpTo(count: number, options?: AcquireOptions): Promise<Permit[]>
  /**
   * Applies the limit headers and the status of a vendor's response. A 429 pauses the lane for all pods; so do
   * 503 and 529 with a `Retry-After`.
   * @param response - HTTP status and headers of the response. Range: statuses from 100 to 599.
   */
  updateFromResponse(response: { status: number; headers: unknown }, permit: Permit): Promise<void>
  /** Pauses a lane on all pods for `pauseMs`. */
  pauseFor(pauseMs: Duration, options?: { lane?: string }): Promise<void>
  /** Changes the limits for the whole fleet. Counted units stay counted; waiting calls of all pods ask again. */
  setLimits(limits: readonly SharedLimit[]): Promise<void>
  /** Replaces one limit for `forMs`, for the whole fleet. Waiting calls of all pods ask again. */
  override(unit: string, limit: number, forMs: Duration): Promise<void>
  /** Used and remaining units of one lane. */
  figures(options?: { lane?: string }): Promise<RateLimiterFigures>
  /** Refuses waiting and later requests with SHUTTING_DOWN. Resolves when all settlements were sent. */
  close(): Promise<void>
}

/** What is used and left of the limits of a lane. */
export interface RateLimiterFigures {
  /** Milliseconds the lane is still paused for. */
  pausedMs: number
  /** Permits granted in the last minute to the whole fleet, on all lanes; pods report every 5 s. */
  requestsLastMinute: number
  /** State of each limit. */
  limits: readonly {
    id: string
    limit: number
    /** More than `limit` if the vendor gives less than configured (`learn`). */
    configured: number
    used: number
    remaining: number
    /** Milliseconds until one unit is free, if no other call takes it; 0: one is. Without pauses. */
    nextFreeMs: number
  }[]
}
