/** Types of requests and replies that concern one lane: its limits and its breaker. */
import type { BreakerSpec } from './breaker-spec.js'
import type { LimitSpec } from './limit-spec.js'

/** The memory store replies synchronously, a remote one with a promise. */
export type MaybePromise<T> = T | Promise<T>

/** Addresses the limits of one lane of a guard, with this pod's view of them. */
export interface LaneRef {
  guard: string
  lane: string
  /** The pool of the lane. Its counts, pause and waiting pods replace those of the lane. Default: none. */
  pool?: string | undefined
  limits: readonly LimitSpec[]
  /** Version of the limits that this pod knows; the newest one wins. */
  version: number
}

export interface TakeReply {
  /**
   * How many calls from the head of the queue got their permits, each from all limits or from none.
   */
  granted: number
  /** How long the first call without a permit has to wait; 0 if all got theirs. */
  waitUs: number
  /** The lane is paused, so no call is granted, regardless of its cost. */
  paused: boolean
  nowUs: number
  /** Per limit: where these permits are booked, for settling. */
  stamps: readonly number[]
  /** Per limit: the largest cost that can be granted. Larger costs were booked as this. */
  capacities: readonly number[]
  /** Per limit: the units left, if a call has to wait. */
  left?: readonly number[]
  /**
   * State of the breaker, if a report came with the request. If absent, the report has to be sent
   * again.
   */
  view?: BreakerView
  /** Data that the requester keeps with the reply, such as the limits it used. */
  under?: unknown
  /** The current limits, if this pod knows only older ones. */
  newer?: { version: number; limits: readonly LimitSpec[] }
}

/** Addresses the breaker of one lane of a guard, with the settings of this pod. */
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
