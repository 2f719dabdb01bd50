/** The limits of a guard as this pod knows them, by lane: those of the first entry that matches, or the guard's own. */
import { isDeepStrictEqual } from 'node:util'
import { number, object, validate } from '../../../core/options/checks.js'
import { type Clock, systemClock } from '../../../core/time/clock.js'
import { countsUntilUs } from '../../../store/calendar-day.js'
import type { LimitSpec } from '../../../store/limit-spec.js'
import type { LaneRef, TakeReply } from '../../../store/port.js'
import { overflowLane } from '../../lanes/lane-names.js'
import { NamePattern } from '../../lanes/name-pattern.js'
import type { OutageRule } from '../../outage/rules.js'
import type { CallCost } from '../../permit-queue/ports.js'
import {
  type readLimits,
  type SpecContext,
  toUnitLimits,
  type UnitLimit,
  unknownUnit,
  usualJitterMs,
} from '../options.js'
import type { Cost } from '../permit.js'
import type { CheckedEntries, CheckedPools } from './lane-entries.js'

type CheckedLimits = ReturnType<typeof readLimits>

export interface LimitOptions {
  limits?: CheckedLimits | undefined
  lanes?: CheckedEntries | undefined
  pools?: CheckedPools | undefined
  jitterMs?: number | undefined
  /** For the time zones of calendar days. Default: the system clock. */
  clock?: Pick<Clock, 'wallMs'>
}

/** Lanes of one entry. */
interface Entry {
  readonly pattern: NamePattern
  /** Limits of the pool and of the lanes themselves. Those of the guard that span all lanes follow. */
  readonly own: readonly UnitLimit[]
  readonly lanes: LaneLimits
}

/** Lanes that are remembered: names often come from callers. */
const MOST_REMEMBERED = 2_000

export class LimitSettings {
  readonly #guard: string
  readonly #options: LimitOptions
  readonly #clock: Pick<Clock, 'wallMs'>
  readonly #jitterMs: number
  readonly #entries: readonly Entry[]
  /** Of lanes that no entry matches. */
  readonly rest: LaneLimits
  readonly #pools = new Map<string, LaneLimits>()
  readonly #byLane = new Map<string, LaneLimits>()
  /** The configured limits, by id, without later changes. */
  readonly configured: ReadonlyMap<string, number>
  /** Units that a cost may name, also of limits that were removed meanwhile. */
  readonly #units = new Set(['requests'])

