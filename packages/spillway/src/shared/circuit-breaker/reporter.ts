/**
 * Tells the store how calls ended. A failure goes at once and takes along the successes that came
 * before it, in order, so that waiting for company never makes a rate look bad; successes alone wait
 * a moment, and go along with whatever leaves for the store meanwhile. One report at a time; what
 * comes meanwhile goes with the next. A report whose answer was lost is sent again, by itself and
 * under the same number, which the store remembers.
 */
import type { Clock, Timer } from '../../core/clock.js'
import { isThenable } from '../../core/thenable.js'
import { SUCCESS } from '../../store/breaker-spec.js'
import type { BreakerReport, MaybePromise } from '../../store/port.js'

export type Report = Pick<BreakerReport, 'sequence' | 'generation' | 'outcomes' | 'probes'>

/** A report that goes along with something else. Whoever takes it says what became of it. */
export interface Ride {
  report: Report
  arrived(): void
  lost(): void
}

export interface ReporterOptions {
  clock: Clock
  /** Successes that come now wait at most so long. */
  flushMs(): number
  /** After this, nobody wants to hear of it any more. */
  staleMs: number
  /** A number for a report: greater than any before, of this reporter or of one that it replaces. */
  nextNumber(): number
  send(report: Report): MaybePromise<void>
}

const RETRY_MS = 100
/** In an outage the list would grow; the oldest of it counts least. */
const MOST_OUTCOMES = 512

export class Reporter {
  readonly #options: ReporterOptions
  #generation = 0
  #outcomes: [kind: number, times: number][] = []
  /** Successes since the last entry of the list: the usual case costs one addition. */
  #successes = 0
  #probes: [probe: string, kind: number][] = []
  /** Set while successes wait. */
  #timer: Timer | undefined
  /** From then on they go along with others. */
  #rideFromMs = 0
  #underWay = false
  /** Set while a report that got no answer waits to be sent again. */
  #retry: (() => void) | undefined
  #closing = false
  #idle: (() => void)[] = []

  constructor(options: ReporterOptions) {
    this.#options = options
  }

  /** From now on outcomes belong to this generation; what was counted before is of no use. */
  begin(generation: number): void {
    if (generation === this.#generation) return
    this.#generation = generation
    this.#outcomes = []
    this.#successes = 0
  }

  /** It can wait. */
  addSuccess(): void {
    this.#successes++
    if (this.#timer === undefined && !this.#underWay) this.#wait()
  }

  /** It cannot. */
  add(kind: number): void {
    this.#close()
    const last = this.#outcomes[this.#outcomes.length - 1]
    if (last?.[0] === kind) last[1]++
    else this.#outcomes.push([kind, 1])
    // Two may have come: successes, and this.
    while (this.#outcomes.length > MOST_OUTCOMES) this.#outcomes.shift()
    this.#send()
  }

  endProbe(probe: string, kind: number): void {
    this.#probes.push([probe, kind])
    this.#send()
  }

  /**
   * What waits, for somebody who leaves for the store now; nothing before half of its time is over,
   * because on a busy lane somebody always does.
   */
  ride(): Ride | undefined {
    if (this.#timer === undefined || this.#successes === 0) return undefined
    const nowMs = this.#options.clock.now()
    if (nowMs < this.#rideFromMs) return undefined
    const report = this.#pack()
    this.#underWay = true
    return {
      report,
      arrived: () => this.#done(),
      lost: () => this.#again(report, nowMs),
    }
  }

  /** All is told, or given up. */
  get isIdle(): boolean {
    return !this.#underWay && this.#successes === 0 && this.#outcomes.length === 0
  }

  /** Resolves when all is told, or given up. */
  flush(): Promise<void> {
    this.#send()
    return new Promise((resolve) => {
      if (this.#underWay) this.#idle.push(resolve)
      else resolve()
    })
  }

  /** What is left gets one more try, now. */
  close(): Promise<void> {
    this.#closing = true
    this.#retry?.()
    return this.flush()
  }

  #wait(): void {
    const delayMs = this.#options.flushMs()
    if (delayMs === 0) return this.#send()
    const { clock } = this.#options
    this.#rideFromMs = clock.now() + delayMs / 2
    this.#timer = clock.schedule(delayMs, () => {
      this.#timer = undefined
      this.#send()
    })
    this.#timer.unref()
  }

  #close(): void {
    if (this.#successes === 0) return
    this.#outcomes.push([SUCCESS, this.#successes])
    this.#successes = 0
  }

  #send(): void {
    while (!this.#underWay) {
      this.#close()
      if (this.#outcomes.length === 0 && this.#probes.length === 0) return this.#rest()
      this.#deliver(this.#pack(), this.#options.clock.now())
    }
  }

  /** Everything that has not been told, under a number of its own. */
  #pack(): Report {
    this.#close()
    const report: Report = {
      sequence: this.#options.nextNumber(),
      generation: this.#generation,
      outcomes: this.#outcomes,
      probes: this.#probes,
    }
    this.#outcomes = []
    this.#probes = []
    this.#timer?.cancel()
    this.#timer = undefined
    return report
  }

  #deliver(report: Report, sinceMs: number): void {
    this.#underWay = true
    let sent: MaybePromise<void>
    try {
      sent = this.#options.send(report)
    } catch {
      return this.#again(report, sinceMs)
    }
    if (!isThenable(sent)) {
      this.#underWay = false
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
      this.#deliver(report, sinceMs)
      if (!this.#underWay) this.#done()
    }
    const timer = clock.schedule(RETRY_MS, this.#retry)
    timer.unref()
  }

  #done(): void {
    this.#underWay = false
    const urgent = this.#outcomes.length > 0 || this.#probes.length > 0 || this.#idle.length > 0
    if (urgent) this.#send()
    else if (this.#successes > 0) this.#wait()
  }

  #rest(): void {
    for (const resolve of this.#idle.splice(0)) resolve()
  }
}
