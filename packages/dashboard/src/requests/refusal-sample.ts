/**
 * Which refusals of the gateway itself are listed. A flood of wrong keys must not push everything else out of the
 * list: one a second of each code, and a few more.
 */

const WINDOW_MS = 1_000
const MOST_IN_WINDOW = 5
/** Codes are ours, but a library's user may note any. */
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
