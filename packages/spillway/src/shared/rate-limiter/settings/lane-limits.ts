/** The limits of the lanes that have the same ones: which are in force, and what a call costs under them. */
import { isDeepStrictEqual } from 'node:util'
import type { LimitSpec } from '../../../store/limit-spec.js'
import type { LaneRef, TakeReply } from '../../../store/port.js'
import type { CallCost } from '../../permit-queue/ports.js'
import type { UnitLimit } from '../options.js'
import type { Cost } from '../permit.js'

export interface LaneLimitsOptions {
  guard: string
  /** The pool of these lanes, whose limits come first. */
  pool: string | undefined
  limits: readonly UnitLimit[]
  /** Throws if a unit is unknown or a number is not a cost. */
  checkCost(cost: Cost | undefined): void
}

export class LaneLimits {
  readonly pool: string | undefined
  readonly #guard: string
  readonly #checkCost: LaneLimitsOptions['checkCost']
  /** The limits in force: another array after each change. Changed here only, as are the next two. */
  limits: readonly UnitLimit[]
  specs: readonly LimitSpec[]
  version = 0
  /** Limits were changed in the store, by this pod or another one. */
  isChanged = false
  /** The last cost and its numbers: the cost of consecutive calls is often equal. */
  readonly #lastUnits: string[] = []
  readonly #lastNumbers: number[] = []
  /** How many of their elements belong to it. */
  #lastLength = 0
  #lastLimits: readonly UnitLimit[] | undefined
  #lastCosts: readonly number[] = []

  constructor({ guard, pool, limits, checkCost }: LaneLimitsOptions) {
    this.#guard = guard
    this.pool = pool
    this.limits = limits
    this.specs = specsOf(limits)
    this.#checkCost = checkCost
  }

  /** What store requests of a lane have in common. */
  ref(lane: string): LaneRef {
    const { pool, specs: limits, version } = this
    return { guard: this.#guard, lane, pool, limits, version }
  }

  /** Per limit; computed again if the limits have changed since. Throws if the cost is invalid. */
  costsOf(call: CallCost): readonly number[] {
    if (call.costsUnder !== this.limits) {
      call.costs = this.costsFor(call.cost)
      call.costsUnder = this.limits
    }
    return call.costs
  }

  /**
   * Per limit. Throws if the cost is invalid. The store lowers costs that could never be granted. Equal costs in a
   * row share one array.
   */
  costsFor(cost: Cost | undefined): readonly number[] {
    if (this.#isLast(cost)) return this.#lastCosts
    this.#checkCost(cost)
    // Overwritten: emptied arrays would allocate their memory again for every new cost.
    let length = 0
    for (const unit in cost) {
      this.#lastUnits[length] = unit
      this.#lastNumbers[length] = cost[unit] as number
      length++
    }
    this.#lastLength = length
    this.#lastLimits = this.limits
    // A loop: creating a closure for `map` took a tenth of the time of a decision.
    const costs = new Array<number>(this.limits.length)
    for (let index = 0; index < costs.length; index++) {
      costs[index] = unitsOf(cost, (this.limits[index] as UnitLimit).unit)
    }
    this.#lastCosts = costs
    return costs
  }

  /** The limits were changed by this pod. */
  replace(limits: readonly UnitLimit[], version: number): void {
    this.limits = limits
    this.specs = specsOf(limits)
    this.version = version
    this.isChanged = true
  }

  /** Another pod may have changed the limits. */
  learn(newer: NonNullable<TakeReply['newer']>): void {
    if (newer.version <= this.version) return
    this.version = newer.version
    if (isDeepStrictEqual(newer.limits, this.specs)) return
    this.isChanged = true
    this.limits = this.limits.map(({ unit }, index) => ({
      unit,
      spec: newer.limits[index] as LimitSpec,
    }))
    this.specs = newer.limits
  }

  /** Compares property by property, in order, which is five times as fast as looking up each limit's unit. */
  #isLast(cost: Cost | undefined): boolean {
    let index = 0
    if (typeof cost !== 'object' && cost !== undefined) return false
    for (const unit in cost) {
      if (unit !== this.#lastUnits[index] || cost[unit] !== this.#lastNumbers[index]) return false
      index++
    }
    return index === this.#lastLength && this.#lastLimits === this.limits
  }
}

function unitsOf(cost: Cost | undefined, unit: string): number {
  return Math.ceil(cost?.[unit] ?? (unit === 'requests' ? 1 : 0))
}

function specsOf(limits: readonly UnitLimit[]): LimitSpec[] {
  return limits.map(({ spec }) => spec)
}
