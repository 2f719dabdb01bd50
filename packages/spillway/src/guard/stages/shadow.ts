/**
 * Shadow mode: wraps a stage, reports what it would have refused, and lets every call pass. Shows the effect of a
 * limit before it is enforced.
 */
import { SpillwayError } from '../../core/errors.js'
import { callSafely, emit, listening } from '../../core/events.js'
import { isThenable } from '../../core/thenable.js'
import type { MaybePromise } from '../../store/port.js'
import { type PendingCall, PendingGrant, type Stage, type StageAttempt } from '../pipeline/stage.js'
import type { RunOptions } from '../run-options.js'

/** A stage that delays attempts reports at their start what it would have done. */
export interface ShadowedStage extends Stage {
  wouldRefuse?(attempt: StageAttempt): MaybePromise<SpillwayError | undefined>
}

export interface ShadowReporter {
  readonly guard: string
  /** Counts the refusal. */
  count(refusal: SpillwayError): void
}

export function inShadow(stage: ShadowedStage, reporter: ShadowReporter): Stage {
  const { wouldRefuse } = stage
  const report = (refusal: SpillwayError, lane: string, { onShadow }: RunOptions): undefined => {
    const { guard: name } = reporter
    reporter.count(refusal)
    if (listening()) {
      const { stage: refusing, code, retryAfterMs, details } = refusal
      emit({
        type: 'guard.would-have-refused',
        name,
        lane,
        stage: refusing,
        code,
        retryAfterMs,
        details,
      })
    }
    if (onShadow !== undefined) callSafely(name, 'onShadow', () => onShadow(refusal), undefined)
  }

  const passing: Stage = {
    name: stage.name,
    scope: stage.scope,
    per: stage.per,
    ...(stage.forJobs !== undefined && { forJobs: stage.forJobs }),
  }
  if (stage.check !== undefined) {
    passing.check = (call, nowMs) => {
      const refusal = stage.check?.(call, nowMs)
      return refusal && report(refusal, call.lane, call.options)
    }
  }
  if (stage.enter !== undefined) {
    passing.enter = (call, nowMs) => {
      const wrap = (grant: unknown) =>
        grant instanceof SpillwayError ? report(grant, call.lane, call.options) : grant
      const grant = stage.enter?.(call, nowMs)
      return grant instanceof PendingGrant ? new ShadowPendingGrant(grant, wrap) : wrap(grant)
    }
  }
  if (stage.acquire !== undefined) {
    passing.acquire = (attempt, place) => {
      const refusal = stage.acquire?.(attempt, place)
      return refusal && report(refusal, attempt.laneInUse, attempt.options)
    }
  }
  if (wouldRefuse !== undefined || stage.started !== undefined) {
    passing.started = (attempt, place) => {
      stage.started?.(attempt, place)
      const refusal = wouldRefuse?.call(stage, attempt)
      const decided = (each: SpillwayError | undefined) =>
        each && report(each, attempt.laneInUse, attempt.options)
      if (isThenable(refusal)) void refusal.then(decided)
      else decided(refusal)
    }
  }
  for (const method of [
    'leave',
    'giveBack',
    'answered',
    'release',
    'cancel',
    'passed',
    'snapshot',
    'close',
  ] as const) {
    if (stage[method] !== undefined) Object.assign(passing, { [method]: stage[method].bind(stage) })
  }
  return passing
}

/** A pending grant in shadow mode: if the store refuses, the call still passes. */
class ShadowPendingGrant extends PendingGrant {
  readonly #grant: PendingGrant
  readonly #wrap: (grant: unknown) => unknown

  constructor(grant: PendingGrant, wrap: (grant: unknown) => unknown) {
    super()
    this.#grant = grant
    this.#wrap = wrap
  }

  whenDecided(call: PendingCall): void {
    this.#grant.whenDecided({
      deadlineMs: call.deadlineMs,
      signal: call.signal,
      runInAsyncScope: (run, self, argument) => call.runInAsyncScope(run, self, argument),
      onDecided: (grant) => call.onDecided(this.#wrap(grant)),
      onLeft: (reason) => call.onLeft(reason),
    })
  }
}
