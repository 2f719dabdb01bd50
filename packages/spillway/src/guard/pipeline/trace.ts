/** The port for tracers, which follow every call from its beginning to its end. OpenTelemetry's is in `observe/`. */
import type { Outcome } from '../../core/outcome.js'
import type { CallFunction } from './context.js'

/** Receives the calls of guards, for tracing. */
export interface GuardTracer {
  /** A call has arrived. */
  begin(call: {
    readonly guard: string
    readonly lane: string
    /** The parent span, as the tracer represents it; undefined: the active one. */
    readonly parent: unknown
  }): CallTrace
}

/** Receives the events of one call. */
export interface CallTrace {
  /** An attempt starts. */
  attempt(facts: {
    readonly lane: string
    readonly attempt: number
    readonly hedge: boolean
  }): AttemptTrace
  /** The caller has an answer, or the beginning of one. */
  answered(): void
  /** The caller has an error. */
  refused(error: unknown): void
}

/** Receives the events of one attempt. */
export interface AttemptTrace {
  /** Runs `fn` within the trace. */
  run<T>(fn: () => T): T
  /** Headers that continue the trace downstream. */
  readonly headers: Readonly<Record<string, string>>
  /** The attempt failed with this error. */
  failed(error: unknown): void
  /** The attempt has ended, the body of its answer included. */
  end(outcome: Outcome): void
}

export function tracedFunction<T>(trace: AttemptTrace, fn: CallFunction<T>): CallFunction<T> {
  return (context) => trace.run(() => fn(context))
}
