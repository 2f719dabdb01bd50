/**
 * Reports to the store how attempts ended. A failure is sent at once, with the successes before it, in
 * order. Successes alone wait for a moment, or are piggybacked on a request that leaves for the store
 * meanwhile. Each report carries the number of calls in flight, so a delay never makes a rate look
 * worse. One report is in flight at a time; later outcomes go with the next. A report whose reply was
 * lost is sent again under the same number, which the store remembers.
 */
import type { Outcome } from '../../../core/outcome.js'
import { isThenable } from '../../../core/thenable.js'
import type { Clock, Timer } from '../../../core/time/clock.js'
import {
  type BreakerSpec,
  FAILURE,
  NOTHING,
  REPEATED_FAILURE,
  REPEATED_SUCCESS,
  SLOW,
  SUCCESS,
  sliceUsOf,
} from '../../../store/breaker-spec.js'
import type { BreakerReport, BreakerView, MaybePromise } from '../../../store/port.js'

export type Report = Pick<
  BreakerReport,
  'sequence' | 'generation' | 'outcomes' | 'inFlight' | 'hung' | 'probes'
>

/** A report that is piggybacked on another request, whose sender calls one of the two functions. */
export interface PendingReport {
  report: Report
  arrived(): void
  lost(): void
}

export interface ReporterOptions {
  clock: Clock
  /** How long a success may wait now. */
  flushMs(): number
  /** A report older than this is not sent again. */
  staleMs: number
  /** Length of a slice of the window; infinite for a window of calls, which has none. */
  sliceMs: number
  /** A number for a report: greater than any before, of this reporter or of one that it replaces. */
  nextNumber(): number
  /** The calls in flight and those that hung, as of now. */
  traffic(): Pick<BreakerReport, 'inFlight' | 'hung'>
  send(report: Report): MaybePromise<void>
}

const KIND: Record<Outcome, number> = {
  success: SUCCESS,
  failure: FAILURE,
  slow: SLOW,
  throttled: NOTHING,
  ignored: NOTHING,
}

const RETRY_MS = 100
/** Without a window of time, a report older than this is not sent again. */
const STALE_MS = 60_000
/** In an outage of the store the list would grow; its oldest entries count least. */
const MOST_OUTCOMES = 512

/**
 * Numbers the reports of this process, of all lanes. A lane that was dropped and created again must not start
 * from 1: the store would take its first reports for old ones.
 */
let lastReport = 0

export interface LaneReporterOptions {
  clock: Clock
  spec: BreakerSpec
  /** How long a success may wait once the window holds enough calls. */
  flushMs: number
  /** The last known state. */
  view(): BreakerView
  traffic(): Pick<BreakerReport, 'inFlight' | 'hung'>
  send(report: Report): MaybePromise<void>
}

/** The reporter of one lane. */
export function createReporter(options: LaneReporterOptions): Reporter {
  const { clock, spec, flushMs, view, traffic, send } = options
  const hasTime = spec.windowUs > 0
  const fewCalls = fewCallsOf(spec)
  return new Reporter({
    clock,
    flushMs: () => (view().calls < fewCalls ? 0 : flushMs),
    staleMs: hasTime ? spec.windowUs / 1_000 : STALE_MS,
    sliceMs: hasTime ? sliceUsOf(spec.windowUs) / 1_000 : Number.POSITIVE_INFINITY,
    nextNumber: () => ++lastReport,
    traffic,
    send,
  })
}

const FEW_CALLS = 100

/**
 * While the fleet's window holds fewer calls, successes are reported at once. Failures of other pods are
 * reported at once, too, and would be nearly all that the store knows.
 */
export function fewCallsOf({ windowCalls, minimumCalls }: BreakerSpec): number {
  return Math.min(windowCalls || Number.POSITIVE_INFINITY, Math.max(FEW_CALLS, 2 * minimumCalls))
}

export class Reporter {
  readonly #options: ReporterOptions
  #generation = 0
  #outcomes: [kind: number, times: number, slicesAgo?: number][] = []
  /** Of the last entry of `#outcomes`. */
  #lastSlicesAgo = 0
  /** A report has to be sent without waiting, for example because of a probe. */
  #urgent = false
  #probes: [probe: string, kind: number][] = []
  /** Set while outcomes wait. */
  #timer: Timer | undefined
  /** Waiting outcomes may be piggybacked from this time on. */
  #piggybackFromMs = 0
  #sending = false
  /** Set while a report that got no answer waits to be sent again. */
  #retry: (() => void) | undefined
  #closing = false
  #idle: (() => void)[] = []

  constructor(options: ReporterOptions) {
    this.#options = options
  }

