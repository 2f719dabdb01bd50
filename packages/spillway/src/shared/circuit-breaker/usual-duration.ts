/**
 * How long the successful calls of a lane usually take: the 95th percentile of recent ones.
 *
 * The calls that have finished first are the fast ones, so a percentile over finished calls is too
 * low after a cold start. That is why calls are measured in cohorts that began together, and a cohort
 * is used once 95 % of its calls have succeeded. Failed calls leave their cohort.
 */

/** Some calls that began one after the other. */
export interface Cohort {
  readonly sinceMs: number
  /** Calls that began and have not failed. */
  calls: number
  succeeded: number
  /** The longest of those that succeeded. */
  longestMs: number
  /** No more calls are added. */
  full: boolean
}

const COHORT_CALLS = 20
const SHARE = 0.95
/** The longest of this number of cohorts counts, because each has few calls. */
const COHORTS = 5
/** After a rest of this length the durations from before say nothing. */
const REST_MS = 10_000

export class UsualDuration {
  /** Used while no success is known, and the longest time a cohort is waited for. */
  readonly #timeoutMs: number
  #cohort: Cohort | undefined
  #recentMs: number[] = []
  #running = 0
  #lastEndMs = Number.NEGATIVE_INFINITY

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  get ms(): number {
    return this.#recentMs.length === 0
      ? this.#timeoutMs
      : Math.min(this.#timeoutMs, Math.max(...this.#recentMs))
  }

  /** A call begins. Returns the cohort it belongs to, if one is being collected. */
  begin(nowMs: number): Cohort | undefined {
    if (this.#running === 0 && nowMs - this.#lastEndMs >= REST_MS) this.#recentMs = []
    this.#running++
    // Its last calls may never end.
    if (this.#cohort?.full === true && nowMs - this.#cohort.sinceMs > this.#timeoutMs) {
      this.#cohort = undefined
    }
    const cohort = (this.#cohort ??= {
      sinceMs: nowMs,
      calls: 0,
      succeeded: 0,
      longestMs: 0,
      full: false,
    })
    if (cohort.full) return undefined
    cohort.full = ++cohort.calls === COHORT_CALLS
    return cohort
  }

  /** `durationMs` is undefined unless the call succeeded. */
  end(cohort: Cohort | undefined, durationMs: number | undefined, nowMs: number): void {
    this.#running--
    this.#lastEndMs = nowMs
    if (cohort === undefined) return
    if (durationMs === undefined) cohort.calls--
    else {
      cohort.succeeded++
      cohort.longestMs = Math.max(cohort.longestMs, durationMs)
    }
    const enough = cohort.full
      ? cohort.succeeded >= SHARE * cohort.calls
      : cohort.succeeded === cohort.calls
    if (!enough || cohort !== this.#cohort) return
    this.#cohort = undefined
    if (cohort.succeeded === 0) return
    this.#recentMs.push(cohort.longestMs)
    if (this.#recentMs.length > COHORTS) this.#recentMs.shift()
  }
}
