/**
 * How long the answers of a lane usually are, for requests that set no limit: booking a vendor's
 * maximum would let one such request block all others, booking nothing would break the contract.
 */

/** Before the first answer. */
const FIRST_GUESS = 512
/** How much one answer counts: about the last twenty decide. */
const WEIGHT = 0.1
/** So many mean deviations above the mean, most answers are shorter. */
const DEVIATIONS = 2

export class AnswerPrior {
  #mean: number | undefined
  #deviation = 0

  /** What to book. */
  guess(): number {
    if (this.#mean === undefined) return FIRST_GUESS
    return Math.ceil(this.#mean + DEVIATIONS * this.#deviation)
  }

  /** An answer had so many tokens. */
  learn(tokens: number): void {
    if (this.#mean === undefined) {
      this.#mean = tokens
      this.#deviation = tokens / 2
      return
    }
    const error = tokens - this.#mean
    this.#mean += WEIGHT * error
    this.#deviation += WEIGHT * (Math.abs(error) - this.#deviation)
  }
}
