/** This pod's guards, with the shared state that they use. */
import type { ErrorCode, Outcome, Scope, Stage } from 'spillway'
import type { BreakerStateName } from 'spillway/shared'
import type { ByPriority, StoreStatus } from './common-types.js'

export interface GuardsTick {
  at: number
  /** The period of the counts below; about a second. */
  sinceMs: number
  guards: GuardTick[]
}

export interface GuardTick {
  name: string
  /** Of all lanes together. */
  flow: Flow
  queue: {
    waiting: number
    size: number
    oldestMs: number
    byPriority: ByPriority
    /** Its standing delay is above target: newest first, and drops. */
    codel: boolean
  }
  /** `limit` absent: no limit. */
  slots: { active: number; limit?: number }
  shed?: { pressure: number; by?: string; overload: number; signals: Record<string, number> }
  retry?: { ratio: number; budget: number; allowed: number }
  /** Since the pod started. */
  hedges?: { made: number; won: number }
  latency?: Percentiles
  /** From arrival to the first attempt. */
  queueWait?: Percentiles
  fallbacks: { step: string; reason: string; count: number }[]
  /** The default lane first, if it was used; the busiest 100. */
  lanes: LaneTick[]
  /** Reserved against actual costs since the pod started; absent: none is known. */
  estimates?: EstimateTick[]
  /** API keys of a gateway, at most 50; absent: it has none. */
  keys?: KeyTick[]
  store: StoreStatus
  closed: boolean
}

/** Counts of a tick. */
export interface Flow {
  calls: number
  attempts: number
  outcomes: Record<Outcome, number>
  refused: { stage: Stage; code: ErrorCode; count: number }[]
}

/** Of the last ten seconds, estimated from buckets; absent: no call ended. */
export interface Percentiles {
  count: number
  p50Ms: number
  p90Ms: number
  p99Ms: number
}

export interface LaneTick {
  lane: string
  /** Counted only while there are readers; absent in the first tick. */
  flow?: { calls: number; refused: { stage: Stage; code: ErrorCode; count: number }[] }
  waiting: number
  /** Adaptive limit of this lane. */
  adaptive?: { limit: number; active: number }
  breaker?: BreakerTick
  limits: LimitTick[]
  /** The vendor or an operator has paused the lane: no call starts before then. */
  pausedMs?: number
}

/** How well reserved costs matched the actual ones, in one unit. */
export interface EstimateTick {
  unit: string
  calls: number
  /** Reserved / actual cost of the last calls. */
  ratio: number
  /** Part of all calls whose reserved cost was 0.8 to 1.25 times the actual one. */
  near: number
}

/** An API key, by its configured name; its secret is never sent. */
export interface KeyTick {
  key: string
  /** `probing`: its reset time is over, and one request tests it. */
  state: 'usable' | 'quarantined' | 'probing'
  /** Absent while it is usable, or if only other pods have the state. */
  reason?: 'quota-exhausted' | 'invalid-key' | 'operator'
  /** Time until a request may test it. */
  untilMs?: number
}

export interface BreakerTick {
  state: BreakerStateName
  /** Why it opened, such as `10 failures in a row`; absent while it is closed or isolated. */
  cause?: string
  /** Time until the state may change without a command; absent while the breaker is closed. */
  untilMs?: number
  /** In its window, of the whole fleet. */
  calls: number
  failures: number
  slow: number
  consecutiveFailures: number
  /** While half-open: running probes in the whole fleet, and successes so far. */
  probes: number
  successes: number
  /** This pod refuses on its own, because only it saw failures. */
  selfIsolated: boolean
  /** Age of this pod's knowledge. */
  ageMs: number
  /** Of the last hour, the newest last, at most 50. */
  timeline: Transition[]
}

export interface Transition {
  at: number
  guard: string
  lane: string
  from: BreakerStateName
  to: BreakerStateName
}

/** A shared limit as stored (`ageMs` ago), or this pod's share of it during an outage. */
export interface LimitTick {
  id: string
  /** The id for people: `requests within 10s` for the sub-window `requests/10s`. */
  label: string
  limit: number
  /** Absent: unknown, because the store is unreachable. */
  used?: number
  remaining?: number
  /**
   * When the next unit is free, if no call takes it before; 0: now. Absent: the store is
   * unreachable.
   */
  nextFreeMs?: number
  ageMs: number
  scope: Scope
  /** The configured value, if the vendor gives less. */
  configured?: number
  /** Its usual value, if it was changed temporarily by an operator or permanently. */
  usual?: number
}
