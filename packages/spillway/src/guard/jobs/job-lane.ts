/**
 * A guard's lane as a job queue uses it: adds the limits and the breaker to the request for jobs, and starts jobs
 * with the permits of the reply. Slots and pace of this pod are reserved in the meantime. A started job is an
 * ordinary call; stages that also apply to jobs are checked before it starts.
 */
import type { CallerSignal } from '../../core/abort.js'
import { SpillwayError } from '../../core/errors.js'
import { importanceOf, NORMAL_IMPORTANCE, type Priority } from '../../core/options/priority.js'
import { isThenable } from '../../core/thenable.js'
import type { Clock } from '../../core/time/clock.js'
import { Deadline } from '../../core/time/deadline.js'
import type { BreakerPermit } from '../../shared/circuit-breaker/api.js'
import { isBreakerPermit } from '../../shared/circuit-breaker/lane/breaker-permit.js'
import { DEFAULT_LANE } from '../../shared/lanes/lane-names.js'
import type { Subject } from '../../shared/user-limits/levels.js'
import type { BreakerRef } from '../../store/port.js'
import type { ReserveReply, ReserveRequest } from '../../store/queue-port.js'
import type { GuardParts } from '../build-guard.js'
import { type AttemptListener, GuardAttempt } from '../pipeline/attempt.js'
import type { CallFunction } from '../pipeline/context.js'
import type { Permits, StageCall } from '../pipeline/stage.js'

/** Pause before a stage that refuses jobs is checked again. */
const REFUSED_MS = 1_000

/** A request for jobs: what the guard adds to it, and how it handles the reply. */
export interface JobRoundTrip {
  about: Pick<ReserveRequest, 'take' | 'breaker' | 'probes'>
  /** Returns the permits of each job and releases reservations for jobs that were not returned. */
  arrived(reply: ReserveReply): Permits[]
  lost(error: unknown): void
}

export interface JobStart {
  /** 1 for the first. */
  attempt: number
  /** Until its deadline; undefined without one. */
  leftMs: number | undefined
  signal: CallerSignal
  priority: Priority
  tenant: string | undefined
}

/** The parts of a guard that jobs use. */
export type JobGuard = Pick<
  GuardParts,
  | 'name'
  | 'clock'
  | 'lanes'
  | 'options'
  | 'slots'
  | 'queue'
  | 'pipeline'
  | 'calls'
  | 'counters'
  | 'breaker'
  | 'limits'
  | 'countedLimits'
  | 'stages'
>

export class JobLane {
  readonly guard: string
  readonly lane: string
  readonly clock: Clock
  readonly #guard: JobGuard

  constructor(guard: JobGuard, lane: string = DEFAULT_LANE) {
    this.guard = guard.name
    this.clock = guard.clock
    this.#guard = guard
    this.lane = lane
    // Jobs are taken together with permits of this lane, so it has to exist.
    guard.lanes.keep(lane)
  }

  checkCost(cost: Readonly<Record<string, number>>): void {
    this.#guard.countedLimits?.checkCost(cost)
  }

  /** Charges the user limits as a call would. Returns the function that refunds the charge. */
  async charge(subject: Subject): Promise<() => void> {
    const { userLimit } = this.#guard.stages
    const charge = await userLimit?.chargeJob(subject)
    if (charge instanceof Error) throw charge
    return () => charge && userLimit?.refund(charge)
  }

  /** The breaker of the jobs, if there is one that refuses. */
  get breaker(): BreakerRef | undefined {
    return this.#guard.breaker?.ref(this.lane)
  }

  /** Jobs that this pod could begin now. */
  get free(): number {
    const { slots, breaker, pipeline, clock } = this.#guard
    if (pipeline.closed) return 0
    const free = slots.free(clock.now(), this.lane)
    return Math.max(0, Math.min(free, breaker?.startable(this.lane) ?? free))
  }

  /**
   * How long this pod pauses jobs after a 429 or because of a custom stage. With limits the pause is in the store,
   * which returns no jobs until it ends.
   */
  get pausedMs(): number {
    const { limits, queue, pipeline, clock } = this.#guard
    const here = limits === undefined ? queue.dispatcher.blocks.pausedMs(this.lane, clock.now()) : 0
    const refusal = pipeline.pausesJobs(jobCall(this.lane, clock.now()), clock.now())
    if (refusal === undefined) return here
    const { retryAfterMs = REFUSED_MS } = refusal
    return Math.max(here, Math.min(Math.max(retryAfterMs, 1), REFUSED_MS))
  }

  /** How long a throttled or refused job waits; `before`: how often it was throttled or refused already. */
  pauseAfter(before: number): number {
    const { basePauseMs, maxPauseMs } = this.#guard.options
    return Math.min(basePauseMs * 2 ** Math.min(before, 20), Math.max(basePauseMs, maxPauseMs))
  }

  /** A permit that was granted longer ago is not used. */
  get useWithinMs(): number {
    return this.#guard.limits?.permits.useWithinMs ?? Number.POSITIVE_INFINITY
  }