  /** From now on outcomes belong to this generation; those of the one before are dropped. */
  begin(generation: number): void {
    if (generation === this.#generation) return
    this.#generation = generation
    this.#outcomes = []
  }

  /** `ageMs`: how long ago the call began. `repeated`: it does not count in the rates. */
  ended(outcome: Outcome, repeated: boolean, ageMs: number): void {
    const kind = KIND[outcome]
    if (kind === NOTHING) return
    const { sliceMs } = this.#options
    // `turnMs` may be earlier than the time at which a call of the same turn began.
    const slicesAgo = Math.max(0, Math.floor(ageMs / sliceMs))
    if (kind === FAILURE) this.add(repeated ? REPEATED_FAILURE : FAILURE)
    else if (repeated) this.addLater(REPEATED_SUCCESS)
    else if (kind === SLOW) this.add(SLOW, slicesAgo)
    else this.addLater(SUCCESS, slicesAgo)
  }

  /** Adds an outcome that may wait. `slicesAgo`: when the call began, in slices of the window. */
  addLater(kind: number, slicesAgo = 0): void {
    const last = this.#outcomes[this.#outcomes.length - 1]
    if (last?.[0] === kind && this.#lastSlicesAgo === slicesAgo) last[1]++
    else this.#outcomes.push(slicesAgo === 0 ? [kind, 1] : [kind, 1, slicesAgo])
    this.#lastSlicesAgo = slicesAgo
    if (this.#outcomes.length > MOST_OUTCOMES) this.#outcomes.shift()
    if (this.#urgent) this.#send()
    else if (this.#timer === undefined && !this.#sending) this.#wait()
  }

  /** Adds an outcome that is sent at once. */
  add(kind: number, slicesAgo = 0): void {
    this.#urgent = true
    this.addLater(kind, slicesAgo)
  }

  /** Sends the waiting outcomes and the number of calls in flight, even if there are none. */
  sendNow(): void {
    this.#urgent = true
    this.#send()
  }

  endProbe(probe: string, outcome: Outcome): void {
    this.#probes.push([probe, KIND[outcome]])
    this.sendNow()
  }

  /**
   * The waiting outcomes, for a request that leaves for the store now. Nothing before half of the
   * waiting time has passed, because on a busy lane a request leaves every moment.
   */
  piggyback(): PendingReport | undefined {
    if (this.#timer === undefined || this.#outcomes.length === 0) return undefined
    const nowMs = this.#options.clock.now()
    if (nowMs < this.#piggybackFromMs) return undefined
    const report = this.#pack()
    this.#sending = true
    return {
      report,
      arrived: () => this.#done(),
      lost: () => this.#again(report, nowMs),
    }
  }

  /** Everything was reported, or given up. */
  get isIdle(): boolean {
    return !this.#sending && this.#outcomes.length === 0
  }

  /** Resolves when everything was reported, or given up. */
  flush(): Promise<void> {
    this.#send()
    return new Promise((resolve) => {
      if (this.#sending) this.#idle.push(resolve)
      else resolve()
    })
  }

  /** Sends the rest now, and does not retry. */
  close(): Promise<void> {
    this.#closing = true
    this.#retry?.()
    return this.flush()
  }

  #wait(): void {
    const delayMs = this.#options.flushMs()
    if (delayMs === 0) return this.#send()
    const { clock } = this.#options
    this.#piggybackFromMs = clock.now() + delayMs / 2
    this.#timer = clock.schedule(delayMs, () => {
      this.#timer = undefined
      this.#send()
    })
    this.#timer.unref()
  }

  #send(): void {
    while (!this.#sending) {
      if (this.#outcomes.length === 0 && !this.#urgent) return this.#rest()
      this.#transmit(this.#pack(), this.#options.clock.now())
    }
  }

  /** Everything that has not been reported, with a new sequence number. */
  #pack(): Report {
    const report: Report = {
      sequence: this.#options.nextNumber(),
      generation: this.#generation,
      outcomes: this.#outcomes,
      ...this.#options.traffic(),
      probes: this.#probes,
    }
    this.#outcomes = []
    this.#urgent = false
    this.#probes = []
    this.#timer?.cancel()
    this.#timer = undefined
    return report
  }

  #transmit(report: Report, sinceMs: number): void {
    this.#sending = true
    let sent: MaybePromise<void>
    try {
      sent = this.#options.send(report)
    } catch {
      return this.#again(report, sinceMs)
    }
    if (!isThenable(sent)) {
      this.#sending = false
      return
    }
    sent.then(
      () => this.#done(),
      () => this.#again(report, sinceMs),
    )
  }

  #again(report: Report, sinceMs: number): void {
    const { clock, staleMs } = this.#options
    if (this.#closing || clock.now() - sinceMs >= staleMs) return this.#done()
    this.#retry = () => {
      timer.cancel()
      this.#retry = undefined
      this.#transmit(report, sinceMs)
      if (!this.#sending) this.#done()
    }
    const timer = clock.schedule(RETRY_MS, this.#retry)
    timer.unref()
  }

  #done(): void {
    this.#sending = false
    if (this.#urgent || this.#idle.length > 0) this.#send()
    else if (this.#outcomes.length > 0) this.#wait()
  }

  #rest(): void {
    for (const resolve of this.#idle.splice(0)) resolve()
  }
}
