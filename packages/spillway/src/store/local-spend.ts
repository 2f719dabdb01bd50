/**
 * What this pod itself has used of a guard's limits, slice by slice as the store counts it, and what
 * it may use while the store is away. Of everything used in that time the store is told afterwards.
 *
 * Why the fleet stays within a limit L without a store: of what was left when it was last heard of,
 * each of N pods uses at most an N-th; what leaves the window again belonged to one pod and is used
 * again by that one only; and once everything from before has left, each stays below L / N.
 */
import type { LimitSpec } from './limit-spec.js'
import {
  advance,
  type Count,
  capacity,
  charge,
  emptyCount,
  fits,
  isBucket,
  overrun,
  refund,
  remaining,
  stampOf,
  waitUs,
} from './limits/counting.js'
import type { Spent } from './port.js'

/** What a pod does while the store is away; for each limit. */
export type LimitRule = 'share' | 'local' | 'open'

/** Among how many a limit is shared, and which of them this pod is. */
export interface Fleet {
  pods: number
  rank: number
}

export interface OwnTake {
  lane: string
  specs: readonly LimitSpec[]
  rules: readonly LimitRule[]
  costs: readonly (readonly number[])[]
  fleet: Fleet
  nowUs: number
}

export interface OwnReply {
  granted: number
  waitUs: number
  stamps: number[]
  capacities: number[]
}

/**
 * A pod that is cut off alone is missed after so long, and its share kept for it. Until then others
 * use again what it used before, so it does not.
 */
const MISSED_AFTER_US = 3_500_000
/** What was left longer ago than this part of a window says little about what is left now. */
const FRESH = 0.25
/**
 * Where less than this part of a limit was left within the last window, all of it is wanted: pods that
 * still have the store will use what is left, so a pod that has lost it does not count on any of it.
 */
const TIGHT = 0.25
/** Of lanes in use the store is asked once a second. */
const HEARD_LATELY_US = 2_500_000
const NEVER = Number.NEGATIVE_INFINITY

/** One limit of one lane. */
class Own {
  /** Used, whoever allowed it. */
  readonly spent = emptyCount()
  /** The part of it that the store does not know of. */
  untold = emptyCount()
  /** What the store had left when it was last heard of, less what this pod has used since. */
  left: number | undefined
  leftUs = NEVER
  heardUs = NEVER
  /** When there was last less than somebody wanted, or nearly so. */
  tightUs = NEVER
  /** While alone: how much may stand in the window, once that is settled. */
  ceiling: number | undefined
  /** While alone: the part of `left` that is this pod's. */
  budget: number | undefined

  /** The store was asked, and has answered. */
  hear(nowUs: number): void {
    this.heardUs = nowUs
    this.ceiling = undefined
    this.budget = undefined
  }
}

export class OwnSpend {
  /** By lane; limits that span all lanes are under none. */
  readonly #lanes = new Map<string, Map<string, Own>>()

  /** The store granted so much, in all, per limit. */
  granted(lane: string, specs: readonly LimitSpec[], sums: readonly number[], at: At): void {
    for (let index = 0; index < specs.length; index++) {
      const spec = counted(specs[index] as LimitSpec, at.fleet)
      const own = this.#own(lane, spec)
      own.hear(at.nowUs)
      const units = sums[index] as number
      if (units === 0) continue
      advance(spec, own.spent, at.nowUs, 0)
      charge(spec, own.spent, at.nowUs, units)
      if (own.left !== undefined) own.left = Math.max(0, own.left - units)
    }
  }

  /** The store refused one who wanted this: of some limit there is less left. */
  refused(
    lane: string,
    specs: readonly LimitSpec[],
    costs: readonly number[],
    nowUs: number,
  ): void {
    for (let index = 0; index < specs.length; index++) {
      const own = this.#own(lane, specs[index] as LimitSpec)
      own.hear(nowUs)
      const cost = costs[index] as number
      if (cost === 0) continue
      own.left = Math.min(own.left ?? Number.POSITIVE_INFINITY, cost - 1)
      own.leftUs = nowUs
      own.tightUs = nowUs
    }
  }

  /** The store says what is left, per limit. */
  saw(lane: string, specs: readonly LimitSpec[], left: readonly number[], nowUs: number): void {
    for (let index = 0; index < specs.length; index++) {
      const spec = specs[index] as LimitSpec
      const own = this.#own(lane, spec)
      const now = left[index] as number
      own.left = now
      own.leftUs = nowUs
      if (now < capacity(spec) * TIGHT) own.tightUs = nowUs
      own.hear(nowUs)
    }
  }

