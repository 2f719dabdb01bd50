/**
 * The store port: what mechanisms need from a store, and nothing about how a store does it. Each
 * operation is one atomic transition of shared state at the store's own time. Times are whole
 * microseconds of that time; costs are whole units. A refusal is a reply; only a failure of the
 * store throws.
 */

import type { BreakerRef, BreakerView, LaneRef, MaybePromise, TakeReply } from './lane-port.js'
import type { QueueStore } from './queue-port.js'

export type { BreakerRef, BreakerView, LaneRef, MaybePromise, TakeReply } from './lane-port.js'

export interface TakeRequest extends LaneRef {
  /**
   * The costs of the calls at the head of the queue, each with one number per limit. At most 256.
   */
  costs: readonly (readonly number[])[]
  /** Time on the requester's clock, for a store in the same process that uses that clock. */
  atMs?: number | undefined
  /**
   * Outcomes of calls of the same guard, sent in the same round trip and counted after the take, as
   * `BreakerStore.report` does. A take whose reply is lost is never repeated. The report is: on its
   * own, under its number.
   */
  report?: BreakerReport | undefined
  /**
   * The pod that asks, and how long its calls can wait if they are refused. The store then puts the pod into the
   * lane's waiting list, and wakes it (`watch`) when capacity becomes free before its time. 0: no call waits, and
   * only the share of the pod is counted. Absent: each request counts as that of a new pod.
   */
  waiter?: { pod: string; forUs: number } | undefined
}

/**
 * Corrects the cost of permits: less (negative) where they were booked, more in the current slice.
 */
export interface Settlement {
  /** Index of the limit. */
  limit: number
  stamp: number
  delta: number
}

export interface SettleRequest extends LaneRef {
  /** Settling twice under one number changes nothing, so it can be resent. */
  pod: string
  sequence: number
  settlements: readonly Settlement[]
}

/** Units that a pod used on its own, while the store was unreachable. */
export interface Spent {
  /** Index of the limit. */
  limit: number
  /** The slice or window they were used in; unused for buckets. */
  stamp: number
  units: number
}

export interface BookRequest extends LaneRef {
  /** Booking twice under one number changes nothing, so it can be resent. */
  pod: string
  sequence: number
  spent: readonly Spent[]
}

/** What a vendor's response said about its limits. */
export interface FeedbackRequest extends LaneRef {
  /** When the permit of that call was granted. Feedback older than the newest known is ignored. */
  grantedUs: number
  /** The vendor asked for fewer calls, with or without saying for how long. */
  throttled: boolean
  pauseUs: number | undefined
  basePauseUs: number
  maxPauseUs: number
  /** What the vendor says is left, for each limit that it named. */
  left: readonly { limit: number; remaining: number; resetUs: number }[]
  /** With limits that learn: the call that the vendor refused. */
  refused?: RefusedCall | undefined
}

/** A call that the vendor refused, with one number per limit. */
export interface RefusedCall {
  costs: readonly number[]
  /** What is still booked for it, and where; the store gives it back. */
  booked: readonly number[]
  stamps: readonly number[]
}

export interface FeedbackReply {
  /** The time until which the lane is paused, or 0. */
  pausedUntilUs: number
  /** Index of the limit about which something was learned, if any. */
  learned: number | undefined
  /** That limit, as in force now; 0 without one. */
  effective: number
}

export interface ChangeRequest extends LaneRef {
  /** Temporary value of one limit. Absent: `limits` are the new limits. */
  override?: { id: string; limit: number; forUs: number }
}

/** A manual pause for all pods, whatever the vendor says. */
export interface PauseRequest {
  guard: string
  /** Undefined: all lanes of the guard, including those not used yet. */
  lane: string | undefined
  /** The pool of the lane, which is paused in its place. Default: none. */
  pool?: string | undefined
  /** The longer of two pauses counts. 0 ends the pause, even one that the vendor asked for. */
  forUs: number
}

export interface LimitFigures {
  id: string
  /** The limit in force. */
  limit: number
  /** The limit without what was learned about the vendor; higher if the vendor gives less. */
  configured: number
  used: number
  remaining: number
  /**
   * Time until one unit fits if no call takes it before; 0: it fits now. Does not include a pause.
   */
  waitUs: number
}

export interface LaneFigures {
  nowUs: number
  version: number
  pausedUntilUs: number
  limits: readonly LimitFigures[]
  /** Of the whole fleet, on all lanes, as pods last reported it. */
  requestsLastMinute: number
}

