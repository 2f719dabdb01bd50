/** This pod's guards, with the shared state that they go by. */
import type { ErrorCode, Scope, Stage } from '../../../core/errors.js'
import type { Outcome } from '../../../core/outcome.js'
import type { BreakerStateName } from '../../../shared/circuit-breaker/api.js'
import type { ByPriority, StoreWord } from './words.js'

export interface GuardsTick {
  at: number
  /** What counts below are since; about a second. */
  sinceMs: number
  guards: GuardTick[]
}

export interface GuardTick {
  name: string
  /** Of all lanes together. */
  flow: Flow
  room: {
    waiting: number
    size: number
    oldestMs: number
    byPriority: ByPriority
    /** Its standing delay is over target: newest first, and drops. */
    codel: boolean
  }
  /** Slots; `limit` absent: as many as come. */
  slots: { active: number; limit?: number }
  shed?: { pressure: number; by?: string; overload: number; signals: Record<string, number> }
  retry?: { ratio: number; budget: number; allowed: number }
  /** Since the pod began. */
  hedges?: { made: number; won: number }
  latency?: Percentiles
  /** From arrival to the first attempt. */
  queueWait?: Percentiles
  fallbacks: { step: string; reason: string; count: number }[]
  /** The default lane, if it was used, first; the busiest 100. */
  lanes: LaneTick[]
  store: StoreWord
  closed: boolean
}

/** Counts of a tick. */
export interface Flow {
  calls: number
  attempts: number
  outcomes: Record<Outcome, number>
  refused: { stage: Stage; code: ErrorCode; count: number }[]
}

/** Of the last ten seconds, estimated from buckets; absent: nothing ended. */
export interface Percentiles {
  count: number
  p50Ms: number
  p90Ms: number
  p99Ms: number
}

export interface LaneTick {
  lane: string
  /** Counted only while somebody looks; absent in the first tick. */
  flow?: { calls: number; refused: { stage: Stage; code: ErrorCode; count: number }[] }
  waiting: number
  /** Adaptive limit of this lane. */
  adaptive?: { limit: number; active: number }
  breaker?: BreakerTick
  limits: LimitTick[]
  /** The vendor wants a pause, or an operator does: nobody gets through before then. */
  pausedMs?: number
}

export interface BreakerTick {
  state: BreakerStateName
  /** Until it may change by itself; absent while it is closed. */
  untilMs?: number
  /** In its window, of the whole fleet. */
  calls: number
  failures: number
  slow: number
  consecutiveFailures: number
  /** While half-open: probes under way in the whole fleet, and successes so far. */
  probes: number
  successes: number
  /** This pod refuses on its own: it alone saw failures. */
  selfIsolated: boolean
  /** How old this pod's knowledge is. */
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

/** A shared limit, by the store's word (`ageMs` old), or this pod's share of it while there is none. */
export interface LimitTick {
  id: string
  limit: number
  /** Absent: not known, because the store is away. */
  used?: number
  remaining?: number
  /** When the next unit comes free, if nobody takes it before; 0: now. Absent: the store is away. */
  nextFreeMs?: number
  ageMs: number
  scope: Scope
  /** What it usually is, where an operator has changed it for a while, or somebody for good. */
  usual?: number
}
