/** The limits of a guard as this pod knows them: which are in force, and what a call costs under them. */
import { isDeepStrictEqual } from 'node:util'
import { number, object, validate } from '../../core/options/checks.js'
import type { LimitSpec } from '../../store/limit-spec.js'
import type { LaneRef, TakeReply } from '../../store/port.js'
import type { CallCost } from '../permit-queue/ports.js'
import {
  type readLimits,
  toUnitLimits,
  type UnitLimit,
  unknownUnit,
  usualJitterMs,
} from './options.js'
import type { Cost } from './permit.js'

type CheckedLimits = ReturnType<typeof readLimits>

export class LimitSettings {
  readonly #guard: string
  readonly #jitterMs: number
  /** The limits in force: another array after each change. Changed here only, as are the next two. */
  limits: readonly UnitLimit[]
  specs: readonly LimitSpec[]
  version = 0
  /** Units that a cost may name, also of limits that were removed meanwhile. */
  readonly #units = new Set(['requests'])
  /** The last cost and its numbers: the cost of consecutive calls is often equal. */
  readonly #lastUnits: string[] = []
  readonly #lastNumbers: number[] = []
  /** How many of their elements belong to it. */
  #lastLength = 0
  #lastLimits: readonly UnitLimit[] | undefined
  #lastCosts: readonly number[] = []
  /** Limits were changed in the store, by this pod or another one. */
  #isChanged = false

  constructor(guard: string, limits: CheckedLimits, jitterMs: number | undefined) {
    this.#guard = guard
    this.#jitterMs = jitterMs ?? usualJitterMs(limits)
    this.limits = toUnitLimits(limits, this.#jitterMs)
    this.specs = specsOf(this.limits)
    for (const { unit } of this.limits) this.#units.add(unit)
  }

  /** A permit may not be used if its round trip took longer. The other half is for the way to the vendor. */
  get useWithinMs(): number {
    return this.#jitterMs / 2
  }

  get windowMs(): number {
    return Math.max(...this.specs.map(({ windowUs }) => windowUs)) / 1_000
  }

  /** What store requests of this guard have in common. */
  ref(lane: string): LaneRef {
    return { guard: this.#guard, lane, limits: this.specs, version: this.version }
  }

  /** Throws if a unit is unknown or a number is not a cost. */
  checkCost(cost: Cost | undefined): void {
    if (typeof cost !== 'object' && cost !== undefined) validate('cost', cost, object({}))
    for (const unit in cost) {
      if (!this.#units.has(unit)) throw unknownUnit(`cost.${unit}`, unit, [...this.#units])
      const units = cost[unit] ?? 0
      if (!(Number.isFinite(units) && units >= 0)) {
        validate(`cost.${unit}`, units, number({ min: 0 }))
      }
    }
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
    this.checkCost(cost)
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

  /** The limit on a unit. Throws if there is none. */
  checkLimit(unit: string): UnitLimit {
    const known = this.limits.find((each) => each.unit === unit || each.spec.id === unit)
    if (known !== undefined) return known
    const ids = this.limits.map((each) => each.spec.id)
    throw unknownUnit('unit', unit, ids)
  }

  /** Changes the limits. `store` saves them and replies with their version. */
  async change(
    limits: CheckedLimits,
    store: (specs: readonly LimitSpec[]) => number | Promise<number>,
  ): Promise<void> {
    const next = toUnitLimits(limits, this.#jitterMs)
    this.version = await store(specsOf(next))
    this.#isChanged = true
    this.limits = next
    this.specs = specsOf(next)
    for (const { unit } of next) this.#units.add(unit)
  }

  /** Another pod may have changed the limits. */
  learn(newer: NonNullable<TakeReply['newer']>): void {
    if (newer.version <= this.version) return
    this.version = newer.version
    if (isDeepStrictEqual(newer.limits, this.specs)) return
    this.#isChanged = true
    this.limits = this.limits.map(({ unit }, index) => ({
      unit,
      spec: newer.limits[index] as LimitSpec,
    }))
    this.specs = newer.limits
  }

  /**
   * Takes over from the settings of the guard that this one replaces. Each request carries the limits, so mostly
   * nothing has to be stored. But if limits were changed in the store, the new ones have to replace them; and if
   * a window differs, counts have to be rebuilt, which takes a new version (without limits, so that pods that
   * start later use their own). Returns the limits to store, or undefined.
   */
  succeed(before: LimitSettings): readonly LimitSpec[] | undefined {
    this.version = before.version
    this.#isChanged = before.#isChanged
    const otherWindow = this.specs.some(({ id, windowUs, slices }) => {
      const was = before.specs.find((each) => each.id === id)
      return was !== undefined && (was.windowUs !== windowUs || was.slices !== slices)
    })
    if (!this.#isChanged && !otherWindow) return undefined
    return this.#isChanged ? this.specs : []
  }

  /** The store replied with this version. */
  reached(version: number): void {
    this.version = Math.max(this.version, version)
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
