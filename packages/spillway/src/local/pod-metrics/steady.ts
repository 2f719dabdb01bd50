/**
 * A condition with hysteresis in time: it counts after it has held for a while, and until it has been false for a
 * while. A value near its limit does not make it flap.
 */
export interface SteadyOptions {
  /** How long it has to hold. */
  riseMs: number
  /** How long it has to be false. */
  fallMs: number
}

export class Steady {
  readonly #options: SteadyOptions
  #on = false
  /** Since when the current value differs from the one that counts. */
  #sinceMs: number | undefined

  constructor(options: SteadyOptions) {
    this.#options = options
  }

  get on(): boolean {
    return this.#on
  }

  /** Takes the current value and returns the one that counts. */
  see(holds: boolean, nowMs: number): boolean {
    if (holds === this.#on) {
      this.#sinceMs = undefined
      return this.#on
    }
    this.#sinceMs ??= nowMs
    const { riseMs, fallMs } = this.#options
    if (nowMs - this.#sinceMs >= (holds ? riseMs : fallMs)) {
      this.#on = holds
      this.#sinceMs = undefined
    }
    return this.#on
  }
}
