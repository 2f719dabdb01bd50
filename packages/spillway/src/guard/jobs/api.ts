/** The interface of workers and their jobs. */
import type { Duration } from '../../core/options/checks.js'
import type { Priority } from '../../core/options/priority.js'
import type { BackoffOptions } from '../../local/retry/backoff.js'
import type { JobQueue } from '../../shared/job-queue/api.js'
import type { JobQueueSettings } from '../../shared/job-queue/options.js'
import type { Guard } from '../guard.js'
import type { CallContext } from '../pipeline/context.js'
import type { JobQueueSnapshot, WorkerSnapshot } from './queue-snapshot.js'

/** Options of `spillway.jobQueue()`. */
export interface JobQueueOptions extends JobQueueSettings, BackoffOptions {
  /** The guard whose limits and breaker jobs use: a guard of this Spillway, or its name. */
  guard: Guard | string
  /** The wait before the second attempt of a job. Range: from 1 ms. Default: 1 second. */
  baseMs?: Duration
  /** The longest wait before another attempt of a job. Range: from 1 ms. Default: 5 minutes. */
  maxMs?: Duration
}

/** A job, as its handler sees it. */
export interface Job<Data> {
  /** Identifies the job in its queue. */
  readonly id: string
  /** The data that the job was added with. */
  readonly data: Data
  /** Number of the attempt, from 1. Attempts of workers that died count. */
  readonly attempt: number
  /** Attempts so far, this one included. */
  readonly attempts: number
  /** Priority of the job. */
  readonly priority: Priority
  /** Tenant of the job, if it has one. */
  readonly tenant: string | undefined
  /** Idempotency key, if it was added with one. */
  readonly key: string | undefined
  /** Milliseconds since the job was added. */
  readonly ageMs: number
  /**
   * True: the job is never attempted again, so a failure makes it a dead letter. For work that must not be
   * done twice: set it before the first byte is sent, and allow one attempt only. Default: false.
   */
  final: boolean
  /** Reports how far it is, as JSON. Readers in all pods see it within about 200 ms. */
  progress(value: unknown): void
}

/** Handles a job. The returned value is stored as JSON. Errors are classified like those of a guard's calls. */
export type JobHandler<Data, Result> = (
  job: Job<Data>,
  context: CallContext,
) => Result | PromiseLike<Result>

/** Options of a worker: `queue.work(handler, options)`. */
export interface WorkOptions {
  /** Jobs that run at once in this pod. Range: integers from 1. Default: 10. */
  concurrency?: number
}

/** A worker that takes jobs of a job queue and runs them. Returned by `queue.work()`. */
export interface JobWorker {
  /** Identifies the worker. */
  readonly id: string
  /** State and counts of the worker. */
  snapshot(): WorkerSnapshot
  /**
   * Takes no more jobs and lets running ones finish. Jobs that are still running after that are stopped and
   * return to the job queue without counting as an attempt.
   * @param options.graceMs - Longest wait for running jobs. Range: from 0 ms. Default: 30 seconds.
   */
  close(options?: { graceMs?: Duration }): Promise<void>
}

/** A job queue with workers in this pod. Returned by `spillway.jobQueue()`. */
export interface WorkableJobQueue<Data = unknown, Result = unknown> extends JobQueue<Data, Result> {
  /** Counts of this pod: jobs added and refused, and those of its workers. */
  snapshot(): JobQueueSnapshot
  /**
   * Works on jobs until it is closed. Keeps the process alive.
   *
   * @example
   * queue.work(async (job, { signal }) => send(job.data, signal), { concurrency: 5 })
   */
  work(handler: JobHandler<Data, Result>, options?: WorkOptions): JobWorker
  /**
   * Closes all its workers. Afterwards this pod may create another job queue of the same name.
   * @param options.graceMs - Longest wait for running jobs. Range: from 0 ms. Default: 30 seconds.
   */
  close(options?: { graceMs?: Duration }): Promise<void>
}
