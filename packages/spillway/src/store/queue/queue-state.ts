/**
 * The shared state of a job queue, and the moves that all transitions consist of. Twin:
 * `redis/lua/include/queue-{state,moves}.lua`.
 *
 * Jobs are ordered by priority, and within a priority by tag. The tags of a tenant's jobs follow
 * each other, starting from the position the queue has reached. So tenants take turns, however many
 * jobs one of them adds. With one tenant the order is first come, first served.
 */

import { SET_BACK_US } from '../clock-setback.js'
import type { JobState, JobView, ReservedJob } from '../queue-port.js'
import { SortedIds } from './sorted-ids.js'

export const WAITING = 0
export const DELAYED = 1
export const ACTIVE = 2
export const DONE = 3
export const DEAD = 4
export const CANCELLED = 5

const PRIORITIES = 4

export interface JobRecord {
  state: number
  priority: number
  /** Position in its priority; 0 before it first waits. */
  tag: number
  attempt: number
  attempts: number
  /** How often it was handed out. */
  turn: number
  /** Turns that did not count as an attempt. */
  uncounted: number
  /** When it began to wait. */
  readyUs: number
  deadlineUs: number
  tenant: string
  key: string
  cost: Readonly<Record<string, number>>
  progress: string
  /** Whether it was cancelled. */
  cancel: boolean
}

export interface QueueState {
  /** The latest time at which this state was used. */
  t: number
  /** How far the queue's time is ahead of the server's, whose clock was set back. */
  ahead: number
  /** The last id, which is the time at which that job was added, or slightly later. */
  last: number
  paused: boolean
  /** By priority: the position the queue has reached. */
  reached: number[]
  /** When a worker will next request jobs. */
  alarmUs: number
  /** Nothing can be handed out before this time, so no worker is woken. */
  blockedUs: number
  expiredLeases: number
  waiting: SortedIds[]
  delayed: SortedIds
  leases: SortedIds
  /** Ended jobs, by the time of their removal. */
  ends: SortedIds
  /** Dead letters, by the time of their death. */
  dead: SortedIds
  parked: SortedIds
  jobs: Map<string, JobRecord>
  data: Map<string, string>
  texts: Map<string, string>
  keys: Map<string, string>
  /** The last tag of each tenant, by priority and tenant. */
  tags: Map<string, number>
  /** Waiting jobs of each tenant, by priority. The twin computes them when requested. */
  depths: Map<string, number[]>
  /** Jobs of each tenant that have not ended. Jobs without a tenant are not counted. */
  open: Map<string, number>
}

export function emptyQueue(): QueueState {
  return {
    t: 0,
    ahead: 0,
    last: 0,
    paused: false,
    reached: new Array(PRIORITIES).fill(0),
    alarmUs: 0,
    blockedUs: 0,
    expiredLeases: 0,
    waiting: Array.from({ length: PRIORITIES }, () => new SortedIds()),
    delayed: new SortedIds(),
    leases: new SortedIds(),
    ends: new SortedIds(),
    dead: new SortedIds(),
    parked: new SortedIds(),
    jobs: new Map(),
    data: new Map(),
    texts: new Map(),
    keys: new Map(),
    tags: new Map(),
    depths: new Map(),
    open: new Map(),
  }
}

export function openJobsOf({ open }: QueueState, tenant: string): number {
  return open.get(tenant) ?? 0
}

/** Counts a job that was added, or replayed from the dead letters. */
export function countOpen(state: QueueState, { tenant }: JobRecord): void {
  if (tenant !== '') state.open.set(tenant, openJobsOf(state, tenant) + 1)
}

/** A tenant without open jobs leaves no entry; its next job is treated as its first. */
function countEnded(state: QueueState, { tenant }: JobRecord): void {
  if (tenant === '') return
  const left = openJobsOf(state, tenant) - 1
  if (left > 0) {
    state.open.set(tenant, left)
    return
  }
  state.open.delete(tenant)
  for (let priority = 0; priority < PRIORITIES; priority++) {
    state.tags.delete(`${priority}:${tenant}`)
  }
}

/**
 * The queue's time never goes back, because moving every lease and delay would take time
 * proportional to its length. If the server's clock is set back, the queue's time stays ahead of it
 * by that amount.
 */
export function present(state: QueueState, serverUs: number): number {
  const now = timeOf(state, serverUs)
  if (state.t - serverUs - state.ahead > SET_BACK_US) state.ahead = state.t - serverUs
  state.t = now
  return now
}

/** For reading only. */
export function timeOf({ t, ahead }: QueueState, serverUs: number): number {
  return Math.max(t, serverUs + ahead)
}

/** Ids sort in the order in which they were given out, even after the queue was lost. */
export function nextId(state: QueueState, now: number): string {
  state.last = Math.max(state.last + 1, now)
  return String(state.last).padStart(16, '0')
}

/** All jobs that have not ended. */
export function sizeOf(state: QueueState): number {
  return waitingIn(state) + state.delayed.size + state.leases.size
}

