/**
 * A condition that has to hold for a while before it counts, and to be gone for a while before it does not:
 * what hovers around a limit does not flap.
 */
export interface SteadyOptions {
  /** It holds for so long before it counts. */
  riseMs: number
  /** It is gone for so long before it does not. */
  fallMs: number
}

export class Steady {
  readonly #options: SteadyOptions
  #on = false
  /** Since when it has been other than what counts. */
  #sinceMs: number | undefined

  constructor(options: SteadyOptions) {
    this.#options = options
  }

  get on(): boolean {
    return this.#on
  }

  /** What is so now; answers with what counts. */
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
