/** The context that a guarded function gets. */
import type { Deadline } from '../../core/time/deadline.js'
import type { Cost } from '../../shared/rate-limiter/permit.js'

/** What a guarded function receives: the signal that aborts it, its deadline, and how to settle its cost. */
export interface CallContext {
  /** Aborted on a timeout or when the caller aborts. Created when it is first read. */
  readonly signal: AbortSignal
  /** Calls `run` on abort, which costs less than creating a signal. One function at a time. */
  onAbort(run: (reason: unknown) => void): void
  /** The deadline of the call, if it has one. */
  readonly deadline: Deadline | undefined
  /** The guard that runs the function; in a fallback, the fallback's guard. */
  readonly guard: string
  /** 1 for the first attempt. */
  readonly attempt: number
  /** It is a second attempt beside a slow one. */
  readonly hedge: boolean
  /** The lane that the call named, also if it shares the lane `(other)`; that of a hedge may differ. */
  readonly lane: string
  /** Headers that continue the trace downstream; undefined without a tracer. */
  readonly traceHeaders: Readonly<Record<string, string>> | undefined
  /** Reports that bytes arrived: ends `firstByteMs`, restarts `idleMs`. */
  readonly progress: () => void
  /** Reports the actual cost by unit. Less than estimated is returned, more becomes debt. */
  readonly settle: (actual: Cost) => void
}

/** A function that a guard runs. It may return a value, a promise or a stream. */
export type CallFunction<T> = (context: CallContext) => T | PromiseLike<T>
