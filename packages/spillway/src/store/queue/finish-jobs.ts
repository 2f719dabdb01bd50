/** Ends jobs and extends leases. Twins: `redis/lua/{finish,extend}-jobs.lua`. */
import { type BreakerState, CLOSED } from '../breaker/breaker-state.js'
import type { Extended, ExtendRequest, Finished, FinishRequest, JobEnd } from '../queue-port.js'
import type { Woken } from './add-jobs.js'
import {
  ACTIVE,
  CANCELLED,
  DEAD,
  DELAYED,
  DONE,
  end,
  forgetEnded,
  type JobRecord,
  line,
  present,
  type QueueState,
  wakeOne,
} from './queue-state.js'

/** The reply to a repeated report, by the state in which the job ended. */
const REPEATED_REPLY: Readonly<Record<number, Finished>> = {
  [DONE]: 'done',
  [DEAD]: 'dead',
  [CANCELLED]: 'cancelled',
}

/** `breaker` is only read. */
export function finishJobs(
  state: QueueState,
  breaker: BreakerState | undefined,
  request: FinishRequest,
  serverUs: number,
): Woken<Finished[]> {
  return finishNow(state, breaker, request, present(state, serverUs))
}

type Ends = Pick<FinishRequest, 'ends' | 'resultUs' | 'deadUs' | 'uncountedTurns'>

/** Like `finishJobs`, for a queue that is already up to date. */
export function finishNow(
  state: QueueState,
  breaker: BreakerState | undefined,
  request: Ends,
  now: number,
): Woken<Finished[]> {
  forgetEnded(state, now, 2 * request.ends.length)
  const wakes: string[] = []
  const reply = request.ends.map((each): Finished => {
    const job = state.jobs.get(each.id)
    if (job === undefined || job.turn !== each.turn) return 'stale'
    if (job.state !== ACTIVE) return REPEATED_REPLY[job.state] ?? 'stale'
    state.leases.delete(each.id)
    const ended = finish(state, each, job, request, breaker, now)
    if (ended === 'again' && state.blockedUs <= now) wakes.push(...wakeOne(state, now))
    return ended
  })
  return { reply, wakes }
}

function finish(
  state: QueueState,
  { id, kind, text, delayUs, generation, probe }: JobEnd,
  job: JobRecord,
  { resultUs, deadUs, uncountedTurns }: Ends,
  breaker: BreakerState | undefined,
  now: number,
): Finished {
  if (kind === 'done') {
    end(state, id, job, DONE, text, resultUs, now)
    return 'done'
  }
  if (job.cancel) {
    end(state, id, job, CANCELLED, text, resultUs, now)
    return 'cancelled'
  }
  const known =
    kind === 'failed' &&
    generation >= 0 &&
    !probe &&
    breaker !== undefined &&
    (breaker.kind !== CLOSED || breaker.generation !== generation)
  const probed = kind === 'failed' && probe
  const excused = kind === 'released' || known || (probed && job.attempt >= job.attempts)
  // Behind the others: a job that is throttled or opens the breaker each time must not block them,
  // and the next probe is another job.
  if (excused || probed) job.tag = 0
  if (kind === 'returned') job.attempt--
  else if (excused && job.uncounted < uncountedTurns) {
    job.uncounted++
    job.attempt--
  } else if (kind === 'dead' || job.attempt >= job.attempts) {
    end(state, id, job, DEAD, text, deadUs, now)
    return 'dead'
  }
  if (text !== '') state.texts.set(id, text)
  if (delayUs > 0) {
    job.state = DELAYED
    state.delayed.set(id, now + delayUs)
  } else line(state, id, job, now)
  return 'again'
}

export function extendJobs(
  state: QueueState,
  { leases, leaseUs }: ExtendRequest,
  serverUs: number,
): Extended[] {
  const now = present(state, serverUs)
  return leases.map(({ id, turn, progress }) => {
    const job = state.jobs.get(id)
    if (job === undefined || job.turn !== turn || job.state !== ACTIVE) return 'lost'
    state.leases.set(id, now + leaseUs)
    if (progress !== undefined) job.progress = progress
    return job.cancel ? 'cancelled' : 'kept'
  })
}