  /** The part that was left when the store was last heard of, less what was used here since; nothing, if that is too long ago. */
  headroom(lane: string, spec: LimitSpec, nowUs: number): number | undefined {
    const own = this.#lanes.get(spec.span === 'vendor' ? '' : lane)?.get(spec.id)
    if (own?.left === undefined || nowUs - own.leftUs > HEARD_LATELY_US) return undefined
    return own.left / capacity(spec)
  }

  /** Another store, which knows nothing of what it was told. */
  forgotten(): void {
    for (const own of this.#all()) own.untold = structuredClone(own.spent)
  }

  /** As many from the head of the line as this pod may let through by itself. */
  take({ lane, specs, rules, costs, fleet, nowUs }: OwnTake): OwnReply {
    const owns = specs.map((spec) => this.#own(lane, spec))
    const usable = specs.map((spec, index) => {
      const own = owns[index] as Own
      const rule = rules[index] as LimitRule
      const spread = rule === 'share' ? scaled(spec, fleet) : spec
      advance(spread, own.spent, nowUs, 0)
      advance(spec, own.untold, nowUs, 0)
      return rule === 'share' ? this.#limited(spread, own, fleet, nowUs) : spread
    })
    let granted = 0
    let wait = 0
    for (const wanted of costs) {
      wait = 0
      for (let index = 0; index < specs.length; index++) {
        if (rules[index] === 'open') continue
        const cost = costIn(specs[index] as LimitSpec, wanted[index] as number)
        const own = owns[index] as Own
        const waits = waitFor(usable[index] as LimitSpec, own, cost, nowUs)
        if (waits > 0) own.tightUs = nowUs
        wait = Math.max(wait, waits)
      }
      if (wait > 0) break
      for (let index = 0; index < specs.length; index++) {
        const spec = specs[index] as LimitSpec
        const own = owns[index] as Own
        const cost = costIn(spec, wanted[index] as number)
        if (cost === 0) continue
        charge(usable[index] as LimitSpec, own.spent, nowUs, cost)
        charge(spec, own.untold, nowUs, cost)
        if (own.budget !== undefined) own.budget -= cost
        if (own.left !== undefined) own.left = Math.max(0, own.left - cost)
      }
      granted++
    }
    return {
      granted,
      waitUs: wait,
      stamps: specs.map((spec, index) => stampOf(spec, (owns[index] as Own).spent)),
      capacities: specs.map(capacity),
    }
  }

  /** Corrects what a permit cost. `told`: the store hears of it by itself. */
  correct(
    lane: string,
    spec: LimitSpec,
    { stamp, delta }: { stamp: number; delta: number },
    at: At & { told: boolean },
  ): void {
    const own = this.#own(lane, spec)
    const both: [LimitSpec, Count][] = [[counted(spec, at.fleet), own.spent]]
    if (!at.told) both.push([spec, own.untold])
    for (const [each, count] of both) {
      advance(each, count, at.nowUs, 0)
      if (delta < 0) refund(each, count, at.nowUs, stamp, -delta)
      else overrun(each, count, at.nowUs, delta)
    }
  }

  /** Lanes with something to tell, with what it is; it counts as told from now on. */
  takeUntold(specs: readonly LimitSpec[], nowUs: number): { lane: string; spent: Spent[] }[] {
    const told: { lane: string; spent: Spent[] }[] = []
    for (const [lane, owns] of this.#lanes) {
      const spent = specs.flatMap((spec, limit) => {
        const own = owns.get(spec.id)
        return own === undefined ? [] : untoldOf(spec, own, limit, nowUs)
      })
      if (spent.length > 0) told.push({ lane, spent })
    }
    return told
  }

  /** Whether the store knows of everything that this pod has used of the lane. */
  isTold(lane: string): boolean {
    for (const { untold } of this.#lanes.get(lane)?.values() ?? []) {
      if (untold.units > 0 || untold.freeAtUs > 0) return false
    }
    return true
  }

  drop(lane: string): void {
    this.#lanes.delete(lane)
  }

  /** Drops lanes whose windows are empty again. */
  sweep(specs: readonly LimitSpec[], at: At): void {
    for (const [lane, owns] of this.#lanes) {
      for (const spec of specs) {
        const own = owns.get(spec.id)
        if (own === undefined) continue
        advance(counted(spec, at.fleet), own.spent, at.nowUs, 0)
        if (
          own.spent.units === 0 &&
          own.spent.freeAtUs <= at.nowUs &&
          at.nowUs - own.heardUs > spec.windowUs
        ) {
          owns.delete(spec.id)
        }
      }
      if (owns.size === 0) this.#lanes.delete(lane)
    }
  }

  #limited(spec: LimitSpec, own: Own, fleet: Fleet, nowUs: number): LimitSpec {
    if (own.left === undefined || nowUs >= settledUs(spec, own)) return spec
    if (own.budget === undefined) {
      const fresh = own.heardUs - own.leftUs <= spec.windowUs * FRESH
      const tight = fleet.pods > 1 && own.heardUs - own.tightUs < spec.windowUs
      own.budget = fresh && !tight ? shareOf(own.left, fleet) : 0
      if (isBucket(spec)) {
        // A bucket that holds no more than its part of what was left fills up from there.
        const tooMuch = remaining(spec, own.spent, nowUs) - own.budget
        if (tooMuch > 0) charge(spec, own.spent, nowUs, tooMuch)
      }
    }
    if (isBucket(spec)) return spec
    if (own.ceiling === undefined && nowUs >= own.heardUs + MISSED_AFTER_US) {
      own.ceiling = own.spent.units + Math.max(0, own.budget)
    }
    const most = own.ceiling ?? own.spent.units + Math.max(0, own.budget)
    return most < spec.limit ? { ...spec, limit: most } : spec
  }

  #own(lane: string, spec: LimitSpec): Own {
    const where = spec.span === 'vendor' ? '' : lane
    let owns = this.#lanes.get(where)
    if (owns === undefined) {
      owns = new Map()
      this.#lanes.set(where, owns)
    }
    let own = owns.get(spec.id)
    if (own === undefined) {
      own = new Own()
      owns.set(spec.id, own)
    }
    return own
  }

