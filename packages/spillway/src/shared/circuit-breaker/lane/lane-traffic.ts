/**
 * The calls that this pod makes on one lane: those in flight, those that hung, and the peak. A guard that
 * replaces another one keeps its object, so calls of the replaced guard that still run stay counted.
 */
import { InFlight, type InFlightCall } from '../../../core/collections/in-flight.js'
import type { Outcome } from '../../../core/outcome.js'
import { WINDOW_SLICES } from '../../../store/breaker-spec.js'
import type { BreakerReport } from '../../../store/port.js'
import type { BreakerPermit } from '../api.js'
import { HungCalls } from './hung-calls.js'

/** The permit of a call that is no probe. It is also the lane's record of the call while that is in flight. */
export class CallPermit implements BreakerPermit, InFlightCall {
  readonly lane: string
  readonly generation: number
  readonly probe = false
  readonly probeId = undefined
  batch: InFlightCall['batch'] = undefined
  startBatch: InFlightCall['startBatch'] = undefined
  /** A retry, or one of two hedged attempts: not counted in the rates. */
  repeated = false
  /** The downstream has answered, even if its answer does not count in the rates, such as a 404. */
  answered = false
  /** Set while another attempt of the same call runs beside it. */
  pair: HedgedPair | undefined = undefined

  constructor(lane: string, generation: number) {
    this.lane = lane
    this.generation = generation
  }
}

/** `ignored`: the outcome is not counted. */
type HedgedVerdict = 'counted' | 'left out' | 'ignored'

/**
 * Two attempts of one call side by side, on one lane. The rates count them as one call: by the first success,
 * or by the failure that leaves none running.
 */
class HedgedPair {
  #running: CallPermit[]
  #counted = false

  constructor(first: CallPermit, second: CallPermit) {
    this.#running = [first, second]
    first.pair = this
    second.pair = this
  }

  /** The other attempt, while it is running and may still be counted. */
  other(attempt: CallPermit): CallPermit | undefined {
    return this.#counted ? undefined : this.#running.find((each) => each !== attempt)
  }

  end(attempt: CallPermit, outcome: Outcome): HedgedVerdict {
    this.#running = this.#running.filter((each) => each !== attempt)
    attempt.pair = undefined
    if (outcome === 'throttled' || outcome === 'ignored') return 'ignored'
    const undecided = outcome === 'failure' && this.#running.length > 0
    if (this.#counted || undecided) return 'left out'
    this.#counted = true
    return 'counted'
  }
}

const PEAK_MS = 30_000

/** The largest number in the last 30 to 60 seconds. */
export class RecentPeak {
  #current = 0
  #previous = 0
  #sinceMs = Number.NEGATIVE_INFINITY

  note(value: number, nowMs: number): void {
    if (nowMs - this.#sinceMs >= PEAK_MS) {
      this.#previous = nowMs - this.#sinceMs < 2 * PEAK_MS ? this.#current : 0
      this.#current = 0
      this.#sinceMs = nowMs
    }
    if (value > this.#current) this.#current = value
  }

  get value(): number {
    return Math.max(this.#current, this.#previous)
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

  begin(call: CallPermit, nowMs: number): void {
    this.#inFlight.begin(call, nowMs)
    this.#peak.note(++this.#running, nowMs)
  }

  /** The call is a retry: another attempt counts in the rates. */
  markRepeated(call: CallPermit, nowMs: number): void {
    if (call.repeated) return
    call.repeated = true
    this.#inFlight.leaveOut(call, nowMs)
  }

  /** `second` begins beside `first`: in the rates they are one call. */
  hedge(first: CallPermit, second: CallPermit, nowMs: number): void {
    if (first.repeated || second.repeated) return
    new HedgedPair(first, second)
    this.#inFlight.leaveOut(second, nowMs)
  }

  /** Returns how long ago the call began. Afterwards `call.repeated` is final. */
  end(call: CallPermit, outcome: Outcome, nowMs: number): number {
    const startMs = call.startBatch?.startMs ?? nowMs
    const ageMs = nowMs - startMs
    if (this.#running > 0) this.#running--
    if (call.pair !== undefined) this.#endHedged(call, call.pair, outcome, nowMs)
    const answered = outcome === 'success' || outcome === 'slow'
    if ((answered || outcome === 'throttled' || call.answered) && startMs > this.#hung.answeredMs) {
      this.#hung.answeredMs = startMs
    }
    if (call.repeated) return ageMs
    if (outcome === 'failure' && ageMs >= this.#inFlight.usualMs) {
      this.#hung.failed(startMs, nowMs)
    }
    const known = answered ? 'success' : outcome === 'failure' ? 'failure' : undefined
    this.#inFlight.end(call, known, nowMs)
    return ageMs
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

  /** The call stays in flight as the attempt that is counted or may still be counted. */
  #endHedged(call: CallPermit, pair: HedgedPair, outcome: Outcome, nowMs: number): void {
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
