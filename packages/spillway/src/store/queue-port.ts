/**
 * What a job queue needs from a store. As everywhere: each operation is one atomic step at the store's
 * own time, times are whole microseconds of it, and a refusal is an answer.
 */
import type { BreakerRef, BreakerView, LaneRef, MaybePromise, TakeReply } from './lane-port.js'

/** Which queue. It shares the hash tag of its guard, and so the slot of its limits and its breaker. */
export interface QueueRef {
  guard: string
  queue: string
  /** A queue that nobody has touched for so long is forgotten, with all that is in it. */
  lifeUs: number
}

export interface NewJob {
  /** Whatever the handler needs to know; to a store it is text. */
  data: string
  /** 0 for the most important, up to 3. */
  priority: number
  /** Not before this has passed. */
  delayUs: number
  /** Not after this has passed; zero: whenever. */
  deadlineUs: number
  /** Adding again under the same key adds nothing while that job is known; empty: no key. */
  key: string
  /** Inside a priority, tenants take turns. */
  tenant: string
  /** By unit; `requests` is 1 unless said otherwise. */
  cost: Readonly<Record<string, number>>
  /** So often it may be tried. */
  attempts: number
}

export interface AddRequest extends QueueRef {
  jobs: readonly NewJob[]
  /** Most jobs that may wait, be delayed or run. */
  maxSize: number
  /** The same limit for the jobs of one tenant; jobs without a tenant have none. */
  maxPerTenant: number
  /** Answers only when so many replicas have it, or this much time has passed. */
  durable?: { replicas: number; timeoutMs: number }
}

export interface AddReply {
  /** Fewer than asked for: then the queue was full. Not fresh: known already, under its key. */
  jobs: readonly { id: string; fresh: boolean }[]
  /** Jobs that wait, are delayed or run. */
  size: number
  /** Set if a job was refused because its tenant has `maxPerTenant` jobs: how many it has. */
  tenantSize?: number
  /** Whether replicas have it, where that was asked. */
  confirmed?: boolean
}

export interface ReserveRequest extends QueueRef {
  /** Who asks; woken under this name. */
  worker: string
  wanted: number
  leaseUs: number
  /** If it does not get all it wants, it is to be woken within this; zero: it is not. */
  parkUs: number
  /** After waiting so long a job is worth one of the next priority. */
  agingUs: number
  /** How long a job that is found dead is kept. */
  deadUs: number
  /** The limits that every job has to fit in, and in which unit each is counted. */
  take: LaneRef & { units: readonly string[] }
  /** Part of every limit that is left to calls that do not wait here. */
  keep: number
  breaker: BreakerRef | undefined
  /** Names for probes, should the breaker be half-open. */
  probes: readonly string[]
  /**
   * How jobs ended, told on the same trip and before anything is handed out, as `finish` would. If the
   * answer is lost they are told again, by themselves.
   */
  finish?: Pick<FinishRequest, 'ends' | 'resultUs' | 'deadUs' | 'uncountedTurns'> | undefined
}

/**
 * Why there was not more: nothing stands in the way, nothing waits, a limit, the vendor wants a pause,
 * the breaker, or the queue is paused.
 */
export type Blocked = 'no' | 'empty' | 'limited' | 'vendor' | 'breaker' | 'paused'

export interface ReservedJob {
  id: string
  /** How often it was handed out; whoever has an earlier number has lost it. */
  turn: number
  /** How often it was tried, this time included. */
  attempt: number
  attempts: number
  /** Turns before this one that did not count as an attempt. */
  uncounted: number
  data: string
  priority: number
  tenant: string
  key: string
  /** Since it was added. */
  ageUs: number
  /** Until its deadline; zero: none. */
  leftUs: number
  /** What was charged, per limit. */
  costs: readonly number[]
}

export interface ReserveReply {
  jobs: readonly ReservedJob[]
  blocked: Blocked
  /** Look again after this; zero: there is no reason to, or somebody else does. */
  waitUs: number
  take: TakeReply
  /** How the breaker stands, and whether the jobs are its probes. */
  view: BreakerView | undefined
  probing: boolean
  /** Of the ends that came along. */
  finished: readonly Finished[]
}

/**
 * `failed`: may be tried again. `dead`: must not. `released`: throttled or refused; it does not count as
 * an attempt up to `uncountedTurns` times, and lines up behind the others. `returned`: it never began or
 * its worker closes; it never counts, and keeps its position.
 */
