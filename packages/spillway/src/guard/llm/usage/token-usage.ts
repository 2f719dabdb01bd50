/** The tokens of one answer as its vendor reports them, with the same names for all vendors. */

/** Counts that the vendor does not report are absent. */
export interface TokenUsage {
  /** Input and output together. */
  readonly tokens?: number
  /** The whole prompt, including tokens read from a cache and written to it. */
  readonly inputTokens?: number
  /** The whole answer, with reasoning. */
  readonly outputTokens?: number
  /** The part of the input that was read from a cache. */
  readonly cachedTokens?: number
  /** The part of the input that was written to a cache, for any time. */
  readonly cacheWriteTokens?: number
  /** The part of `cacheWriteTokens` that is cached for an hour. */
  readonly cacheWrite1hTokens?: number
  /** The part of the output that is reasoning. */
  readonly reasoningTokens?: number
  readonly audioInputTokens?: number
  readonly audioOutputTokens?: number
}

/** A JSON object with counts, from an answer. */
export type Counts = Readonly<Record<string, unknown>>

/** Drops unknown counts. */
export function tokenUsage(
  counts: {
    [name in keyof TokenUsage]: number | undefined
  },
): TokenUsage | undefined {
  const { inputTokens, outputTokens } = counts
  const isWhole = inputTokens !== undefined && outputTokens !== undefined
  const tokens = counts.tokens ?? (isWhole ? inputTokens + outputTokens : undefined)
  const known: { -readonly [name in keyof TokenUsage]: number } = {}
  if (tokens !== undefined) known.tokens = tokens
  // A loop, because every answer is counted: with `Object.entries` and `fromEntries` this takes about 2 µs longer in a profile.
  for (const name in counts) {
    const count = counts[name as keyof TokenUsage]
    if (count !== undefined && name !== 'tokens') known[name as keyof TokenUsage] = count
  }
  for (const _ in known) return known
  return undefined
}

/** The first of these names that has a count. */
export function count(counts: Counts | undefined, ...names: string[]): number | undefined {
  for (const name of names) {
    const value = counts?.[name]
    if (typeof value === 'number' && value >= 0 && Number.isFinite(value)) return value
  }
  return undefined
}

/** The object with this name, such as `prompt_tokens_details`. */
export function details(counts: Counts | undefined, ...names: string[]): Counts | undefined {
  for (const name of names) {
    const value = counts?.[name]
    if (typeof value === 'object' && value !== null) return value as Counts
  }
  return undefined
}

/** Undefined if none of them is known. */
export function sum(...counts: (number | undefined)[]): number | undefined {
  const known = counts.filter((each) => each !== undefined)
  return known.length === 0 ? undefined : known.reduce((one, other) => one + other, 0)
}
