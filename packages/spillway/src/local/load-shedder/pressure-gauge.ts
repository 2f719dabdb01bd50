/**
 * Measures the load of this pod: each signal divided by its limit, and the highest of them. Signals
 * are read every `sampleMs` while calls come in, not per call. A pod without calls has no timer. A
 * timer cannot fire while the event loop is blocked. Then the next call takes the sample, and its
 * lateness is a signal as well.
 */

import { callSafely } from '../../core/events.js'
import type { Clock, Timer } from '../../core/time/clock.js'
import { RollingHistogram } from '../rolling-histogram.js'
import { type CheckedShed, type Sensors, SLA_SHARE } from './options.js'
import { SystemSensors } from './system-sensors.js'

export type SampledSignal = 'rps' | 'latency' | 'cpu' | 'memory' | 'loopUtilization' | 'loopDelay'

/** Fewest calls for a percentile. */
const FEWEST_LATENCIES = 10
/** The timer stops after this many samples without a call. */
const IDLE_SAMPLES = 10
/** The rate is measured over this many samples. */
const RATE_SAMPLES = 10
/** After this many samples above the limit, more is refused. */
const SUSTAINED_SAMPLES = 5
const MOST_OVERLOAD = 10

export class PressureGauge {
  /** The highest signal of the last sample; 1 is the limit. */
  pressure = 0
  highest: SampledSignal | undefined
  /** The part of the pressure beyond 1, increased while the pressure stays there. */
  overload = 0
  /** Calls that came in. */
  arrived = 0
  /** Usual duration of a call, and the usual time between two ends of calls. */
  usualMs = 0
  msPerCall = 0
  readonly signals: Partial<Record<SampledSignal, number>> = {}
  readonly #name: string
  readonly #clock: Clock
  readonly #options: CheckedShed
  readonly #system: SystemSensors | undefined
  readonly #latencies: RollingHistogram | undefined
  readonly #arrivals: { atMs: number; count: number }[] = []
  #calledSinceSample = false
  #idleSamples = 0
  #samplesOver = 0
  #lastingOverload = 0
  #sampledMs = 0
  /** A call after this time takes the sample itself, because the timer is late. */
  #lateMs = Number.NEGATIVE_INFINITY
  #timer: Timer | undefined
  #closed = false

  constructor(name: string, options: CheckedShed, clock: Clock) {
    this.#name = name
    this.#options = options
    this.#clock = clock
    const { sensors } = options
    const wanted = (['cpu', 'memory', 'loopUtilization', 'loopDelayMs'] as const).some(
      (each) => options[each] !== undefined && sensors[each] === undefined,
    )
    this.#system = wanted ? new SystemSensors() : undefined
    const timesCalls = options.slaMs !== undefined || options.inTime
    this.#latencies = timesCalls ? new RollingHistogram(options.windowMs) : undefined
  }

  /** Whether any of the options needs samples. */
  static isNeeded(options: CheckedShed): boolean {
    const { maxRps, slaMs, cpu, memory, loopUtilization, loopDelayMs, inTime } = options
    return (
      inTime || (maxRps ?? slaMs ?? cpu ?? memory ?? loopUtilization ?? loopDelayMs) !== undefined
    )
  }

  get timesCalls(): boolean {
    return this.#latencies !== undefined
  }

  /** Called for each decision; keeps the sampling running while there are calls. */
  noteCall(nowMs: number): void {
    this.#calledSinceSample = true
    if (nowMs >= this.#lateMs) this.#wake(nowMs)
  }

  record(nowMs: number, tookMs: number): void {
    this.#latencies?.record(nowMs, tookMs)
  }

  close(): void {
    this.#closed = true
    this.#sleep()
  }

  #wake(nowMs: number): void {
    if (this.#closed) return
    if (this.#lateMs === Number.NEGATIVE_INFINITY) {
      // Readings from before the first call are outdated.
      this.#system?.start(this.#options.loopDelayMs !== undefined)
      this.#arrivals.splice(0, RATE_SAMPLES, { atMs: nowMs, count: this.arrived })
      this.#sampledMs = nowMs
      this.#idleSamples = 0
      this.#arm(nowMs)
    } else {
      this.#sample(nowMs)
    }
  }

  #sleep(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#system?.stop()
    this.#lateMs = Number.NEGATIVE_INFINITY
    this.pressure = 0
    this.overload = 0
    this.#lastingOverload = 0
    this.highest = undefined
  }

