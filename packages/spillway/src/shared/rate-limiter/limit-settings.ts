/** The limits of a guard as this pod knows them: which are in force, and what a call costs under them. */
import { isDeepStrictEqual } from 'node:util'
import type { LimitSpec } from '../../store/limit-spec.js'
import type { LaneRef, TakeReply } from '../../store/port.js'
import { Costs } from './costs.js'
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
  readonly #costs: Costs
  #limits: readonly UnitLimit[]
  #specs: readonly LimitSpec[]
  #version = 0
  /** Limits were changed in the store, by this pod or another one. */
  #isChanged = false

  constructor(guard: string, limits: CheckedLimits, jitterMs: number | undefined) {
    this.#guard = guard
    this.#jitterMs = jitterMs ?? usualJitterMs(limits)
    this.#limits = toUnitLimits(limits, this.#jitterMs)
    this.#specs = specsOf(this.#limits)
    this.#costs = new Costs(this.#limits)
  }

  /** A permit may not be used if its round trip took longer. The other half is for the way to the vendor. */
  get useWithinMs(): number {
    return this.#jitterMs / 2
  }

  /** Another array after each change. */
  get limits(): readonly UnitLimit[] {
    return this.#limits
  }

  get specs(): readonly LimitSpec[] {
    return this.#specs
  }

  get version(): number {
    return this.#version
  }

  get windowMs(): number {
    return Math.max(...this.#specs.map(({ windowUs }) => windowUs)) / 1_000
  }

  /** What store requests of this guard have in common. */
  ref(lane: string): LaneRef {
    return { guard: this.#guard, lane, limits: this.#specs, version: this.#version }
  }

  /** Throws if a unit is unknown or a number is not a cost. */
  checkCost(cost: Cost | undefined): void {
    this.#costs.check(cost, this.#limits)
  }

  /** Per limit, of a checked cost. The store lowers costs that could never be granted. */
  costsOf(cost: Cost | undefined): readonly number[] {
    return this.#costs.of(cost, this.#limits)
  }

  /** The limit on a unit. Throws if there is none. */
  checkLimit(unit: string): UnitLimit {
    const known = this.#limits.find((each) => each.unit === unit || each.spec.id === unit)
    if (known !== undefined) return known
    const ids = this.#limits.map((each) => each.spec.id)
    throw unknownUnit('unit', unit, ids)
  }

  /** Changes the limits. `store` saves them and replies with their version. */
  async change(
    limits: CheckedLimits,
    store: (specs: readonly LimitSpec[]) => number | Promise<number>,
  ): Promise<void> {
    const next = toUnitLimits(limits, this.#jitterMs)
    this.#version = await store(specsOf(next))
    this.#isChanged = true
    this.#limits = next
    this.#specs = specsOf(next)
    this.#costs.learn(next)
  }

  /** Another pod may have changed the limits. */
  learn({ newer }: TakeReply): void {
    if (newer === undefined || newer.version <= this.#version) return
    this.#version = newer.version
    if (isDeepStrictEqual(newer.limits, this.#specs)) return
    this.#isChanged = true
    this.#limits = this.#limits.map(({ unit }, index) => ({
      unit,
      spec: newer.limits[index] as LimitSpec,
    }))
    this.#specs = newer.limits
  }

  /**
   * Takes over from the settings of the guard that this one replaces. Each request carries the limits, so mostly
   * nothing has to be stored. But if limits were changed in the store, the new ones have to replace them; and if
   * a window differs, counts have to be rebuilt, which takes a new version (without limits, so that pods that
   * start later use their own). Returns the limits to store, or undefined.
   */
  succeed(before: LimitSettings): readonly LimitSpec[] | undefined {
    this.#version = before.#version
    this.#isChanged = before.#isChanged
    const otherWindow = this.#specs.some(({ id, windowUs, slices }) => {
      const was = before.#specs.find((each) => each.id === id)
      return was !== undefined && (was.windowUs !== windowUs || was.slices !== slices)
    })
    if (!this.#isChanged && !otherWindow) return undefined
    return this.#isChanged ? this.#specs : []
  }

  /** The store replied with this version. */
  reached(version: number): void {
    this.#version = Math.max(this.#version, version)
  }
}

function specsOf(limits: readonly UnitLimit[]): LimitSpec[] {
  return limits.map(({ spec }) => spec)
}
