/** What calls cost: as their callers say it, by unit, and as limits count it, each in its place. */
import { number, object, validate } from '../../core/options/checks.js'
import { type UnitLimit, unknownUnit } from './options.js'
import type { Cost } from './permit.js'

export class Costs {
  /** What a call may cost. A unit whose limit was lifted meanwhile is no mistake. */
  readonly #units = new Set(['requests'])
  /** The last call's: as it was told, and under the limits of then. Many calls cost the same. */
  #lastUnits: string[] = []
  #lastNumbers: number[] = []
  #lastLimits: readonly UnitLimit[] | undefined
  #last: readonly number[] = []

  constructor(limits: readonly UnitLimit[]) {
    this.learn(limits)
  }

  /** From now on calls may cost what these count. */
  learn(limits: readonly UnitLimit[]): void {
    for (const { unit } of limits) this.#units.add(unit)
  }

  /** Throws where a unit is unknown, or a number no cost. */
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

  /** Per limit, of a cost that was checked. Many calls may wait: those that cost the same share one. */
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

  /** As its own properties say, in their order: to look each limit's up by name takes five times as long. */
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
