/** Counting rules of each vendor: the kind of window, and the units charged at admission and afterwards. */
import type { Cost, Limit } from './contract.js'
import { type Counter, FixedWindow, SlidingWindow, TokenBucket } from './counters.js'
import { endOfPacificDay } from './pacific-day.js'

export const QUOTA_NAMES = ['openai', 'anthropic', 'azure', 'bedrock', 'gemini'] as const
/** The vendor by whose rules a mock vendor counts its limits. */
export type QuotaName = (typeof QUOTA_NAMES)[number]

/** The properties of a request that decide its charge. */
export interface Weight {
  readonly promptTokens: number
  /** The parts of the prompt that were read from a cache, and written to it. */
  readonly cachedTokens: number
  readonly cacheWriteTokens: number
  /** Infinity: not in the request. */
  readonly maxTokens: number
  /** Tokens of the response: the planned number at admission, then the actual number. */
  readonly outputTokens: number
}

export interface QuotaModel {
  counter(limit: Limit): Counter
  /** Charged at admission. */
  reserved(weight: Weight): Cost
  /** The corrected charge when the response has ended. Absent: no correction. */
  settled?(weight: Weight): Cost
  /** The vendor sends no rate-limit headers in any request format. */
  readonly isSilent?: true
}

/** Without a quota: every request is charged its final cost at admission. */
const EXACT: QuotaModel = {
  counter: (limit) => new SlidingWindow(limit),
  reserved: ({ promptTokens, outputTokens }) => ({
    requests: 1,
    tokens: promptTokens + outputTokens,
    inputTokens: promptTokens,
    outputTokens,
  }),
}

/** The larger of the estimated prompt and `max_tokens`, at admission. Token buckets that are refilled all the time. */
const OPENAI: QuotaModel = {
  counter: (limit) => new TokenBucket(limit),
  reserved: ({ promptTokens, maxTokens }) => ({
    requests: 1,
    tokens: Math.max(promptTokens, orNone(maxTokens)),
    inputTokens: promptTokens,
    outputTokens: orNone(maxTokens),
  }),
}

/**
 * Token buckets. Charges input without tokens read from the cache, and the actual output; `max_tokens` does not
 * count.
 */
const ANTHROPIC: QuotaModel = {
  counter: (limit) => new TokenBucket(limit),
  reserved: (weight) => ({
    requests: 1,
    tokens: uncached(weight),
    inputTokens: uncached(weight),
    outputTokens: 0,
  }),
  settled: (weight) => ({
    requests: 1,
    tokens: uncached(weight) + weight.outputTokens,
    inputTokens: uncached(weight),
    outputTokens: weight.outputTokens,
  }),
}

/** Azure divides a minute into parts of ten seconds and gives each its share of the requests. */
const AZURE_PARTS = 6

/** Prompt and `max_tokens` at admission, in fixed windows. Requests are also counted in parts of the window. */
const AZURE: QuotaModel = {
  counter(limit) {
    if (limit.unit !== 'requests') return new FixedWindow(limit)
    const share = Math.max(1, Math.floor(limit.limit / AZURE_PARTS))
    return new FixedWindow({ ...limit, limit: share, windowMs: limit.windowMs / AZURE_PARTS })
  },
  reserved: ({ promptTokens, maxTokens }) => ({
    requests: 1,
    tokens: promptTokens + orNone(maxTokens),
    inputTokens: promptTokens,
    outputTokens: orNone(maxTokens),
  }),
}

/** Bedrock takes the model's maximum if a request has no `max_tokens`. */
const BEDROCK_MAX_TOKENS = 4_096
/** Tokens of the quota that a token of a response costs, with the newer Claude models. */
const BURNDOWN = 5

/** The whole input and all of `max_tokens` at admission; then the input without cache reads and the actual output, five times. */
const BEDROCK: QuotaModel = {
  isSilent: true,
  counter: (limit) => new SlidingWindow(limit),
  reserved(weight) {
    const maxTokens = Number.isFinite(weight.maxTokens) ? weight.maxTokens : BEDROCK_MAX_TOKENS
    const inputTokens = weight.promptTokens
    return { requests: 1, tokens: inputTokens + maxTokens, inputTokens, outputTokens: maxTokens }
  },
  settled(weight) {
    const inputTokens = uncached(weight)
    const outputTokens = BURNDOWN * weight.outputTokens
    return { requests: 1, tokens: inputTokens + outputTokens, inputTokens, outputTokens }
  },
}

const DAY_MS = 86_400_000

/** Charges requests and input tokens. Daily limits restart at midnight in California. */
const GEMINI: QuotaModel = {
  counter: (limit) =>
    limit.windowMs === DAY_MS ? new FixedWindow(limit, endOfPacificDay) : new SlidingWindow(limit),
  reserved: ({ promptTokens }) => ({
    requests: 1,
    tokens: promptTokens,
    inputTokens: promptTokens,
    outputTokens: 0,
  }),
}

const MODELS: Readonly<Record<QuotaName, QuotaModel>> = {
  openai: OPENAI,
  anthropic: ANTHROPIC,
  azure: AZURE,
  bedrock: BEDROCK,
  gemini: GEMINI,
}

export function quotaModel(name: QuotaName | undefined): QuotaModel {
  return name === undefined ? EXACT : MODELS[name]
}

/** An unlimited response counts as nothing. */
function orNone(maxTokens: number): number {
  return Number.isFinite(maxTokens) ? maxTokens : 0
}

/** Tokens written to the cache count, tokens read from it do not. */
function uncached({ promptTokens, cachedTokens }: Weight): number {
  return promptTokens - cachedTokens
}
