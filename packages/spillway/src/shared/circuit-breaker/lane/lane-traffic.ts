/**
 * The calls that this pod makes on one lane: those in flight, those that hung, and the peak. A guard that
 * replaces another one keeps its object, so calls of the replaced guard that still run stay counted.
 */
import { InFlight, InFlightCall } from '../../../core/collections/in-flight.js'
import type { Outcome } from '../../../core/outcome.js'
import { WINDOW_SLICES } from '../../../store/breaker-spec.js'
import type { BreakerReport } from '../../../store/port.js'
import { HungCalls } from './hung-calls.js'
import { RecentPeak } from './ramp.js'

/** An attempt that is no probe. */
export class TrackedCall extends InFlightCall {
  /** A retry, or one of two hedged attempts: not counted in the rates. */
  repeated = false
  /** Set while another attempt of the same call runs beside it. */
  pair: HedgedPair | undefined = undefined
}

/** `ignored`: the outcome says nothing, and is counted nowhere. */
type HedgedVerdict = 'counted' | 'left out' | 'ignored'

/**
 * Two attempts of one call side by side, on one lane. The rates count them as one call: by the first success,
 * or by the failure that leaves none running.
 */
class HedgedPair {
  #running: TrackedCall[]
  #counted = false

  constructor(first: TrackedCall, second: TrackedCall) {
    this.#running = [first, second]
    first.pair = this
    second.pair = this
  }

  /** The other attempt, while it is running and may still be counted. */
  other(attempt: TrackedCall): TrackedCall | undefined {
    return this.#counted ? undefined : this.#running.find((each) => each !== attempt)
  }

  end(attempt: TrackedCall, outcome: Outcome): HedgedVerdict {
    this.#running = this.#running.filter((each) => each !== attempt)
    attempt.pair = undefined
    if (outcome === 'throttled' || outcome === 'ignored') return 'ignored'
    const undecided = outcome === 'failure' && this.#running.length > 0
    if (this.#counted || undecided) return 'left out'
    this.#counted = true
    return 'counted'
  }
}

export class LaneTraffic {
  readonly #inFlight: InFlight
  readonly #hung = new HungCalls()
  /** The most attempts at once lately, and the same when the breaker last opened. */
  readonly #peak = new RecentPeak()
  #carried = 0
  /** Attempts of this generation that are running. */
  #running = 0
  #generation = 0
  #windowMs: number
  #reportedInFlight = 0

  /** `timeoutMs`: how long a call may take. `windowMs` is infinite for a window of calls. */
  constructor(timeoutMs: number, windowMs: number) {
    this.#inFlight = new InFlight(timeoutMs, longestMs(windowMs))
    this.#windowMs = windowMs
  }

  /** For a guard with other options. */
  configure(timeoutMs: number, windowMs: number): void {
    this.#inFlight.configure(timeoutMs, longestMs(windowMs))
    this.#windowMs = windowMs
  }

  get running(): number {
    return this.#running
  }

  /** The most calls at once before the breaker opened. */
  get carried(): number {
    return this.#carried
  }

  /** The number of calls in flight that was reported last. */
  get reportedInFlight(): number {
    return this.#reportedInFlight
  }

  /** Calls of earlier generations no longer count. `wasClosed`: the breaker has opened just now. */
  startGeneration(generation: number, wasClosed: boolean, nowMs: number): void {
    if (generation === this.#generation) return
    this.#generation = generation
    if (wasClosed) {
      this.#peak.note(0, nowMs)
      this.#carried = this.#peak.value
    }
    this.#running = 0
    this.#inFlight.clear(nowMs)
    this.#hung.clear()
  }

  begin(call: TrackedCall, nowMs: number): void {
    this.#inFlight.begin(call, nowMs)
    this.#peak.note(++this.#running, nowMs)
  }

  /** The call is a retry: another attempt counts in the rates. */
  markRepeated(call: TrackedCall, nowMs: number): void {
    if (call.repeated) return
    call.repeated = true
    this.#inFlight.leaveOut(call, nowMs)
  }

  /** `second` begins beside `first`: in the rates they are one call. */
  hedge(first: TrackedCall, second: TrackedCall, nowMs: number): void {
    if (first.repeated || second.repeated) return
    new HedgedPair(first, second)
    this.#inFlight.leaveOut(second, nowMs)
  }

  /** Afterwards `call.repeated` is final. */
  end(call: TrackedCall, outcome: Outcome, nowMs: number): void {
    if (this.#running > 0) this.#running--
    if (call.pair !== undefined) this.#endHedged(call, call.pair, outcome, nowMs)
    const answered = outcome === 'success' || outcome === 'slow'
    if (answered || outcome === 'throttled') this.#hung.answered(call.startMs)
    if (call.repeated) return
    if (outcome === 'failure' && nowMs - call.startMs >= this.#inFlight.usualMs) {
      this.#hung.failed(call.startMs, nowMs)
    }
    const known = answered ? 'success' : outcome === 'failure' ? 'failure' : undefined
    this.#inFlight.end(call, known, nowMs)
  }

  /** For the next report to the store. */
  report(nowMs: number): Pick<BreakerReport, 'inFlight' | 'hung'> {
    const inFlight = this.#inFlight.count(nowMs)
    this.#reportedInFlight = inFlight
    const usualUs = Math.ceil(this.#inFlight.usualMs * 1_000)
    const hung = this.#hung.report(nowMs, this.#windowMs, this.#inFlight.overdue(nowMs))
    return { inFlight: [inFlight, usualUs], hung }
  }

  /** Calls in flight that count in the rates. */
  inFlight(nowMs: number): number {
    return this.#inFlight.count(nowMs)
  }

  /** When the next call that is too young now will count. */
  nextCountingMs(nowMs: number): number | undefined {
    return this.#inFlight.nextCountingMs(nowMs)
  }

  /** When fewer calls will count, if none begins. */
  get nextChangeMs(): number | undefined {
    return this.#inFlight.nextChangeMs
  }

  /** The attempt that is counted, or may still be, is the one in flight. */
  #endHedged(call: TrackedCall, pair: HedgedPair, outcome: Outcome, nowMs: number): void {
    const other = pair.other(call)
    const verdict = pair.end(call, outcome)
    if (verdict === 'counted') {
      if (call.batch === undefined && other !== undefined) this.#inFlight.transfer(other, call)
    } else {
      if (other !== undefined && call.batch !== undefined) this.#inFlight.transfer(call, other)
      if (verdict === 'left out') this.markRepeated(call, nowMs)
    }
  }
}

/** One slice longer than the window, because the whole oldest slice is in it. */
function longestMs(windowMs: number): number {
  return windowMs * (1 + 1 / WINDOW_SLICES)
}
