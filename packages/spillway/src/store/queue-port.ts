/**
 * Port of a job queue to its store. As in `port.ts`, each operation is one atomic step at the store's time, times are
 * whole microseconds, and a refusal is a reply.
 */
import type { BreakerRef, BreakerView, LaneRef, MaybePromise, TakeReply } from './lane-port.js'

/**
 * Addresses a queue. It shares the hash tag of its guard, and so the slot of its limits and
 * breaker.
 */
export interface QueueRef {
  guard: string
  queue: string
  /** A queue that is not used for this long is deleted with everything in it. */
  lifeUs: number
}

export interface NewJob {
  /** Input of the handler. Opaque to the store. */
  data: string
  /** 0 (most important) to 3. */
  priority: number
  /** The job does not start before this time has passed. */
  delayUs: number
  /** The job does not start after this time has passed; 0: no deadline. */
  deadlineUs: number
  /** Adding another job with this key does nothing while the first is known; empty: no key. */
  key: string
  /** Tenants take turns within a priority. */
  tenant: string
  /** By unit; `requests` is 1 by default. */
  cost: Readonly<Record<string, number>>
  /** Most attempts. */
  attempts: number
}

export interface AddRequest extends QueueRef {
  jobs: readonly NewJob[]
  /** Most jobs that are waiting, delayed or running. */
  maxSize: number
  /** Most such jobs of one tenant. Jobs without a tenant are not limited. */
  maxPerTenant: number
  /** Replies when this number of replicas has the jobs, or after this time. */
  durable?: { replicas: number; timeoutMs: number }
}

export interface AddReply {
  /** Fewer than requested if the queue was full. Not fresh: a job with this key was known. */
  jobs: readonly { id: string; fresh: boolean }[]
  /** Jobs that are waiting, delayed or running. */
  size: number
  /** Set if a job was refused because its tenant has `maxPerTenant` jobs: how many it has. */
  tenantSize?: number
  /** Whether the replicas have the jobs, if `durable` was set. */
  confirmed?: boolean
}

export interface ReserveRequest extends QueueRef {
  /** Name of the worker, under which it is woken. */
  worker: string
  wanted: number
  leaseUs: number
  /** If the worker gets fewer jobs than requested, the store wakes it within this time; 0: never. */
  parkUs: number
  /** After waiting this long a job counts as one priority higher. */
  agingUs: number
  /** How long a dead letter is kept. */
  deadUs: number
  /** The limits that every job is charged to, and the unit of each. */
  take: LaneRef & { units: readonly string[] }
  /** Fraction of every limit that is reserved for calls outside the job queue. */
  keep: number
  breaker: BreakerRef | undefined
  /** Names for probes, used if the breaker is half-open. */
  probes: readonly string[]
  /**
   * Ends of jobs, sent in the same round trip and processed before jobs are handed out, as `finish`
   * does. If the reply is lost they are sent again on their own.
   */
  finish?: Pick<FinishRequest, 'ends' | 'resultUs' | 'deadUs' | 'uncountedTurns'> | undefined
}

/**
 * Why there were not more jobs: no reason, none are waiting, a limit, a pause of the vendor, the
 * breaker, or the queue is paused.
 */
export type Blocked = 'no' | 'empty' | 'limited' | 'vendor' | 'breaker' | 'paused'

export interface ReservedJob {
  id: string
  /** How often it was handed out. A worker with a lower number has lost its lease. */
  turn: number
  /** Number of the attempt, from 1. */
  attempt: number
  attempts: number
  /** Earlier turns that did not count as an attempt. */
  uncounted: number
  data: string
  priority: number
  tenant: string
  key: string
  /** Time since it was added. */
  ageUs: number
  /** Time until its deadline; 0: none. */
  leftUs: number
  /** Charged units, per limit. */
  costs: readonly number[]
}

