/**
 * The queue: the only place where a call waits, for a slot, for the pace and for its permits. Without the option
 * `queue` a call waits for the store's reply only.
 */
import type { Details, SpillwayError } from '../../core/errors.js'
import type { Clock } from '../../core/time/clock.js'
import type { DrainTime } from '../../local/drain-time.js'
import type { ShedWait } from '../../local/shed-wait.js'
import type { CallQueue } from '../../shared/permit-queue/call-queue.js'
import type { PermitDispatcher } from '../../shared/permit-queue/permit-dispatcher.js'
import type { LeaveReason, QueuedCall } from '../../shared/permit-queue/queued-call.js'
import type { Permits, QueuedAttempt, Stage, StageAttempt, StageCall } from '../pipeline/stage.js'
import { CallResumer } from '../queue/resume.js'
import type { ConcurrencyStage } from './concurrency.js'
import { concurrencyError, fullError, leaveError, paceError } from './refusal-errors.js'

export interface QueueStageOptions {
  readonly guard: string
  /** How many calls may wait; undefined without the option `queue`. */
  readonly size: number | undefined
  readonly calls: CallQueue
  readonly slots: ConcurrencyStage
  readonly clock: Clock
  /** The delay above which calls are dropped if it lasts. */
  readonly targetMs: number
  /** `retryAfterMs` if the queue is full, and if CoDel drops calls. */
  readonly drainTime: DrainTime
  readonly shedWait: ShedWait
}

export class QueueStage implements Stage {
  readonly name = 'queue'
  readonly scope = 'local'
  readonly per = 'call'
  /** The option `queue` is set, so calls may wait for slots and permits. */
  readonly callsMayWait: boolean
  readonly calls: CallQueue
  /** Starts calls that have waited. */
  readonly resumer = new CallResumer<Permits>()
  /** Set by the builder of the guard: the dispatcher needs stages that are created after the queue. */
  dispatcher!: PermitDispatcher
  readonly #options: QueueStageOptions

  constructor(options: QueueStageOptions) {
    this.#options = options
    this.calls = options.calls
    this.callsMayWait = options.size !== undefined
  }

  /** The call would have to wait, and the queue is full. */
  check(call: StageCall, nowMs: number): SpillwayError | undefined {
    const { size } = this.#options
    if (size === undefined || this.calls.length < size) return undefined
    const free = this.dispatcher.spare(call.lane, call, nowMs)
    return this.calls.hasPlace(call.priority, free) ? undefined : this.#noPlaceError(nowMs)
  }

  /** The attempt waits from now on. It is refused if that is known to be too long, or if the queue is full. */
  join(attempt: QueuedAttempt, nowMs: number): SpillwayError | undefined {
    const { calls, dispatcher } = this
    const blocked = dispatcher.blocks.refusalOf(attempt, nowMs)
    if (blocked !== undefined) return blocked
    const free = calls.full ? dispatcher.spare(attempt.lane, attempt, nowMs) : 0
    if (!calls.join(attempt, nowMs, free)) return this.#noPlaceError(nowMs)
    this.#options.drainTime.queued(nowMs, calls.length === 1)
    dispatcher.arrived(attempt)
    return undefined
  }

  /** An attempt has left without its permits. */
  left(attempt: QueuedCall): void {
    this.dispatcher.left(attempt)
  }

  /** An attempt that has waited gets its permits. */
  admitted(): void {
    this.#options.drainTime.started()
  }

  leaveError(why: LeaveReason, waitedMs: number): SpillwayError {
    const { guard, slots, targetMs } = this.#options
    const { active, limit } = slots
    const retryAfterMs = this.#retryAfterMs(why)
    const waiting = this.calls.length
    return leaveError(guard, why, { waitedMs, waiting, active, limit, targetMs, retryAfterMs })
  }

  /** The attempt has released its slot, which goes to the next call in the queue. */
  release({ startMs }: StageAttempt): void {
    const { slots, drainTime, clock } = this.#options
    // Durations matter only when slots run short, so the clock is not read for every call.
    if (slots.limit - slots.active <= 1 || drainTime.isUnknown) {
      const nowMs = clock.now()
      drainTime.ended(nowMs, nowMs - startMs)
    }
    if (this.calls.length > 0) this.dispatcher.freed()
  }

  /** A slot is free and goes to the next call in the queue. */
  cancel(): void {
    if (this.calls.length > 0) this.dispatcher.freed()
  }

  /** Calls that wait for this pod or a slow store; those of a lane that waits for its vendor do not count. */
  waiting(nowMs: number): number {
    return this.calls.length === 0 ? 0 : this.dispatcher.backlog(nowMs)
  }

  passed(_call: StageCall, _permits: unknown): Details | undefined {
    return this.callsMayWait ? {} : undefined
  }

  close(): void {
    this.calls.close()
  }

  /** Without a queue, the refusal names the missing slot or start. */
  #noPlaceError(nowMs: number): SpillwayError {
    const { guard, size, slots } = this.#options
    if (size !== undefined) return fullError(guard, this.calls.length, size, this.#drainMs(nowMs))
    const waitMs = slots.paceWaitMs(nowMs)
    if (waitMs > 0) return paceError(guard, slots.active, waitMs)
    return concurrencyError(guard, slots.active, slots.limit, slots.nextFreeMs(nowMs))
  }

  #retryAfterMs(why: LeaveReason): number | undefined {
    const { clock, shedWait } = this.#options
    // The caller's deadline has passed, so waiting does not help.
    if (why === 'deadline') return undefined
    return why === 'overload' ? shedWait.nextMs(clock.now()) : this.#drainMs(clock.now())
  }

  /** Estimated time at which the waiting calls will have started. */
  #drainMs(nowMs: number): number {
    const { slots, drainTime } = this.#options
    const slotsInUse = slots.pressure(0) >= 1 ? slots.active : 0
    return drainTime.retryAfterMs(nowMs, Math.max(1, this.calls.length), slotsInUse)
  }
}
