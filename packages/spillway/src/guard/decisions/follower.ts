/** What a guard's calls tell whoever wants to know why things were decided as they were. */
import type { Verdict } from '../../core/outcome.js'
import type { RunOptions } from '../run-options.js'

/** What a call says of itself. */
export interface CallFacts {
  options: RunOptions
  lane: string
  importance: number
  arrivedMs: number
}

/** Follows one call. */
export interface CallFollower {
  /** The call's options, with which the user's limits tell this as well. */
  listening(): RunOptions
  /** Stages 1 and 2 have let it through. */
  entered(): void
  /** It goes into the room. */
  waits(nowMs: number): void
  /** An attempt begins: it has everything. */
  begins(attempt: number, admission: { breaker?: unknown; permit?: unknown }, startMs: number): void
  /** An attempt has ended, or a streamed answer begun. */
  judged(verdict: Verdict): void
  succeeded(): void
  failed(error: unknown): void
}

export interface DecisionWatcher {
  /** A call has come. Nothing: nobody follows it. */
  begin(
    options: RunOptions,
    lane: string,
    importance: number,
    arrivedMs: number,
  ): CallFollower | undefined
  /** A call was refused before it began. */
  refused(follower: CallFollower | undefined, error: unknown, facts: () => CallFacts): void
}
