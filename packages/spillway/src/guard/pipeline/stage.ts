/**
 * A stage: one step of the pipeline. A stage implements the methods it needs, and the loops of `pipeline.ts` call
 * them in the order of the table in `stages.ts`. Stages do not call each other.
 */
import type { Details, Scope, SpillwayError, Stage as StageName } from '../../core/errors.js'
import type { CallEnd, Outcome, Verdict } from '../../core/outcome.js'
import type { AttemptPermits, CallCost, PermitCall } from '../../shared/permit-queue/ports.js'
import type { RunOptions } from '../run-options.js'

/** Grants of breaker and vendor limits for one attempt. */
export type Permits = AttemptPermits
/** A call that waits in the queue for its permits. */
export type QueuedAttempt = PermitCall

/**
 * `call`: a call that has just arrived. `attempt`: an attempt of a call that was let in, the first one or a
 * retry. `hedge`: a second attempt beside a slow one. `job`: a job of a job queue.
 */
export type CallKind = 'call' | 'attempt' | 'hedge' | 'job'

/** A call as stages see it before its attempt starts. */
export interface StageCall extends CallCost {
  readonly kind: CallKind
  readonly options: RunOptions
  /** The lane in use: the call's own, or the shared one if that does not exist. */
  readonly lane: string
  /** 0 is the most important. */
  readonly priority: number
  readonly arrivedMs: number
  /** Infinite without a deadline. */
  readonly deadlineMs: number
  /** 1 for the first. */
  readonly attempt: number
  /** Of a job, if it has one. */
  readonly tenant?: string | undefined
}

/** An attempt that has its permits. */
export interface StageAttempt {
  readonly options: RunOptions
  /** The lane in use, as in `StageCall`. */
  readonly laneInUse: string
  /** 1 for the first. */
  readonly attempt: number
  readonly hedge: boolean
  readonly job: boolean
  /** Of a job, if it has one. */
  readonly tenant: string | undefined
  readonly startMs: number
  readonly permits: Permits
  /** Grant of each stage for this attempt, by the stage's index in the pipeline. */
  readonly kept: unknown[]
}

/** The answer of an attempt: its end, or the beginning of a streamed body. */
export interface Answer {
  readonly end: CallEnd
  readonly verdict: Verdict
  /** Status and headers of the downstream's response, if the end has them. */
  readonly response: { status: number; headers: unknown } | undefined
  /** Its body is still on its way: the attempt is released when that has ended. */
  readonly streaming: boolean
}

/** How a call ended, for the stages of the call. */
export interface CallResult {
  /** At least one attempt started. */
  readonly ran: boolean
  /** Of the last attempt; undefined if none started. */
  readonly outcome: Outcome | undefined
}

/** Returned by `enter` if the store has to decide first. */
export abstract class PendingGrant {
  /** Called once: with the grant or the refusal, or when the call left before. */
  abstract whenDecided(call: PendingCall): void
}

/** A call that waits for the store's decision on a stage that it enters. */
export interface PendingCall {
  readonly deadlineMs: number
  readonly signal: RunOptions['signal']
  /** The caller's async context. */
  runInAsyncScope<A>(run: (argument: A) => void, self: unknown, argument: A): void
  onDecided(grant: unknown): void
  /** The call has left: its caller aborted, or its deadline passed. */
  onLeft(reason: unknown): void
}

export interface Stage {
  readonly name: StageName
  readonly scope: Scope
  readonly per: 'call' | 'attempt'
  /** `check` and `enter` are called for jobs as well. Other stages grant jobs when the store hands them out. */
  readonly forJobs?: boolean
  /** A reason to refuse that this pod knows without I/O. Takes nothing. */
  check?(call: StageCall, nowMs: number): SpillwayError | undefined
  /** `check` for jobs that have not been taken from their queue yet: a refusal holds them back. */
  pausesJobs?(call: StageCall, nowMs: number): SpillwayError | undefined
  /** Once per call: returns a grant (undefined: nothing taken), a `SpillwayError`, or a `PendingGrant`. */
  enter?(call: StageCall, nowMs: number): unknown
  /** Releases the grant of `enter`, when the call and the body of its answer have ended. */
  leave?(grant: unknown, result: CallResult): void
  /** Once for each attempt that has its permits. A refusal ends the attempt before it starts. */
  acquire?(attempt: StageAttempt, place: number): SpillwayError | undefined
  /** A later stage refused the attempt: releases the grant of `acquire`. */
  giveBack?(attempt: StageAttempt, place: number): void
  /** The attempt starts now. */
  started?(attempt: StageAttempt, place: number): void
  /** The attempt has been answered, or has failed. */
  answered?(attempt: StageAttempt, answer: Answer, place: number): void
  /**
   * The attempt is over, its streamed body included. `unfinished`: work that still runs although the caller
   * already has its answer.
   */
  release?(
    attempt: StageAttempt,
    outcome: Outcome,
    unfinished: Promise<unknown> | undefined,
    place: number,
  ): void
  /** An attempt that has its permits does not start. */
  cancel?(lane: string, permits: Permits): void
  /** Numbers behind the decision to pass a call, for the log of decisions; undefined if there are none. */
  passed?(call: StageCall, permits: Permits | undefined, nowMs: number): Details | undefined
  /** The stage's own state, for `guard.snapshot().stages`. */
  snapshot?(): unknown
  close?(): void
}
