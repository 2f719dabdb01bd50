/**
 * An alarm that is set anew all the time and nearly never goes off, such as one for silence between
 * two chunks of a stream. Setting it later costs a look at the clock; only when its timer fires does
 * it find out that there is time left, and sleeps again. Does not keep the process alive.
 */
import type { Clock, Timer } from './clock.js'

export class LazyAlarm {
  readonly #clock: Clock
  #timer: Timer | undefined
  #timerDueMs = 0
  #dueMs: number | undefined
  #run: () => void = () => {}

  constructor(clock: Clock) {
    this.#clock = clock
  }

  set(delayMs: number, run: () => void): void {
    const nowMs = this.#clock.now()
    this.#dueMs = nowMs + delayMs
    this.#run = run
    if (this.#timer === undefined || this.#timerDueMs > this.#dueMs) this.#sleep(nowMs)
  }

  /** It does not go off, unless it is set again. */
  clear(): void {
    this.#dueMs = undefined
  }

  close(): void {
    this.#dueMs = undefined
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #sleep(nowMs: number): void {
    this.#timer?.cancel()
    this.#timerDueMs = this.#dueMs as number
    this.#timer = this.#clock.schedule(this.#timerDueMs - nowMs, () => this.#wake())
    this.#timer.unref()
  }

  #wake(): void {
    this.#timer = undefined
    if (this.#dueMs === undefined) return
    const nowMs = this.#clock.now()
    if (nowMs < this.#dueMs) return this.#sleep(nowMs)
    this.#dueMs = undefined
    this.#run()
  }
}
