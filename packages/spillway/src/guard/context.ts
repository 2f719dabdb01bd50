/** What a guarded function is given. */
import type { Deadline } from '../core/deadline.js'
import type { TimeoutContext } from '../local/timed-call.js'
import type { Cost, Permit } from '../shared/rate-limiter/permit.js'

export interface CallContext {
  /** Aborted when the time is up or the caller aborts. Made when first looked at. */
  readonly signal: AbortSignal
  /** The moment all must be over, if there is one. */
  readonly deadline: Deadline | undefined
  /** 1 for the first attempt. */
  readonly attempt: number
  /** Reports a sign of life: bytes arrived. Ends `firstByteMs`, restarts `idleMs`. */
  readonly progress: () => void
  /** Says what the call really cost, by unit. Less than was booked goes back, more becomes debt. */
  readonly settle: (actual: Cost) => void
}

export class AttemptContext implements CallContext {
  readonly #timed: TimeoutContext
  readonly attempt: number
  readonly #permit: Permit | undefined

  constructor(timed: TimeoutContext, attempt: number, permit: Permit | undefined) {
    this.#timed = timed
    this.attempt = attempt
    this.#permit = permit
  }

  get signal(): AbortSignal {
    return this.#timed.signal
  }

  get deadline(): Deadline | undefined {
    return this.#timed.deadline
  }

  get progress(): () => void {
    return this.#timed.progress
  }

  /** Bound when looked at, because a context is taken apart: `({ signal, settle }) => …`. */
  get settle(): (actual: Cost) => void {
    return (actual) => this.#permit?.settle(actual)
  }
}
