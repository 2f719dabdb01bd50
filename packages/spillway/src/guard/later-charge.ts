/**
 * A charge of a user's limits that a store elsewhere is asked for. Its call hears what came of it in its
 * own caller's async context, whoever the answer came with. Neither the caller's signal nor its
 * deadline waits for that: what was charged for a call that is gone is given back.
 */
import { type CallerSignal, onAbort } from '../core/abort.js'
import type { SpillwayError } from '../core/errors.js'
import type { Clock, Timer } from '../core/time/clock.js'
import type { Deadline } from '../core/time/deadline.js'
import type { ReplyListener } from '../shared/user-limits/batcher.js'
import type { UserReply } from '../shared/user-limits/charges.js'
import type { UserRequest } from '../shared/user-limits/levels.js'
import type { RunOptions } from './run-options.js'

/** What the replies are read by. */
export interface ChargeReader {
  answer(subject: RunOptions, request: UserRequest, reply: UserReply): UserRequest | SpillwayError
  failure(error: unknown): SpillwayError
  refund(request: UserRequest): void
}

/** Who waits for it. Hears of it once. */
export interface ChargedCall {
  /** What was charged, or why not. */
  onCharged(charge: UserRequest | SpillwayError): void
  runInAsyncScope<A>(run: (argument: A) => void, self: unknown, argument: A): void
}

/** One that may be gone by then; a job may not. */
export interface LeavingCall {
  readonly signal: CallerSignal | undefined
  onChargeLate(): void
  onChargeLeft(reason: unknown): void
}

export class LaterCharge implements ReplyListener<UserReply> {
  readonly #reader: ChargeReader
  readonly #subject: RunOptions
  readonly #request: UserRequest
  readonly #call: ChargedCall
  /** The call has heard, or is gone. */
  #over = false
  #timer: Timer | undefined
  #forget: (() => void) | undefined

  constructor(reader: ChargeReader, subject: RunOptions, request: UserRequest, call: ChargedCall) {
    this.#reader = reader
    this.#subject = subject
    this.#request = request
    this.#call = call
  }

  /** From now on the call may leave. */
  heed(call: LeavingCall, deadline: Deadline | undefined, clock: Clock): void {
    if (deadline !== undefined) {
      this.#timer = clock.schedule(deadline.remainingMs(), () => {
        this.#end()
        call.onChargeLate()
      })
    }
    const { signal } = call
    if (signal === undefined) return
    const leave = (reason: unknown) => {
      this.#end()
      call.onChargeLeft(reason)
    }
    try {
      this.#forget = onAbort(signal, () => leave(signal.reason))
    } catch (error) {
      // What the caller calls a signal is none.
      leave(error)
    }
  }

  onReply(reply: UserReply): void {
    this.#call.runInAsyncScope(this.#hear, this, reply)
  }

  onFailure(error: unknown): void {
    this.#call.runInAsyncScope(this.#tell, this, this.#reader.failure(error))
  }

  #hear(reply: UserReply): void {
    this.#tell(this.#reader.answer(this.#subject, this.#request, reply))
  }

  #tell(charge: UserRequest | SpillwayError): void {
    if (!this.#over) {
      this.#end()
      this.#call.onCharged(charge)
    } else if (!(charge instanceof Error)) this.#reader.refund(charge)
  }

  #end(): void {
    this.#over = true
    this.#timer?.cancel()
    this.#forget?.()
  }
}
