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
  /** In the order in which they arrived, from `#next` on. */
  readonly #recent: number[] = []
  /** The same numbers in ascending order. Kept in order, because every request needs an estimate after every answer. */
  readonly #sorted: number[] = []
  #next = 0

  /** The 95th percentile of recent answers, in tokens. At first a constant, or the longest answer if that is more. */
  estimate(): number {
    const { length } = this.#sorted
    const percentile = this.#sorted[Math.ceil(PERCENTILE * length) - 1] ?? 0
    return length >= ENOUGH_ANSWERS ? percentile : Math.max(FIRST_ANSWER_TOKENS, percentile)
  }

  add(tokens: number): void {
    const oldest = this.#recent[this.#next]
    this.#recent[this.#next] = tokens
    this.#next = (this.#next + 1) % MAX_ANSWERS
    if (oldest === tokens) return
    if (oldest !== undefined) this.#sorted.splice(this.#placeOf(oldest), 1)
    this.#sorted.splice(this.#placeOf(tokens), 0, tokens)
  }

  /** Index of the first number that is not smaller. */
  #placeOf(tokens: number): number {
    let [from, to] = [0, this.#sorted.length]
    while (from < to) {
      const middle = (from + to) >> 1
      if ((this.#sorted[middle] as number) < tokens) from = middle + 1
      else to = middle
    }
    return from
  }
}
