/**
 * A probe with a streamed answer counts as successful two seconds after its first byte. If it breaks off later, that
 * is an ordinary failure.
 */
import type { Clock, Timer } from '../../core/time/clock.js'

const QUIET_MS = 2_000

export class StreamedProbe {
  readonly #clock: Clock
  readonly #onSuccess: () => void
  #timer: Timer | undefined
  #succeeded = false

  constructor(clock: Clock, onSuccess: () => void) {
    this.#clock = clock
    this.#onSuccess = onSuccess
  }

  /** The first byte has arrived. */
  begin(): void {
    this.#timer = this.#clock.schedule(QUIET_MS, () => {
      this.#succeeded = true
      this.#onSuccess()
    })
    this.#timer.unref()
  }

  /** Returns whether the probe had already succeeded. */
  end(): boolean {
    this.#timer?.cancel()
    return this.#succeeded
  }
}
