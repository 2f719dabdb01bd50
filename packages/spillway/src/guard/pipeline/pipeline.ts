/**
 * The stages of one guard in the order of the table, and the loops over them. `check` is the one place that
 * answers "may this call begin?": for first attempts, retries, hedges and jobs.
 */
import { closedError, SpillwayError } from '../../core/errors.js'
import type { Outcome } from '../../core/outcome.js'
import { deadlineError } from '../../core/time/deadline.js'
import {
  type Answer,
  type CallKind,
  type CallResult,
  PendingGrant,
  type Permits,
  type Stage,
  type StageAttempt,
  type StageCall,
} from './stage.js'

type With<M extends keyof Stage> = Stage & Required<Pick<Stage, M>>

export class Pipeline {
  readonly name: string
  readonly stages: readonly Stage[]
  /** The guard is closed and starts nothing. */
  closed = false
  /** Stages that a call enters once, in order. */
  readonly entered: readonly With<'enter'>[]
  readonly #checks: Record<CallKind, readonly With<'check'>[]>
  /** Stages with a method, each with its place in `stages`. */
  readonly #acquiring: readonly [With<'acquire'>, number][]
  readonly #starting: readonly [With<'started'>, number][]
  readonly #answering: readonly [With<'answered'>, number][]
  /** Last stage first. */
  readonly #releasing: readonly [With<'release'>, number][]
  readonly #cancelling: readonly With<'cancel'>[]

  constructor(name: string, stages: readonly Stage[]) {
    this.name = name
    this.stages = stages
    const checks = stages.filter((stage): stage is With<'check'> => stage.check !== undefined)
    const ofAttempts = checks.filter(({ per }) => per === 'attempt')
    const ofJobs = checks.filter(({ forJobs }) => forJobs === true)
    this.#checks = { call: checks, attempt: ofAttempts, hedge: ofAttempts, job: ofJobs }
    this.entered = stages.filter((stage): stage is With<'enter'> => stage.enter !== undefined)
    this.#acquiring = placesOf(stages, 'acquire')
    this.#starting = placesOf(stages, 'started')
    this.#answering = placesOf(stages, 'answered')
    this.#releasing = placesOf(stages, 'release').reverse()
    this.#cancelling = placesOf(stages, 'cancel')
      .map(([stage]) => stage)
      .reverse()
  }

  /** Refusal by the first stage that has a reason, or undefined. Takes nothing. */
  check(call: StageCall, nowMs: number): SpillwayError | undefined {
    const expired = this.expired(call, nowMs)
    if (expired !== undefined) return expired
    for (const stage of this.#checks[call.kind]) {
      const refusal = stage.check(call, nowMs)
      if (refusal !== undefined) return refusal
    }
    return undefined
  }

  /**
   * Enters the stages that a call passes once, from the first that has not granted it anything yet. Returns a
   * refusal, or what the store has yet to decide. `grants`: by the stage's place in `entered`.
   */
  enter(
    call: StageCall,
    grants: unknown[],
    nowMs: number,
  ): SpillwayError | PendingGrant | undefined {
    for (let place = grants.length; place < this.entered.length; place++) {
      const grant = this.entered[place]?.enter(call, nowMs)
      if (grant instanceof PendingGrant || grant instanceof SpillwayError) return grant
      grants.push(grant)
    }
    return undefined
  }

  /** The guard is closed, or too little time is left. Checked again after every wait. */
  expired({ options, deadlineMs }: StageCall, nowMs: number): SpillwayError | undefined {
    if (this.closed) return closedError('queue', this.name)
    return deadlineMs - nowMs <= (options.needsMs ?? 0)
      ? deadlineError('queue', this.name)
      : undefined
  }

  /** Reason not to take jobs from their queue now, or undefined. */
  pausesJobs(job: StageCall, nowMs: number): SpillwayError | undefined {
    for (const stage of this.stages) {
      const refusal = stage.pausesJobs?.(job, nowMs)
      if (refusal !== undefined) return refusal
    }
    return undefined
  }

  /** An attempt has its permits: the stages that count attempts take their slot or token. */
  acquire(attempt: StageAttempt): SpillwayError | undefined {
    for (const [stage, place] of this.#acquiring) {
      const refusal = stage.acquire(attempt, place)
      if (refusal === undefined) continue
      this.#undo(attempt, place)
      return refusal
    }
    return undefined
  }

  started(attempt: StageAttempt): void {
    for (const [stage, place] of this.#starting) stage.started(attempt, place)
  }

  answered(attempt: StageAttempt, answer: Answer): void {
    for (const [stage, place] of this.#answering) stage.answered(attempt, answer, place)
  }

  /** Last stage first. */
  release(attempt: StageAttempt, outcome: Outcome, unfinished: Promise<unknown> | undefined): void {
    for (const [stage, place] of this.#releasing) {
      stage.release(attempt, outcome, unfinished, place)
    }
  }

  /** The permits of an attempt that does not start go back. */
  cancel(lane: string, permits: Permits): void {
    for (const stage of this.#cancelling) stage.cancel(lane, permits)
  }

  /** Releases what the call took in `enter`; `grants` are indexed like `entered`. */
  leave(grants: readonly unknown[], result: CallResult): void {
    for (let index = grants.length - 1; index >= 0; index--) {
      const grant = grants[index]
      if (grant !== undefined) this.entered[index]?.leave?.(grant, result)
    }
  }

  close(): void {
    for (const stage of this.stages) stage.close?.()
  }

  /** A later stage refused the attempt. */
  #undo(attempt: StageAttempt, before: number): void {
    for (let place = before - 1; place >= 0; place--) {
      this.stages[place]?.giveBack?.(attempt, place)
    }
    this.cancel(attempt.laneInUse, attempt.permits)
  }
}

function placesOf<M extends keyof Stage>(stages: readonly Stage[], method: M): [With<M>, number][] {
  return stages.flatMap((stage, place): [With<M>, number][] =>
    stage[method] === undefined ? [] : [[stage as With<M>, place]],
  )
}
