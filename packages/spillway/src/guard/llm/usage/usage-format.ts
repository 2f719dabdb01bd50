/** Where vendors report the tokens of an answer, and how to read the reports. */
import { Places } from './json-objects.js'
import { type Counts, count, details, sum, type TokenUsage, tokenUsage } from './token-usage.js'

/** The last report at each place of an answer. */
export type UsageReports = Readonly<Partial<Record<string, Counts>>>

export interface UsageFormat {
  /** Places of the reports in a JSON answer, or in the data of an event. */
  readonly places: Places
  /** Undefined if the answer does not report all that it will cost. */
  read(reports: UsageReports): TokenUsage | undefined
}

/** Chat completions and embeddings report in `usage`, the responses API in `response.usage` of its last event. */
export const openaiUsage: UsageFormat = {
  places: new Places(['usage', 'response.usage']),
  read({ usage, 'response.usage': response }) {
    const counts = response ?? usage
    const input = details(counts, 'prompt_tokens_details', 'input_tokens_details')
    const output = details(counts, 'completion_tokens_details', 'output_tokens_details')
    const inputTokens = count(counts, 'prompt_tokens', 'input_tokens')
    const outputTokens = count(counts, 'completion_tokens', 'output_tokens')
    const total = count(counts, 'total_tokens')
    return tokenUsage({
      // Embeddings have no output.
      tokens: total ?? (outputTokens === undefined ? inputTokens : undefined),
      inputTokens,
      outputTokens,
      cachedTokens: count(input, 'cached_tokens') ?? count(counts, 'prompt_cache_hit_tokens'),
      reasoningTokens: count(output, 'reasoning_tokens'),
      audioInputTokens: count(input, 'audio_tokens'),
      audioOutputTokens: count(output, 'audio_tokens'),
    })
  },
}

/**
 * Streams report the input in their first event and the output in one of the last, which may repeat the input.
 * `input_tokens` excludes tokens read from a cache or written to it.
 */
export const anthropicUsage: UsageFormat = {
  places: new Places(['usage', 'message.usage']),
  read({ usage, 'message.usage': first }) {
    // The first event alone counts one token of the answer.
    if (usage === undefined) return undefined
    const counts = { ...first, ...withoutNulls(usage) }
    const written = details(counts, 'cache_creation')
    const cachedTokens = count(counts, 'cache_read_input_tokens')
    const cacheWriteTokens = count(counts, 'cache_creation_input_tokens')
    const input = count(counts, 'input_tokens')
    return tokenUsage({
      tokens: undefined,
      inputTokens: input === undefined ? undefined : sum(input, cachedTokens, cacheWriteTokens),
      outputTokens: count(counts, 'output_tokens'),
      cachedTokens,
      cacheWriteTokens,
      cacheWrite1hTokens: count(written, 'ephemeral_1h_input_tokens'),
    })
  },
}

/**
 * Every event of a stream reports the tokens so far. Reasoning is not part of the candidates, and results of tools are
 * not part of the prompt.
 */
export const geminiUsage: UsageFormat = {
  places: new Places(['usageMetadata']),
  read({ usageMetadata: counts }) {
    const inputTokens = sum(
      count(counts, 'promptTokenCount'),
      count(counts, 'toolUsePromptTokenCount'),
    )
    const reasoningTokens = count(counts, 'thoughtsTokenCount')
    const outputTokens = sum(count(counts, 'candidatesTokenCount'), reasoningTokens)
    const total = count(counts, 'totalTokenCount')
    return tokenUsage({
      // Embeddings have no output.
      tokens: total ?? (outputTokens === undefined ? inputTokens : undefined),
      inputTokens,
      outputTokens,
      cachedTokens: count(counts, 'cachedContentTokenCount'),
      reasoningTokens,
      audioInputTokens: audioIn(counts?.promptTokensDetails),
      audioOutputTokens: audioIn(counts?.candidatesTokensDetails),
    })
  },
}

/** Gemini lists the tokens of each modality. */
function audioIn(modalities: unknown): number | undefined {
  if (!Array.isArray(modalities)) return undefined
  return count(
    modalities.find((each) => each?.modality === 'AUDIO'),
    'tokenCount',
  )
}

function withoutNulls(counts: Counts): Counts {
  return Object.fromEntries(Object.entries(counts).filter(([, value]) => value !== null))
}

/** For answers of an unknown vendor. */
export const anyUsage: UsageFormat = {
  places: new Places([
    ...new Set([openaiUsage, anthropicUsage, geminiUsage].flatMap(({ places }) => [...places.all])),
  ]),
  read(reports) {
    return formatOf(reports).read(reports)
  },
}

function formatOf(reports: UsageReports): UsageFormat {
  if (reports.usageMetadata !== undefined) return geminiUsage
  if (reports['message.usage'] !== undefined) return anthropicUsage
  const { usage } = reports
  const isCached = count(usage, 'cache_creation_input_tokens', 'cache_read_input_tokens')
  const isAnthropic = isCached !== undefined && count(usage, 'prompt_tokens') === undefined
  return isAnthropic ? anthropicUsage : openaiUsage
}
