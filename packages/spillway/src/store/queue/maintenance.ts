/** Operator commands on a queue, and reading it. Twins: `redis/lua/{command,read}-queue.lua`, `redis/lua/read-job-status.lua`. */
import type {
  JobView,
  QueueCommand,
  QueueCounts,
  StoredJobStatus,
  TenantDepths,
} from '../queue-port.js'
import { deepestFirst } from '../tenant-depths.js'
import type { Woken } from './add-jobs.js'
import {
  ACTIVE,
  CANCELLED,
  countOpen,
  DEAD,
  DELAYED,
  DONE,
  end,
  forget,
  type JobRecord,
  line,
  present,
  type QueueState,
  removeWaiting,
  stateNamed,
  timeOf,
  viewOf,
  WAITING,
  waitingIn,
  wakeOne,
} from './queue-state.js'

export function commandQueue(
  state: QueueState,
  command: QueueCommand,
  serverUs: number,
): Woken<boolean> {
  const now = present(state, serverUs)
  if (command.kind === 'pause' || command.kind === 'resume') {
    const changed = state.paused !== (command.kind === 'pause')
    state.paused = command.kind === 'pause'
    if (!changed || state.paused) return { reply: changed, wakes: [] }
    state.blockedUs = 0
    return { reply: true, wakes: wakeOne(state, now) }
  }
  const job = state.jobs.get(command.id)
  if (job === undefined) return { reply: false, wakes: [] }
  if (command.kind === 'cancel') {
    return { reply: cancel(state, command.id, job, command.keepUs, now), wakes: [] }
  }
  if (job.state !== DEAD) return { reply: false, wakes: [] }
  if (command.kind === 'drop') {
    forget(state, command.id, job)
    return { reply: true, wakes: [] }
  }
  state.dead.delete(command.id)
  state.ends.delete(command.id)
  state.texts.delete(command.id)
  job.attempt = 0
  job.uncounted = 0
  job.deadlineUs = 0
  countOpen(state, job)
  // Behind the others, which have waited meanwhile.
  job.tag = 0
  line(state, command.id, job, now)
  return { reply: true, wakes: state.blockedUs <= now ? wakeOne(state, now) : [] }
}

/** A running job gets the cancellation and continues until its handler reacts. */
function cancel(
  state: QueueState,
  id: string,
  job: JobRecord,
  keepUs: number,
  now: number,
): boolean {
  if (job.state === ACTIVE) {
    job.cancel = true
    return true
  }
  if (job.state === WAITING) removeWaiting(state, id, job)
  else if (job.state === DELAYED) state.delayed.delete(id)
  else return false
  end(state, id, job, CANCELLED, '', keepUs, now)
  return true
}

export function countJobs(state: QueueState, serverUs: number, tenants = 0): QueueCounts {
  const now = timeOf(state, serverUs)
  let oldestUs = 0
  for (const line of state.waiting) {
    const first = line.first()
    if (first !== undefined) oldestUs = Math.max(oldestUs, now - Number(first.id))
  }
  return {
    waiting: waitingIn(state),
    byPriority: state.waiting.map(({ size }) => size),
    delayed: state.delayed.size,
    active: state.leases.size,
    done: state.ends.size - state.dead.size,
    dead: state.dead.size,
    paused: state.paused,
    oldestUs,
    expiredLeases: state.expiredLeases,
    ...(tenants > 0 && { tenants: depthsOf(state, tenants) }),
  }
}

function depthsOf({ depths }: QueueState, most: number): TenantDepths {
  const all = Array.from(depths, ([tenant, byPriority]) => ({
    tenant,
    byPriority: [...byPriority],
  }))
  const top = all.sort(deepestFirst).slice(0, most)
  return { exact: true, top, others: all.length - top.length }
}

export function readJob(state: QueueState, id: string, serverUs: number): JobView | undefined {
  return viewOf(state, id, timeOf(state, serverUs))
}

export function listDead(
  state: QueueState,
  { from, count }: { from: number; count: number },
  serverUs: number,
): JobView[] {
  const now = timeOf(state, serverUs)
  const ids = state.dead.sorted().slice(from, from + count)
  return ids.map((id) => viewOf(state, id, now) as JobView)
}

/** The changing part of one job, for frequent reads. */
export function readJobStatus(state: QueueState, id: string): StoredJobStatus | undefined {
  const job = state.jobs.get(id)
  if (job === undefined) return undefined
  const { attempt, progress } = job
  const text = job.state === DONE ? '' : (state.texts.get(id) ?? '')
  return { state: stateNamed(job.state), attempt, progress, text }
}
