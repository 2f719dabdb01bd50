/**
 * Reports how many requests this pod made in the last minute, every few seconds while there are any. The store adds
 * up the reports of all pods for `figures()`.
 */
import { RollingCounter } from '../../core/collections/rolling-counter.js'
import type { Clock, Timer } from '../../core/time/clock.js'

const REPORT_MS = 5_000

export class RequestReport {
  readonly #clock: Clock
  readonly #send: (requests: number) => Promise<void>
  readonly #lastMinute = new RollingCounter(60_000, 60)
  /** Since the last report. */
  #granted = 0
  #timer: Timer | undefined
  #closed = false

  constructor(clock: Clock, send: (requests: number) => Promise<void>) {
    this.#clock = clock
    this.#send = send
  }

  /** Counts requests for a later report. */
  add(granted: number): void {
    this.#granted += granted
  }

  /** Counts requests and reports them soon. */
  count(granted: number): void {
    this.#granted += granted
    if (this.#timer !== undefined || granted === 0) return
    this.#timer = this.#clock.schedule(REPORT_MS, () => {
      this.#timer = undefined
      if (!this.#closed) void this.send().catch(() => {})
    })
    this.#timer.unref()
  }

  async send(): Promise<void> {
    const nowMs = this.#clock.now()
    this.#lastMinute.add(nowMs, this.#granted)
    this.#granted = 0
    await this.#send(this.#lastMinute.total(nowMs))
  }

  close(): void {
    this.#closed = true
    this.#timer?.cancel()
  }
}
