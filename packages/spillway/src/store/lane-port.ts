/** What all that concerns a lane says and hears: which limits, which breaker, and how they stand. */
import type { BreakerSpec } from './breaker-spec.js'
import type { LimitSpec } from './limit-spec.js'

/** The memory store answers at once, a remote one later. */
export type MaybePromise<T> = T | Promise<T>

/** Which limits: those of one lane of one guard, with what this pod believes they are. */
export interface LaneRef {
  guard: string
  lane: string
  limits: readonly LimitSpec[]
  /** How new this pod's belief is; the newest one wins. */
  version: number
}

export interface TakeReply {
  /** So many from the head of the line got their permits, each of all limits or of none. */
  granted: number
  /** How long the first that did not has to wait; zero if all did. */
  waitUs: number
  /** The lane is paused: nobody would be let through, whatever it costs. */
  paused: boolean
  nowUs: number
  /** Per limit: where these permits are booked, for settling. */
  stamps: readonly number[]
  /** Per limit: the largest cost that can be granted; what asked for more was booked with this. */
  capacities: readonly number[]
  /** Per limit: the units that are left, if a call has to wait. */
  left?: readonly number[]
  /** How the breaker stands, if a report came along. Without it, that has to be told again. */
  view?: BreakerView
  /** Whatever the asker wants to remember with it: the limits it asked under. */
  under?: unknown
  /** The limits in force, where this pod's belief is out of date. */
  newer?: { version: number; limits: readonly LimitSpec[] }
}

/** Which breaker: that of one lane of one guard, with what this pod believes it should do. */
export interface BreakerRef {
  guard: string
  lane: string
  spec: BreakerSpec
}

/** The state of a breaker. */
export interface BreakerView {
  /** When this was the state. */
  nowUs: number
  /** Grows with every change that pods should see. */
  version: number
  /** Grows with every transition; permits carry it. */
  generation: number
  /** 0 closed, 1 open, 2 half-open. */
  kind: 0 | 1 | 2
  /** End of the open time; 0 if it is not open. */
  untilUs: number
  /** When it last closed after having been open; 0 if unknown. */
  closedAtUs: number
  /** The number of times it opened again without having closed. */
  openings: number
  /** Running probes, those that succeeded and those that failed. */
  probes: number
  successes: number
  failedProbes: number
  /** End of the manual isolation; 0 if it is not isolated. */
  isolatedUntilUs: number
  /** Finished calls in the window, and those of them that failed or were slow. */
  calls: number
  failures: number
  slow: number
  /** Calls in flight that count in the rates. */
  inFlight: number
  /** Failures in a row. */
  consecutive: number
}
