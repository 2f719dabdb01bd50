/** What this pod has done for a queue, summed up over its workers, those that are closed included. */
import type { JobCounts } from '../../shared/job-queue/api.js'

/** State of one worker. */
export interface WorkerSnapshot {
  /** Jobs that run now. */
  active: number
  /** Since it began: jobs taken, and how they ended. `lost`: taken by another worker, or unknown. */
  taken: number
  done: number
  retried: number
  dead: number
  released: number
  cancelled: number
  lost: number
  /** Trips for jobs, and how often it was woken for one. */
  looks: number
  wakes: number
}

/** State of a job queue, as this pod knows it. */
export interface JobQueueSnapshot extends WorkerSnapshot {
  name: string
  guard: string
  lane: string
  /** Workers of this pod. */
  workers: number
  /** Jobs that this pod has added, and that found no room. */
  added: number
  refused: number
}

/** The state of a queue for the whole fleet, as the store has it. */
export interface FleetJobQueueReport extends JobCounts {
  name: string
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
    looks: 0,
    wakes: 0,
  }
}

export function addWork(sum: WorkerSnapshot, more: WorkerSnapshot): void {
  for (const key of Object.keys(sum) as (keyof WorkerSnapshot)[]) sum[key] += more[key]
}
