/** How many tokens to reserve for a request, before the response reports what it cost. */
import type { Cost } from '../../shared/rate-limiter/permit.js'

/** A request, as far as reservations depend on it. */
export interface ReservedRequest {
  readonly promptTokens: number
  /** Of each answer. */
  readonly maxTokens: number | undefined
  readonly answers: number
}

/** A limit of a vendor, as far as reservations depend on it. */
export interface ReservedLimit {
  readonly unit?: string | undefined
  readonly limit: number
  readonly burst?: number | undefined
}

/** One request never reserves more than this part of a limit, so that it cannot block its lane. */
const MAX_SHARE = 0.5

export class Reservations {
  /** The largest reservation, by unit. */
  readonly #most = new Map<string, number>()

  constructor(limits: readonly ReservedLimit[]) {
    for (const { unit = 'requests', limit, burst } of limits) {
      if (unit === 'requests') continue
      const share = Math.max(1, Math.floor(Math.min(limit, burst ?? limit) * MAX_SHARE))
      this.#most.set(unit, Math.min(share, this.#most.get(unit) ?? share))
    }
  }

  /** Whether a limit counts tokens that an answer adds to. */
  get countsTokens(): boolean {
    return this.#most.has('tokens') || this.#most.has('outputTokens')
  }

  /**
   * The prompt and what the answers usually need, but at most what they may have. Undefined if no limit counts
   * tokens. `usual`: tokens of one answer.
   */
  costOf(request: ReservedRequest, usual: () => number): Cost | undefined {
    if (this.#most.size === 0) return undefined
    const { promptTokens, maxTokens = Number.POSITIVE_INFINITY, answers } = request
    const answerTokens = Math.min(usual(), maxTokens) * answers
    const wanted: Readonly<Record<string, number>> = {
      tokens: promptTokens + answerTokens,
      inputTokens: promptTokens,
      outputTokens: answerTokens,
    }
    const cost: Record<string, number> = {}
    for (const [unit, most] of this.#most) cost[unit] = Math.min(Math.ceil(wanted[unit] ?? 0), most)
    return cost
  }
}
