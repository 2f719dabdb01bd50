/**
 * A guard, as a job queue sees it: what a trip for jobs has to say of its limits and its breaker, and
 * how a job runs that has come back with its permits. From the timeout on it is a call like any other;
 * the stages before it are what the trip was for, but this pod's slots and pace, which are kept for it
 * meanwhile.
 */
import type { CallerSignal } from '../../core/abort.js'
import { isThenable } from '../../core/thenable.js'
import type { Clock } from '../../core/time/clock.js'
import { Deadline } from '../../core/time/deadline.js'
import type { BreakerPermit } from '../../shared/circuit-breaker/api.js'
import { isBreakerPermit } from '../../shared/circuit-breaker/lane/breaker-permit.js'
import { DEFAULT_LANE } from '../../shared/default-lane.js'
import type { Subject } from '../../shared/user-limits/levels.js'
import type { BreakerRef } from '../../store/port.js'
import type { ReserveReply, ReserveRequest } from '../../store/queue-port.js'
import { type AttemptListener, GuardAttempt } from '../attempt.js'
import type { CallFunction } from '../context.js'
import type { CallAdmission, Machinery } from '../machinery.js'

/** What a trip has to say, and what becomes of what it brings. */
export interface JobTrip {
  about: Pick<ReserveRequest, 'take' | 'breaker' | 'probes'>
  /** What each job may start with. Those that were not granted give back what was kept for them. */
  arrived(reply: ReserveReply): CallAdmission[]
  lost(error: unknown): void
}

export interface JobStart {
  /** 1 for the first. */
  attempt: number
  /** Until its deadline, if it has one. */
  leftMs: number | undefined
  signal: CallerSignal
}

export class JobGate {
  readonly guard: string
  readonly lane: string
  readonly clock: Clock
  readonly #machinery: Machinery

  constructor(machinery: Machinery, lane: string = DEFAULT_LANE) {
    this.guard = machinery.name
    this.clock = machinery.clock
    this.#machinery = machinery
    this.lane = lane
    // Jobs are taken together with permits of this lane, so it has to exist.
    machinery.lanes.keep(lane)
  }

  checkCost(cost: Readonly<Record<string, number>>): void {
    this.#machinery.counted?.checkCost(cost)
  }

  /** As a call of theirs would be charged. Answers with what takes it back. */
  async charge(subject: Subject): Promise<() => void> {
    const { users } = this.#machinery
    const charge = await users?.promiseCharge(subject)
    if (charge instanceof Error) throw charge
    return () => charge && users?.refund(charge)
  }

  /** The breaker that jobs go by, if there is one that refuses. */
  get breaker(): BreakerRef | undefined {
    return this.#machinery.breaker?.ref(this.lane)
  }

  /** Jobs that this pod could begin now. */
  get free(): number {
    const { slots, breaker, closed, clock } = this.#machinery
    if (closed) return 0
    const free = slots.free(clock.now(), this.lane)
    return Math.max(0, Math.min(free, breaker?.startable(this.lane) ?? free))
  }

  /**
   * How long this pod has to hold jobs back because a call or a job got a 429. With limits the pause is in
   * the store, which hands out no job meanwhile.
   */
  get pausedMs(): number {
    const { limits, dispatcher } = this.#machinery
    return limits === undefined ? dispatcher.pausedMs(this.lane) : 0
  }

  /** How long a job waits that was throttled or refused; `before`: how often it was already. */
  pauseAfter(before: number): number {
    const { basePauseMs, maxPauseMs } = this.#machinery.options
    return Math.min(basePauseMs * 2 ** Math.min(before, 20), Math.max(basePauseMs, maxPauseMs))
  }

  /** A permit that was granted longer ago is not used. */
  get useWithinMs(): number {
    return this.#machinery.limits?.useWithinMs ?? Number.POSITIVE_INFINITY
  }

  /** Keeps what so many jobs need of this pod; nothing, if the store is away. */
  ask(wanted: number): JobTrip | undefined {
    const { limits, breaker, slots, name } = this.#machinery
    const lane = this.lane
    const limited = limits?.passage(lane)
    if (limits !== undefined && limited === undefined) return undefined
    const passage = breaker?.passage(lane)
    slots.reserve(wanted, lane)
    const giveUp = (count: number) => {
      for (let each = 0; each < count; each++) slots.giveUp(lane)
    }
    const none = { guard: name, lane, limits: [], version: 0 }
    return {
      about: {
        take: { ...(limited?.ref ?? none), units: limited?.units ?? [] },
        breaker: passage?.ref,
        probes: passage?.probes ?? [],
      },
      arrived: (reply) => {
        const { jobs, view, probing } = reply
        giveUp(wanted - jobs.length)
        const costs = jobs.map((job) => job.costs)
        const trip = limited?.heard(reply.take, costs)
        const passed = view && passage?.passed(view, jobs.length, probing)
        return costs.map((each, index) => {
          const permit = trip && limits?.createPermit(lane, each, trip)
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

  /** The job has everything it needs. */
  start<T>(
    fn: CallFunction<T>,
    admission: CallAdmission,
    { attempt, leftMs, signal }: JobStart,
    end: AttemptListener<T>,
  ): void {
    const { slots, clock, tally } = this.#machinery
    const nowMs = clock.now()
    tally.calls++
    slots.admit()
    const limited = leftMs !== undefined
    const deadline = limited ? new Deadline(nowMs + leftMs, clock) : undefined
    const options = { signal, lane: this.lane, timeoutMs: leftMs }
    new GuardAttempt<T>(
      this.#machinery,
      options,
      this.lane,
      admission,
      deadline,
      nowMs,
      attempt,
      end,
    ).start(fn)
  }

  /** It does not start after all. */
  giveBack({ breaker, permit }: CallAdmission): void {
    const { slots } = this.#machinery
    if (breaker !== undefined) this.#machinery.breaker?.exit(breaker, 'ignored')
    permit?.refund()
    slots.giveUp(this.lane)
    this.#machinery.onFree()
  }

  /** Resolves when the store has heard how calls ended, or will not. */
  async told(): Promise<void> {
    await this.#machinery.breaker?.flush()
  }

  /** A breaker that refuses nobody hears how calls end all the same. */
  #enterShadow(): BreakerPermit | undefined {
    const entry = this.#machinery.breaker?.enter(this.lane)
    if (entry === undefined || isThenable(entry)) return undefined
    return isBreakerPermit(entry) ? entry : undefined
  }
}