export type EndKind = 'done' | 'failed' | 'dead' | 'released' | 'returned'

export interface JobEnd {
  id: string
  turn: number
  kind: EndKind
  /** What it came to, or why it did not. */
  text: string
  /** Not again before this. */
  delayUs: number
  /**
   * Generation of the breaker it ran in, or -1. A failure after the breaker has opened does not count
   * as an attempt, nor does a probe's failure on its last attempt: up to `uncountedTurns` times, a job
   * survives a broken downstream.
   */
  generation: number
  probe: boolean
}

export interface FinishRequest extends QueueRef {
  ends: readonly JobEnd[]
  resultUs: number
  deadUs: number
  /** Turns of one job that may end without counting as an attempt; from then on each counts. */
  uncountedTurns: number
  breaker: BreakerRef | undefined
}

/** `stale`: the lease was lost, and nothing has changed; `again`: it will be tried again. */
export type Finished = 'stale' | 'done' | 'again' | 'dead' | 'cancelled'

export interface ExtendRequest extends QueueRef {
  leaseUs: number
  leases: readonly { id: string; turn: number; progress?: string | undefined }[]
}

export type Extended = 'lost' | 'kept' | 'cancelled'

export type JobState = 'waiting' | 'delayed' | 'active' | 'done' | 'dead' | 'cancelled'

export interface JobView {
  id: string
  state: JobState
  data: string
  priority: number
  tenant: string
  key: string
  attempt: number
  attempts: number
  ageUs: number
  /** What the handler said last; empty: nothing. */
  progress: string
  /** Its result, or why it failed last; empty: neither. */
  text: string
}

/** What may change while one looks at it. */
export interface JobStanding {
  state: JobState
  attempt: number
  progress: string
  /** Why it failed last; empty: it did not, or it is done. */
  text: string
}

export interface QueueCounts {
  waiting: number
  /** The same by priority, the most important first. */
  byPriority: readonly number[]
  delayed: number
  active: number
  /** Finished, with their result still there. */
  done: number
  dead: number
  paused: boolean
  /** Of those that are next in their priority, how long the oldest has waited. */
  oldestUs: number
  /** Leases that ended without a word since the queue was made. */
  lapsed: number
  /** Where they were asked for. */
  tenants?: TenantDepths
}

/** Whose jobs wait. */
export interface TenantDepths {
  /** False: an estimate, because so many wait that not all can be counted. */
  exact: boolean
  /** Those with the most, by priority as above. */
  top: readonly { tenant: string; byPriority: readonly number[] }[]
  /** How many more there are; of an estimate, of how many it knows. */
  others: number
}

export type QueueCommand =
  | { kind: 'pause' }
  | { kind: 'resume' }
  | { kind: 'cancel'; id: string; keepUs: number }
  /** Dead letters, back into the queue. */
  | { kind: 'replay'; id: string }
  | { kind: 'drop'; id: string }

/** A change of a job that pods hear of at once: its progress, or that it is to stop. */
export interface JobChange {
  kind: 'progress' | 'cancel'
  guard: string
  queue: string
  id: string
}

export interface JobWatcher {
  onChange(change: JobChange): void
  /** Changes may have been missed. */
  onGap(): void
}

export interface QueueStore {
  add(request: AddRequest): MaybePromise<AddReply>
  reserve(request: ReserveRequest): MaybePromise<ReserveReply>
  finish(request: FinishRequest): MaybePromise<Finished[]>
  extend(request: ExtendRequest): MaybePromise<Extended[]>
  job(request: QueueRef & { id: string }): MaybePromise<JobView | undefined>
  /** Costs less, however long its data is and what it came to. */
  standing(request: QueueRef & { id: string }): MaybePromise<JobStanding | undefined>
  /** `tenants`: of so many, those with the most jobs, how many wait; nothing: it is not asked. */
  counts(request: QueueRef & { tenants?: number }): MaybePromise<QueueCounts>
  /** Oldest first. */
  dead(request: QueueRef & { from: number; count: number }): MaybePromise<JobView[]>
  /** Answers whether there was anything to do. */
  command(request: QueueRef & { command: QueueCommand }): MaybePromise<boolean>
  /** Until the function it answers with is called. `onGap`: a call may have been missed. */
  onWake(worker: string, wake: () => void, onGap: () => void): () => void
  /** Reports changes of all jobs, until the function it returns is called. */
  watch(watcher: JobWatcher): () => void
}
