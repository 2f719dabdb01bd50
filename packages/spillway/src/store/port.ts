/**
 * What mechanisms need from a store, and nothing about how it does it. Each operation is one atomic
 * transition of shared state at the store's own time. Times on the wire are whole microseconds of
 * that time; costs are whole units. A refusal is an answer; only a failure of the store throws.
 */
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

export interface TakeRequest extends LaneRef {
  /** The costs at the head of the line, each with one number per limit. At most 256. */
  costs: readonly (readonly number[])[]
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
  /** Per limit: units left after this. */
  remaining: readonly number[]
  /** Per limit: the largest cost that can be granted; what asked for more was booked with this. */
  capacities: readonly number[]
  /** The limits in force, where this pod's belief is out of date. */
  newer?: { version: number; limits: readonly LimitSpec[] }
}

/** Corrects what permits cost: less (negative) where they were booked, more where we are now. */
export interface Settlement {
  /** Which of the limits. */
  limit: number
  stamp: number
  delta: number
}

export interface SettleRequest extends LaneRef {
  /** Settling twice under one number changes nothing, so it may be sent again. */
  pod: string
  sequence: number
  settlements: readonly Settlement[]
}

/** What a vendor's answer said. */
export interface FeedbackRequest extends LaneRef {
  /** When the permit of that call was granted; older word than the newest known is stale. */
  grantedUs: number
  /** The vendor asked us to slow down: for so long, or without saying how long. */
  throttled: boolean
  pauseUs: number | undefined
  basePauseUs: number
  maxPauseUs: number
  /** What the vendor says is left, per limit it spoke of. */
  left: readonly { limit: number; remaining: number; resetUs: number }[]
}

export interface ChangeRequest extends LaneRef {
  /** New limits for good, or one of them for a while. */
  override?: { id: string; limit: number; forUs: number }
}

export interface LaneFigures {
  nowUs: number
  version: number
  pausedUntilUs: number
  limits: readonly { id: string; limit: number; used: number; remaining: number }[]
  /** Of the whole fleet, on all lanes, as pods last reported it. */
  requestsLastMinute: number
}

export interface ReportRequest {
  guard: string
  pod: string
  /** Requests this pod made in the last minute. */
  requests: number
}

export interface LimitStore {
  take(request: TakeRequest): MaybePromise<TakeReply>
  settle(request: SettleRequest): MaybePromise<void>
  /** Answers with the time until which the lane is paused, or zero. */
  feedback(request: FeedbackRequest): MaybePromise<number>
  /** Answers with the version that is in force now. */
  change(request: ChangeRequest): MaybePromise<number>
  figures(request: LaneRef): MaybePromise<LaneFigures>
  report(request: ReportRequest): MaybePromise<void>
}

/** One level of limits that applies to a request: a token bucket. */
export interface LevelCharge {
  /** The whole key of the bucket, without a store's prefix. */
  key: string
  limit: number
  windowUs: number
  burst: number
}

export interface LevelRequest {
  levels: readonly LevelCharge[]
  cost: number
}

export interface LevelReply {
  /** The level (from 1) that keeps it waiting longest; 0: allowed, and charged on all levels. */
  refusedBy: number
  waitUs: number
  /** The level (from 1) that the figures below are of: the one that refused, or has least left. */
  tightest: number
  remaining: number
  /** Until that level has everything again. */
  resetUs: number
}

export interface LevelStore {
  /** Requests are decided in order, each on all its levels or on none. */
  check(requests: readonly LevelRequest[]): MaybePromise<LevelReply[]>
}

/** Everything shared. */
export interface Store {
  readonly limits: LimitStore
  readonly levels: LevelStore
  /** Leaves no connection and no timer behind. */
  close(): Promise<void>
}
