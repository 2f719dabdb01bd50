/** What one guard adds to the log of decisions, and counts by lane while a dashboard is open. */

import { type ErrorCode, SpillwayError, type Stage } from '../../core/errors.js'
import { boundedName } from '../../core/long-name.js'
import { PRIORITIES } from '../../core/options/priority.js'
import type { GuardParts } from '../build-guard.js'
import type { RunOptions } from '../run-options.js'
import { CallTrace, type TracedGuard, type TraceListener } from './call-trace.js'
import type { DecisionLog } from './decision-log.js'
import type { DecisionRecord, PathNote } from './decision-record.js'
import type { CallFacts, CallFollower, DecisionWatcher, DegradedCall } from './follower.js'

/** Of each code at least one refusal is noted in this time, however many others there are. */
const AT_LEAST_EVERY_MS = 1_000
const MOST_LANES = 100

export interface LaneFlow {
  calls: number
  refused: { stage: Stage; code: ErrorCode; count: number }[]
}

/** The parts of a guard that decisions are explained by. */
export type DecidingGuard = TracedGuard & Pick<GuardParts, 'name' | 'breaker' | 'queue'>

export class DecisionBook implements DecisionWatcher, TraceListener {
  readonly #guard: DecidingGuard
  readonly #log: DecisionLog
  readonly #notedMs = new Map<ErrorCode, number>()
  #flows = new Map<string, LaneFlow>()

  constructor(guard: DecidingGuard, log: DecisionLog) {
    this.#guard = guard
    this.#log = log
  }

  begin(
    options: RunOptions,
    lane: string,
    priority: number,
    arrivedMs: number,
  ): CallTrace | undefined {
    const log = this.#log
    if (log.watched) {
      const flow = this.#flow(lane)
      if (flow !== undefined) flow.calls++
    }
    if (!log.arrive(arrivedMs)) return undefined
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
    if (!isRare && !this.#log.mayNote(nowMs)) return
    this.failed(undefined, facts(), error)
  }

  succeeded(trace: CallTrace, facts: CallFacts): void {
    const { outcome = 'success' } = trace.path.at(-1)?.numbers ?? {}
    this.#note(trace, facts, {
      code: 'OK',
      stage: 'call',
      scope: 'local',
      retryAfterMs: undefined,
      why: outcome === 'success' ? 'it was answered' : `it was answered; judged as ${outcome}`,
      details: {},
      sharedAgeMs: trace.sharedAgeMs,
    })
  }

  failed(trace: CallTrace | undefined, facts: CallFacts, error: unknown): void {
    const { signal } = facts.options
    if (error instanceof SpillwayError) {
      const { code, stage, scope, retryAfterMs, details, message } = error
      this.#notedMs.set(code, this.#guard.clock.now())
      const sharedAgeMs = this.#ageOf(facts.lane, stage, error.scope) ?? trace?.sharedAgeMs
      const end = { code, stage, scope, retryAfterMs, why: message, details, sharedAgeMs }
      return this.#note(trace, facts, end)
    }
    const left = signal?.aborted === true && signal.reason === error
    const known = left ? 'its caller has left' : `the call failed: ${kindOf(error)}`
    const sharedAgeMs = trace?.sharedAgeMs
    this.#note(trace, facts, {
      code: left ? 'ABORTED' : 'FAILED',
      stage: left && trace?.attempts === 0 ? 'queue' : 'call',
      scope: 'local',
      retryAfterMs: undefined,
      why: known,
      details: {},
      sharedAgeMs,
    })
  }

  /** A fallback of the gateway answered in place of a call. */
  degraded({ step, reason, call, arrivedMs, attempts }: DegradedCall, lane: string): void {
    const nowMs = this.#guard.clock.now()
    if (!this.#log.mayNote(nowMs)) return
    const priority = PRIORITIES.indexOf(call.priority ?? 'normal')
    const end = {
      code: 'DEGRADED',
      stage: 'fallback',
      scope: 'local',
      retryAfterMs: undefined,
      why: `answered by the fallback ${step}, because of: ${reason}`,
      details: { step, reason },
      sharedAgeMs: undefined,
    } as const
    this.#note(undefined, { options: call, lane, priority, arrivedMs }, end, attempts)
  }

  /** The counts by lane since the last call of this. */
  takeFlows(): ReadonlyMap<string, LaneFlow> {
    const flows = this.#flows
    this.#flows = new Map()
    return flows
  }

  #note(
    trace: CallTrace | undefined,
    { options, lane, priority, arrivedMs }: CallFacts,
    end: Pick<
      DecisionRecord,
      'code' | 'stage' | 'scope' | 'retryAfterMs' | 'why' | 'details' | 'sharedAgeMs'
    >,
    attempts = trace?.attempts ?? 0,
  ): void {
    const tookMs = this.#guard.clock.now() - arrivedMs
    this.#log.note({
      arrivedMs,
      tookMs,
      guard: this.#guard.name,
      lane,
      user: options.user && boundedName(options.user),
      tier: options.tier && boundedName(options.tier),
      importance: priority,
      attempts,
      path: trace?.path ?? [endOf(end, tookMs)],
      traced: trace !== undefined,
      ...end,
    })
  }

  /** The age of the shared state that decided. */
  #ageOf(lane: string, stage: Stage, scope: 'local' | 'shared'): number | undefined {
    if (scope === 'local' || !this.#guard.store.remote) return undefined
    const { breaker, queue, clock } = this.#guard
    if (stage === 'breaker') return breaker?.snapshot(lane).ageMs
    if (stage === 'vendor-limit') return queue.dispatcher.blocks.heardAgoMs(lane, clock.now())
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

const PLAIN = /^[\w.-]{1,40}$/

/** A message may contain secrets: kind, code and status are enough. */
function kindOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return typeof error
  const { name, code, status } = error as Record<string, unknown>
  const words = [name, code, status].filter(
    (each) => typeof each === 'number' || (typeof each === 'string' && PLAIN.test(each)),
  )
  return words.length === 0 ? 'an error' : words.join(' ')
}
