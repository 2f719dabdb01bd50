/**
 * A retry of a call in the queue. For its first attempt the call itself was queued, and its place may still be
 * in a deque, marked as gone. So a retry is queued as an object of its own.
 */
import type { CallerSignal } from '../../core/abort.js'
import { type LeaveReason, QueuedCall } from '../../shared/permit-queue/queued-call.js'
import type { Cost } from '../../shared/rate-limiter/permit.js'
import type { Permits, QueuedAttempt } from '../pipeline/stage.js'
import type { CallResumer, ResumableCall } from './resume.js'

/** The call, as far as its retries need it. */
export interface RetriedCall extends QueuedAttempt, ResumableCall<Permits> {
  mustLeave(why: LeaveReason, queued: QueuedCall): void
  abandon(reason: unknown, queued: QueuedCall): void
}

export class QueuedRetry
  extends QueuedCall<Permits>
  implements QueuedAttempt, ResumableCall<Permits>
{
  readonly #call: RetriedCall
  readonly #resumer: CallResumer<Permits>

  constructor(call: RetriedCall, resumer: CallResumer<Permits>) {
    super()
    this.#call = call
    this.#resumer = resumer
  }

  get lane(): string {
    return this.#call.lane
  }

  get priority(): number {
    return this.#call.priority
  }

  get arrivedMs(): number {
    return this.#call.arrivedMs
  }

  get deadlineMs(): number {
    return this.#call.deadlineMs
  }

  get signal(): CallerSignal | undefined {
    return this.#call.signal
  }

  get cost(): Cost | undefined {
    return this.#call.cost
  }

  get costs(): readonly number[] {
    return this.#call.costs
  }

  set costs(costs: readonly number[]) {
    this.#call.costs = costs
  }

  get costsUnder(): unknown {
    return this.#call.costsUnder
  }

  set costsUnder(limits: unknown) {
    this.#call.costsUnder = limits
  }

  admit(permits: Permits): void {
    this.#resumer.resumeSoon(this, permits)
  }

  begin(permits: Permits): void {
    this.#call.begin(permits)
  }

  refuse(error: unknown): void {
    this.#call.refuse(error)
  }

  onLeave(why: LeaveReason): void {
    this.#call.mustLeave(why, this)
  }

  onAborted(reason: unknown): void {
    this.#call.abandon(reason, this)
  }
}
