/** The interface of workers and their jobs. */
import type { Duration } from '../../core/options/checks.js'
import type { Priority } from '../../core/options/priority.js'
import type { BackoffOptions } from '../../local/retry/backoff.js'
import type { JobQueue } from '../../shared/job-queue/api.js'
import type { JobQueueSettings } from '../../shared/job-queue/options.js'
import type { Guard } from '../guard.js'
import type { CallContext } from '../pipeline/context.js'
import type { JobQueueSnapshot, WorkerSnapshot } from './queue-snapshot.js'

export interface JobQueueOptions extends JobQueueSettings, BackoffOptions {
  /** The guard whose limits and breaker jobs use: a guard of this Spillway, or its name. */
  guard: Guard | string
}

/** A job, as its handler sees it. */
export interface Job<Data> {
  readonly id: string
  readonly data: Data
  /** 1 for the first time; what a worker that died began counts. */
  readonly attempt: number
  readonly attempts: number
  readonly priority: Priority
  readonly tenant: string | undefined
  readonly key: string | undefined
  readonly ageMs: number
  /**
   * True: it must not be tried again, whatever becomes of it; then an end that is not good is its last.
   * For what would do harm if it were done twice: set it before the first byte leaves, and let it have
   * one attempt only. Default: false.
   */
  final: boolean
  /** Reports how far it is, as JSON. Readers in all pods see it within about 200 ms. */
  progress(value: unknown): void
}

/** What it returns is the job's result, as JSON. What it throws is judged as a guard judges it. */
export type JobHandler<Data, Result> = (
  job: Job<Data>,
  context: CallContext,
) => Result | PromiseLike<Result>

export interface WorkOptions {
  /** Jobs that run at once in this pod. Default: 10. */
  concurrency?: number
}

export interface JobWorker {
  readonly id: string
  snapshot(): WorkerSnapshot
  /**
   * Takes no more jobs, and lets running ones finish for `graceMs` (default: 30 seconds);
   * the others are stopped and go back, untried.
   */
  close(options?: { graceMs?: Duration }): Promise<void>
}

export interface WorkableJobQueue<Data = unknown, Result = unknown> extends JobQueue<Data, Result> {
  /** What this pod has done for it. */
  snapshot(): JobQueueSnapshot
  /** Works on jobs until it is closed. Keeps the process alive. */
  work(handler: JobHandler<Data, Result>, options?: WorkOptions): JobWorker
  /** Closes all its workers, and makes room for another queue of its name in this pod. */
  close(options?: { graceMs?: Duration }): Promise<void>
}
