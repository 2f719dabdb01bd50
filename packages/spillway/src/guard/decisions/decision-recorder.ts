/** Records the decisions of one guard in the log, and counts them by lane while a dashboard is open. */

import { type ErrorCode, SpillwayError, type Stage } from '../../core/errors.js'
import { boundedName } from '../../core/long-name.js'
import { PRIORITIES } from '../../core/options/priority.js'
import type { GuardParts } from '../build-guard.js'
import { CallTrace, type TracedGuard, type TraceListener } from './call-trace.js'
import {
  type DecisionEnd,
  endOfAnswer,
  FALLBACK_REASONS,
  isClientError,
  kindOf,
  NOT_REFUSED,
} from './decision-end.js'
import type { DecisionLog } from './decision-log.js'
import type { DecisionRecord, PathNote } from './decision-record.js'
import type { CallFacts, CallFollower, DecisionWatcher, DegradedCall } from './follower.js'
import { REPLACES, type ReplacingOptions } from './replaced-call.js'

/** At least one refusal of each code is recorded in this time, independent of the number of other refusals. */
const AT_LEAST_EVERY_MS = 1_000
const MOST_LANES = 100

export interface LaneFlow {
  calls: number
  refused: { stage: Stage; code: ErrorCode; count: number }[]
}

/** The parts of a guard that the recorder reads to explain decisions. */
export type DecidingGuard = TracedGuard & Pick<GuardParts, 'name' | 'breaker' | 'queue'>

export class DecisionRecorder implements DecisionWatcher, TraceListener {
  readonly #guard: DecidingGuard
  readonly #log: DecisionLog
  readonly #notedMs = new Map<ErrorCode, number>()
  #flows = new Map<string, LaneFlow>()

  constructor(guard: DecidingGuard, log: DecisionLog) {
    this.#guard = guard
    this.#log = log
  }

