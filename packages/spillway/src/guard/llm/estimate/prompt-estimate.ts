/**
 * The size of a prompt, from which its tokens are estimated, and the prefixes by which a conversation is recognised when
 * it grows. Exact counts need the vendor's tokenizer; the difference is settled when the response reports its usage.
 */
import { PrefixHash } from './prefix-hash.js'

/** Role and delimiters around one message or content part. */
const TOKENS_PER_OBJECT = 4
/** Images and files are sent as base64. Vendors charge them by size in pixels or pages, not by bytes. */
const TOKENS_PER_ATTACHMENT = 1_000
const DATA_URL = /^data:[\w.+-]+\/[\w.+-]+;base64,/
/** Prose has spaces or punctuation within this length. */
const BASE64_LENGTH = 2_000
const BASE64 = /^[A-Za-z0-9+/_-]{2000}/
/** Characters of base64 and of the URLs it is in. Prose ends at its first space. */
const BEGINNING = /^[\w+/:;,.=-]*$/

/** Lasts an hour instead of five minutes, in Anthropic's `cache_control`. */
const ONE_HOUR = '1h'
/**
 * Values of formatting fields, which are left out of the hash. Clients mark only the newest message for the vendor's
 * cache and write it as a list of blocks; in the next request it has neither.
 */
const NO_CONTENT: ReadonlySet<string> = new Set(['ephemeral', '5m', ONE_HOUR, 'text'])
const LONGEST_NO_CONTENT = 9
/** Texts that prefixes are made of. Callers choose their number, and each needs memory. */
const MOST_TEXTS = 4_096
/** Fields that grow with each turn. Vendors put all others in front of them. */
const CONVERSATION: ReadonlySet<string> = new Set(['messages', 'contents', 'input'])

/** A size in bytes of text, and in tokens of everything else. */
export interface PromptSize {
  readonly textBytes: number
  readonly otherTokens: number
}

/** The beginning of a prompt up to the end of a message. */
export interface PromptPrefix extends PromptSize {
  readonly hash: PrefixHash
}

/** A prompt, as far as estimates depend on it. */
export interface Prompt extends PromptSize {
  /** The request asks for a cache lifetime of one hour. */
  readonly usesHourCache: boolean
  /** Shortest first. Computed when they are first needed, while there is a text. */
  prefixes(): readonly PromptPrefix[]
  /** The prefixes computed so far. */
  readonly hashed: readonly PromptPrefix[]
}

/** Adds the text at this place to a hash, or samples of it if it is long. */
export type TextSampler = (hash: PrefixHash, start: number, end: number) => void

interface Part extends PromptSize {
  readonly field: string
  /** Index of its first text, and of the first one behind it. */
  readonly from: number
  readonly to: number
}

/** Rounded up. */
export function tokensOf({ textBytes, otherTokens }: PromptSize, bytesPerToken: number): number {
  return Math.ceil(textBytes / bytesPerToken + otherTokens)
}

export const NO_PROMPT: Prompt = {
  textBytes: 0,
  otherTokens: 0,
  usesHourCache: false,
  prefixes: () => [],
  hashed: [],
}

/** The prompt of a request that is sent much later, when the vendor's cache has other contents. */
export function sizeOf({ textBytes, otherTokens }: PromptSize): Prompt {
  return { ...NO_PROMPT, textBytes, otherTokens }
}

/** Visits the fields of a request that hold the prompt. */
export class PromptEstimate implements Prompt {
  readonly beginningLength = BASE64_LENGTH
  readonly beginningPattern = BEGINNING
  textBytes = 0
  otherTokens = 0
  usesHourCache = false
  /** Positions of its texts: start and end of each. */
  #texts: number[] = []
  #parts: Part[] = []
  /** Sizes at the end of the previous part. */
  #before = { textBytes: 0, otherTokens: 0, texts: 0 }
  #sampler: TextSampler | undefined
  hashed: readonly PromptPrefix[] = []

  /** `start` and `end`: where the text is, for the sampler. */
  onText(bytes: number, beginning: string, start: number, end: number): void {
    if (isAttachment(beginning)) this.otherTokens += TOKENS_PER_ATTACHMENT
    else this.textBytes += bytes
    if (bytes <= LONGEST_NO_CONTENT && NO_CONTENT.has(beginning)) {
      this.usesHourCache ||= beginning === ONE_HOUR
      return
    }
    if (this.#texts.length < 2 * MOST_TEXTS) this.#texts.push(start, end)
  }

  onObject(): void {
    this.otherTokens += TOKENS_PER_OBJECT
  }

  onScalar(): void {
    this.otherTokens += 1
  }

  /** A message or another item of a field ends here, or the field itself. */
  onPart(field: string): void {
    const { textBytes, otherTokens, texts: from } = this.#before
    const to = this.#texts.length / 2
    if (to === from) return
    this.#parts.push({
      field,
      from,
      to,
      textBytes: this.textBytes - textBytes,
      otherTokens: this.otherTokens - otherTokens,
    })
    this.#before = { textBytes: this.textBytes, otherTokens: this.otherTokens, texts: to }
  }

  /** The texts are complete, and can be read by this sampler. */
  readWith(sampler: TextSampler): void {
    this.#sampler = sampler
  }

  prefixes(): readonly PromptPrefix[] {
    if (this.#sampler !== undefined) {
      this.hashed = this.#hashWith(this.#sampler)
      // The sampler holds the text of the request.
      this.#sampler = undefined
      this.#texts = []
      this.#parts = []
    }
    return this.hashed
  }

  #hashWith(sampler: TextSampler): PromptPrefix[] {
    const fixed = this.#parts.filter(({ field }) => !CONVERSATION.has(field))
    const growing = this.#parts.filter(({ field }) => CONVERSATION.has(field))
    fixed.sort((one, other) => (one.field < other.field ? -1 : one.field > other.field ? 1 : 0))
    const hash = new PrefixHash()
    let [textBytes, otherTokens] = [0, 0]
    return [...fixed, ...growing].map((part) => {
      for (let text = part.from; text < part.to; text++) {
        sampler(hash, this.#texts[2 * text] as number, this.#texts[2 * text + 1] as number)
      }
      textBytes += part.textBytes
      otherTokens += part.otherTokens
      return { hash: hash.copy(), textBytes, otherTokens }
    })
  }
}

function isAttachment(beginning: string): boolean {
  if (beginning === '') return false
  return DATA_URL.test(beginning) || (beginning.length >= BASE64_LENGTH && BASE64.test(beginning))
}
