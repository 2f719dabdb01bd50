/** The interface of a job queue for adding and managing jobs. */
import type { Duration } from '../../core/options/checks.js'
import type { Priority } from '../../core/options/priority.js'
import type { JobState } from '../../store/queue-port.js'
import type { Subject } from '../user-limits/levels.js'

/** Options of a job. */
export interface JobOptions {
  /** Jobs of a higher priority are handed out first. Default: `normal`. */
  priority?: Priority
  /** The job does not start before this time has passed. Range: from 0 ms. Default: 0. */
  delayMs?: Duration
  /**
   * The job must start within this time; otherwise it becomes a dead letter. Range: from 1 ms. Default: no
   * limit.
   */
  timeoutMs?: Duration
  /**
   * Adding another job with this key does nothing while the first is known. A key of more than 200 characters
   * is stored as its SHA-256. Default: none.
   */
  key?: string
  /**
   * Tenants take turns within a priority. A name of more than 200 characters is stored as its SHA-256. Default:
   * none.
   */
  tenant?: string
  /** Cost by unit of the guard's limits. Range: integers from 0. Default: `requests` 1, others 0. */
  cost?: Readonly<Record<string, number>>
  /** Most attempts, including the first. Range: integers from 1. Default: that of the job queue. */
  attempts?: number
}

/** Options of one job that is added. */
export interface AddOptions extends JobOptions {
  /**
   * The user whose limits are charged. If they are used up, the job is refused with USER_LIMITED,
   * as a call would be. A job that is already known, or does not fit into the queue, is not
   * charged. Default: no user limit is charged.
   */
  as?: Subject
}

/** A job that was added, or the one that has the same key. */
export interface AddedJob {
  /** Identifies the job in its queue. */
  id: string
  /** False: a job with this key was known, and this is its id. */
  fresh: boolean
}

/** One job and its state. */
export interface JobInfo<Data = unknown, Result = unknown> {
  /** Identifies it in its queue. */
  id: string
  /** `dead`: given up; see `error`. */
  state: JobState
  /** Its data. */
  data: Data
  /** Its priority. */
  priority: Priority
  /** Its tenant, if any. */
  tenant: string | undefined
  /** Its idempotency key, if any. */
  key: string | undefined
  /** Attempts made, and the most allowed. */
  attempt: number
  /** Attempts so far. */
  attempts: number
  /** Milliseconds since it was added. */
  ageMs: number
  /** The last progress that its handler reported. */
  progress: unknown
  /** Of a job that is done. */
  result: Result | undefined
  /** Reason of the last failure. */
  error: string | undefined
}

/** The part of a job that changes while it is watched; see `JobInfo`. */
export interface JobStatus {
  /** Its state. */
  state: JobState
  /** The current attempt. */
  attempt: number
  /** What its handler reported last. */
  progress: unknown
  /** The last error, if any. */
  error: string | undefined
}

/** Number of jobs by state. */
export interface JobCounts {
  /** Jobs that could be taken now. */
  waiting: number
  /** Waiting jobs by priority. */
  byPriority: Record<Priority, number>
  /** Jobs that wait for their time. */
  delayed: number
  /** Jobs that workers have. */
  active: number
  /** Jobs that have ended and are still known: with results, or cancelled. */
  done: number
  /** Dead letters. */
  dead: number
  /** Whether the queue is paused. */
  paused: boolean
  /** The longest wait among the next jobs of each priority. */
  oldestMs: number
  /** Leases that expired because a worker died or lost the store. Those jobs ran again. */
  expiredLeases: number
  /** Waiting jobs by tenant, if requested. */
  tenants?: TenantCounts
}

/** Jobs by tenant. */
export interface TenantCounts {
  /**
   * False: an estimate. That happens with many jobs in a priority, if jobs far back were cancelled
   * or there are very many tenants.
   */
  exact: boolean
  /** The tenants with the most jobs, in that order. */
  top: TenantCount[]
  /** How many other tenants have waiting jobs; in an estimate, how many others were seen. */
  others: number
}

/** Jobs of one tenant. */
export interface TenantCount {
  /** Undefined: jobs without a tenant. */
  tenant: string | undefined
  /** Waiting jobs. */
  waiting: number
  /** Waiting jobs by priority. */
  byPriority: Record<Priority, number>
}

/** A durable queue of jobs in the store. */
export interface JobQueue<Data = unknown, Result = unknown> {
  /** Name of the job queue. */
  readonly name: string
  /** Rejects with QUEUE_FULL if the queue has `maxSize` jobs, or `maxPerTenant` of this tenant. */
  add(data: Data, options?: AddOptions): Promise<AddedJob>
  /**
   * Adds the jobs in this order, up to 200 in one step. If not all fit, it rejects with QUEUE_FULL,
   * and the first jobs may have been added: `error.added` (`QueueFullError`) lists them with their
   * ids, in this order.
   */
  addMany(jobs: readonly ({ data: Data } & JobOptions)[]): Promise<AddedJob[]>
  /** Undefined if it is no longer known. */
  job(id: string): Promise<JobInfo<Data, Result> | undefined>
  /** The state of a job without its data and result, for frequent reads. */
  jobStatus(id: string): Promise<JobStatus | undefined>
  /**
   * Aborts the signal of a running job, in whichever pod. Returns whether there was anything to
   * cancel.
   */
  cancel(id: string): Promise<boolean>
  /**
   * Calls `onChange` when a worker of any pod reports progress of this job, or when it is cancelled
   * while it runs, until the returned function is called. Read the job then: a message may be lost
   * or arrive twice.
   */
  watch(id: string, onChange: () => void): () => void
  /**
   * Numbers of jobs by state, in the whole fleet.
   * @param options.tenants - Also counts the waiting jobs of this number of tenants, those with the most.
   * Range: integers from 0 to 100. Default: 0.
   */
  counts(options?: { tenants?: number }): Promise<JobCounts>
  /** Hands out no jobs in the whole fleet until `resume`; running jobs continue. */
  pause(): Promise<void>
  /** Lets workers of all pods take jobs again. */
  resume(): Promise<void>
  /**
   * Dead letters, the oldest first.
   * @param range - `from`: index of the first one. `count`: most dead letters returned. Range: integers from 0.
   * Default: from 0, 100 dead letters.
   */
  dead(range?: { from?: number; count?: number }): Promise<JobInfo<Data, Result>[]>
  /**
   * Moves dead letters back into the queue, with all their attempts: one, or all. Returns how many.
   */
  replay(id?: string): Promise<number>
  /** Deletes dead letters: one, or all. Returns how many. */
  drop(id?: string): Promise<number>
}
