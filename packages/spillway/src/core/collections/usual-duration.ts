/**
 * How long successful calls of a lane usually take: the 95th percentile of recent ones.
 *
 * The first calls to finish are the fast ones, so a percentile over finished calls is too low after
 * a cold start. So calls are measured in cohorts that began together. A cohort is used once 95 % of
 * its calls have succeeded. Failed calls leave their cohort.
 */

/** Calls that began one after the other. */
export interface Cohort {
  readonly sinceMs: number
  /** Calls that began and have not failed. */
  calls: number
  succeeded: number
  /** The longest duration of those that succeeded. */
  longestMs: number
  /** It has enough calls. Calls that begin in the same millisecond are still added. */
  full: boolean
}

const COHORT_CALLS = 20
const SHARE = 0.95
/** How many cohorts are kept. The longest one counts, because each has few calls. */
const COHORTS = 5
/** Keeps calls that take exactly the usual time from counting as overdue. */
const MARGIN = 1.05
/** The factor for the longest call until the first cohort is full. */
const FEW_CALLS_MARGIN = 2
/** After this time without calls, earlier durations say nothing. */
const REST_MS = 10_000

export class UsualDuration {
  /** The result while no success is known, and the longest time to wait for a cohort. */
  timeoutMs: number
  #cohort: Cohort | undefined
  #recentMs: number[] = []
  /** Estimated from the few calls that ended before the first cohort was full. */
  #provisionalMs: number | undefined
  #running = 0
  #lastEndMs = Number.NEGATIVE_INFINITY

  constructor(timeoutMs: number) {
    this.timeoutMs = timeoutMs
  }

  get ms(): number {
    const usualMs =
      this.#recentMs.length > 0
        ? MARGIN * Math.max(...this.#recentMs)
        : (this.#provisionalMs ?? this.timeoutMs)
    return Math.min(this.timeoutMs, usualMs)
  }

  /** The cohort of calls that begin now; undefined if an earlier one is still being measured. */
  cohort(nowMs: number): Cohort | undefined {
    if (this.#running === 0 && nowMs - this.#lastEndMs >= REST_MS) this.#forget()
    // Its last calls may never end.
    const cohort = this.#cohort
    if (cohort?.full === true && nowMs - cohort.sinceMs > this.timeoutMs) this.#cohort = undefined
    this.#cohort ??= { sinceMs: nowMs, calls: 0, succeeded: 0, longestMs: 0, full: false }
    return this.#cohort.full ? undefined : this.#cohort
  }

  /** A call of this cohort begins. */
  begin(cohort: Cohort | undefined): void {
    this.#running++
    if (cohort !== undefined && ++cohort.calls >= COHORT_CALLS) cohort.full = true
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
    if (cohort === this.#cohort && cohort.succeeded > 0) this.#measure(cohort)
  }

  /** The ends of the calls that are running will not be reported. */
  leaveOutAll(nowMs: number): void {
    if (this.#running > 0) this.#lastEndMs = nowMs
    this.#running = 0
    this.#cohort = undefined
  }

  #measure(cohort: Cohort): void {
    if (!cohort.full) {
      if (cohort.succeeded === cohort.calls) {
        this.#provisionalMs = FEW_CALLS_MARGIN * cohort.longestMs
      }
    } else if (cohort.succeeded >= SHARE * cohort.calls) {
      this.#cohort = undefined
      this.#recentMs.push(cohort.longestMs)
      if (this.#recentMs.length > COHORTS) this.#recentMs.shift()
    }
  }

  #forget(): void {
    this.#recentMs = []
    this.#provisionalMs = undefined
    this.#cohort = undefined
  }
}
