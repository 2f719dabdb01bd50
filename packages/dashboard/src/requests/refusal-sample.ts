/**
 * Samples the gateway's own refusals for the list. A flood of wrong keys must not displace other refusals: one per
 * second and code, and a few more.
 */

const WINDOW_MS = 1_000
const MOST_IN_WINDOW = 5
/** The gateway has a fixed set of codes, but library users may record any code. */
const MOST_CODES = 50

export class RefusalSample {
  #windowEndMs = Number.NEGATIVE_INFINITY
  #left = 0
  readonly #codes = new Set<string>()

  mayList(code: string, nowMs: number): boolean {
    if (nowMs >= this.#windowEndMs) {
      this.#windowEndMs = nowMs + WINDOW_MS
      this.#left = MOST_IN_WINDOW
      this.#codes.clear()
    }
    const isFirst = !this.#codes.has(code) && this.#codes.size < MOST_CODES
    if (isFirst) this.#codes.add(code)
    return isFirst || this.#left-- > 0
  }
}
