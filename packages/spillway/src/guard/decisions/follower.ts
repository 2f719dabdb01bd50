/** Interface between the calls of a guard and the log of decisions. */
import type { CallEnd, Verdict } from '../../core/outcome.js'
import type { Permits, StageCall } from '../pipeline/stage.js'
import type { RunOptions } from '../run-options.js'
import type { ReplacedCall, ReplacingOptions } from './replaced-call.js'

export interface CallFacts {
  options: ReplacingOptions
  lane: string
  /** 0 is the most important. */
  priority: number
  arrivedMs: number
}

/** Starts to trace one call. */
export interface CallFollower {
  /** The call's options, changed so that the user limits also report here. */
  listening(): RunOptions
  /** The call has passed the stages that run once per call. */
  entered(call: StageCall): void
  /** The call waits in the queue. */
  waits(nowMs: number): void
  /** An attempt has its permits and starts. */
  begins(call: StageCall, permits: Permits, startMs: number): void
  /** An attempt has ended, or a streamed answer begun. */
  judged(verdict: Verdict, end: CallEnd): void
  succeeded(): void
  failed(error: unknown): void
}

/** A call in whose place a fallback answered. */
export interface DegradedCall {
  /** Name of the fallback. */
  readonly step: string
  /** Why the call failed, or was not made. */
  readonly reason: string
  readonly call: Pick<RunOptions, 'lane' | 'user' | 'tier' | 'priority' | 'requestId'>
  /** How the call ended. Default: only the reason is known. */
  readonly replaces?: ReplacedCall | undefined
  readonly arrivedMs: number
  readonly attempts: number
}

export interface DecisionWatcher {
  /** A call has arrived. Returns its follower, if it is one of those that are followed. */
  begin(
    options: ReplacingOptions,
    lane: string,
    priority: number,
    arrivedMs: number,
  ): CallFollower | undefined
  /** A call was refused before its first attempt. */
  refused(follower: CallFollower | undefined, error: unknown, facts: () => CallFacts): void
  /** A fallback of the gateway answered in place of a call. */
  degraded(call: DegradedCall, lane: string): void
}
