/**
 * How long the answers of one lane usually are. Reserving `max_tokens` would let one request with a high limit
 * block all others; reserving nothing would let too many through.
 */

/** Reserved for an answer before any is known. */
const FIRST_ESTIMATE = 1_000
/** Answers that are remembered: enough for a percentile, and small enough to keep for each lane. */
const MAX_ANSWERS = 100
const PERCENTILE = 0.95

export class AnswerLengths {
  readonly #recent: number[] = []
  #next = 0
  /** Computed when it is first needed after a new answer. */
  #percentile: number | undefined

  /** The 95th percentile of recent answers, in tokens. */
  estimate(): number {
    if (this.#recent.length === 0) return FIRST_ESTIMATE
    if (this.#percentile === undefined) {
      const sorted = this.#recent.toSorted((one, other) => one - other)
      this.#percentile = sorted[Math.ceil(PERCENTILE * sorted.length) - 1] as number
    }
    return this.#percentile
  }

  add(tokens: number): void {
    this.#recent[this.#next] = tokens
    this.#next = (this.#next + 1) % MAX_ANSWERS
    this.#percentile = undefined
  }
}
