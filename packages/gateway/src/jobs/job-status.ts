/** The status of a job, as clients see it. */
import type { JobInfo } from 'spillway/shared'
import type { StoredAnswer } from './stored-answer.js'
import type { StoredRequest } from './stored-request.js'

export type KeptJob = JobInfo<StoredRequest, StoredAnswer>

export type Status = 'queued' | 'running' | 'done' | 'failed' | 'cancelled'

const STATUS: Readonly<Record<KeptJob['state'], Status>> = {
  waiting: 'queued',
  delayed: 'queued',
  active: 'running',
  done: 'done',
  dead: 'failed',
  cancelled: 'cancelled',
}

/** Interval at which clients should poll. */
export const POLL_SECONDS = 2

export function statusOf(job: KeptJob): Status {
  return STATUS[job.state]
}

export function hasEnded(job: KeptJob): boolean {
  const status = statusOf(job)
  return status !== 'queued' && status !== 'running'
}

/** As JSON. Includes the last error, also while the job is retried. */
export function describeJob(queue: string, job: KeptJob): string {
  const { id, priority, attempt, attempts, ageMs, progress, result, error } = job
  const status = statusOf(job)
  const address = addressOf(queue, id)
  return JSON.stringify({
    id,
    queue,
    status,
    priority,
    attempt,
    attempts,
    ageMs: Math.round(ageMs),
    progress,
    error,
    ...(result && { answer: { status: result.status, type: result.headers['content-type'] } }),
    links: { self: address, result: `${address}/result` },
  })
}

/** A job of which only the id is known. */
export function describeNew(queue: string, id: string): string {
  const address = addressOf(queue, id)
  const links = { self: address, result: `${address}/result` }
  return JSON.stringify({ id, queue, status: 'queued', links })
}

export const JOBS_PATH = '/spillway/jobs/'

export function addressOf(queue: string, id: string): string {
  return `${JOBS_PATH}${encodeURIComponent(queue)}/${id}`
}