export function waitingIn({ waiting }: QueueState): number {
  return waiting.reduce((sum, { size }) => sum + size, 0)
}

/** Lets a job wait, in its old position if it had one. */
export function line(state: QueueState, id: string, job: JobRecord, now: number): void {
  job.state = WAITING
  job.readyUs = now
  const { priority } = job
  if (job.tag === 0) {
    const field = `${priority}:${job.tenant}`
    const before = Math.max(state.reached[priority] as number, state.tags.get(field) ?? 0)
    job.tag = before + 1
    state.tags.set(field, job.tag)
  }
  state.waiting[priority]?.set(id, job.tag)
  deepen(state, job, 1)
}

export function removeWaiting(state: QueueState, id: string, job: JobRecord): void {
  state.waiting[job.priority]?.delete(id)
  deepen(state, job, -1)
}

function deepen({ depths }: QueueState, { tenant, priority }: JobRecord, by: number): void {
  const own = depths.get(tenant) ?? new Array<number>(PRIORITIES).fill(0)
  own[priority] = (own[priority] as number) + by
  if (own.some((each) => each > 0)) depths.set(tenant, own)
  else depths.delete(tenant)
}

/** Ends an open job. It stays known for `keepUs`. */
export function end(
  state: QueueState,
  id: string,
  job: JobRecord,
  as: number,
  text: string,
  keepUs: number,
  now: number,
): void {
  countEnded(state, job)
  if (keepUs === 0) return forget(state, id, job)
  job.state = as
  state.ends.set(id, now + keepUs)
  if (as === DEAD) state.dead.set(id, now)
  if (text === '') state.texts.delete(id)
  else state.texts.set(id, text)
}

export function forget(state: QueueState, id: string, job: JobRecord): void {
  state.jobs.delete(id)
  state.data.delete(id)
  state.texts.delete(id)
  state.ends.delete(id)
  state.dead.delete(id)
  if (job.key !== '') state.keys.delete(job.key)
}

/** Removes ended jobs whose time is over, at most `most`. */
export function forgetEnded(state: QueueState, now: number, most: number): void {
  for (let count = 0; count < most; count++) {
    const first = state.ends.first()
    if (first === undefined || first.score > now) return
    state.ends.delete(first.id)
    forget(state, first.id, state.jobs.get(first.id) as JobRecord)
  }
}

/** Most jobs moved per step; the next step moves the others. */
const MOST_AT_ONCE = 256

/**
 * Delayed jobs that are due start to wait. Jobs whose lease has expired wait again, or are dead.
 */
export function bringBack(state: QueueState, now: number, deadUs: number): void {
  for (let count = 0; count < MOST_AT_ONCE; count++) {
    const first = state.delayed.first()
    if (first === undefined || first.score > now) break
    state.delayed.delete(first.id)
    line(state, first.id, state.jobs.get(first.id) as JobRecord, now)
  }
  for (let count = 0; count < MOST_AT_ONCE; count++) {
    const first = state.leases.first()
    if (first === undefined || first.score > now) return
    state.leases.delete(first.id)
    state.expiredLeases++
    const job = state.jobs.get(first.id) as JobRecord
    if (job.cancel) end(state, first.id, job, CANCELLED, '', deadUs, now)
    else if (job.attempt < job.attempts) line(state, first.id, job, now)
    else end(state, first.id, job, DEAD, LEASE_EXPIRED, deadUs, now)
  }
}

const LEASE_EXPIRED = 'the lease expired before the worker reported a result'
export const TOO_LATE = 'its deadline has passed'

/** The worker that has been parked longest, if any. It is unparked, so that it is woken once. */
export function wakeOne(state: QueueState, now: number): string[] {
  for (;;) {
    const first = state.parked.first()
    if (first === undefined) return []
    state.parked.delete(first.id)
    if (first.score > now) return [first.id]
  }
}

const STATES = ['waiting', 'delayed', 'active', 'done', 'dead', 'cancelled'] as const

export function stateNamed(state: number): JobState {
  return STATES[state] as JobState
}

export function viewOf(state: QueueState, id: string, now: number): JobView | undefined {
  const job = state.jobs.get(id)
  if (job === undefined) return undefined
  const { priority, tenant, key, attempt, attempts, progress } = job
  return {
    id,
    state: stateNamed(job.state),
    data: state.data.get(id) as string,
    priority,
    tenant,
    key,
    attempt,
    attempts,
    ageUs: now - Number(id),
    progress,
    text: state.texts.get(id) ?? '',
  }
}

export function reservedOf(
  state: QueueState,
  id: string,
  job: JobRecord,
  costs: readonly number[],
  now: number,
): ReservedJob {
  const { turn, attempt, attempts, uncounted, priority, tenant, key, deadlineUs } = job
  return {
    id,
    turn,
    attempt,
    attempts,
    uncounted,
    data: state.data.get(id) as string,
    priority,
    tenant,
    key,
    ageUs: now - Number(id),
    leftUs: deadlineUs === 0 ? 0 : deadlineUs - now,
    costs,
  }
}
