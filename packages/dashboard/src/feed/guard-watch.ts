/** Samples one guard every second, and reports it in full while there are readers. */

import type { GuardSnapshot } from 'spillway'
import type { DecisionLog, DecisionRecorder, GuardTimings, SharedGuard } from 'spillway/internal'
import { worstOf } from 'spillway/internal'
import type { BreakerChange } from 'spillway/shared'
import { EVERY_LANE, shown, shownLane } from '../shown.js'
import type { Flow, Percentiles, Transition } from '../wire/guards.js'
import { GUARD_COLUMNS, HistoryOf } from './history.js'
import { RecentPercentiles } from './percentiles.js'

const TIMELINE_MS = 3_600_000
const MOST_TRANSITIONS = 50

/** Changes since the last second. */
export interface GuardSample {
  snapshot: GuardSnapshot
  flow: Flow
  fallbacks: { step: string; reason: string; count: number }[]
  latency: Percentiles | undefined
  queueWait: Percentiles | undefined
}

export class GuardWatch {
  readonly guard: SharedGuard
  readonly recorder: DecisionRecorder
  readonly history = new HistoryOf(GUARD_COLUMNS)
  readonly #timings: GuardTimings
  readonly #latency = new RecentPercentiles()
  readonly #queueWait = new RecentPercentiles()
  readonly #stopListening: (() => void) | undefined
  #timeline: Transition[] = []
  #before: GuardSnapshot
  last: GuardSample | undefined

  constructor(
    guard: SharedGuard,
    log: DecisionLog,
    wallMs: () => number,
    onTransition: (transition: Transition) => void,
  ) {
    this.guard = guard
    this.#timings = guard.timings()
    this.recorder = guard.keepDecisions(log)
    this.#before = guard.snapshot()
    this.#stopListening = guard.parts.breaker?.onChange((change) => {
      onTransition(this.#remember(change, wallMs()))
    })
  }

  /** Called once a second. */
  sample(at: number, sinceMs: number): GuardSample {
    const snapshot = this.guard.snapshot()
    const before = this.#before
    this.#before = snapshot
    const flow = flowBetween(before, snapshot)
    const fallbacks = snapshot.fallbacks.flatMap(({ step, reason, count }) => {
      const known = before.fallbacks.find((each) => each.step === step && each.reason === reason)
      const more = count - (known?.count ?? 0)
      return more > 0 ? [{ step: shown(step), reason, count: more }] : []
    })
    const latency = this.#latency.sample(this.#timings.attempts.map(({ durations }) => durations))
    const queueWait = this.#queueWait.sample([this.#timings.queueWait])
    this.last = { snapshot, flow, fallbacks, latency, queueWait }
    this.#note(at, sinceMs, this.last)
    return this.last
  }

  timelineOf(lane: string, at: number): Transition[] {
    this.#timeline = this.#timeline.filter((each) => at - each.at < TIMELINE_MS)
    const ofLane = (each: Transition) => each.lane === lane || each.lane === EVERY_LANE
    return this.#timeline.filter(ofLane).slice(-MOST_TRANSITIONS)
  }

  close(): void {
    this.#stopListening?.()
    this.guard.stopDecisions(this.recorder)
  }

  #remember({ lane, from, to }: BreakerChange, at: number): Transition {
    const transition = { at, guard: shown(this.guard.name), lane: shownLane(lane), from, to }
    this.#timeline.push(transition)
    if (this.#timeline.length > MOST_TRANSITIONS * 4) this.#timeline.splice(0, MOST_TRANSITIONS)
    return transition
  }

  #note(at: number, sinceMs: number, sample: GuardSample): void {
    const { snapshot, flow, fallbacks, latency } = sample
    const { failure, slow, throttled } = flow.outcomes
    const aSecond = (count: number) => (count * 1_000) / sinceMs
    this.history.add(at, {
      calls: aSecond(flow.calls),
      refused: aSecond(sumOf(flow.refused)),
      failures: aSecond(failure + slow),
      throttled: aSecond(throttled),
      fallbacks: aSecond(sumOf(fallbacks)),
      active: snapshot.active,
      waiting: snapshot.queue.waiting,
      breaker: worstOf(snapshot),
      ...(latency !== undefined && { p50Ms: latency.p50Ms, p99Ms: latency.p99Ms }),
    })
  }
}

function flowBetween(before: GuardSnapshot, now: GuardSnapshot): Flow {
  const outcomes = { ...now.outcomes }
  for (const outcome of Object.keys(outcomes) as (keyof typeof outcomes)[]) {
    outcomes[outcome] -= before.outcomes[outcome]
  }
  return {
    calls: now.calls - before.calls,
    attempts: now.attempts - before.attempts,
    outcomes,
    refused: now.refused.flatMap(({ stage, code, count }) => {
      const known = before.refused.find((each) => each.stage === stage && each.code === code)
      const more = count - (known?.count ?? 0)
      return more > 0 ? [{ stage, code, count: more }] : []
    }),
  }
}

function sumOf(counts: readonly { count: number }[]): number {
  return counts.reduce((sum, { count }) => sum + count, 0)
}