  constructor(guard: string, options: LimitOptions) {
    const { limits = [], lanes = [], pools = {} } = options
    this.#guard = guard
    this.#options = options
    this.#clock = options.clock ?? systemClock
    const every = [...limits, ...lanes.flatMap((each) => each.limits ?? [])]
    for (const pool of Object.values(pools)) every.push(...pool.limits)
    this.#jitterMs = options.jitterMs ?? usualJitterMs(every)
    for (const { unit } of every) this.#units.add(unit)
    const guardLimits = this.#toUnitLimits(limits)
    this.rest = this.#lanesWith(guardLimits, undefined)
    for (const [name, pool] of Object.entries(pools)) {
      const own = this.#toUnitLimits(pool.limits, ofPool(name))
      this.#pools.set(name, this.#lanesWith(own, name))
    }
    this.#entries = lanes.map(({ match, limits: ofLanes = [], pool }) => {
      const shared = pool === undefined ? [] : (this.#pools.get(pool)?.limits ?? [])
      const own = [...shared, ...this.#toUnitLimits(ofLanes, ofEntry(match))]
      const all = [...own, ...spanningAll(guardLimits)]
      return { pattern: new NamePattern(match), own, lanes: this.#lanesWith(all, pool) }
    })
    this.configured = new Map(this.all().map(({ spec }) => [spec.id, spec.limit]))
  }

  /** A permit may not be used if its round trip took longer. The other half is for the way to the vendor. */
  get useWithinMs(): number {
    return this.#jitterMs / 2
  }

  /** The longest window. */
  get windowMs(): number {
    return Math.max(0, ...this.all().map(({ spec }) => spec.windowUs)) / 1_000
  }

  /** Until when units used at this time count, in the store's time. */
  countsUntilUs(usedUs: number): number {
    return Math.max(usedUs, ...this.all().map(({ spec }) => countsUntilUs(spec, usedUs)))
  }

  /** Outage rules, by id of the limit. */
  get outageRules(): Map<string, OutageRule> {
    const { limits = [], lanes = [], pools = {} } = this.#options
    const rules = new Map<string, OutageRule>()
    const add = (some: CheckedLimits, only?: LaneSelector) => {
      for (const { spec, outage } of this.#toUnitLimits(some, only)) rules.set(spec.id, outage)
    }
    add(limits)
    for (const { match, limits: own = [] } of lanes) add(own, ofEntry(match))
    for (const [name, { limits: own }] of Object.entries(pools)) add(own, ofPool(name))
    return rules
  }

  /** Overflow lanes for calls whose own lane does not exist: one for each entry, because limits differ. */
  get overflowLanes(): string[] {
    return this.#entries.map(({ pattern }) => overflowLane(pattern.text))
  }

  /** The lane to share for a call whose own lane does not exist; undefined if no entry matches. */
  overflowOf(name: string): string | undefined {
    const entry = this.#entries.find(({ pattern }) => pattern.matches(name))
    return entry && overflowLane(entry.pattern.text)
  }

  /** The limits of a lane. */
  of(lane: string): LaneLimits {
    if (this.#entries.length === 0) return this.rest
    const known = this.#byLane.get(lane)
    if (known !== undefined) return known
    const entry = this.#entries.find(
      ({ pattern }) => pattern.matches(lane) || overflowLane(pattern.text) === lane,
    )
    const found = entry?.lanes ?? this.rest
    if (this.#byLane.size >= MOST_REMEMBERED) this.#byLane.clear()
    this.#byLane.set(lane, found)
    return found
  }

  /** A limit of this lane follows what the vendor gives. */
  learns(lane: string): boolean {
    return this.of(lane).specs.some(({ learn }) => learn === true)
  }

  ref(lane: string): LaneRef {
    return this.of(lane).ref(lane)
  }

  /** State of a pool without its lanes; undefined if there is no such pool. */
  poolRef(pool: string): LaneRef | undefined {
    return this.#pools.get(pool)?.ref('')
  }

  /** All limits, each once: the guard's own, then those of entries and pools. */
  all(): UnitLimit[] {
    const byId = new Map<string, UnitLimit>()
    for (const { limits } of this.#each()) {
      for (const limit of limits) if (!byId.has(limit.spec.id)) byId.set(limit.spec.id, limit)
    }
    return [...byId.values()]
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

  /** The limit of this id, or the first one on a unit. Throws if there is none. */
  checkLimit(unit: string): UnitLimit {
    const all = this.all()
    const known = all.find(({ spec }) => spec.id === unit) ?? all.find((each) => each.unit === unit)
    if (known !== undefined) return known
    throw unknownUnit(
      'unit',
      unit,
      all.map(({ spec }) => spec.id),
    )
  }

  /** Changes the guard's own limits. `store` saves them and replies with their version. */
  async change(
    limits: CheckedLimits,
    store: (specs: readonly LimitSpec[]) => number | Promise<number>,
  ): Promise<void> {
    const next = this.#toUnitLimits(limits)
    const version = await store(next.map(({ spec }) => spec))
    for (const { unit } of next) this.#units.add(unit)
    this.rest.replace(next, version)
    for (const { lanes, own } of this.#entries) {
      lanes.replace([...own, ...spanningAll(next)], version)
    }
  }

  /**
   * Takes over from the settings of the guard that this one replaces. Each request carries the limits, so mostly
   * nothing has to be stored. But if limits were changed in the store, the new ones have to replace them; and if
   * a window differs, counts have to be rebuilt, which takes a new version (without limits, so that pods that
   * start later use their own). Returns the limits to store, or undefined.
   */
  succeed(before: LimitSettings): readonly LimitSpec[] | undefined {
    const lanesBefore = [...before.#each()]
    const isChanged = lanesBefore.some((each) => each.isChanged)
    const version = Math.max(...lanesBefore.map((each) => each.version))
    for (const each of this.#each()) {
      each.version = version
      each.isChanged = isChanged
    }
    const specs = this.all().map(({ spec }) => spec)
    const specsBefore = before.all().map(({ spec }) => spec)
    const otherWindow = specs.some(({ id, windowUs, slices }) => {
      const was = specsBefore.find((each) => each.id === id)
      return was !== undefined && (was.windowUs !== windowUs || was.slices !== slices)
    })
    if (!isChanged && !otherWindow) return undefined
    return isChanged ? specs : []
  }

  /** The store replied with this version. */
  reached(version: number): void {
    for (const each of this.#each()) each.version = Math.max(each.version, version)
  }

  #toUnitLimits(limits: CheckedLimits, only?: LaneSelector) {
    const context = { jitterMs: this.#jitterMs, wallMs: this.#clock.wallMs() }
    return toUnitLimits(limits, only === undefined ? context : { ...context, only })
  }

  #lanesWith(limits: readonly UnitLimit[], pool: string | undefined): LaneLimits {
    const checkCost = (cost: Cost | undefined) => this.checkCost(cost)
    return new LaneLimits({ guard: this.#guard, pool, limits, checkCost })
  }

  *#each(): Iterable<LaneLimits> {
    yield this.rest
    for (const { lanes } of this.#entries) yield lanes
    yield* this.#pools.values()
  }
}

type LaneSelector = NonNullable<SpecContext['only']>

function ofEntry(match: string): LaneSelector {
  return { span: 'lane', suffix: `:${match}` }
}

function ofPool(pool: string): LaneSelector {
  return { span: 'pool', suffix: `@${pool}` }
}

function spanningAll(limits: readonly UnitLimit[]): UnitLimit[] {
  return limits.filter(({ spec }) => spec.span === 'vendor')
}

interface LaneLimitsOptions {
  guard: string
  /** The pool of these lanes, whose limits come first. */
  pool: string | undefined
  limits: readonly UnitLimit[]
  /** Throws if a unit is unknown or a number is not a cost. */
  checkCost(cost: Cost | undefined): void
}

/** The limits of lanes that have the same ones: which are in force, and what a call costs under them. */
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

  /** Common part of the store requests of a lane. */
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
    this.limits = this.limits.map((limit, index) => ({
      ...limit,
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
