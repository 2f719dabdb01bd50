/** Counts requests against the limits of a contract, by the rules of a vendor. */
import type { Cost, Excess, Limit, LimitState } from './contract.js'
import type { Charge, Counter } from './counters.js'
import type { QuotaModel, Weight } from './quota-models.js'

/** A request that was admitted. */
export interface QuotaDecision {
  /** Charged units, by unit. */
  cost: Cost
  readonly charges: readonly (readonly [Counter, Charge])[]
}

export class Limits {
  readonly #limits: readonly Limit[]
  readonly #model: QuotaModel
  readonly #lanes = new Map<string, Counter[]>()

  constructor(limits: readonly Limit[], model: QuotaModel) {
    this.#limits = limits
    this.#model = model
  }

  /**
   * Charges every limit. If one is exceeded, charges none and returns the one with the longest
   * wait.
   */
  take(lane: string, nowMs: number, weight: Weight): Excess | QuotaDecision {
    const counters = this.#countersOf(lane)
    const cost = this.#model.reserved(weight)
    let worst: Excess | undefined
    for (const counter of counters) {
      const requested = cost[counter.limit.unit]
      const waitMs = counter.waitMs(nowMs, requested)
      if (waitMs <= (worst?.waitMs ?? 0)) continue
      worst = { ...counter.state(nowMs), requested, waitMs }
    }
    if (worst !== undefined) return worst
    const charges = counters.map(
      (counter) => [counter, counter.charge(nowMs, cost[counter.limit.unit])] as const,
    )
    return { cost, charges }
  }

  /** Settles a request when its response has ended and its cost is known. */
  settle(decision: QuotaDecision, nowMs: number, weight: Weight): void {
    const cost = this.#model.settled?.(weight)
    if (cost === undefined) return
    decision.cost = cost
    for (const [counter, charge] of decision.charges) {
      counter.correct(charge, nowMs, cost[counter.limit.unit])
    }
  }

  states(lane: string, nowMs: number): LimitState[] {
    return this.#countersOf(lane).map((counter) => counter.state(nowMs))
  }

  #countersOf(lane: string): Counter[] {
    const known = this.#lanes.get(lane)
    if (known !== undefined) return known
    const counters = this.#limits.map((limit) => this.#model.counter(limit))
    this.#lanes.set(lane, counters)
    return counters
  }
}

export function isExcess(taken: Excess | QuotaDecision): taken is Excess {
  return 'waitMs' in taken
}
