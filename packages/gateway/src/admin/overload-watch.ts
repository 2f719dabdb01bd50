/** Whether this process has been overloaded for some time. Readiness may fail while it is (`health.overload`). */
import type { Clock } from 'spillway'
import { Steady, type Timer } from 'spillway/internal'
import { createLoadShedder, type LoadShedder } from 'spillway/local'

/** The load shedder stops sampling if its pressure is not read for a second. */
const LONGEST_SAMPLE_MS = 500
const SHORTEST_SAMPLE_MS = 10

export interface OverloadWatchOptions {
  /** Limits of the signals; the highest signal, divided by its limit, is the pressure. */
  readonly pressure: {
    /** Requests in flight. */
    readonly maxInFlight: number | undefined
    readonly cpu: number | undefined
    readonly memory: number | undefined
    readonly loopUtilization: number | undefined
    readonly loopDelayMs: number | undefined
  }
  /** Pressure that counts as overload. */
  readonly at: number
  /** How long the pressure must last. */
  readonly forMs: number
  /** Requests in flight. */
  inFlight(): number
  /** Called whenever `isOverloaded` changes. */
  onChange?(isOverloaded: boolean): void
  readonly clock: Clock
}

export class OverloadWatch {
  readonly #options: OverloadWatchOptions
  readonly #signals: LoadShedder
  readonly #overloaded: Steady
  #timer: Timer | undefined

  constructor(options: OverloadWatchOptions) {
    this.#options = options
    const { pressure, forMs, clock } = options
    const { maxInFlight: _, ...measured } = pressure
    const set = Object.entries(measured).filter(([, limit]) => limit !== undefined)
    this.#signals = createLoadShedder({ name: 'readiness', clock, ...Object.fromEntries(set) })
    this.#overloaded = new Steady({ riseMs: forMs, fallMs: forMs / 2 })
    this.#sample()
  }

  get isOverloaded(): boolean {
    return this.#overloaded.on
  }

  close(): void {
    this.#timer?.cancel()
    this.#signals.close()
  }

  #sample(): void {
    const { at, forMs, clock, onChange } = this.#options
    const before = this.isOverloaded
    const isNow = this.#overloaded.see(this.#pressure() >= at, clock.now())
    if (isNow !== before) onChange?.(isNow)
    const everyMs = Math.min(LONGEST_SAMPLE_MS, Math.max(SHORTEST_SAMPLE_MS, forMs / 10))
    this.#timer = clock.schedule(everyMs, () => this.#sample())
    this.#timer.unref()
  }

  #pressure(): number {
    const { pressure, inFlight } = this.#options
    // The signals are sampled only while decisions are requested.
    this.#signals.check()
    const running = inFlight() / (pressure.maxInFlight ?? Number.POSITIVE_INFINITY)
    return Math.max(this.#signals.pressure, running)
  }
}
