/**
 * The clock of one pod: starts with the pod, may show a wrong time of day, may run too fast or too
 * slow, and stops when the pod dies.
 */
import type { Clock, Timer } from '../core/time/clock.js'

export interface PodClockOptions {
  /** How far its time of day is ahead; negative: behind. Default: 0. */
  skewMs?: number
  /** How much too fast it runs, in millionths; negative: too slow. Default: 0. */
  driftPpm?: number
}

const NEVER: Timer = { cancel() {}, ref() {}, unref() {} }

class PodTimer implements Timer {
  constructor(
    readonly armed: Set<PodTimer>,
    readonly timer: Timer,
  ) {}

  cancel(): void {
    this.armed.delete(this)
    this.timer.cancel()
  }

  ref(): void {
    this.timer.ref()
  }

  unref(): void {
    this.timer.unref()
  }
}

export class PodClock implements Clock {
  readonly #base: Clock
  readonly #startMs: number
  readonly #wallMs: number
  readonly #speed: number
  readonly #armed = new Set<PodTimer>()
  #stopped = false

  constructor(base: Clock, { skewMs = 0, driftPpm = 0 }: PodClockOptions = {}) {
    this.#base = base
    this.#startMs = base.now()
    this.#wallMs = base.wallMs() + skewMs
    this.#speed = 1 + driftPpm / 1e6
  }

  now(): number {
    return this.#at(this.#base.now())
  }

  wallMs(): number {
    return this.#wallMs + this.now()
  }

  schedule(delayMs: number, run: () => void): Timer {
    if (this.#stopped) return NEVER
    const timer = new PodTimer(
      this.#armed,
      this.#base.schedule(this.#baseDelayMs(delayMs), () => {
        this.#armed.delete(timer)
        run()
      }),
    )
    this.#armed.add(timer)
    return timer
  }

  pollTurn(run: () => void): void {
    this.schedule(0, run)
  }

  /** Armed timers do not fire, and new ones cannot be armed. */
  stop(): void {
    this.#stopped = true
    for (const timer of this.#armed) timer.cancel()
  }

  #at(baseMs: number): number {
    return (baseMs - this.#startMs) * this.#speed
  }

  /** Never too short because of rounding: when the timer fires, the time must have come. */
  #baseDelayMs(delayMs: number): number {
    const baseMs = this.#base.now()
    const dueMs = this.#at(baseMs) + Math.max(0, delayMs)
    let baseDelayMs = Math.max(0, delayMs) / this.#speed
    while (this.#at(baseMs + baseDelayMs) < dueMs) {
      baseDelayMs += (baseMs + baseDelayMs) * Number.EPSILON
    }
    return baseDelayMs
  }
}