  *#all(): Iterable<Own> {
    for (const owns of this.#lanes.values()) yield* owns.values()
  }
}

export interface At {
  fleet: Fleet
  nowUs: number
}

/** An equal part; what does not divide goes to the first. */
export function shareOf(units: number, { pods, rank }: Fleet): number {
  return Math.floor(units / pods) + (rank < units % pods ? 1 : 0)
}

/** A pod's own part of a limit. A bucket has to flow, if ever so slowly. */
function scaled(spec: LimitSpec, fleet: Fleet): LimitSpec {
  if (fleet.pods === 1) return spec
  const limit = shareOf(spec.limit, fleet)
  if (!isBucket(spec)) return { ...spec, limit }
  const burst = spec.burst === 0 ? 0 : Math.max(1, shareOf(spec.burst, fleet))
  return { ...spec, limit: Math.max(1, limit), burst }
}

/** Windows count alike, whatever the limit is. */
function counted(spec: LimitSpec, fleet: Fleet): LimitSpec {
  return isBucket(spec) ? scaled(spec, fleet) : spec
}

function costIn(spec: LimitSpec, cost: number): number {
  return Math.min(cost, capacity(spec))
}

/** Everything has left that anybody used before a pod that is cut off alone was missed. */
function settledUs({ windowUs }: LimitSpec, own: Own): number {
  return own.heardUs + MISSED_AFTER_US + windowUs
}

/** No longer than until everything from before has left. */
function waitFor(spec: LimitSpec, own: Own, cost: number, nowUs: number): number {
  if (fits(spec, own.spent, nowUs, cost)) return 0
  const wait = Math.max(1, waitUs(spec, own.spent, nowUs, cost))
  const changes = [own.heardUs + MISSED_AFTER_US, settledUs(spec, own)]
  const next = own.budget === undefined ? undefined : changes.find((atUs) => atUs > nowUs)
  return next === undefined ? wait : Math.min(wait, Math.max(1, next - nowUs))
}

function untoldOf(spec: LimitSpec, own: Own, limit: number, nowUs: number): Spent[] {
  const { untold } = own
  advance(spec, untold, nowUs, 0)
  own.untold = emptyCount()
  if (isBucket(spec)) {
    const units = Math.ceil((Math.max(0, untold.freeAtUs - nowUs) * spec.limit) / spec.windowUs)
    return units > 0 ? [{ limit, stamp: 0, units }] : []
  }
  if (untold.units === 0) return []
  if (spec.algorithm === 'fixed-window')
    return [{ limit, stamp: untold.newestSlice, units: untold.units }]
  const spent: Spent[] = []
  for (
    let stamp = Math.max(0, untold.newestSlice - untold.slices.length + 1);
    stamp <= untold.newestSlice;
    stamp++
  ) {
    const units = untold.slices[stamp % untold.slices.length] as number
    if (units > 0) spent.push({ limit, stamp, units })
  }
  return spent
}
