/**
 * How many bytes of text a token of one lane has: about four in English prose, three in code, and between two and three in
 * Chinese. It depends on the tokenizer as well, so it is learnt from the tokens that answers report.
 */

/** Before any answer was seen. */
export const FIRST_BYTES_PER_TOKEN = 4
const FEWEST = 1
const MOST = 12
/** Delimiters and instructions that the vendor adds outweigh the text of a smaller prompt. */
const SMALLEST_PROMPT_TOKENS = 100
/** Weight of a new prompt once many are known. */
const LEAST_WEIGHT = 0.1
/**
 * Some vendors charge the whole prompt when it arrives. Estimates below that exceed the limit until they are settled.
 * So prompts are expected to have fewer bytes per token than usual, by this many mean deviations. Then several prompts
 * together seldom have more tokens than estimated, even if prompts of one kind come together.
 */
const DEVIATIONS = 2

export class BytesPerToken {
  #mean = FIRST_BYTES_PER_TOKEN
  /** Mean distance of a prompt from the mean. */
  #deviation = 0
  #samples = 0

  get value(): number {
    return Math.max(FEWEST, this.#mean - DEVIATIONS * this.#deviation)
  }

  /** A prompt with this much text had this many tokens. The first value counts as one prompt. */
  add(textBytes: number, tokens: number): void {
    if (!(tokens >= SMALLEST_PROMPT_TOKENS) || !(textBytes > 0)) return
    const sample = Math.min(MOST, Math.max(FEWEST, textBytes / tokens))
    const weight = Math.max(LEAST_WEIGHT, 1 / (this.#samples + 2))
    this.#samples++
    this.#mean += weight * (sample - this.#mean)
    const distance = Math.abs(sample - this.#mean)
    this.#deviation += weight * (distance - this.#deviation)
  }
}
