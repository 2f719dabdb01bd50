/** Notices early that the store is silent, while commands are in flight. */

import type { Clock, Timer } from '../../core/time/clock.js'

/** After this long without a reply the store is checked. */
export const SILENT_MS = 40

export class SilenceCheck {
  readonly #clock: Clock
  readonly #check: () => boolean
  #inFlight = 0
  #timer: Timer | undefined

  /** `check` is called every `SILENT_MS` while commands are in flight, until it returns false. */
  constructor(clock: Clock, check: () => boolean) {
    this.#clock = clock
    this.#check = check
  }

  /** A command is sent. */
  begin(): void {
    this.#inFlight++
    this.#arm()
  }

  /** A command has ended, with or without a reply. */
  end(): void {
    this.#inFlight--
  }

  close(): void {
    this.#timer?.cancel()
  }

  #arm(): void {
    if (this.#timer !== undefined) return
    this.#timer = this.#clock.schedule(SILENT_MS, () => {
      this.#timer = undefined
      if (this.#inFlight > 0 && this.#check()) this.#arm()
    })
    this.#timer.unref()
  }
}
