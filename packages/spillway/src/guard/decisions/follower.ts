/** What the calls of a guard report to the log of decisions. */
import type { Verdict } from '../../core/outcome.js'
import type { Permits, StageCall } from '../pipeline/stage.js'
import type { RunOptions } from '../run-options.js'
import type { UsedFallback } from '../stages/fallback.js'

export interface CallFacts {
  options: RunOptions
  lane: string
  /** 0 is the most important. */
  priority: number
  arrivedMs: number
}

/** Follows one call. */
export interface CallFollower {
  /** The call's options, changed so that the user limits also report here. */
  listening(): RunOptions
  /** The stages of the call have let it in. */
  entered(call: StageCall): void
  /** It waits in the queue. */
  waits(nowMs: number): void
  /** An attempt has its permits and starts. */
  begins(call: StageCall, permits: Permits, startMs: number): void
  /** An attempt has ended, or a streamed answer begun. */
  judged(verdict: Verdict): void
  succeeded(): void
  failed(error: unknown): void
}

export interface DecisionWatcher {
  /** A call has arrived. Returns its follower, if it is one of those that are followed. */
  begin(
    options: RunOptions,
    lane: string,
    priority: number,
    arrivedMs: number,
  ): CallFollower | undefined
  /** A call was refused before its first attempt. */
  refused(follower: CallFollower | undefined, error: unknown, facts: () => CallFacts): void
  /** A fallback of the gateway answered in place of a call. */
  degraded(used: UsedFallback, lane: string): void
}
