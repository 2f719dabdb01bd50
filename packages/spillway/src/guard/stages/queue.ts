/**
 * The queue: the only place where a call waits, for a slot, for the pace and for its permits. Without the option
 * `queue` a call waits for the store's reply only.
 */
import type { Details, SpillwayError } from '../../core/errors.js'
import type { CallQueue } from '../../shared/permit-queue/call-queue.js'
import type { PermitDispatcher } from '../../shared/permit-queue/permit-dispatcher.js'
import type { LeaveReason, QueuedCall } from '../../shared/permit-queue/queued-call.js'
import type { Permits, QueuedAttempt, Stage, StageCall } from '../pipeline/stage.js'
import { CallResumer } from '../queue/resume.js'
import type { ConcurrencyStage } from './concurrency.js'
import { concurrencyError, fullError, leaveError, paceError } from './refusal-errors.js'

export interface QueueStageOptions {
  readonly guard: string
  /** How many calls may wait; undefined without the option `queue`. */
  readonly size: number | undefined
  readonly calls: CallQueue
  readonly slots: ConcurrencyStage
}

export class QueueStage implements Stage {
  readonly name = 'queue'
  readonly scope = 'local'
  readonly per = 'call'
  readonly patient: boolean
  readonly calls: CallQueue
  /** Starts calls that have waited. */
  readonly resumer = new CallResumer<Permits>()
  /** Set by the builder of the guard: the dispatcher needs what grants permits, which comes after the queue. */
  dispatcher!: PermitDispatcher
  readonly #options: QueueStageOptions

  constructor(options: QueueStageOptions) {
    this.#options = options
    this.calls = options.calls
    this.patient = options.size !== undefined
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
    dispatcher.arrived(attempt)
    return undefined
  }

  /** An attempt has left without its permits. */
  left(attempt: QueuedCall): void {
    this.dispatcher.left(attempt)
  }

  leaveError(why: LeaveReason, waitedMs: number): SpillwayError {
    const { guard, slots } = this.#options
    return leaveError(guard, why, waitedMs, this.calls.length, slots)
  }

  /** The attempt has released its slot, which goes to the next in the queue. */
  release(): void {
    if (this.calls.length > 0) this.dispatcher.freed()
  }

  cancel(): void {
    this.release()
  }

  /** Calls that wait for this pod; those of a lane that waits for its vendor do not count. */
  waiting(nowMs: number): number {
    return this.calls.length === 0 ? 0 : this.dispatcher.crowd(nowMs)
  }

  passed(_call: StageCall, _permits: unknown): Details | undefined {
    return this.patient ? {} : undefined
  }

  close(): void {
    this.calls.close()
  }

  /** Without a queue it is a slot or a start that is missing. */
  #noPlaceError(nowMs: number): SpillwayError {
    const { guard, size, slots } = this.#options
    if (size !== undefined) return fullError(guard, this.calls.length, size)
    const waitMs = slots.paceWaitMs(nowMs)
    if (waitMs > 0) return paceError(guard, slots.active, waitMs)
    return concurrencyError(guard, slots.active, slots.limit)
  }
}
