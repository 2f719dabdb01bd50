/**
 * How many tokens a prompt has, roughly and on the safe side: four bytes of text are about one. Exact
 * counts need the vendor's own tokeniser; the difference is settled when the answer says what it cost.
 */

const BYTES_PER_TOKEN = 4
/** What surrounds a message, whatever is in it. */
const TOKENS_PER_PART = 4
/** Pictures and files travel as text that is none, and cost what they cost by size, not by bytes. */
const TOKENS_PER_ATTACHMENT = 1_000
const ATTACHMENT = /^data:[\w.+-]+\/[\w.+-]+;base64,/
/** Nobody writes so many letters without anything in between. */
const LEAST_BASE64 = 2_000
const BASE64 = /^[A-Za-z0-9+/_-]{2000}/
/** Nothing that means anything is so deep. */
const DEEPEST = 64

/** Of everything in these values that is text. */
export function estimateTokens(parts: readonly unknown[]): number {
  let tokens = 0
  for (const part of parts) if (part !== undefined && part !== null) tokens += tokensIn(part, 0)
  return Math.ceil(tokens)
}

function tokensIn(value: unknown, depth: number): number {
  if (typeof value === 'string') return tokensOfText(value)
  if (depth > DEEPEST) return 0
  if (Array.isArray(value)) {
    let tokens = 0
    for (const each of value) tokens += tokensIn(each, depth + 1)
    return tokens
  }
  if (typeof value !== 'object' || value === null) return value === undefined ? 0 : 1
  let tokens = TOKENS_PER_PART
  for (const name in value) tokens += tokensIn((value as Record<string, unknown>)[name], depth + 1)
  return tokens
}

function tokensOfText(text: string): number {
  if (isAttachment(text)) return TOKENS_PER_ATTACHMENT
  return Buffer.byteLength(text) / BYTES_PER_TOKEN
}

function isAttachment(text: string): boolean {
  // Most texts are neither, as their first look shows.
  if (text.startsWith('data:') && ATTACHMENT.test(text)) return true
  return text.length >= LEAST_BASE64 && BASE64.test(text)
}
