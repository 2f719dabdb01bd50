/** Tokens of prompts and responses. Four characters count as one token. */
const CHARACTERS = 4

/** The properties of a request that decide the text of its response. */
interface TextRequest {
  readonly maxTokens: number
  /** Text of the response. Undefined: generated numbers. */
  readonly text?: string | undefined
}

/** Numbers, so that a test shows which tokens are missing, doubled or out of order. */
function numberText(index: number): string {
  return index === 0 ? '0' : ` ${index}`
}

/** Tokens of a response, if the knobs allow `most` tokens of numbers. */
export function tokensOf({ text, maxTokens }: TextRequest, most: number): number {
  const wanted = text === undefined ? most : Math.ceil(text.length / CHARACTERS)
  return Math.min(wanted, maxTokens)
}

/** Whether the request's token limit ends the response. */
export function isTruncated({ text, maxTokens }: TextRequest, tokens: number): boolean {
  return text === undefined ? tokens >= maxTokens : tokens * CHARACTERS < text.length
}

/** The token at an index of a response. */
export function tokenText({ text }: TextRequest, index: number): string {
  if (text === undefined) return numberText(index)
  return text.slice(index * CHARACTERS, (index + 1) * CHARACTERS)
}

/** Tokens of texts, lists of parts with a `text`, and messages with a `content`. */
export function countTokens(...contents: unknown[]): number {
  const characters = contents.reduce<number>((sum, content) => sum + charactersOf(content), 0)
  return Math.max(1, Math.ceil(characters / CHARACTERS))
}

/** Overhead of each part of a prompt, in tokens. */
export function tokensIn(characters: number): number {
  return Math.floor(characters / CHARACTERS)
}

export function charactersOf(content: unknown): number {
  if (typeof content === 'string') return content.length
  if (Array.isArray(content)) {
    return content.reduce<number>((sum, part) => sum + charactersOf(part), 0)
  }
  if (typeof content !== 'object' || content === null) return 0
  const { text, content: inner } = content as { text?: unknown; content?: unknown }
  return charactersOf(text) + charactersOf(inner)
}