  begin(
    options: ReplacingOptions,
    lane: string,
    priority: number,
    arrivedMs: number,
  ): CallTrace | undefined {
    const log = this.#log
    if (log.watched) {
      const flow = this.#flow(lane)
      if (flow !== undefined) flow.calls++
    }
    const replaced = options[REPLACES] === undefined ? undefined : options.requestId
    if (!log.callArrived(arrivedMs, replaced)) return undefined
    return new CallTrace(this, this.#guard, { options, lane, priority, arrivedMs })
  }

  /** A call was refused before its first attempt. */
  refused(trace: CallFollower | undefined, error: unknown, facts: () => CallFacts): void {
    if (error instanceof SpillwayError && this.#log.watched) this.#count(facts().lane, error)
    if (trace !== undefined) return trace.failed(error)
    if (!(error instanceof SpillwayError)) return
    const nowMs = this.#guard.clock.now()
    const { code } = error
    const isRare = nowMs - (this.#notedMs.get(code) ?? Number.NEGATIVE_INFINITY) > AT_LEAST_EVERY_MS
    if (!isRare && !this.#log.mayRecord(nowMs)) return
    this.failed(undefined, facts(), error)
  }

  /** The call returned a value, which may be an answer such as a 503. */
  succeeded(trace: CallTrace, facts: CallFacts): void {
    const { outcome = 'success', status, sharedAgeMs } = trace
    const end = endOfAnswer(outcome, status)
    this.#note(trace, facts, { ...NOT_REFUSED, ...end, status, sharedAgeMs })
  }

  failed(trace: CallTrace | undefined, facts: CallFacts, error: unknown): void {
    const { signal } = facts.options
    if (error instanceof SpillwayError) {
      const { code, stage, scope, retryAfterMs, details, message } = error
      this.#notedMs.set(code, this.#guard.clock.now())
      const sharedAgeMs = this.#ageOf(facts.lane, stage, error.scope) ?? trace?.sharedAgeMs
      const end = { code, stage, scope, retryAfterMs, why: message, details, sharedAgeMs }
      return this.#note(trace, facts, { ...end, status: undefined })
    }
    const { sharedAgeMs, attempts, status } = trace ?? {}
    if (signal?.aborted === true && signal.reason === error) {
      const stage = attempts === 0 ? 'queue' : 'call'
      const end = { ...NOT_REFUSED, stage, why: 'the caller aborted the call', sharedAgeMs }
      return this.#note(trace, facts, { ...end, code: 'ABORTED', status: undefined })
    }
    const code = isClientError(status) ? 'REJECTED' : 'FAILED'
    const why = `the call failed: ${kindOf(error)}`
    this.#note(trace, facts, { ...NOT_REFUSED, code, why, status, sharedAgeMs })
  }

  /** A fallback of the gateway answered in place of a call. */
  degraded(used: DegradedCall, lane: string): void {
    const { step, reason, call, arrivedMs, attempts, replaces } = used
    const nowMs = this.#guard.clock.now()
    if (!this.#log.mayRecord(nowMs, call.requestId)) return
    const priority = PRIORITIES.indexOf(call.priority ?? 'normal')
    const end = {
      code: 'DEGRADED',
      stage: 'fallback',
      scope: 'local',
      retryAfterMs: undefined,
      why: `the fallback ${step} answered, because ${FALLBACK_REASONS[reason] ?? reason}`,
      details: { step, reason },
      status: undefined,
      sharedAgeMs: undefined,
    } as const
    const options = replaces === undefined ? call : { ...call, [REPLACES]: replaces }
    this.#note(undefined, { options, lane, priority, arrivedMs }, end, attempts)
  }

  /** The counts by lane since the previous call of this method. */
  takeFlows(): ReadonlyMap<string, LaneFlow> {
    const flows = this.#flows
    this.#flows = new Map()
    return flows
  }

  #note(
    trace: CallTrace | undefined,
    { options, lane, priority, arrivedMs }: CallFacts,
    end: DecisionEnd,
    attempts = trace?.attempts ?? 0,
  ): void {
    const tookMs = this.#guard.clock.now() - arrivedMs
    const replaces = options[REPLACES]
    // The replaced call was charged to the user limits, so the user is in its record.
    const { user = replaces?.user, tier = replaces?.tier, requestId } = options
    this.#log.note({
      arrivedMs,
      tookMs,
      requestId: requestId && boundedName(requestId),
      guard: this.#guard.name,
      lane,
      user: user && boundedName(user),
      tier: tier && boundedName(tier),
      replaces,
      importance: priority,
      attempts,
      path: trace?.path ?? [endOf(end, tookMs)],
      traced: trace !== undefined,
      ...end,
    })
  }

  /** The age of the shared state behind a decision. */
  #ageOf(lane: string, stage: Stage, scope: 'local' | 'shared'): number | undefined {
    if (scope === 'local' || !this.#guard.store.remote) return undefined
    const { breaker, queue, clock } = this.#guard
    if (stage === 'breaker') return breaker?.snapshot(lane).ageMs
    if (stage === 'vendor-limit') return queue.dispatcher.blocks.replyAgeMs(lane, clock.now())
    return 0
  }

  #count(lane: string, { stage, code }: SpillwayError): void {
    const refused = this.#flow(lane)?.refused
    if (refused === undefined) return
    const known = refused.find((each) => each.stage === stage && each.code === code)
    if (known === undefined) refused.push({ stage, code, count: 1 })
    else known.count++
  }

  #flow(lane: string): LaneFlow | undefined {
    const known = this.#flows.get(lane)
    if (known !== undefined || this.#flows.size >= MOST_LANES) return known
    const fresh: LaneFlow = { calls: 0, refused: [] }
    this.#flows.set(lane, fresh)
    return fresh
  }
}

function endOf(
  { code, stage, scope, details }: Pick<DecisionRecord, 'code' | 'stage' | 'scope' | 'details'>,
  atMs: number,
): PathNote {
  const verdict = code === 'DEGRADED' ? 'ended' : 'refused'
  return { stage, attempt: 0, atMs, verdict, scope, numbers: details }
}
