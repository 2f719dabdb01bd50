/**
 * What mechanisms need from a store, and nothing about how it does it. Each operation is one atomic
 * transition of shared state at the store's own time. Times on the wire are whole microseconds of
 * that time; costs are whole units. A refusal is an answer; only a failure of the store throws.
 */

import type { BreakerRef, BreakerView, LaneRef, MaybePromise, TakeReply } from './lane-port.js'
import type { QueueStore } from './queue-port.js'

export type { BreakerRef, BreakerView, LaneRef, MaybePromise, TakeReply } from './lane-port.js'

export interface TakeRequest extends LaneRef {
  /** The costs at the head of the line, each with one number per limit. At most 256. */
  costs: readonly (readonly number[])[]
  /** What time it is on the asker's clock; of use to a store in the same process with the same one. */
  atMs?: number | undefined
  /**
   * How calls of the same guard ended, told on the same trip and counted after the take as
   * `BreakerStore.report` would. A take whose answer is lost is never sent again, a report is: by
   * itself, under its number.
   */
  report?: BreakerReport | undefined
  /**
   * The pod whose calls wait if they are refused, and how long they can. The store then puts the pod into the
   * lane's waiting list, and wakes it (`watch`) when capacity becomes free before its time. Absent: no call waits.
   */
  waiter?: { pod: string; forUs: number } | undefined
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

/** Units that were used without asking, while the store was away. */
export interface Spent {
  /** Which of the limits. */
  limit: number
  /** The slice or window they were used in; of no meaning for buckets. */
  stamp: number
  units: number
}

export interface BookRequest extends LaneRef {
  /** Booking twice under one number changes nothing, so it may be sent again. */
  pod: string
  sequence: number
  spent: readonly Spent[]
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

/** By hand, for everybody, whatever the vendor says. */
export interface PauseRequest {
  guard: string
  /** None: all lanes of the guard, also those that nobody has used yet. */
  lane: string | undefined
  /** The longer of two pauses counts. 0 ends the pause, also one that the vendor asked for. */
  forUs: number
}

export interface LimitFigures {
  id: string
  limit: number
  used: number
  remaining: number
  /** Until one unit fits, if nobody takes it before; 0: it does now. A pause is not in it. */
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
  settle(request: SettleRequest): MaybePromise<void>
  /** What was used is used: booked where it happened, as far as that still counts. */
  book(request: BookRequest): MaybePromise<void>
  /** Answers with the time until which the lane is paused, or zero. */
  feedback(request: FeedbackRequest): MaybePromise<number>
  /** Answers with the time until which it is paused, or zero. */
  pause(request: PauseRequest): MaybePromise<number>
  /** Answers with the version that is in force now. */
  change(request: ChangeRequest): MaybePromise<number>
  figures(request: LaneRef): MaybePromise<LaneFigures>
  report(request: ReportRequest): MaybePromise<void>
  /** Delivers wake-ups for a pod until the returned function is called. */
  watch(pod: string, watcher: PermitWatcher): () => void
}

/** One level of limits that applies to a request: a token bucket. */
export interface LevelCharge {
  /** The whole key of the bucket, without a store's prefix. */
  key: string
  limit: number
  windowUs: number
  burst: number
  /** The higher, the fewer it applies to: asked first where not all can be asked at once. Default: 0. */
  rank?: number
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
  /** Requests are decided in order, each on all its levels or on none. `atMs`: as for `take`. */
  check(requests: readonly LevelRequest[], atMs?: number): MaybePromise<LevelReply[]>
  /** Gives back what was charged: the request came to nothing. Not safe to send again. */
  refund(requests: readonly LevelRequest[]): MaybePromise<void>
}

export interface BreakerReport extends BreakerRef {
  /**
   * Reporting twice under one number changes nothing, so it may be sent again. Each lane of a pod
   * has numbers of its own: stores remember the last one of each guard, lane and pod.
   */
  pod: string
  sequence: number
  /** What belongs to another generation than the breaker's changes nothing. */
  generation: number
  /**
   * In order: how attempts ended (see `breaker-spec.ts`), how many in a row, and how many slices of the
   * window ago they began. Default: 0.
   */
  outcomes: readonly (readonly [kind: number, times: number, slicesAgo?: number])[]
  /** Calls of this pod in flight that count in the rates, and for how long at most they do. Default: none. */
  inFlight?: readonly [calls: number, forUs: number]
  /** How probes ended; 3: returns its permit and counts as nothing. */
  probes: readonly (readonly [probe: string, kind: number])[]
}

export interface ProbeRequest extends BreakerRef {
  /** Names for the probes wanted, unlike any others. */
  probes: readonly string[]
}

export interface ProbeReply {
  /** So many of them, from the first, may run now. */
  granted: number
  view: BreakerView
}

export interface SyncRequest extends BreakerRef {
  /** Probes of this pod that are still under way. */
  renew: readonly string[]
}

export interface BreakerCommand extends BreakerRef {
  command:
    | { kind: 'isolate'; holder: string; forUs: number }
    /** Of one holder, or of all. */
    | { kind: 'release'; holder?: string }
    /** Open for so long; without: for as long as failures would. */
    | { kind: 'trip'; forUs?: number }
    | { kind: 'reset' }
}

export interface BreakerWatcher {
  /** A breaker of any guard has changed. */
  onView(guard: string, lane: string, view: BreakerView): void
  /** Something may have been missed: ask. */
  onGap(): void
}

export interface BreakerStore {
  report(request: BreakerReport): MaybePromise<BreakerView>
  probe(request: ProbeRequest): MaybePromise<ProbeReply>
  /** All of one guard, in one trip. */
  sync(requests: readonly SyncRequest[]): MaybePromise<BreakerView[]>
  command(request: BreakerCommand): MaybePromise<BreakerView>
  /** Until the function it answers with is called. */
  watch(watcher: BreakerWatcher): () => void
}

export interface PodBeat {
  /** The guard the pod takes part in, or another group of pods. */
  group: string
  pod: string
  /** Without another beat the pod is gone after this. */
  lifeUs: number
  /** What the pod says of itself. */
  snapshot: string
}

export interface PodRecord {
  pod: string
  snapshot: string
  /** Since its last beat. */
  ageUs: number
}

export interface BeatReply {
  /** Pods alive, this one included. */
  live: number
  /** What somebody wants of this pod; empty: nothing. Said again with every beat until its time is over. */
  ask: string
}

export interface AskRequest {
  group: string
  pod: string
  /** It hears of it with a beat within this time. */
  forUs: number
  /** Replaces what it was asked before. */
  ask: string
}

export interface PodStore {
  beat(request: PodBeat): MaybePromise<BeatReply>
  leave(request: { group: string; pod: string }): MaybePromise<void>
  /** Wants something of a pod, with its next beat. Answers whether there is such a pod. */
  ask(request: AskRequest): MaybePromise<boolean>
  list(request: { group: string }): MaybePromise<PodRecord[]>
}

/**
 * `joined`: spends through the store; `apart`: on its own, so that its share has to be kept for it;
 * `guest`: has no share; `gone`: has left.
 */
export type PulsePart = 'joined' | 'apart' | 'guest' | 'gone'

export interface PulseRequest {
  guard: string
  pod: string
  part: PulsePart
  /** The epoch this pod knows, and the last pulse in it that it heard of; empty, if it knows none. */
  epoch: string
  count: number
  /** What a new epoch is to be called, should one begin now. */
  fresh: string
}

export interface PulseReply {
  nowUs: number
  /** As long as this is the same, the store has forgotten nothing. */
  epoch: string
  /** Pulses in this epoch. */
  count: number
  /** When it was found out that the store before this epoch is lost; zero if there was none. */
  lostUs: number
  /** Pods that spend through the store, and all that have a share. */
  joined: number
  pods: number
  /** How many of these come before this pod, by name. */
  rank: number
}

export interface PulseStore {
  /** A pod says that it is there, and hears whether the store is the one that it knows. */
  pulse(request: PulseRequest): MaybePromise<PulseReply>
}

/** Everything shared. */
export interface Store {
  /** Answers come later, from elsewhere. */
  readonly remote: boolean
  readonly limits: LimitStore
  readonly levels: LevelStore
  readonly breakers: BreakerStore
  readonly pods: PodStore
  readonly pulses: PulseStore
  readonly queues: QueueStore
  /** Leaves no connection and no timer behind. */
  close(): Promise<void>
}
