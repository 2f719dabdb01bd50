/**
 * Prefixes of prompts that the vendor has probably cached, according to this pod's requests. Only hashes and numbers
 * are kept, and the oldest are dropped first.
 */
import type { Clock } from '../../../core/time/clock.js'
import type { TokenUsage } from '../usage/token-usage.js'
import type { Prompt, PromptPrefix, PromptSize } from './prompt-estimate.js'

/** How long Anthropic keeps a prefix after its last use, and with `ttl: 1h`. */
const LIFETIME_MS = 300_000
const LONG_LIFETIME_MS = 3_600_000
/** Prefixes that are remembered: two for each request of the last minutes. */
const MOST_PREFIXES = 20_000
/** A boundary between messages this near to the tokens that the vendor reports is the one it has cached up to. */
const TOLERANCE = 0.1
const LEAST_TOLERANCE_TOKENS = 50

/** The tokens in a known beginning of a prompt. */
interface KnownPrefix {
  readonly cachedTokens: number
  readonly uncachedTokens: number
  readonly expiresMs: number
}

/** The longest known beginning of a prompt. */
export interface ExpectedCache {
  readonly cachedTokens: number
  readonly uncachedTokens: number
  /** The part of the prompt that the tokens are of. */
  readonly size: PromptSize
}

export class CachedPrefixes {
  readonly #clock: Pick<Clock, 'now'>
  readonly #most: number
  /** By hash, least recently used first. */
  readonly #known = new Map<number, KnownPrefix>()

  constructor(clock: Pick<Clock, 'now'>, most = MOST_PREFIXES) {
    this.#clock = clock
    this.#most = most
  }

  get size(): number {
    return this.#known.size
  }

  /** `salt`: of the lane, so that lanes do not share entries. */
  find(prompt: Prompt, salt: number): ExpectedCache | undefined {
    const found = this.#longest(prompt.prefixes(), salt)
    if (found === undefined) return undefined
    const { known, prefix } = found
    const { cachedTokens, uncachedTokens } = known
    return { cachedTokens, uncachedTokens, size: prefix }
  }

  /** The answer to a prompt has reported its tokens. `sentMs`: the vendor has read the prompt about then. */
  learn(prompt: Prompt, salt: number, usage: TokenUsage, sentMs: number): void {
    const { inputTokens: tokens, cachedTokens = 0, cacheWriteTokens = 0 } = usage
    const { hashed: prefixes } = prompt
    const last = prefixes.at(-1)
    if (tokens === undefined || last === undefined) return
    const hasHour = prompt.usesHourCache || (usage.cacheWrite1hTokens ?? 0) > 0
    const expiresMs = sentMs + (hasHour ? LONG_LIFETIME_MS : LIFETIME_MS)
    const expected = this.#longest(prefixes, salt)
    // The vendor has dropped the prefix, or the request did not mark it for caching.
    if (expected !== undefined && cachedTokens < (1 - TOLERANCE) * expected.known.cachedTokens) {
      this.#known.delete(expected.key)
    }
    const readTo = boundaryAt(prefixes, tokens, cachedTokens)
    if (readTo !== undefined)
      this.#set(readTo, salt, { cachedTokens, uncachedTokens: 0, expiresMs })
    const kept = cachedTokens + cacheWriteTokens
    if (kept === 0) return
    const writtenTo = boundaryAt(prefixes, tokens, kept)
    const whole = { cachedTokens: kept, uncachedTokens: Math.max(0, tokens - kept), expiresMs }
    if (writtenTo !== undefined && writtenTo !== last) {
      this.#set(writtenTo, salt, { ...whole, uncachedTokens: 0 })
    }
    this.#set(last, salt, whole)
  }

  #longest(prefixes: readonly PromptPrefix[], salt: number) {
    const nowMs = this.#clock.now()
    for (let index = prefixes.length - 1; index >= 0; index--) {
      const prefix = prefixes[index] as PromptPrefix
      const key = prefix.hash.keyFor(salt)
      const known = this.#known.get(key)
      if (known !== undefined && known.expiresMs > nowMs) return { key, known, prefix }
    }
    return undefined
  }

  #set({ hash }: PromptPrefix, salt: number, known: KnownPrefix): void {
    const key = hash.keyFor(salt)
    this.#known.delete(key)
    this.#known.set(key, known)
    if (this.#known.size <= this.#most) return
    const { value: oldest } = this.#known.keys().next()
    this.#known.delete(oldest as number)
  }
}

/** The prefix that has about as many tokens as `wanted`, if the whole prompt has `tokens`. */
function boundaryAt(
  prefixes: readonly PromptPrefix[],
  tokens: number,
  wanted: number,
): PromptPrefix | undefined {
  const last = prefixes.at(-1)
  if (last === undefined || wanted === 0) return undefined
  const perByte = Math.max(0, tokens - last.otherTokens) / Math.max(1, last.textBytes)
  let nearest: PromptPrefix | undefined
  let distance = Math.max(LEAST_TOLERANCE_TOKENS, TOLERANCE * wanted)
  for (const prefix of prefixes) {
    const apart = Math.abs(prefix.textBytes * perByte + prefix.otherTokens - wanted)
    if (apart > distance) continue
    nearest = prefix
    distance = apart
  }
  return nearest
}
