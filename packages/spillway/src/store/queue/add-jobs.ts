/** Twin: `redis/lua/add-jobs.lua`. */
import type { AddReply, AddRequest, NewJob } from '../queue-port.js'
import {
  countOpen,
  DELAYED,
  forgetEnded,
  type JobRecord,
  line,
  nextId,
  openJobsOf,
  present,
  type QueueState,
  sizeOf,
  wakeOne,
} from './queue-state.js'

/** A reply, and the workers to wake. */
export interface Woken<T> {
  reply: T
  wakes: readonly string[]
}

/** Fewest ended jobs that are removed per call. */
const FORGOTTEN = 16

export function addJobs(state: QueueState, request: AddRequest, serverUs: number): Woken<AddReply> {
  const now = present(state, serverUs)
  forgetEnded(state, now, FORGOTTEN + 2 * request.jobs.length)
  const jobs: { id: string; fresh: boolean }[] = []
  const wakes: string[] = []
  let tenantSize: number | undefined
  for (const job of request.jobs) {
    const known = job.key === '' ? undefined : state.keys.get(job.key)
    if (known !== undefined) {
      jobs.push({ id: known, fresh: false })
      continue
    }
    if (sizeOf(state) >= request.maxSize) break
    const ofTenant = openJobsOf(state, job.tenant)
    if (ofTenant >= request.maxPerTenant) {
      tenantSize = ofTenant
      break
    }
    const id = nextId(state, now)
    add(state, id, job, now)
    jobs.push({ id, fresh: true })
    if (job.delayUs === 0 && state.blockedUs <= now) wakes.push(...wakeOne(state, now))
    if (job.delayUs > 0) wakes.push(...wakeForDelay(state, now + job.delayUs, now))
  }
  const reply = { jobs, size: sizeOf(state), ...(tenantSize !== undefined && { tenantSize }) }
  return { reply, wakes }
}

/** No worker requests jobs before this one is due, so one is woken. */
function wakeForDelay(state: QueueState, dueUs: number, now: number): string[] {
  return state.alarmUs > now && state.alarmUs <= dueUs ? [] : wakeOne(state, now)
}

function add(state: QueueState, id: string, job: NewJob, now: number): void {
  const { priority, tenant, key, cost, attempts, delayUs, deadlineUs } = job
  const record: JobRecord = {
    state: DELAYED,
    priority,
    tag: 0,
    attempt: 0,
    attempts,
    turn: 0,
    uncounted: 0,
    readyUs: 0,
    deadlineUs: deadlineUs === 0 ? 0 : now + deadlineUs,
    tenant,
    key,
    cost,
    progress: '',
    cancel: false,
  }
  state.jobs.set(id, record)
  countOpen(state, record)
  state.data.set(id, job.data)
  if (key !== '') state.keys.set(key, id)
  if (delayUs > 0) state.delayed.set(id, now + delayUs)
  else line(state, id, record, now)
}
