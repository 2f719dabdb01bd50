/** How many tokens to reserve for a request, before the response reports what it cost. */
export type Cost = Readonly<Record<string, number>>

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

/** Reserved for an answer before any is known. */
const FIRST_ESTIMATE = 1_000
/** Answers that are remembered: enough for a percentile, and small enough to keep for each lane. */
const MAX_ANSWERS = 100
const PERCENTILE = 0.95

/**
 * How long the answers of one lane usually are. Reserving `max_tokens` would let one request with a high limit
 * block all others; reserving nothing would let too many through.
 */
export class AnswerLengths {
  readonly #recent: number[] = []
  #next = 0
  /** Computed when it is first needed after a new answer. */
  #percentile: number | undefined

  /** The 95th percentile of recent answers, in tokens. */
  estimate(): number {
    if (this.#recent.length === 0) return FIRST_ESTIMATE
    if (this.#percentile === undefined) {
      const sorted = this.#recent.toSorted((one, other) => one - other)
      this.#percentile = sorted[Math.ceil(PERCENTILE * sorted.length) - 1] as number
    }
    return this.#percentile
  }

  add(tokens: number): void {
    this.#recent[this.#next] = tokens
    this.#next = (this.#next + 1) % MAX_ANSWERS
    this.#percentile = undefined
  }
}
