/** What a guarded function is given. */
import type { Deadline } from '../../core/time/deadline.js'
import type { Cost } from '../../shared/rate-limiter/permit.js'

export interface CallContext {
  /** Aborted when the time is up or the caller aborts. Made when first looked at. */
  readonly signal: AbortSignal
  /** The same without a signal, which costs more than all stages together. One at a time. */
  onAbort(run: (reason: unknown) => void): void
  /** The moment all must be over, if there is one. */
  readonly deadline: Deadline | undefined
  /** The guard it runs under: in a fallback it is another than the one that was called. */
  readonly guard: string
  /** 1 for the first attempt. */
  readonly attempt: number
  /** A second attempt beside the first, which is taking long. */
  readonly hedge: boolean
  /** The lane that the call named; a hedge may have another. Also of a call that shares the lane `(other)`. */
  readonly lane: string
  /** What to send along so that whoever is called goes on with the trace; nothing without a tracer. */
  readonly traceHeaders: Readonly<Record<string, string>> | undefined
  /** Reports a sign of life: bytes arrived. Ends `firstByteMs`, restarts `idleMs`. */
  readonly progress: () => void
  /** Says what the call really cost, by unit. Less than was booked goes back, more becomes debt. */
  readonly settle: (actual: Cost) => void
}

export type CallFunction<T> = (context: CallContext) => T | PromiseLike<T>
