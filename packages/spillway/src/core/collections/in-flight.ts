/**
 * The calls of one lane that are in flight and count in a failure rate. Breaker and throttle use
 * it. Without it, a downstream with fast failures and slow successes would look broken.
 *
 * A call counts from the age at which failures usually end until the age at which successes usually
 * have ended. Younger calls say nothing yet: a dead downstream always has a few of them. Older
 * calls may be hanging.
 */
import { type Linked, LinkedList } from './linked-list.js'

/** Calls that began in the same millisecond, counted together. */
interface Batch extends Linked<Batch> {
  readonly startMs: number
  /** Too young to count, counting, too old to count, older than the timeout, or left out. */
  phase: 'young' | 'counting' | 'overdue' | 'timed out' | 'left out'
  /** The number of these calls that are still in flight. */
  calls: number
  /** The calls their durations are compared with; undefined if they are not measured. */
  readonly cohort: Cohort | undefined
}

const BATCH_MS = 1

/** A call in flight. */
export class InFlightCall {
  /** Undefined before the call begins, after it has ended, and while it is left out. */
  batch: Batch | undefined = undefined
  /** When the call began. Not cleared at its end. A number here would be allocated for each call. */
  startBatch: Batch | undefined = undefined
}

/** How many failures' durations are kept, and for how long. */
const FAILURES = 32
const FAILURE_LIFE_MS = 10_000

export class InFlight {
  readonly #young = new LinkedList<Batch>()
  readonly #counting = new LinkedList<Batch>()
  readonly #overdue = new LinkedList<Batch>()
  /** Calls in the batches of these two lists. */
  #countingCalls = 0
  #overdueCalls = 0
  #newest: Batch | undefined
  readonly #usual: UsualDuration
  #timeoutMs: number
  #longestMs: number
  #failures: { durationMs: number; endMs: number }[] = []

  /** `timeoutMs`: how long a call may take. `windowMs`: calls that began before the window do not count. */
  constructor(timeoutMs: number, windowMs: number) {
    this.#usual = new UsualDuration(timeoutMs)
    this.#timeoutMs = timeoutMs
    this.#longestMs = windowMs
  }

  /** Replaces what the constructor was given; calls in flight and known durations stay. */
  configure(timeoutMs: number, windowMs: number): void {
    this.#usual.timeoutMs = timeoutMs
    this.#timeoutMs = timeoutMs
    this.#longestMs = windowMs
  }

  begin(call: InFlightCall, nowMs: number): void {
    let batch = this.#newest
    if (batch === undefined || nowMs - batch.startMs >= BATCH_MS) batch = this.#startBatch(nowMs)
    batch.calls++
    if (batch.phase === 'counting') this.#countingCalls++
    this.#usual.begin(batch.cohort)
    call.batch = batch
    call.startBatch = batch
  }

