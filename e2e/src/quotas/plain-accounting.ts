/**
 * Plain accounting, for comparison: reserves the prompt at four bytes per token and the usual length of a response,
 * and settles with the response's `input_tokens` and `output_tokens`. With Anthropic's API these include neither
 * tokens read from the cache nor tokens written to it.
 */
import type { Guard } from 'spillway'
import type { Vendor } from './vendors.js'

const BYTES_PER_TOKEN = 4
const FIRST_ANSWER = 1_000
const MAX_ANSWERS = 100
/** Per limit: the largest reservation of a single request. */
const MAX_SHARE = 0.5

type Cost = Readonly<Record<string, number>>

export class PlainAccounting {
  readonly #vendor: Vendor
  readonly #answers = new Map<string, number[]>()

  constructor(vendor: Vendor) {
    this.#vendor = vendor
  }

  fetchFor(guard: Guard, model: string, body: string): typeof fetch {
    const { limits, protocol } = this.#vendor
    const inputTokens = Math.ceil(body.length / BYTES_PER_TOKEN)
    const outputTokens = this.#meanAnswer(model)
    const wanted: Cost = { tokens: inputTokens + outputTokens, inputTokens, outputTokens }
    const cost = Object.fromEntries(
      limits.map(({ unit, limit }) => [unit, Math.min(wanted[unit] as number, limit * MAX_SHARE)]),
    )
    return guard.fetchFor({
      lane: model,
      cost,
      costOfUsage: (usage) => (protocol === 'anthropic' ? withoutCache(usage) : usage),
      onUsage: ({ outputTokens: tokens }) => this.#learn(model, tokens),
    })
  }

  #meanAnswer(model: string): number {
    const sorted = this.#answers.get(model)?.toSorted((one, other) => one - other)
    return sorted?.[Math.ceil(0.95 * sorted.length) - 1] ?? FIRST_ANSWER
  }

  #learn(model: string, tokens = 0): void {
    const recent = [...(this.#answers.get(model) ?? []), tokens]
    this.#answers.set(model, recent.slice(-MAX_ANSWERS))
  }
}

function withoutCache(usage: Cost): Cost {
  const { inputTokens = 0, outputTokens = 0, cachedTokens = 0, cacheWriteTokens = 0 } = usage
  const rest = inputTokens - cachedTokens - cacheWriteTokens
  return { tokens: rest + outputTokens, inputTokens: rest, outputTokens }
}
