/**
 * How long the answers of one lane usually are. Reserving `max_tokens` would let one request with a high limit
 * block all others; reserving nothing would let too many through.
 */

/** Reserved for an answer before enough are known. */
export const FIRST_ANSWER_TOKENS = 1_000
/** Fewer answers have no 95th percentile. */
const ENOUGH_ANSWERS = 20
/** Answers that are remembered: enough for a percentile, and small enough to keep for each lane. */
const MAX_ANSWERS = 100
const PERCENTILE = 0.95

export class AnswerLengths {
  readonly #recent: number[] = []
  #next = 0
  /** Computed when it is first needed after a new answer. */
  #percentile: number | undefined

  /** The 95th percentile of recent answers, in tokens. At first a constant, or the longest answer if that is more. */
  estimate(): number {
    if (this.#percentile === undefined) {
      const sorted = this.#recent.toSorted((one, other) => one - other)
      const percentile = sorted[Math.ceil(PERCENTILE * sorted.length) - 1] ?? 0
      const isEnough = sorted.length >= ENOUGH_ANSWERS
      this.#percentile = isEnough ? percentile : Math.max(FIRST_ANSWER_TOKENS, percentile)
    }
    return this.#percentile
  }

  add(tokens: number): void {
    this.#recent[this.#next] = tokens
    this.#next = (this.#next + 1) % MAX_ANSWERS
    this.#percentile = undefined
  }
}
