/** Tokens to reserve for a request, before the response reports its cost. */
import type { Cost } from '../../shared/rate-limiter/permit.js'
import type { Estimates } from './estimate/lane-estimates.js'
import { QuotaModel, type QuotaSetting } from './quota-model.js'
import { ReservedCost } from './reserved-cost.js'
import type { TokenUsage } from './usage/token-usage.js'
import type { RequestFacts } from './vendor-format.js'

/** A limit of a vendor, as far as reservations depend on it. */
export interface ReservedLimit {
  readonly unit?: string | undefined
  readonly limit: number
  readonly burst?: number | undefined
}

/**
 * One request never reserves more than this part of a limit, so that it cannot block its lane. If the vendor itself
 * reserves `max_tokens`, a request may reserve the whole limit.
 */
const MAX_SHARE = 0.5

export class Reservations {
  /** The largest reservation, by unit. */
  readonly #most = new Map<string, number>()
  readonly #quota: QuotaModel

  constructor(limits: readonly ReservedLimit[], quota: QuotaSetting = 'reported') {
    this.#quota = new QuotaModel(quota)
    const maxShare = this.#quota.reservesMax ? 1 : MAX_SHARE
    for (const { unit = 'requests', limit, burst } of limits) {
      if (unit === 'requests') continue
      const share = Math.max(1, Math.floor(Math.min(limit, burst ?? limit) * maxShare))
      this.#most.set(unit, Math.min(share, this.#most.get(unit) ?? share))
    }
  }

  /** Whether a limit counts tokens that an answer adds to. */
  get countsTokens(): boolean {
    return this.#most.has('tokens') || this.#most.has('outputTokens')
  }

  get #countsInput(): boolean {
    return this.#most.has('tokens') || this.#most.has('inputTokens')
  }

  /** Tokens to reserve for a request. Undefined if no limit counts tokens. `estimates`: of its lane. */
  costOf(
    { prompt, maxTokens, answers }: Pick<RequestFacts, 'prompt' | 'maxTokens' | 'answers'>,
    estimates: Estimates,
  ): Cost | undefined {
    if (this.#most.size === 0) return undefined
    const cached = this.#quota.freesCached && this.#countsInput
    const { promptTokens, cachedTokens } = estimates.prompt(prompt, cached)
    // Not spread: V8 takes a slow path for each property behind a spread, 1 % of the gateway's CPU time together.
    const request = { promptTokens, cachedTokens, maxTokens, answers }
    const wanted = this.#quota.reserved(request, estimates.answer())
    const cost: Record<string, number> = new ReservedCost(
      wanted.inputTokens ?? 0,
      wanted.outputTokens ?? 0,
      maxTokens === undefined,
    )
    for (const [unit, most] of this.#most) {
      const units = wanted[unit]
      // At least a few tokens, independent of the estimates. Embeddings have no output.
      const least = units === undefined || (unit === 'outputTokens' && maxTokens === 0) ? 0 : 1
      cost[unit] = Math.min(Math.max(least, Math.ceil(units ?? 0)), most)
    }
    return cost
  }

  /** Actual cost of the request, by the vendor's rules. */
  countedFor(request: Pick<RequestFacts, 'maxTokens' | 'answers'>, usage: TokenUsage): Cost {
    const cost = this.#quota.counted(usage, request)
    if (!this.#quota.keepsMax) return cost
    // Callers choose `max_tokens`: a huge one must not block the lane for longer than a window.
    const capped = { ...cost } as Record<string, number>
    for (const [unit, most] of this.#most) {
      const counted = cost[unit]
      const actual = (usage as Cost)[unit] ?? 0
      if (counted !== undefined) capped[unit] = Math.min(counted, Math.max(most, actual))
    }
    return capped
  }
}
