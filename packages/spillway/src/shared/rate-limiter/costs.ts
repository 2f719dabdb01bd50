/** The costs of calls: from a caller's object by unit to one number per limit. */
import { number, object, validate } from '../../core/options/checks.js'
import { type UnitLimit, unknownUnit } from './options.js'
import type { Cost } from './permit.js'

export class Costs {
  /** Units that a cost may name, also those whose limit was removed meanwhile. */
  readonly #units = new Set(['requests'])
  /** The last cost and its numbers: consecutive calls often cost the same. */
  #lastUnits: string[] = []
  #lastNumbers: number[] = []
  #lastLimits: readonly UnitLimit[] | undefined
  #last: readonly number[] = []

  constructor(limits: readonly UnitLimit[]) {
    this.learn(limits)
  }

  /** From now on costs may name the units of these limits. */
  learn(limits: readonly UnitLimit[]): void {
    for (const { unit } of limits) this.#units.add(unit)
  }

  /** Throws if a unit is unknown or a number is not a cost. */
  check(cost: Cost | undefined, limits: readonly UnitLimit[]): void {
    if (typeof cost !== 'object' && cost !== undefined) validate('cost', cost, object({}))
    if (this.#isLast(cost, limits)) return
    for (const unit in cost) {
      if (!this.#units.has(unit)) throw unknownUnit(`cost.${unit}`, unit, [...this.#units])
      const units = cost[unit] ?? 0
      if (!(Number.isFinite(units) && units >= 0)) {
        validate(`cost.${unit}`, units, number({ min: 0 }))
      }
    }
  }

  /** Per limit, of a checked cost. Waiting calls of equal cost share one array. */
  of(cost: Cost | undefined, limits: readonly UnitLimit[]): readonly number[] {
    if (!this.#isLast(cost, limits)) {
      this.#lastUnits = []
      this.#lastNumbers = []
      for (const unit in cost) {
        this.#lastUnits.push(unit)
        this.#lastNumbers.push(cost[unit] as number)
      }
      this.#lastLimits = limits
      this.#last = limits.map(({ unit }) => unitsOf(cost, unit))
    }
    return this.#last
  }

  /** Compares property by property, in order, which is five times as fast as looking up each limit's unit. */
  #isLast(cost: Cost | undefined, limits: readonly UnitLimit[]): boolean {
    let index = 0
    for (const unit in cost) {
      if (unit !== this.#lastUnits[index] || cost[unit] !== this.#lastNumbers[index]) return false
      index++
    }
    return index === this.#lastUnits.length && this.#lastLimits === limits
  }
}

function unitsOf(cost: Cost | undefined, unit: string): number {
  return Math.ceil(cost?.[unit] ?? (unit === 'requests' ? 1 : 0))
}
