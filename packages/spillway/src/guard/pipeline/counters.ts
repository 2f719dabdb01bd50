/** Counts the calls of one guard. Durations are measured once a reader needs them. */
import { Durations } from '../../core/collections/histogram.js'
import { type ErrorCode, SpillwayError, type Stage } from '../../core/errors.js'
import type { Outcome } from '../../core/outcome.js'
import type { DecisionWatcher } from '../decisions/follower.js'
import type { BodyEnd } from '../stream/body-watch.js'

export interface CallCounts {
  /** Calls that arrived. */
  calls: number
  /** Attempts that started, retries included. */
  attempts: number
  /** Attempts by outcome. */
  outcomes: Record<Outcome, number>
  /** Streamed answers by how their body ended. */
  bodies: Record<BodyEnd, number>
  /** Refused calls by stage and code. */
  refused: Refused[]
  /** Calls that stages in shadow mode would have refused. */
  wouldHaveRefused: Refused[]
  /** Refused calls that had a tier, by tier and code. After 20 tiers, further ones count as `(other)`. */
  refusedByTier: RefusedOfTier[]
}

interface Refused {
  stage: Stage
  code: ErrorCode
  count: number
}

interface RefusedOfTier {
  tier: string
  code: ErrorCode
  count: number
}

/** Callers may choose the name of their tier, so the number of names has to be bounded. */
const MOST_TIERS = 20
const OTHER_TIERS = '(other)'
const LONGEST_TIER = 100

class TierRefusals {
  readonly #tiers = new Map<string, Map<ErrorCode, number>>()

  add(tier: string, code: ErrorCode): void {
    const codes = this.#tiers.get(tier) ?? this.#newTier(tier)
    codes.set(code, (codes.get(code) ?? 0) + 1)
  }

  #newTier(tier: string): Map<ErrorCode, number> {
    const isShared = this.#tiers.size >= MOST_TIERS || tier.length > LONGEST_TIER
    const name = isShared ? OTHER_TIERS : tier
    const codes = this.#tiers.get(name) ?? new Map<ErrorCode, number>()
    this.#tiers.set(name, codes)
    return codes
  }

  list(): RefusedOfTier[] {
    return Array.from(this.#tiers, ([tier, codes]) =>
      Array.from(codes, ([code, count]) => ({ tier, code, count })),
    ).flat()
  }
}

/** Counts refusals by stage and code. A list, because few combinations occur. */
class RefusalCounts {
  readonly #all: Refused[] = []
  /** The entry that was counted last, which is nearly always the next one, too. */
  #last: Refused | undefined

  add({ stage, code }: SpillwayError): void {
    if (this.#last?.stage !== stage || this.#last.code !== code) {
      this.#last = this.#find(stage, code)
    }
    this.#last.count++
  }

  #find(stage: Stage, code: ErrorCode): Refused {
    const known = this.#all.find((each) => each.stage === stage && each.code === code)
    if (known !== undefined) return known
    const first = { stage, code, count: 0 }
    this.#all.push(first)
    return first
  }

  list(): Refused[] {
    return this.#all.map((each) => ({ ...each }))
  }
}

export class CallCounters {
  calls = 0
  attempts = 0
  readonly outcomes: Record<Outcome, number> = {
    success: 0,
    failure: 0,
    slow: 0,
    throttled: 0,
    ignored: 0,
  }
  readonly bodies: Record<BodyEnd, number> = {
    complete: 0,
    truncated: 0,
    stalled: 0,
    abandoned: 0,
    aborted: 0,
  }
  readonly #refused = new RefusalCounts()
  readonly #wouldHaveRefused = new RefusalCounts()
  readonly #byTier = new TierRefusals()

  /** A caller that aborted was not refused. `tier`: of the call, if it has one. */
  refused(error: unknown, tier: string | undefined): void {
    if (!(error instanceof SpillwayError)) return
    this.#refused.add(error)
    if (tier !== undefined) this.#byTier.add(tier, error.code)
  }

  wouldRefuse(error: SpillwayError): void {
    this.#wouldHaveRefused.add(error)
  }

  snapshot(): CallCounts {
    const { calls, attempts, outcomes, bodies } = this
    return {
      calls,
      attempts,
      outcomes: { ...outcomes },
      bodies: { ...bodies },
      refused: this.#refused.list(),
      wouldHaveRefused: this.#wouldHaveRefused.list(),
      refusedByTier: this.#byTier.list(),
    }
  }
}

/** Readers that calls report to. */
export class CallObservers {
  /** Measures durations, for metrics and dashboards. */
  timings: Timings | undefined
  /** Keeps a log of decisions, for dashboards. */
  decisions: DecisionWatcher | undefined
}

/** The third and later attempts share one histogram. */
const ATTEMPTS = ['1', '2', '3+'] as const

export interface GuardTimings {
  name: string
  /** From a call's arrival until its first attempt begins. */
  queueWait: Durations
  /** By attempt: the first, the second, later ones. */
  attempts: readonly { attempt: (typeof ATTEMPTS)[number]; durations: Durations }[]
}

export class Timings implements GuardTimings {
  readonly name: string
  readonly queueWait = new Durations()
  readonly attempts = ATTEMPTS.map((attempt) => ({ attempt, durations: new Durations() }))

  constructor(name: string) {
    this.name = name
  }

  began(waitedMs: number): void {
    this.queueWait.add(waitedMs / 1_000)
  }

  ended(attempt: number, tookMs: number): void {
    const place = Math.min(attempt, ATTEMPTS.length) - 1
    this.attempts[place]?.durations.add(tookMs / 1_000)
  }
}
