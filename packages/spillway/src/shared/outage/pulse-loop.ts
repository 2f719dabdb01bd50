/** Runs one round after the other, with a pause between them that each round may change. */

import type { Clock, Timer } from '../../core/time/clock.js'

export interface PulseLoopOptions {
  clock: Clock
  round: () => Promise<void>
  /** The pause after a round. */
  pauseMs: () => number
  /** Whether the process stays alive for the next round. */
  keepsAlive: () => boolean
}

export class PulseLoop {
  readonly #options: PulseLoopOptions
  #timer: Timer | undefined
  #round: Promise<void> | undefined
  #closed = false

  constructor(options: PulseLoopOptions) {
    this.#options = options
  }

  /** Whether a round is running. */
  get busy(): boolean {
    return this.#round !== undefined
  }

  /** Starts the next round after this time. If one is running then, that one counts. */
  next(delayMs: number): void {
    if (this.#closed) return
    const { clock, round, pauseMs, keepsAlive } = this.#options
    this.#timer?.cancel()
    this.#timer = clock.schedule(delayMs, () => {
      this.#round ??= round().finally(() => {
        this.#round = undefined
        this.next(pauseMs())
      })
    })
    if (!keepsAlive()) this.#timer.unref()
  }

  /** Keeps the process alive until the next round. */
  ref(): void {
    this.#timer?.ref()
  }

  /** Starts no further round; resolves when the running one has ended. */
  async close(): Promise<void> {
    this.#closed = true
    this.#timer?.cancel()
    await this.#round
  }
}
