/**
 * Hands out jobs, each with its permits from all limits, as far as the breaker allows. A job that
 * cannot be called is not handed out. Twin: `redis/lua/reserve-jobs.lua`.
 */
import {
  type BreakerState,
  freeProbes,
  HALF_OPEN,
  OPEN,
  present as presentBreaker,
} from '../breaker/breaker-state.js'
import { type BreakerKept, kept as keptBreaker } from '../breaker/transitions.js'
import type { LimitSpec } from '../limit-spec.js'
import { capacity, charge, remaining, stampOf } from '../limits/counting.js'
import {
  type CountedLimit,
  type GuardState,
  type LaneState,
  pausedUntilUs,
  present as presentLane,
} from '../limits/lane-state.js'
import { noteFull } from '../limits/learned-limit.js'
import { newest } from '../limits/take-permits.js'
import { type Kept, keep } from '../limits/transitions.js'
import type { BreakerView, TakeReply } from '../port.js'
import type { Blocked, ReservedJob, ReserveReply, ReserveRequest } from '../queue-port.js'
import type { Woken } from './add-jobs.js'
import { finishNow } from './finish-jobs.js'
import { jobWaitUs, unitsWithShare } from './kept-share.js'
import {
  ACTIVE,
  bringBack,
  DEAD,
  end,
  forgetEnded,
  type JobRecord,
  present,
  type QueueState,
  removeWaiting,
  reservedOf,
  TOO_LATE,
  waitingIn,
  wakeOne,
} from './queue-state.js'

/** Most jobs with a passed deadline that are removed per step. */
const MOST_TOO_LATE = 100
const FORGOTTEN = 16
/** If all probes are taken, a worker retries after this time, unless a probe ends earlier. */
const PROBING_US = 250_000
/** The end of a manual isolation is unknown, so a worker retries after this time. */
const ISOLATED_US = 1_000_000

const RECHECK_US = 1_000_000

export interface RelatedStates {
  lane: LaneState
  guard: GuardState
  /** As for `takePermits`. Default: none. */
  member?: LaneState | undefined
  breaker: BreakerState | undefined
}

/** The states of limits and breaker that have to be stored. */
export interface ReserveKept extends Woken<ReserveReply> {
  limits: Kept<TakeReply>
  breaker: BreakerKept<BreakerView> | undefined
}

export function reserveJobs(
  state: QueueState,
  { lane, guard, member, breaker: breakerState }: RelatedStates,
  request: ReserveRequest,
  serverUs: number,
): ReserveKept {
  const now = present(state, serverUs)
  const finished = request.finish && finishNow(state, breakerState, request.finish, now)
  forgetEnded(state, now, FORGOTTEN + 2 * request.wanted)
  bringBack(state, now, request.deadUs)
  state.parked.delete(request.worker)
  const limits = new JobLimits({ lane, guard, member }, request, serverUs)
  const check = checkBreaker(breakerState, request, serverUs)
  let blocked: Blocked = state.paused ? 'paused' : check.blocked
  let waitUs = blocked === 'breaker' ? check.waitUs : 0
  if (blocked === 'no' && limits.pausedUs > 0) {
    blocked = 'vendor'
    waitUs = limits.pausedUs
  }
  const jobs: ReservedJob[] = []
  let tooLate = 0
  while (blocked === 'no' && jobs.length < Math.min(request.wanted, check.most)) {
    const id = nextOf(state, request.agingUs)
    if (id === undefined) {
      blocked = 'empty'
      break
    }
    const job = state.jobs.get(id) as JobRecord
    if (job.deadlineUs > 0 && job.deadlineUs <= now) {
      removeWaiting(state, id, job)
      end(state, id, job, DEAD, TOO_LATE, request.deadUs, now)
      if (++tooLate === MOST_TOO_LATE) break
      continue
    }
    const costs = limits.costsOf(job.cost)
    waitUs = limits.waitUs(costs, request.keep)
    if (waitUs > 0) {
      blocked = 'limited'
      limits.noteFull(costs, request.keep)
      break
    }
    limits.charge(costs)
    lease(state, id, job, now + request.leaseUs)
    jobs.push(reservedOf(state, id, job, costs, now))
  }
  const hasAll = blocked === 'no' && jobs.length === request.wanted
  if (blocked === 'no' && !hasAll && tooLate < MOST_TOO_LATE) {
    blocked = 'breaker'
    waitUs = PROBING_US
  }
  const taken = limits.close(jobs.length, blocked === 'limited' ? waitUs : 0)
  const view = check.close(jobs.length)
  state.blockedUs = isShut(blocked) ? now + waitUs : 0
  // A worker that got all requested jobs and leaves others behind wakes the next worker.
  const wakes = [...(finished?.wakes ?? [])]
  if (hasAll && waitingIn(state) > 0) wakes.push(...wakeOne(state, now))
  if (!hasAll && request.parkUs > 0) state.parked.set(request.worker, now + request.parkUs)
  return {
    reply: {
      jobs,
      blocked,
      waitUs: hasAll ? 0 : claimAlarm(state, isShut(blocked) ? waitUs : 0, now),
      take: taken.reply,
      view: view?.reply,
      probing: check.probing,
      finished: finished?.reply ?? [],
    },
    wakes,
    limits: taken,
    breaker: view,
  }
}