export interface ReportRequest {
  guard: string
  pod: string
  /** Requests this pod made in the last minute. */
  requests: number
}

export interface PermitWatcher {
  /** There may be permits for calls that wait: in one lane of a guard or, without a lane, in all of them. */
  onFreed(guard: string, lane: string | undefined): void
  /** Messages may have been missed. */
  onGap(): void
}

export interface LimitStore {
  take(request: TakeRequest): MaybePromise<TakeReply>
  /**
   * Replies after how many microseconds to settle nothing (an empty list): permits are free for further waiting
   * pods, which are woken one after the other. 0: not needed.
   */
  settle(request: SettleRequest): MaybePromise<number>
  /** Books units that were already used, in the slices they were used in, if those still count. */
  book(request: BookRequest): MaybePromise<void>
  feedback(request: FeedbackRequest): MaybePromise<FeedbackReply>
  /** Returns the time until which it is paused, or 0. */
  pause(request: PauseRequest): MaybePromise<number>
  /** Returns the version that is in force. */
  change(request: ChangeRequest): MaybePromise<number>
  figures(request: LaneRef): MaybePromise<LaneFigures>
  report(request: ReportRequest): MaybePromise<void>
  /** Delivers wake-ups for a pod until the returned function is called. */
  watch(pod: string, watcher: PermitWatcher): () => void
}

/** One level of user limits that applies to a request. */
export interface LevelCharge {
  /** The whole key of the level's state, without a store's prefix. A key belongs to one algorithm. */
  key: string
  limit: number
  windowUs: number
  /** Default: `token-bucket`. */
  algorithm?: 'token-bucket' | 'sliding-window'
  /** Token bucket: units that may be taken at once. */
  burst: number
  /**
   * Levels of higher rank apply to fewer requests. They are checked first if not all can be at
   * once. Default: 0.
   */
  rank?: number
}

export interface LevelRequest {
  levels: readonly LevelCharge[]
  cost: number
  /** To refund a request: `atUs` and `fullAtUs` of its reply. Without them, what was charged counts as spent. */
  atUs?: number | undefined
  fullAtUs?: readonly number[] | undefined
}

export interface LevelReply {
  /** The level (from 1) with the longest wait; 0: allowed, and charged on all levels. */
  refusedBy: number
  waitUs: number
  /** The level (from 1) of the figures below: the one that refused, or that has least left. */
  tightest: number
  remaining: number
  /** Time until that level is full again. */
  resetUs: number
  /** When the store decided. */
  atUs: number
  /** Of an allowed request, per level: when a token bucket is full again; 0 for a sliding window. */
  fullAtUs: readonly number[]
}

export interface LevelStore {
  /** Requests are decided in order, each on all its levels or on none. `atMs`: as for `take`. */
  check(requests: readonly LevelRequest[], atMs?: number): MaybePromise<LevelReply[]>
  /** Gives back what was charged for requests that never started. Must not be resent. */
  refund(requests: readonly LevelRequest[]): MaybePromise<void>
}

export interface BreakerReport extends BreakerRef {
  /**
   * Reporting twice under one number changes nothing, so it can be resent. Each lane of a pod has
   * its own numbers: stores remember the last one of each guard, lane and pod.
   */
  pod: string
  sequence: number
  /** A report for another generation than the breaker's changes nothing. */
  generation: number
  /**
   * In order: how attempts ended (see `breaker-spec.ts`), how many in a row, and how many slices of
   * the window ago they began. Default: 0.
   */
  outcomes: readonly (readonly [kind: number, times: number, slicesAgo?: number])[]
  /**
   * Calls of this pod in flight that count in the rates, and for how long they do at most. Default:
   * none.
   */
  inFlight?: readonly [calls: number, forUs: number]
  /** Calls of this pod that hung; undefined until it got its first answer. */
  hung?: HungReport | undefined
  /** How probes ended; 3: returns the permit and is not counted. */
  probes: readonly (readonly [probe: string, kind: number])[]
}

/** Calls that took longer than answers usually do. */
export interface HungReport {
  /** How long ago the last of the answered calls began. */
  answeredAgoUs: number
  /** Calls that failed after that long and began later than the answered one: how long ago, and how many. */
  failed: readonly (readonly [agoUs: number, times: number])[]
  /** Calls in flight that are older than that. */
  overdue: number
}