  #arm(nowMs: number): void {
    const { sampleMs } = this.#options
    this.#lateMs = nowMs + sampleMs * 1.5
    this.#timer = this.#clock.schedule(sampleMs, () => this.#tick())
    this.#timer.unref()
  }

  #tick(): void {
    const nowMs = this.#clock.now()
    // Skipped if a call has just taken the sample because this timer was late.
    if (nowMs - this.#sampledMs >= this.#options.sampleMs / 2) this.#sample(nowMs)
    this.#idleSamples = this.#calledSinceSample ? 0 : this.#idleSamples + 1
    this.#calledSinceSample = false
    if (this.#idleSamples >= IDLE_SAMPLES) this.#sleep()
    else this.#arm(nowMs)
  }

  #sample(nowMs: number): void {
    const { sampleMs, maxRps, slaMs, cpu, memory, loopUtilization, loopDelayMs } = this.#options
    const lateMs = Math.max(0, nowMs - this.#sampledMs - sampleMs)
    const elapsedMs = nowMs - this.#sampledMs
    this.#sampledMs = nowMs
    this.#lateMs = nowMs + sampleMs * 1.5
    this.pressure = 0
    this.highest = undefined
    this.#note('rps', this.#rps(nowMs), maxRps)
    if (this.#latencies !== undefined) this.#readLatencies(nowMs, slaMs)
    if (cpu !== undefined) this.#note('cpu', this.#read('cpu'), cpu)
    if (memory !== undefined) this.#note('memory', this.#read('memory'), memory)
    if (loopUtilization !== undefined) {
      this.#note('loopUtilization', this.#read('loopUtilization'), loopUtilization)
    }
    if (loopDelayMs !== undefined) {
      this.#note('loopDelay', Math.max(lateMs, this.#read('loopDelayMs')), loopDelayMs)
    }
    this.#updateLastingOverload(elapsedMs / sampleMs)
  }

  #note(signal: SampledSignal, value: number, limit: number | undefined): void {
    if (limit === undefined) return
    const pressure = value / limit
    this.signals[signal] = pressure
    if (!(pressure > this.pressure)) return
    this.pressure = pressure
    this.highest = signal
  }

  /** A user's sensor that throws or returns no number counts as 0. */
  #read(sensor: keyof Sensors): number {
    const own = this.#options.sensors[sensor]
    if (own === undefined) return this.#system?.[sensor]() ?? 0
    return callSafely(this.#name, `sensors.${sensor}`, () => figureOf(own()), 0)
  }

  #rps(nowMs: number): number {
    const arrivals = this.#arrivals
    const oldest = arrivals.length < RATE_SAMPLES ? arrivals[0] : arrivals.shift()
    arrivals.push({ atMs: nowMs, count: this.arrived })
    if (oldest === undefined || nowMs <= oldest.atMs) return 0
    return ((this.arrived - oldest.count) * 1_000) / (nowMs - oldest.atMs)
  }

  #readLatencies(nowMs: number, slaMs: number | undefined): void {
    const latencies = this.#latencies as RollingHistogram
    const count = latencies.count(nowMs)
    const enough = count >= FEWEST_LATENCIES
    this.usualMs = enough ? latencies.percentile(nowMs, 0.5) : 0
    this.msPerCall = enough ? this.#options.windowMs / count : 0
    const p95 = enough ? latencies.percentile(nowMs, 0.95) : 0
    this.#note('latency', p95, slaMs === undefined ? undefined : slaMs * SLA_SHARE)
  }

  /**
   * Most signals cannot go far beyond their limit: a CPU is at most fully busy. So while the
   * pressure stays above 1, more and more is refused. Afterwards this declines and is 0 within two
   * seconds.
   */
  #updateLastingOverload(samples: number): void {
    if (this.pressure > 1) {
      if (++this.#samplesOver > SUSTAINED_SAMPLES) {
        const step = Math.max(0.05, this.#lastingOverload * 0.2) * Math.min(samples, 5)
        this.#lastingOverload = Math.min(MOST_OVERLOAD, this.#lastingOverload + step)
      }
    } else {
      this.#samplesOver = 0
      const kept = this.pressure < 0.5 ? 0.7 : 0.85
      this.#lastingOverload = Math.max(0, this.#lastingOverload * kept ** samples - 0.02)
    }
    this.overload = Math.max(0, this.pressure - 1) + this.#lastingOverload
  }
}

/** Throws if a user's function returns a value that cannot be compared with a limit. */
export function figureOf(value: unknown): number {
  if (Number.isFinite(value) && Number(value) >= 0) return Number(value)
  throw new TypeError(`must return a number of at least 0, got ${String(value)}`)
}