function isShut(blocked: Blocked): boolean {
  return blocked !== 'no' && blocked !== 'empty'
}

/** Of the first job of each priority, the one with the highest priority after aging. */
function nextOf({ waiting, jobs }: QueueState, agingUs: number): string | undefined {
  let best: string | undefined
  let bestUs = 0
  for (const [priority, line] of waiting.entries()) {
    const id = line.first()?.id
    if (id === undefined) continue
    const rankUs = (jobs.get(id) as JobRecord).readyUs + priority * agingUs
    if (best !== undefined && rankUs >= bestUs) continue
    best = id
    bestUs = rankUs
  }
  return best
}

function lease(state: QueueState, id: string, job: JobRecord, untilUs: number): void {
  removeWaiting(state, id, job)
  const { priority, tag, tenant } = job
  if (tag > (state.reached[priority] as number)) state.reached[priority] = tag
  // A tenant without waiting jobs is treated as new.
  const field = `${priority}:${tenant}`
  if (tenant !== '' && (state.tags.get(field) ?? 0) <= tag) state.tags.delete(field)
  job.state = ACTIVE
  job.turn++
  job.attempt++
  state.leases.set(id, untilUs)
}

/**
 * Returns after how long this worker requests jobs again; 0: no need. One worker makes the request for the next due
 * time. It may be the worker that died and whose lease expires, so the others make theirs slightly later.
 */
function claimAlarm(state: QueueState, waitUs: number, now: number): number {
  let dueUs = waitUs > 0 ? now + waitUs : Number.POSITIVE_INFINITY
  const lease = state.leases.first()
  for (const first of [state.delayed.first(), lease]) {
    if (first !== undefined) dueUs = Math.min(dueUs, Math.max(first.score, now + 1))
  }
  if (dueUs === Number.POSITIVE_INFINITY) return 0
  if (state.alarmUs > now && state.alarmUs <= dueUs) {
    return lease === undefined ? 0 : Math.max(0, lease.score - now) + RECHECK_US
  }
  state.alarmUs = dueUs
  return dueUs - now
}

/** The limits that jobs are charged to. */
class JobLimits {
  readonly #lane: LaneState
  readonly #guard: GuardState
  readonly #request: ReserveRequest
  readonly #at: ReturnType<typeof presentLane>
  readonly pausedUs: number

  constructor(
    { lane, guard, member }: Omit<RelatedStates, 'breaker'>,
    request: ReserveRequest,
    serverUs: number,
  ) {
    this.#lane = lane
    this.#guard = guard
    this.#request = request
    const { limits, version } = request.take
    // Nothing is stored for a lane without limits.
    this.#at =
      limits.length === 0
        ? { now: serverUs, member, entries: [], changed: false }
        : presentLane(lane, guard, limits, version, serverUs, member)
    const pausedUs = pausedUntilUs(lane, guard) - this.#at.now
    this.pausedUs = limits.length === 0 ? 0 : Math.max(0, pausedUs)
  }

