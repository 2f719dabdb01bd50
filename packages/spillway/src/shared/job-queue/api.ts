/** What a job queue looks like to whoever adds jobs and looks after them. */
import type { Duration } from '../../core/options/checks.js'
import type { Priority } from '../../core/options/priority.js'
import type { JobState } from '../../store/queue-port.js'
import type { Subject } from '../user-limits/levels.js'

export interface JobOptions {
  /** Default: `normal`. */
  priority?: Priority
  /** Not before this has passed. */
  delayMs?: Duration
  /** Of no use after this: then it is a dead letter instead. */
  timeoutMs?: Duration
  /**
   * Adding again under the same key adds nothing as long as that job is known. One of more than 200 characters
   * is kept as its SHA-256.
   */
  key?: string
  /** Inside a priority, tenants take turns. One of more than 200 characters is kept as its SHA-256. */
  tenant?: string
  /** By unit of the guard's limits; `requests` is 1 unless said otherwise. */
  cost?: Readonly<Record<string, number>>
  /** So often it may be tried, the first time included. Default: the queue's. */
  attempts?: number
}

export interface AddOptions extends JobOptions {
  /**
   * Whose it is: who has used up a limit of theirs is refused with USER_LIMITED, as a call would be. A
   * job that is known already, or finds no room, costs nothing. Default: nobody is charged.
   */
  as?: Subject
}

export interface AddedJob {
  id: string
  /** False: there was one under this key already, and this is its id. */
  fresh: boolean
}

export interface JobInfo<Data = unknown, Result = unknown> {
  id: string
  /** `dead`: given up; see `error`. */
  state: JobState
  data: Data
  priority: Priority
  tenant: string | undefined
  key: string | undefined
  /** How often it was tried, and how often it may be. */
  attempt: number
  attempts: number
  ageMs: number
  /** What its handler said last of how far it is. */
  progress: unknown
  /** Of a job that is done. */
  result: Result | undefined
  /** Why it failed last. */
  error: string | undefined
}

/** What may change while one looks at it; see `JobInfo`. */
export interface JobProgress {
  state: JobState
  attempt: number
  progress: unknown
  error: string | undefined
}

export interface JobCounts {
  waiting: number
  /** The same, by priority. */
  byPriority: Record<Priority, number>
  delayed: number
  active: number
  /** Ended, and still known: results, and what was cancelled. */
  done: number
  dead: number
  paused: boolean
  /** How long the job that is next has waited, or that of another priority if that is longer. */
  oldestMs: number
  /** Leases that ended without a word: a worker died, or was away. Those jobs ran again. */
  lapsed: number
  /** Whose jobs wait; only where it was asked for. */
  tenants?: TenantCounts
}

export interface TenantCounts {
  /**
   * False: not all could be counted. With many jobs in a priority that is so if jobs that waited far back were
   * cancelled, or if there are very many tenants.
   */
  exact: boolean
  /** Those with the most, the most first. */
  top: TenantCount[]
  /** How many others have jobs that wait; of an estimate, how many others were seen. */
  others: number
}

export interface TenantCount {
  /** Nothing: jobs without a tenant. */
  tenant: string | undefined
  waiting: number
  byPriority: Record<Priority, number>
}

export interface JobQueue<Data = unknown, Result = unknown> {
  readonly name: string
  /** Rejects with QUEUE_FULL if the queue has `maxSize` jobs, or `maxPerTenant` of this tenant. */
  add(data: Data, options?: AddOptions): Promise<AddedJob>
  /**
   * Adds the jobs in this order, up to 200 in one step. If there is not room for all, it rejects with
   * QUEUE_FULL, and the first jobs may have been added: `error.added` (`QueueFullError`) lists them with their ids, in this order.
   */
  addMany(jobs: readonly ({ data: Data } & JobOptions)[]): Promise<AddedJob[]>
  /** Nothing, if it is not known any more. */
  job(id: string): Promise<JobInfo<Data, Result> | undefined>
  /** How it stands, without its data and its result: for whoever looks often. */
  standing(id: string): Promise<JobProgress | undefined>
  /** Aborts the signal of a job that runs, in whichever pod. Answers whether there was anything to cancel. */
  cancel(id: string): Promise<boolean>
  /**
   * Calls `onChange` when a worker of any pod reports progress of this job or when it is cancelled while it
   * runs, until the function it returns is called. Read the job then: a message may be lost or come twice.
   */
  watch(id: string, onChange: () => void): () => void
  /** With `tenants`, also of how many jobs each waits: of so many, at most 100, those with the most. */
  counts(options?: { tenants?: number }): Promise<JobCounts>
  /** Nothing is handed out until `resume`; what runs goes on. For the whole fleet. */
  pause(): Promise<void>
  resume(): Promise<void>
  /** Dead letters, the oldest first. Default: the first hundred. */
  dead(range?: { from?: number; count?: number }): Promise<JobInfo<Data, Result>[]>
  /** Dead letters go back into the queue, with all their attempts: one, or all. Answers how many. */
  replay(id?: string): Promise<number>
  /** Forgets dead letters: one, or all. Answers how many. */
  drop(id?: string): Promise<number>
}