export interface ReserveReply {
  jobs: readonly ReservedJob[]
  blocked: Blocked
  /** Time until the worker should ask again; 0: no need, or another worker will. */
  waitUs: number
  take: TakeReply
  /** State of the breaker, and whether the jobs are its probes. */
  view: BreakerView | undefined
  probing: boolean
  /** Results of the ends sent along. */
  finished: readonly Finished[]
}

/**
 * `failed`: may be retried. `dead`: must not be. `released`: throttled or refused; does not count
 * as an attempt up to `uncountedTurns` times, and goes behind the others. `returned`: it never
 * began or its worker is closing; never counts, and keeps its position.
 */
export type EndKind = 'done' | 'failed' | 'dead' | 'released' | 'returned'

export interface JobEnd {
  id: string
  turn: number
  kind: EndKind
  /** The result, or the reason for the failure. */
  text: string
  /** Earliest time of the next attempt. */
  delayUs: number
  /**
   * Generation of the breaker it ran in, or -1. A failure after the breaker has opened does not
   * count as an attempt, nor does a probe's failure on its last attempt, up to `uncountedTurns`
   * times. So a job survives a broken downstream.
   */
  generation: number
  probe: boolean
}

export interface FinishRequest extends QueueRef {
  ends: readonly JobEnd[]
  resultUs: number
  deadUs: number
  /** Turns of one job that may end without counting as an attempt; later ones all count. */
  uncountedTurns: number
  breaker: BreakerRef | undefined
}

/** `stale`: the lease was lost and nothing changed. `again`: the job will be retried. */
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
  /** The last progress that the handler reported; empty: none. */
  progress: string
  /** The result, or the reason of the last failure; empty: neither. */
  text: string
}

/** The part of a job that changes while it is watched. */
export interface StoredJobStatus {
  state: JobState
  attempt: number
  progress: string
  /** Reason of the last failure; empty: it did not fail, or is done. */
  text: string
}

export interface QueueCounts {
  waiting: number
  /** Waiting jobs by priority, the most important first. */
  byPriority: readonly number[]
  delayed: number
  active: number
  /** Finished jobs whose result is still stored. */
  done: number
  dead: number
  paused: boolean
  /** The longest wait among the next jobs of each priority. */
  oldestUs: number
  /** Leases that expired since the queue was created. */
  expiredLeases: number
  /** Present if requested. */
  tenants?: TenantDepths
}

/** Waiting jobs by tenant. */
export interface TenantDepths {
  /** False: an estimate, because there are too many waiting jobs to count. */
  exact: boolean
  /** The tenants with the most jobs, and their jobs by priority, the most important first. */
  top: readonly { tenant: string; byPriority: readonly number[] }[]
  /** How many more tenants there are; in an estimate, among the jobs that were read. */
  others: number
}

export type QueueCommand =
  | { kind: 'pause' }
  | { kind: 'resume' }
  | { kind: 'cancel'; id: string; keepUs: number }
  /** Moves a dead letter back into the queue. */
  | { kind: 'replay'; id: string }
  | { kind: 'drop'; id: string }

/** A change of a job that is pushed to pods: progress, or a cancellation. */
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
  /** Cheaper than `job`: does not depend on the length of data and result. */
  jobStatus(request: QueueRef & { id: string }): MaybePromise<StoredJobStatus | undefined>
  /**
   * `tenants`: include waiting jobs of this number of tenants, those with the most; absent: of
   * none.
   */
  counts(request: QueueRef & { tenants?: number }): MaybePromise<QueueCounts>
  /** Oldest first. */
  dead(request: QueueRef & { from: number; count: number }): MaybePromise<JobView[]>
  /** Returns whether there was anything to do. */
  command(request: QueueRef & { command: QueueCommand }): MaybePromise<boolean>
  /** Listens until the returned function is called. `onGap`: a wake-up may have been missed. */
  onWake(worker: string, wake: () => void, onGap: () => void): () => void
  /** Reports changes of all jobs until the returned function is called. */
  watch(watcher: JobWatcher): () => void
}
