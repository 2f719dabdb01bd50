/**
 * A further stay of a call in the room, to be tried again. The call itself stood there for its first
 * attempt, and its place may still be there, as that of one who has gone.
 */
import type { CallerSignal } from '../core/abort.js'
import type { Cost } from '../shared/rate-limiter/permit.js'
import { Entry, type Leaving } from './entry.js'
import type { Permits as CallAdmission, QueuedAttempt as WaitingCall } from './pipeline/stage.js'
import type { Startable, Starter } from './starter.js'

/** The call, as far as its stays need it. */
export interface Stayer extends WaitingCall, Startable<CallAdmission> {
  mustLeave(why: Leaving, stay: Entry): void
  abandon(reason: unknown, stay: Entry): void
}

export class LaterStay
  extends Entry<CallAdmission>
  implements WaitingCall, Startable<CallAdmission>
{
  readonly #call: Stayer
  readonly #starter: Starter<CallAdmission>

  constructor(call: Stayer, starter: Starter<CallAdmission>) {
    super()
    this.#call = call
    this.#starter = starter
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

  get of(): unknown {
    return this.#call.of
  }

  set of(of: unknown) {
    this.#call.of = of
  }

  admit(admission: CallAdmission): void {
    this.#starter.startSoon(this, admission)
  }

  begin(admission: CallAdmission): void {
    this.#call.begin(admission)
  }

  refuse(error: unknown): void {
    this.#call.refuse(error)
  }

  onLeave(why: Leaving): void {
    this.#call.mustLeave(why, this)
  }

  onAborted(reason: unknown): void {
    this.#call.abandon(reason, this)
  }
}
