/**
 * The calls of one lane that are in flight, as far as they count in a failure rate. Breaker and
 * throttle use it, so that fast failures do not make a downstream look broken whose successes are slow.
 *
 * A call counts from the age at which failures usually end until the age at which successes usually
 * have ended. A younger one says nothing yet; the callers of a dead downstream always have a few of
 * those. An older one may be hanging.
 */
import { type Linked, LinkedList } from './linked-list.js'
import { type Cohort, UsualDuration } from './usual-duration.js'

/** A call in flight. */
export class InFlightCall implements Linked<InFlightCall> {
  readonly startMs: number
  /** Too young to count, counting, too old to count, or ended. */
  phase: 'young' | 'counting' | 'overdue' | 'ended' = 'young'
  /** The calls its duration is compared with; undefined for calls that are not measured. */
  cohort: Cohort | undefined = undefined
  before: InFlightCall | undefined = undefined
  after: InFlightCall | undefined = undefined

  constructor(startMs: number) {
    this.startMs = startMs
  }
}

/** The durations of this number of failures are remembered, for this long. */
const FAILURES = 32
const FAILURE_LIFE_MS = 10_000

export class InFlight {
  readonly #young = new LinkedList<InFlightCall>()
  readonly #counting = new LinkedList<InFlightCall>()
  readonly #usual: UsualDuration
  readonly #longestMs: number
  #failures: { durationMs: number; endMs: number }[] = []

  /** `timeoutMs`: how long a call may take. `windowMs`: calls that began before the window do not count. */
  constructor(timeoutMs: number, windowMs: number) {
    this.#usual = new UsualDuration(timeoutMs)
    this.#longestMs = windowMs
  }

  begin(call: InFlightCall): void {
    call.cohort = this.#usual.begin(call.startMs)
    this.#young.push(call)
  }

  /** `outcome` is undefined if the end says nothing about the downstream. */
  end(call: InFlightCall, outcome: 'success' | 'failure' | undefined, nowMs: number): void {
    // Some callers report the end of a call twice.
    if (call.phase === 'ended') return
    this.#remove(call)
    const durationMs = nowMs - call.startMs
    if (outcome === 'failure') this.#failed({ durationMs, endMs: nowMs })
    this.#usual.end(call.cohort, outcome === 'success' ? durationMs : undefined, nowMs)
    call.cohort = undefined
  }

  /** The call goes on, but counts as nothing: it is not the first attempt. */
  leaveOut(call: InFlightCall, nowMs: number): void {
    this.end(call, undefined, nowMs)
  }

  /** A new generation begins: calls of earlier ones no longer count. Durations stay known. */
  clear(nowMs: number): void {
    for (const list of [this.#young, this.#counting]) {
      while (list.first !== undefined) this.leaveOut(list.first, nowMs)
    }
  }

  /** The age up to which calls count. */
  get usualMs(): number {
    return Math.min(this.#usual.ms, this.#longestMs)
  }

  /** The number of calls that count now. */
  count(nowMs: number): number {
    const oldestMs = nowMs - this.usualMs
    const newestMs = nowMs - this.#usualFailureMs(nowMs)
    for (let call = this.#young.first; call !== undefined && call.startMs <= newestMs; ) {
      this.#young.remove(call)
      call.phase = 'counting'
      this.#counting.push(call)
      call = this.#young.first
    }
    for (let call = this.#counting.first; call !== undefined && call.startMs <= oldestMs; ) {
      this.#counting.remove(call)
      call.phase = 'overdue'
      call = this.#counting.first
    }
    return this.#counting.length
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

  #remove(call: InFlightCall): void {
    if (call.phase === 'young') this.#young.remove(call)
    else if (call.phase === 'counting') this.#counting.remove(call)
    call.phase = 'ended'
  }

  #failed(failure: { durationMs: number; endMs: number }): void {
    this.#failures.push(failure)
    if (this.#failures.length > FAILURES) this.#failures.shift()
  }

  /** The lower quartile: too low a value counts too many calls, which is the safer mistake. */
  #usualFailureMs(nowMs: number): number {
    const recent = this.#failures.filter(({ endMs }) => nowMs - endMs < FAILURE_LIFE_MS)
    this.#failures = recent
    const sorted = recent.map(({ durationMs }) => durationMs).sort((a, b) => a - b)
    return sorted[Math.floor(sorted.length / 4)] ?? 0
  }
}
