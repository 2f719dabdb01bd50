/** Traces one call stage by stage. Only a sample of calls is traced, so a trace may cost CPU time. */
import {
  type Details,
  type Scope,
  SpillwayError,
  type Stage as StageName,
} from '../../core/errors.js'
import { answerOf, type CallEnd, type Outcome, type Verdict } from '../../core/outcome.js'
import type { GuardParts } from '../build-guard.js'
import type { Permits, Stage, StageCall } from '../pipeline/stage.js'
import type { RunOptions, UserStanding } from '../run-options.js'
import type { PathNote } from './decision-record.js'
import type { CallFacts, CallFollower } from './follower.js'

/** The parts of a guard that a trace reads. */
export type TracedGuard = Pick<GuardParts, 'clock' | 'store' | 'pipeline'>

/** Receives how the call ended. */
export interface TraceListener {
  succeeded(trace: CallTrace, facts: CallFacts): void
  failed(trace: CallTrace, facts: CallFacts, error: unknown): void
}

export class CallTrace implements CallFollower {
  readonly path: PathNote[] = []
  attempts = 0
  /** HTTP status of the last attempt; undefined without an attempt or a status. */
  outcome: Outcome | undefined
  status: number | undefined
  /** Age of the oldest shared state that was used; undefined: none was. */
  sharedAgeMs: number | undefined
  readonly #listener: TraceListener
  readonly #guard: TracedGuard
  readonly #facts: CallFacts
  #entered = false
  #waitsSinceMs: number | undefined
  #standing: UserStanding | undefined
  #over = false

  constructor(listener: TraceListener, guard: TracedGuard, facts: CallFacts) {
    this.#listener = listener
    this.#guard = guard
    this.#facts = facts
  }

  listening(): RunOptions {
    const { onUserLimit } = this.#facts.options
    return {
      ...this.#facts.options,
      onUserLimit: (standing) => {
        this.#standing = standing
        return onUserLimit?.(standing)
      },
    }
  }

  /** The call has passed the stages that run once per call. */
  entered(call: StageCall): void {
    this.#entered = true
    this.#notePassed(call, undefined)
  }

  waits(nowMs: number): void {
    this.#waitsSinceMs = nowMs
  }

  begins(call: StageCall, permits: Permits, startMs: number): void {
    const { attempt } = call
    this.attempts = attempt
    for (const stage of this.#guard.pipeline.stages) {
      const numbers = stage.passed?.(call, permits, startMs)
      if (stage.name === 'queue') this.#noteWait(attempt, startMs, numbers !== undefined)
      else if (stage.per === 'attempt' && numbers !== undefined) {
        this.#noteAge(stage, numbers)
        this.#note(stage, attempt, 'passed', numbers)
      }
    }
  }

  /** An attempt has ended, or a streamed answer begun. */
  judged({ outcome, retryable }: Verdict, end: CallEnd): void {
    const status = answerOf(end)?.status
    this.outcome = outcome
    this.status = status
    const answer = status === undefined ? undefined : { status }
    this.#note(CALL, this.attempts, 'ended', { outcome, retryable, ...answer })
  }

  succeeded(): void {
    if (this.#ends()) this.#listener.succeeded(this, this.#facts)
  }

  /** The call has failed, or was refused. */
  failed(error: unknown): void {
    if (!this.#ends()) return
    if (error instanceof SpillwayError) this.#noteRefusal(error)
    this.#listener.failed(this, this.#facts, error)
  }

  #noteRefusal(error: SpillwayError): void {
    const { stages } = this.#guard.pipeline
    const stage = stages.find(({ name }) => name === error.stage)
    const ofCall = stage?.per === 'call' && stage.name !== 'queue'
    if (!this.#entered) {
      const { options, lane, priority, arrivedMs } = this.#facts
      const deadlineMs = Number.POSITIVE_INFINITY
      const price = { cost: options.cost, costs: [], costsUnder: undefined }
      const call = { kind: 'call', options, lane, priority, arrivedMs, deadlineMs } as const
      this.#notePassed({ ...call, ...price, attempt: 1 }, error.stage)
    }
    const refusing = stage ?? { name: error.stage, scope: error.scope }
    this.#note(refusing, ofCall ? 0 : this.attempts + 1, 'refused', error.details)
  }

  /** Notes the per-call stages that the call has passed, up to `until`. */
  #notePassed(call: StageCall, until: StageName | undefined): void {
    const nowMs = this.#guard.clock.now()
    for (const stage of this.#guard.pipeline.stages) {
      if (stage.name === until) return
      if (stage.per !== 'call' || stage.name === 'queue') continue
      if (stage.name === 'user-limit') {
        if (until === undefined) this.#note(stage, 0, 'passed', this.#userNumbers())
      } else if (stage.passed !== undefined) {
        this.#note(stage, 0, 'passed', stage.passed(call, undefined, nowMs), 0)
      }
    }
  }

  #noteWait(attempt: number, startMs: number, hasQueue: boolean): void {
    const since = this.#waitsSinceMs
    this.#waitsSinceMs = undefined
    if (since === undefined && !hasQueue) return
    const waitedMs = since === undefined ? 0 : startMs - since
    this.#note(QUEUE, attempt, waitedMs > 0 ? 'waited' : 'passed', { waitedMs })
  }

  #noteAge({ name }: Stage, { ageMs, byOutageRule }: Details): void {
    // The store was consulted for this decision.
    if (name === 'vendor-limit' && byOutageRule === false) this.sharedAgeMs ??= 0
    if (name === 'breaker' && this.#guard.store.remote) {
      this.sharedAgeMs = Math.max(this.sharedAgeMs ?? 0, Number(ageMs))
    }
  }

  #ends(): boolean {
    const first = !this.#over
    this.#over = true
    return first
  }

  #note(
    { name, scope }: { readonly name: StageName; readonly scope: Scope },
    attempt: number,
    verdict: PathNote['verdict'],
    numbers: Details | undefined,
    atMs = this.#guard.clock.now() - this.#facts.arrivedMs,
  ): void {
    this.path.push({ stage: name, attempt, atMs, verdict, scope, numbers })
  }

  #userNumbers(): Details | undefined {
    if (this.#standing === undefined) return undefined
    const { level, limit, remaining, windowMs } = this.#standing
    this.sharedAgeMs ??= 0
    return { level, limit, remaining, windowMs }
  }
}

const CALL = { name: 'call', scope: 'local' } as const
const QUEUE = { name: 'queue', scope: 'local' } as const
