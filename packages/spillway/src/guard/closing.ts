/** A guard on its way out: wakes whoever waits to try again, and waits for whoever still runs. */
import type { Clock } from '../core/clock.js'
import { sleep } from '../core/sleep.js'
import type { Closing } from '../local/retry-call.js'

export class ClosingSign implements Closing {
  closed = false
  readonly #clock: Clock
  readonly #sleepers = new Set<() => void>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  close(): void {
    this.closed = true
    for (const wake of this.#sleepers) wake()
  }

  async sleep(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
    const waking = new AbortController()
    const wake = () => waking.abort()
    this.#sleepers.add(wake)
    const either = signal === undefined ? waking.signal : AbortSignal.any([waking.signal, signal])
    try {
      await sleep(this.#clock, delayMs, either)
    } catch (error) {
      if (!waking.signal.aborted) throw error
    } finally {
      this.#sleepers.delete(wake)
    }
  }
}
