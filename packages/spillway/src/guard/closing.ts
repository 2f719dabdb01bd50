/** A guard on its way out: wakes whoever waits to try again, and waits for whoever still runs. */
import { type CallerSignal, LeaveSignal, onAbort } from '../core/abort.js'
import type { Clock } from '../core/time/clock.js'
import { sleep } from '../core/time/sleep.js'
import type { Closing } from '../local/retry/retry-call.js'

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

  async sleep(delayMs: number, signal: CallerSignal | undefined): Promise<void> {
    const waking = new LeaveSignal()
    const wake = () => waking.abort(undefined)
    this.#sleepers.add(wake)
    const forget = signal && onAbort(signal, wake)
    try {
      await sleep(this.#clock, delayMs, waking)
    } catch {
      if (signal?.aborted) throw signal.reason
    } finally {
      forget?.()
      this.#sleepers.delete(wake)
    }
  }
}