  /** `outcome` is undefined if the end does not indicate the downstream's health. */
  end(call: InFlightCall, outcome: 'success' | 'failure' | undefined, nowMs: number): void {
    const { batch } = call
    // Some callers report the end of a call twice.
    if (batch === undefined) return
    call.batch = undefined
    if (batch.phase === 'left out') return
    batch.calls--
    if (batch.phase === 'counting') this.#countingCalls--
    else if (batch.phase === 'overdue') this.#overdueCalls--
    if (batch.calls === 0 && batch !== this.#newest) this.#remove(batch)
    const durationMs = nowMs - batch.startMs
    if (outcome === 'failure') this.#failed({ durationMs, endMs: nowMs })
    this.#usual.end(batch.cohort, outcome === 'success' ? durationMs : undefined, nowMs)
  }

  /** The call continues but no longer counts, because it is not the first attempt. */
  leaveOut(call: InFlightCall, nowMs: number): void {
    this.end(call, undefined, nowMs)
  }

  /** From now on `to` counts in the place of `from`: both are attempts of one call. */
  transfer(from: InFlightCall, to: InFlightCall): void {
    to.batch = from.batch
    from.batch = undefined
  }

  /** A new generation begins: calls of earlier ones no longer count. Known durations are kept. */
  clear(nowMs: number): void {
    for (const list of [this.#young, this.#counting, this.#overdue]) {
      for (let batch = list.first; batch !== undefined; batch = list.first) {
        list.remove(batch)
        batch.phase = 'left out'
      }
    }
    this.#newest = undefined
    this.#countingCalls = 0
    this.#overdueCalls = 0
    this.#usual.leaveOutAll(nowMs)
  }

  /** The age up to which calls count. */
  get usualMs(): number {
    return Math.min(this.#usual.ms, this.#longestMs)
  }

  /** The number of calls that count now. */
  count(nowMs: number): number {
    const oldestMs = nowMs - this.usualMs
    const newestMs = nowMs - this.#usualFailureMs(nowMs)
    let batch = this.#young.first
    while (batch !== undefined && batch.startMs <= newestMs) {
      this.#young.remove(batch)
      this.#counting.push(batch)
      batch.phase = 'counting'
      this.#countingCalls += batch.calls
      batch = this.#young.first
    }
    batch = this.#counting.first
    while (batch !== undefined && batch.startMs <= oldestMs) {
      this.#counting.remove(batch)
      this.#overdue.push(batch)
      batch.phase = 'overdue'
      this.#countingCalls -= batch.calls
      this.#overdueCalls += batch.calls
      batch = this.#counting.first
    }
    return this.#countingCalls
  }

  /** The number of calls that are too old to count now, and have not reached their timeout. */
  overdue(nowMs: number): number {
    this.count(nowMs)
    const timedOutMs = nowMs - this.#timeoutMs
    let batch = this.#overdue.first
    while (batch !== undefined && batch.startMs <= timedOutMs) {
      this.#overdue.remove(batch)
      batch.phase = 'timed out'
      this.#overdueCalls -= batch.calls
      batch = this.#overdue.first
    }
    return this.#overdueCalls
  }

  /** When the next call that is too young now will count. */
  nextCountingMs(nowMs: number): number | undefined {
    const { first } = this.#young
    return first === undefined ? undefined : first.startMs + this.#usualFailureMs(nowMs)
  }

  /** When the number of calls that count will be smaller, if no call begins. */
  get nextChangeMs(): number | undefined {
    const { first } = this.#counting
    return first === undefined ? undefined : first.startMs + this.usualMs
  }

  #startBatch(nowMs: number): Batch {
    const previous = this.#newest
    const cohort = this.#usual.cohort(nowMs)
    const batch: Batch = {
      startMs: nowMs,
      phase: 'young',
      calls: 0,
      cohort,
      before: undefined,
      after: undefined,
    }
    this.#newest = batch
    if (previous?.calls === 0) this.#remove(previous)
    this.#young.push(batch)
    return batch
  }

  #remove(batch: Batch): void {
    if (batch.phase === 'young') this.#young.remove(batch)
    else if (batch.phase === 'counting') this.#counting.remove(batch)
    else if (batch.phase === 'overdue') this.#overdue.remove(batch)
  }

  #failed(failure: { durationMs: number; endMs: number }): void {
    this.#failures.push(failure)
    if (this.#failures.length > FAILURES) this.#failures.shift()
  }

  /**
   * The lower quartile. A value that is too low counts too many calls, which is the safer mistake.
   */
  #usualFailureMs(nowMs: number): number {
    const recent = this.#failures.filter(({ endMs }) => nowMs - endMs < FAILURE_LIFE_MS)
    this.#failures = recent
    const sorted = recent.map(({ durationMs }) => durationMs).sort((a, b) => a - b)
    return sorted[Math.floor(sorted.length / 4)] ?? 0
  }
}

/** Calls that began one after the other. */
interface Cohort {
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
/** After this time without calls, earlier durations are outdated. */
const REST_MS = 10_000

/**
 * How long successful calls of a lane usually take: the 95th percentile of recent ones.
 *
 * The first calls to finish are the fast ones, so a percentile over finished calls is too low after
 * a cold start. So calls are measured in cohorts that began together. A cohort is used once 95 % of
 * its calls have succeeded. Failed calls leave their cohort.
 */
class UsualDuration {
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
