/** The tokens that a request to an LLM reserves, with the parts of the estimate for refusals. */
import type { Cost } from '../../shared/rate-limiter/permit.js'

/** Units are properties, as in any cost. The parts are private, so they are neither enumerated nor compared. */
export class ReservedCost {
  readonly [unit: string]: number
  readonly #prompt: number
  readonly #answer: number
  /** The request sets no limit of its own, such as `max_tokens`. */
  readonly #isOpen: boolean

  constructor(prompt: number, answer: number, isOpen: boolean) {
    this.#prompt = Math.ceil(prompt)
    this.#answer = Math.ceil(answer)
    this.#isOpen = isOpen
  }

  /** How the units were estimated; undefined if there is no more to say about it. */
  static explain(cost: Cost | undefined, unit: string): string | undefined {
    if (!(cost instanceof ReservedCost) || unit === 'inputTokens') return undefined
    const prompt = cost.#prompt
    const answer = cost.#answer
    const isSum = unit === 'tokens' && Math.abs(prompt + answer - (cost[unit] ?? 0)) <= 1
    const parts = isSum ? [`${prompt} of the prompt + ${answer} of the answer`] : []
    if (cost.#isOpen) parts.push('set max_tokens or max_output_tokens to lower it')
    return parts.length === 0 ? undefined : parts.join('; ')
  }
}
