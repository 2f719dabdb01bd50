/**
 * An attempt that waits in the queue for its permits. It keeps its caller's async context and copies the fields that
 * determine the order, because its entry in a deque may outlive the wait.
 */
import type { CallerSignal } from '../../core/abort.js'
import type { SpillwayError } from '../../core/errors.js'
import type { Clock } from '../../core/time/clock.js'
import { type LeaveReason, QueuedCall } from '../../shared/permit-queue/queued-call.js'
import type { Cost } from '../../shared/rate-limiter/permit.js'
import type { Permits, QueuedAttempt, StageCall } from '../pipeline/stage.js'
import type { CallResumer, ResumableCall } from './resume.js'

/** The call of a waiting attempt. */
export interface WaitingCall {
  readonly facts: StageCall
  /** In the caller's async context. Does not throw. */
  begin(permits: Permits): void
  refuse(error: unknown): void
}

/** The queue that it waits in. */
export interface AttemptQueue {
  readonly resumer: CallResumer<Permits>
  leaveError(why: LeaveReason, waitedMs: number): SpillwayError
  /** An attempt has its permits. */
  admitted(): void
  /** An attempt has left without its permits. */
  left(attempt: QueuedCall): void
}

export class WaitingAttempt
  extends QueuedCall<Permits>
  implements QueuedAttempt, ResumableCall<Permits>
{
  readonly lane: string
  readonly priority: number
  readonly arrivedMs: number
  /** After this there is too little time left to begin. */
  readonly deadlineMs: number
  readonly signal: CallerSignal | undefined
  readonly cost: Cost | undefined
  costs: readonly number[]
  costsUnder: unknown
  readonly #call: WaitingCall
  readonly #queue: AttemptQueue
  readonly #clock: Clock

  constructor(call: WaitingCall, queue: AttemptQueue, clock: Clock) {
    super()
    const { facts } = call
    this.lane = facts.lane
    this.priority = facts.priority
    this.arrivedMs = facts.arrivedMs
    this.deadlineMs = facts.deadlineMs - (facts.options.needsMs ?? 0)
    this.signal = facts.options.signal
    this.cost = facts.cost
    this.costs = facts.costs
    this.costsUnder = facts.costsUnder
    this.#call = call
    this.#queue = queue
    this.#clock = clock
  }

  admit(permits: Permits): void {
    this.#queue.admitted()
    this.#queue.resumer.resumeSoon(this, permits)
  }

  begin(permits: Permits): void {
    this.#call.begin(permits)
  }

  refuse(error: unknown): void {
    this.#call.refuse(error)
  }

  onLeave(why: LeaveReason): void {
    this.onAborted(this.#queue.leaveError(why, this.#clock.now() - this.joinedMs))
  }

  onAborted(reason: unknown): void {
    this.#call.refuse(reason)
    this.#queue.left(this)
  }
}