  /** Reserves what `wanted` jobs need from this pod; undefined while the store is unreachable. */
  prepare(wanted: number): JobRoundTrip | undefined {
    const { limits, breaker, slots, name } = this.#guard
    const lane = this.lane
    const limited = limits?.permits.requestPart(lane)
    if (limits !== undefined && limited === undefined) return undefined
    const breakerPart = breaker?.requestPart(lane)
    slots.reserve(wanted, lane)
    const giveUp = (count: number) => {
      for (let each = 0; each < count; each++) slots.giveUp(lane)
    }
    const none = { guard: name, lane, limits: [], version: 0 }
    return {
      about: {
        take: { ...(limited?.ref ?? none), units: limited?.units ?? [] },
        breaker: breakerPart?.ref,
        probes: breakerPart?.probes ?? [],
      },
      arrived: (reply) => {
        const { jobs, view, probing } = reply
        giveUp(wanted - jobs.length)
        const costs = jobs.map((job) => job.costs)
        const limitReply = limited?.arrived(reply.take, costs)
        const passed = view && breakerPart?.passed(view, jobs.length, probing)
        return costs.map((each, index) => {
          const permit = limitReply && limits?.permits.createPermit(lane, each, limitReply)
          // A job that is throttled each time must not lengthen the pauses of the others.
          const { uncounted = 0, attempt = 1 } = jobs[index] ?? {}
          if (permit) permit.basePauseOnly = uncounted > 0 || attempt > 1
          return { breaker: passed?.[index] ?? this.#enterShadow(), permit }
        })
      },
      lost: (error) => {
        giveUp(wanted)
        limited?.failed(error)
      },
    }
  }

  /** The job has its permits. It starts, unless a stage that applies to jobs refuses it. */
  start<T>(
    fn: CallFunction<T>,
    permits: Permits,
    { attempt, leftMs, signal, priority, tenant }: JobStart,
    listener: AttemptListener<T>,
  ): void {
    const { slots, clock, counters, calls } = this.#guard
    const { lane } = this
    const nowMs = clock.now()
    counters.calls++
    slots.admit()
    const deadline = leftMs === undefined ? undefined : new Deadline(nowMs + leftMs, clock)
    const options = { signal, lane, timeoutMs: leftMs }
    const call: StageCall = {
      ...jobCall(lane, nowMs),
      options,
      priority: importanceOf(priority),
      deadlineMs: deadline?.atMs ?? Number.POSITIVE_INFINITY,
      attempt,
      tenant,
    }
    const grants = this.#enter(call, nowMs)
    if (grants instanceof SpillwayError) return this.#refuse(grants, permits, listener)
    const parts = { fn, options, lane, permits, deadline, startMs: nowMs, attempt, hedge: false }
    const job = new GuardAttempt<T>(
      calls.attempts,
      { ...parts, job: { tenant } },
      grants.length === 0 ? listener : this.#leaving(grants, listener),
    )
    const refusal = this.#guard.pipeline.acquire(job)
    if (refusal === undefined) return job.start()
    this.#guard.pipeline.leave(grants, { ran: false, outcome: undefined })
    this.#refuse(refusal, undefined, listener)
  }

  /** The grants of the stages for this job, or the first refusal. */
  #enter(call: StageCall, nowMs: number): unknown[] | SpillwayError {
    const { pipeline } = this.#guard
    const refusal = pipeline.check(call, nowMs)
    if (refusal !== undefined) return refusal
    const grants: unknown[] = []
    for (const [place, stage] of pipeline.entered.entries()) {
      if (stage.forJobs !== true) continue
      const grant = stage.enter(call, nowMs)
      if (grant instanceof SpillwayError) {
        pipeline.leave(grants, { ran: false, outcome: undefined })
        return grant
      }
      if (grant !== undefined) grants[place] = grant
    }
    return grants
  }

  /** Returns the job to its queue, with its permits. */
  #refuse<T>(
    refusal: SpillwayError,
    permits: Permits | undefined,
    listener: AttemptListener<T>,
  ): void {
    const { pipeline, counters } = this.#guard
    if (permits !== undefined) pipeline.cancel(this.lane, permits)
    counters.refused(refusal, undefined)
    listener.onError(refusal, { outcome: 'ignored', retryable: false })
  }

  #leaving<T>(grants: readonly unknown[], listener: AttemptListener<T>): AttemptListener<T> {
    return {
      onValue: (value, verdict) => listener.onValue(value, verdict),
      onError: (error, verdict) => listener.onError(error, verdict),
      onReleased: (outcome) => this.#guard.pipeline.leave(grants, { ran: true, outcome }),
    }
  }

  /** It does not start after all. */
  giveBack(permits: Permits): void {
    const { slots, pipeline } = this.#guard
    slots.admit()
    pipeline.cancel(this.lane, permits)
  }

  /** Resolves when the outcomes of calls have been reported, or cannot be. */
  async reported(): Promise<void> {
    await this.#guard.breaker?.flush()
  }

  /** A breaker in shadow mode refuses nothing, but counts the outcomes. */
  #enterShadow(): BreakerPermit | undefined {
    const entry = this.#guard.breaker?.enter(this.lane)
    if (entry === undefined || isThenable(entry)) return undefined
    return isBreakerPermit(entry) ? entry : undefined
  }
}

/** A job before it is taken from its queue: only its lane is known. */
function jobCall(lane: string, arrivedMs: number): StageCall {
  return {
    kind: 'job',
    options: { lane },
    lane,
    priority: NORMAL_IMPORTANCE,
    arrivedMs,
    deadlineMs: Number.POSITIVE_INFINITY,
    attempt: 1,
    cost: undefined,
    costs: [],
    costsUnder: undefined,
  }
}
