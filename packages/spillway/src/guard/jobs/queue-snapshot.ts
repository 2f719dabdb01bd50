/** Counters of this pod for a job queue: the sum over its workers, including closed ones. */
import type { JobCounts } from '../../shared/job-queue/api.js'

/** State of one worker. */
export interface WorkerSnapshot {
  /** Jobs that run now. */
  active: number
  /** Since it began: jobs taken, and how they ended. `lost`: taken by another worker, or unknown. */
  taken: number
  /** Jobs that were done. */
  done: number
  /** Jobs that will be tried again. */
  retried: number
  /** Jobs that became dead letters. */
  dead: number
  /** Jobs that went back without an attempt. */
  released: number
  /** Jobs that were cancelled. */
  cancelled: number
  /** Jobs whose lease expired. */
  lost: number
  /** Round trips that requested jobs. */
  polls: number
  /** Messages from the store that woke the worker. */
  wakeups: number
}

/** State of a job queue, as this pod knows it. */
export interface JobQueueSnapshot extends WorkerSnapshot {
  /** Name of the job queue. */
  name: string
  /** The guard that its jobs use, if any. */
  guard: string
  /** The lane that its jobs use, if any. */
  lane: string
  /** Workers of this pod. */
  workers: number
  /** Jobs that this pod has added. */
  added: number
  /** Jobs of this pod that were refused because the queue was full. */
  refused: number
}

/** The state of a queue for the whole fleet, as the store has it. */
export interface FleetJobQueueReport extends JobCounts {
  /** Name of the job queue. */
  name: string
  /** The guard that its jobs use, if any. */
  guard: string
}

export function noWork(): WorkerSnapshot {
  return {
    active: 0,
    taken: 0,
    done: 0,
    retried: 0,
    dead: 0,
    released: 0,
    cancelled: 0,
    lost: 0,
    polls: 0,
    wakeups: 0,
  }
}

export function addWork(sum: WorkerSnapshot, more: WorkerSnapshot): void {
  for (const key of Object.keys(sum) as (keyof WorkerSnapshot)[]) sum[key] += more[key]
}
