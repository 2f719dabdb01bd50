/**
 * Prompt caching, by prefixes of the prompt: a conversation that grows finds its earlier turns in the cache. OpenAI and
 * Gemini cache every prompt. Anthropic caches up to the parts that the request marks with `cache_control`.
 */
import { createHash } from 'node:crypto'
import { duration, integer, object, optional } from 'spillway/options'
import { charactersOf, tokensIn } from './tokens.js'

/** A part of a prompt, such as a message, in order. */
export interface PromptPart {
  /** The text that has to be equal for a hit. */
  readonly text: string
  readonly characters: number
  /** Anthropic: the prefix up to here is to be cached. */
  readonly isMarked: boolean
}

export interface Prompt {
  readonly parts: readonly PromptPart[]
  /** `marked`: caches only up to marked parts, and reports tokens written to the cache. */
  readonly caching: 'automatic' | 'marked'
}

export interface CacheUse {
  readonly cachedTokens: number
  readonly cacheWriteTokens: number
}

export const NO_CACHE: CacheUse = { cachedTokens: 0, cacheWriteTokens: 0 }

export const readPromptCache = object({
  minTokens: optional(integer({ min: 0 }), 1_024),
  ttlMs: optional(duration({ min: 1 }), 300_000),
})
type CacheOptions = ReturnType<typeof readPromptCache>

/** OpenAI and Gemini report cached tokens in steps. */
const STEP = 128

export class PromptCache {
  readonly #options: CacheOptions
  /** When each prefix expires, by lane and hash. */
  readonly #expiries = new Map<string, number>()

  constructor(options: CacheOptions) {
    this.#options = options
  }

  /** Tokens that the prompt reads from the cache, and tokens that it writes. */
  use(lane: string, { parts, caching }: Prompt, nowMs: number): CacheUse {
    const prefixes = this.#prefixesOf(lane, parts)
    const last =
      caching === 'automatic'
        ? prefixes.length - 1
        : prefixes.findLastIndex((_, index) => parts[index]?.isMarked)
    if (last === -1) return NO_CACHE
    const usable = prefixes.slice(0, last + 1)
    const known = usable.findLast(({ key }) => (this.#expiries.get(key) ?? 0) > nowMs)
    const found = this.#isLongEnough(known?.tokens ?? 0) ? (known?.tokens ?? 0) : 0
    for (const [index, { key }] of usable.entries()) {
      const isKept =
        caching === 'automatic' || parts[index]?.isMarked === true || key === known?.key
      if (isKept) this.#expiries.set(key, nowMs + this.#options.ttlMs)
    }
    if (caching === 'automatic') {
      return { cachedTokens: found - (found % STEP), cacheWriteTokens: 0 }
    }
    const whole = usable.at(-1)?.tokens ?? 0
    return { cachedTokens: found, cacheWriteTokens: this.#isLongEnough(whole) ? whole - found : 0 }
  }

  #isLongEnough(tokens: number): boolean {
    return tokens > 0 && tokens >= this.#options.minTokens
  }

  #prefixesOf(lane: string, parts: readonly PromptPart[]): { key: string; tokens: number }[] {
    const hash = createHash('sha256').update(lane)
    let characters = 0
    return parts.map(({ text, characters: more }) => {
      characters += more
      hash.update(`\n${text}`)
      return { key: hash.copy().digest('base64url'), tokens: tokensIn(characters) }
    })
  }
}

/** The parts of a prompt in order. Lists are divided into their items. */
export function partsOf(...contents: unknown[]): PromptPart[] {
  return contents
    .flatMap((content) =>
      Array.isArray(content) ? content : content === undefined ? [] : [content],
    )
    .map((content) => partOf(content, false))
}

/** Parts of Anthropic's prompts: the blocks of `system` and of each message. A string means one block of text. */
export function markedPartsOf(system: unknown, messages: readonly unknown[]): PromptPart[] {
  const blocks = (content: unknown) => {
    if (typeof content === 'string') return [{ type: 'text', text: content }]
    return Array.isArray(content) ? content : [content]
  }
  const all = [
    ...(system === undefined ? [] : blocks(system)),
    ...messages.flatMap((message) => blocks((message as { content?: unknown } | null)?.content)),
  ]
  return all.map((block) => {
    if (typeof block !== 'object' || block === null) return partOf(block, false)
    const { cache_control, ...rest } = block as Record<string, unknown>
    return partOf(rest, cache_control !== undefined && cache_control !== null)
  })
}

function partOf(content: unknown, isMarked: boolean): PromptPart {
  return { text: JSON.stringify(content) ?? '', characters: charactersOf(content), isMarked }
}