  costsOf(cost: Readonly<Record<string, number>>): number[] {
    return this.#at.entries.map(({ spec }, index) => {
      const unit = this.#request.take.units[index] as string
      return Math.min(capacity(spec), cost[unit] ?? (unit === 'requests' ? 1 : 0))
    })
  }

  waitUs(costs: readonly number[], share: number): number {
    let longest = 0
    for (const [index, { spec, count }] of this.#at.entries.entries()) {
      const wait = jobWaitUs(spec, count, this.#at.now, costs[index] as number, share)
      longest = Math.max(longest, wait)
    }
    return longest
  }

  /** A job with these costs waits. */
  noteFull(costs: readonly number[], share: number): void {
    for (const [index, { spec, count }] of this.#at.entries.entries()) {
      const units = unitsWithShare(spec, costs[index] as number, share)
      if (noteFull(spec, count, this.#at.now, units)) this.#at.changed = true
    }
  }

  charge(costs: readonly number[]): void {
    for (const [index, { spec, count }] of this.#at.entries.entries()) {
      const cost = costs[index] as number
      if (cost > 0) charge(spec, count, this.#at.now, cost)
    }
  }

  close(granted: number, waitUs: number): Kept<TakeReply> {
    const { entries, now, changed } = this.#at
    const { limits, version } = this.#request.take
    const reply: TakeReply = {
      granted,
      waitUs: this.pausedUs > 0 ? this.pausedUs : waitUs,
      paused: this.pausedUs > 0,
      nowUs: now,
      stamps: entries.map(({ spec, count }: CountedLimit) => stampOf(spec, count, now)),
      capacities: entries.map(({ spec }: CountedLimit) => capacity(spec)),
    }
    const guard = this.#guard
    if (entries.length === 0) return { reply }
    if (reply.waitUs > 0) {
      reply.left = entries.map(({ spec, count }: CountedLimit) => remaining(spec, count, now))
    }
    if (guard.version > version) {
      reply.newer = { version: guard.version, limits: newest(limits as LimitSpec[], guard) }
    }
    if (granted === 0 && !changed) return { reply }
    return keep(this.#lane, guard, this.#at, reply)
  }
}

interface BreakerCheck {
  blocked: 'no' | 'breaker'
  waitUs: number
  /** Most jobs that the breaker allows. */
  most: number
  probing: boolean
  /** Stores the breaker after `taken` jobs were handed out. */
  close(taken: number): BreakerKept<BreakerView> | undefined
}

const NO_BREAKER: BreakerCheck = {
  blocked: 'no',
  waitUs: 0,
  most: Number.POSITIVE_INFINITY,
  probing: false,
  close: () => undefined,
}

function checkBreaker(
  state: BreakerState | undefined,
  { breaker: ref, probes, wanted }: ReserveRequest,
  serverUs: number,
): BreakerCheck {
  if (ref === undefined || state === undefined) return NO_BREAKER
  const { spec } = ref
  const before = state.version
  const now = presentBreaker(state, spec, serverUs)
  const check: BreakerCheck = {
    ...NO_BREAKER,
    close(taken) {
      if (check.probing) {
        for (const probe of probes.slice(0, taken)) state.probes.set(probe, now + spec.probeLeaseUs)
      }
      const view = keptBreaker(state, spec, now, before, (each) => each)
      // A breaker that was only read is not stored again, which would prolong its life.
      const isChanged = state.version !== before || (check.probing && taken > 0)
      return isChanged ? view : { reply: view.reply }
    },
  }
  if (state.isolations.size > 0) {
    check.blocked = 'breaker'
    check.waitUs = ISOLATED_US
  } else if (state.kind === OPEN) {
    check.blocked = 'breaker'
    check.waitUs = Math.max(1, state.openUntilUs - now)
  } else if (state.kind === HALF_OPEN) {
    check.probing = true
    check.most = Math.min(freeProbes(state, spec), probes.length)
    if (check.most === 0 && wanted > 0) {
      check.blocked = 'breaker'
      check.waitUs = PROBING_US
    }
  }
  return check
}
