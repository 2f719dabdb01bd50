/**
 * Whoever wants to follow every call from its beginning to its end. A guard knows tracers only as a port;
 * OpenTelemetry's is in `observe/`. Without one it costs a branch.
 */
import type { Outcome } from '../../core/outcome.js'
import type { CallFunction } from './context.js'

export interface GuardTracer {
  /** A call has come. */
  begin(call: {
    readonly guard: string
    readonly lane: string
    /** What it is part of, in the tracer's own words; nothing: what is going on at the moment. */
    readonly parent: unknown
  }): CallTrace
}

export interface CallTrace {
  attempt(facts: {
    readonly lane: string
    readonly attempt: number
    readonly hedge: boolean
  }): AttemptTrace
  /** Its caller has an answer, or the beginning of one. */
  answered(): void
  /** Its caller has an error. */
  refused(error: unknown): void
}

export interface AttemptTrace {
  /** Runs what belongs to it. */
  run<T>(fn: () => T): T
  /** To be sent along, for whoever goes on with the trace. */
  readonly headers: Readonly<Record<string, string>>
  failed(error: unknown): void
  /** All is over, the body of its answer included. */
  end(outcome: Outcome): void
}

export function tracedFunction<T>(trace: AttemptTrace, fn: CallFunction<T>): CallFunction<T> {
  return (context) => trace.run(() => fn(context))
}
