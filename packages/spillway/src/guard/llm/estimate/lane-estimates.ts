/** Estimates the tokens of requests of one lane from its earlier answers. */
import { stableHash } from '../../../core/stable-hash.js'
import type { TokenUsage } from '../usage/token-usage.js'
import { AnswerLengths, FIRST_ANSWER_TOKENS } from './answer-lengths.js'
import { BytesPerToken, FIRST_BYTES_PER_TOKEN } from './bytes-per-token.js'
import type { CachedPrefixes } from './cached-prefixes.js'
import { type Prompt, tokensOf } from './prompt-estimate.js'

/** Source of estimates. `learned`: earlier answers. `fixed`: constants. */
export const ESTIMATE_NAMES = ['learned', 'fixed'] as const
export type EstimateName = (typeof ESTIMATE_NAMES)[number]

export interface PromptTokens {
  readonly promptTokens: number
  /** The part of them that the vendor is expected to read from its cache. */
  readonly cachedTokens: number
}

export interface Estimates {
  /** `cached`: the quota does not count tokens that are read from the cache. */
  prompt(prompt: Prompt, cached: boolean): PromptTokens
  /** Tokens of one answer. */
  answer(): number
}

export class LaneEstimates implements Estimates {
  readonly #bytesPerToken = new BytesPerToken()
  readonly #answers = new AnswerLengths()
  readonly #prefixes: CachedPrefixes
  readonly #salt: number

  /** `prefixes`: of all lanes of a vendor. */
  constructor(lane: string, prefixes: CachedPrefixes) {
    this.#prefixes = prefixes
    this.#salt = Math.floor(stableHash(lane, 0) * 2 ** 32) | 0
  }

  get bytesPerToken(): number {
    return this.#bytesPerToken.value
  }

  prompt(prompt: Prompt, cached: boolean): PromptTokens {
    const known = cached ? this.#prefixes.find(prompt, this.#salt) : undefined
    if (known === undefined) {
      return { promptTokens: tokensOf(prompt, this.bytesPerToken), cachedTokens: 0 }
    }
    // Only the end of the prompt is estimated. The vendor has counted the rest before.
    const { cachedTokens, uncachedTokens, size } = known
    const added = {
      textBytes: prompt.textBytes - size.textBytes,
      otherTokens: prompt.otherTokens - size.otherTokens,
    }
    const promptTokens = cachedTokens + uncachedTokens + tokensOf(added, this.bytesPerToken)
    return { promptTokens, cachedTokens }
  }

  answer(): number {
    return this.#answers.estimate()
  }

  /** `answers`: how many the request asked for. `sentMs`: approximate time at which the vendor read the prompt. */
  learn(
    usage: TokenUsage,
    { prompt, answers }: { prompt: Prompt | undefined; answers: number },
    sentMs: number,
  ): void {
    const { inputTokens, outputTokens } = usage
    if (outputTokens !== undefined) this.#answers.add(outputTokens / answers)
    if (inputTokens === undefined || prompt === undefined) return
    this.#bytesPerToken.add(prompt.textBytes, inputTokens - prompt.otherTokens)
    this.#prefixes.learn(prompt, this.#salt, usage, sentMs)
  }
}

/** Constants, independent of earlier answers. */
export const FIXED_ESTIMATES: Estimates = {
  prompt: (prompt) => ({
    promptTokens: tokensOf(prompt, FIRST_BYTES_PER_TOKEN),
    cachedTokens: 0,
  }),
  answer: () => FIRST_ANSWER_TOKENS,
}
