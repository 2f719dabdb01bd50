/**
 * Estimates the tokens of a prompt: one token for four bytes of text, rounded up. Exact counts need the
 * vendor's tokenizer; the difference is settled when the response reports its usage.
 */

const BYTES_PER_TOKEN = 4
/** Role and delimiters around one message or content part. */
const TOKENS_PER_OBJECT = 4
/** Images and files are sent as base64. Vendors charge them by size in pixels or pages, not by bytes. */
const TOKENS_PER_ATTACHMENT = 1_000
const DATA_URL = /^data:[\w.+-]+\/[\w.+-]+;base64,/
/** Prose has spaces or punctuation within this length. */
const BASE64_LENGTH = 2_000
const BASE64 = /^[A-Za-z0-9+/_-]{2000}/

/** Visits the fields of a request that hold the prompt. */
export class PromptEstimate {
  readonly beginningLength = BASE64_LENGTH
  /** Characters of base64 and of the URLs it is in. Prose ends at its first space. */
  readonly beginningPattern = /^[\w+/:;,.=-]*$/
  #tokens = 0

  get tokens(): number {
    return Math.ceil(this.#tokens)
  }

  onText(bytes: number, beginning: string): void {
    this.#tokens += isAttachment(beginning) ? TOKENS_PER_ATTACHMENT : bytes / BYTES_PER_TOKEN
  }

  onObject(): void {
    this.#tokens += TOKENS_PER_OBJECT
  }

  onScalar(): void {
    this.#tokens += 1
  }
}

function isAttachment(beginning: string): boolean {
  if (beginning === '') return false
  return DATA_URL.test(beginning) || (beginning.length >= BASE64_LENGTH && BASE64.test(beginning))
}