export interface ProbeRequest extends BreakerRef {
  /** Unique names for the requested probes. */
  probes: readonly string[]
}

export interface ProbeReply {
  /** How many of them, from the first, may run now. */
  granted: number
  view: BreakerView
}

export interface SyncRequest extends BreakerRef {
  /** Running probes of this pod. */
  renew: readonly string[]
}

export interface BreakerCommand extends BreakerRef {
  command:
    | { kind: 'isolate'; holder: string; forUs: number }
    /** Of one holder, or of all. */
    | { kind: 'release'; holder?: string }
    /**
     * How long it is open; default: as long as after failures. With a generation, a call of that generation has
     * found the reason: the command changes nothing in another one, and repeated openings last at least as long as
     * after failures.
     */
    | { kind: 'trip'; forUs?: number; generation?: number }
    | { kind: 'reset' }
}

export interface BreakerWatcher {
  /** A breaker of any guard has changed. */
  onView(guard: string, lane: string, view: BreakerView): void
  /** Changes may have been missed, so the state has to be read. */
  onGap(): void
}

export interface BreakerStore {
  report(request: BreakerReport): MaybePromise<BreakerView>
  probe(request: ProbeRequest): MaybePromise<ProbeReply>
  /** All requests are of one guard and take one round trip. */
  sync(requests: readonly SyncRequest[]): MaybePromise<BreakerView[]>
  command(request: BreakerCommand): MaybePromise<BreakerView>
  /** Watches until the returned function is called. */
  watch(watcher: BreakerWatcher): () => void
}

export interface PodBeat {
  /** The guard of the pod, or another group of pods. */
  group: string
  pod: string
  /** Without another heartbeat the pod is removed after this time. */
  lifeUs: number
  /** Report of the pod. */
  snapshot: string
}

export interface PodRecord {
  pod: string
  snapshot: string
  /** Time since its last heartbeat. */
  ageUs: number
}

export interface BeatReply {
  /** Number of live pods, including this one. */
  live: number
  /** Command for this pod; empty: none. Repeated with every heartbeat until it expires. */
  command: string
}

export interface PodCommandRequest {
  group: string
  pod: string
  /** How long the command is repeated. */
  forUs: number
  /** Replaces the previous command. */
  command: string
}

export interface PodStore {
  beat(request: PodBeat): MaybePromise<BeatReply>
  leave(request: { group: string; pod: string }): MaybePromise<void>
  /** Sends a command to a pod with its next heartbeat. Returns whether there is such a pod. */
  sendCommand(request: PodCommandRequest): MaybePromise<boolean>
  list(request: { group: string }): MaybePromise<PodRecord[]>
}

/**
 * `joined`: spends through the store. `untrusted`: spends on its own, so its share is kept for it.
 * `guest`: has no share. `gone`: has left.
 */
export type PulsePart = 'joined' | 'untrusted' | 'guest' | 'gone'

export interface PulseRequest {
  guard: string
  pod: string
  part: PulsePart
  /** The epoch this pod knows, and its highest known count; empty if it knows none. */
  epoch: string
  count: number
  /** Name for a new epoch, if one begins now. */
  fresh: string
}

export interface PulseReply {
  nowUs: number
  /** While this stays the same, the store has lost nothing. */
  epoch: string
  /** Pulses in this epoch. */
  count: number
  /** When it was noticed that the store before this epoch is lost; 0 if there was none. */
  lostUs: number
  /** Pods that spend through the store, and all pods that have a share. */
  joined: number
  pods: number
  /** How many of these have a smaller name than this pod. */
  rank: number
}

export interface PulseStore {
  /** Reports that a pod is alive, and returns whether the store is still the one it knows. */
  pulse(request: PulseRequest): MaybePromise<PulseReply>
}

/** All shared state. */
export interface Store {
  /** Replies come from another process. */
  readonly remote: boolean
  /** Vendor limits. */
  readonly limits: LimitStore
  /** User limits. */
  readonly levels: LevelStore
  /** Circuit breakers. */
  readonly breakers: BreakerStore
  /** The pods of the fleet. */
  readonly pods: PodStore
  /** Pulses, by which pods notice that a store has lost its data. */
  readonly pulses: PulseStore
  /** Job queues. */
  readonly queues: QueueStore
  /** Closes all connections and timers. */
  close(): Promise<void>
}
