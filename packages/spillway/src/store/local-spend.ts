/**
 * The units of a guard's limits that this pod has used, per slice as the store counts them, and the
 * units it may use while the store is unreachable. It reports those to the store afterwards.
 *
 * The fleet stays within a limit L without a store for three reasons. Of the units left at the last
 * reply, each of N pods uses at most an N-th. Units that leave the window belonged to one pod and
 * are used again only by that pod. Once everything from before has left the window, each pod stays
 * below L / N.
 */

import { countsUntilUs } from './calendar-day.js'
import { counted, type Fleet, scaled, shareOf } from './fleet-share.js'
import type { LaneRef } from './lane-port.js'
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

/** A pod's rule for one limit while the store is unreachable. */
export type LimitRule = 'share' | 'local' | 'allow'

/** A lane, its pool, and its limits. */
export type SpendingLane = Pick<LaneRef, 'lane' | 'pool' | 'limits'>

/** Units of a lane, or of a pool without one of its lanes, that the store does not know. */
export interface Unreported {
  at: SpendingLane
  ofPool: boolean
  spent: Spent[]
}

export interface LocalTake {
  at: SpendingLane
  rules: readonly LimitRule[]
  costs: readonly (readonly number[])[]
  fleet: Fleet
  nowUs: number
}

export interface LocalReply {
  granted: number
  waitUs: number
  stamps: number[]
  capacities: number[]
  /** If a call was refused: 0 for the limits that refused it, and Infinity for the others. */
  left?: number[]
}

/**
 * After this time, the other pods notice that one pod has lost the store and keep its share for it.
 * Until then they reuse units that it had used before, so it must not use them as well.
 */
const MISSED_AFTER_US = 3_500_000
/** A reply older than this fraction of a window says little about the units left. */
const FRESH = 0.25
/**
 * If less than this fraction of a limit was left within the last window, the limit is fully used.
 * Pods that can reach the store will take the rest, so a pod that cannot must not count on it.
 */
const TIGHT = 0.25
/** Lanes in use are refreshed once a second. */
const FRESH_REPLY_US = 2_500_000
const NEVER = Number.NEGATIVE_INFINITY

/** This pod's use of one limit of one lane or pool. */
class LimitSpend {
  /** Units used, whether the store or this pod granted them. */
  readonly spent = emptyCount()
  /** The part that the store does not know of. */
  unreported = emptyCount()
  /** Units left at the store's last reply, less those that this pod has used since. */
  left: number | undefined
  leftUs = NEVER
  repliedUs = NEVER
  /** When the limit was last fully used, or nearly so. */
  tightUs = NEVER
  /** During an outage: the most units in the window, once that is decided. */
  ceiling: number | undefined
  /** During an outage: this pod's part of `left`. */
  budget: number | undefined

  /** The store replied. */
  replied(nowUs: number): void {
    this.repliedUs = nowUs
    this.ceiling = undefined
    this.budget = undefined
  }
}

export class LocalSpend {
  /** By lane. Limits that span all lanes are stored under an empty name. */
  readonly #lanes = new Map<string, Map<string, LimitSpend>>()
  /** By pool. */
  readonly #pools = new Map<string, Map<string, LimitSpend>>()

  /** The store granted these sums, one per limit. */
  granted(lane: SpendingLane, sums: readonly number[], at: At): void {
    const { limits: specs } = lane
    for (let index = 0; index < specs.length; index++) {
      const spec = counted(specs[index] as LimitSpec, at.fleet)
      const spend = this.#spendOf(lane, spec)
      spend.replied(at.nowUs)
      const units = sums[index] as number
      if (units === 0) continue
      advance(spec, spend.spent, at.nowUs, 0)
      charge(spec, spend.spent, at.nowUs, units)
      if (spend.left !== undefined) spend.left = Math.max(0, spend.left - units)
    }
  }

  /** The store refused a request of these costs, so at least one limit has less left. */
  refused(lane: SpendingLane, costs: readonly number[], nowUs: number): void {
    const { limits: specs } = lane
    for (let index = 0; index < specs.length; index++) {
      const spend = this.#spendOf(lane, specs[index] as LimitSpec)
      spend.replied(nowUs)
      const cost = costs[index] as number
      if (cost === 0) continue
      spend.left = Math.min(spend.left ?? Number.POSITIVE_INFINITY, cost - 1)
      spend.leftUs = nowUs
      spend.tightUs = nowUs
    }
  }

  /** The store reported the units left, one number per limit. */
  noteFigures(lane: SpendingLane, left: readonly number[], nowUs: number): void {
    const { limits: specs } = lane
    for (let index = 0; index < specs.length; index++) {
      const spec = specs[index] as LimitSpec
      const spend = this.#spendOf(lane, spec)
      const now = left[index] as number
      spend.left = now
      spend.leftUs = nowUs
      if (now < capacity(spec) * TIGHT) spend.tightUs = nowUs
      spend.replied(nowUs)
    }
  }

  /**
   * The fraction left at the last reply, less what this pod has used since; undefined if that is
   * too long ago.
   */
  headroom(lane: SpendingLane, spec: LimitSpec, nowUs: number): number | undefined {
    const [spendsByName, name] = this.#placeOf(lane, spec)
    const spend = spendsByName.get(name)?.get(spec.id)
    if (spend?.left === undefined || nowUs - spend.leftUs > FRESH_REPLY_US) return undefined
    return spend.left / capacity(spec)
  }

  /** A new store, which has none of the earlier reports. */
  forgotten(): void {
    for (const spend of this.#all()) spend.unreported = structuredClone(spend.spent)
  }

  /** Grants as many calls from the head of the queue as this pod may start without the store. */
  take({ at: lane, rules, costs, fleet, nowUs }: LocalTake): LocalReply {
    const { limits: specs } = lane
    const spends = specs.map((spec) => this.#spendOf(lane, spec))
    const usable = specs.map((spec, index) => {
      const spend = spends[index] as LimitSpend
      const rule = rules[index] as LimitRule
      const spread = rule === 'share' ? scaled(spec, fleet) : spec
      advance(spread, spend.spent, nowUs, 0)
      advance(spec, spend.unreported, nowUs, 0)
      return rule === 'share' ? this.#limited(spread, spend, fleet, nowUs) : spread
    })
    let granted = 0
    let wait = 0
    const left = specs.map(() => Number.POSITIVE_INFINITY)
    for (const wanted of costs) {
      wait = 0
      for (let index = 0; index < specs.length; index++) {
        if (rules[index] === 'allow') continue
        const cost = costIn(specs[index] as LimitSpec, wanted[index] as number)
        const spend = spends[index] as LimitSpend
        const waits = waitFor(usable[index] as LimitSpec, spend, cost, nowUs)
        if (waits > 0) {
          spend.tightUs = nowUs
          left[index] = 0
        }
        wait = Math.max(wait, waits)
      }
      if (wait > 0) break
      for (let index = 0; index < specs.length; index++) {
        const spec = specs[index] as LimitSpec
        const spend = spends[index] as LimitSpend
        const cost = costIn(spec, wanted[index] as number)
        if (cost === 0) continue
        charge(usable[index] as LimitSpec, spend.spent, nowUs, cost)
        charge(spec, spend.unreported, nowUs, cost)
        if (spend.budget !== undefined) spend.budget -= cost
        if (spend.left !== undefined) spend.left = Math.max(0, spend.left - cost)
      }
      granted++
    }
    return {
      granted,
      waitUs: wait,
      stamps: specs.map((spec, index) => stampOf(spec, (spends[index] as LimitSpend).spent, nowUs)),
      capacities: specs.map(capacity),
      ...(wait > 0 && { left }),
    }
  }

  /** Corrects the cost of a permit. `reported`: the store gets the correction separately. */
  correct(
    lane: SpendingLane,
    spec: LimitSpec,
    { stamp, delta }: { stamp: number; delta: number },
    at: At & { reported: boolean },
  ): void {
    const spend = this.#spendOf(lane, spec)
    const both: [LimitSpec, Count][] = [[counted(spec, at.fleet), spend.spent]]
    if (!at.reported) both.push([spec, spend.unreported])
    for (const [each, count] of both) {
      advance(each, count, at.nowUs, 0)
      if (delta < 0) refund(each, count, at.nowUs, stamp, -delta)
      else overrun(each, count, at.nowUs, delta)
    }
  }

  /** Lanes and pools with unreported units, which count as reported from now on. */
  takeUnreported(known: KnownLanes, nowUs: number): Unreported[] {
    const reports: Unreported[] = []
    for (const [at, spends, ofPool] of this.#each(known)) {
      const spent = at.limits.flatMap((spec, limit) => {
        const spend = spends.get(spec.id)
        return spend === undefined ? [] : takeUnreportedOf(spec, spend, limit, nowUs)
      })
      if (spent.length > 0) reports.push({ at, ofPool, spent })
    }
    return reports
  }

  /** Whether the store knows everything that this pod has used of the lane. */
  isReported(lane: string): boolean {
    for (const { unreported } of this.#lanes.get(lane)?.values() ?? []) {
      if (unreported.units > 0 || unreported.freeAtUs > 0) return false
    }
    return true
  }

  drop(lane: string): void {
    this.#lanes.delete(lane)
  }

  /** Drops lanes and pools whose windows are empty again, and pools that no longer exist. */
  sweep(known: KnownLanes, at: At): void {
    for (const pool of this.#pools.keys()) {
      if (known.poolRef(pool) === undefined) this.#pools.delete(pool)
    }
    for (const [{ limits }, spends] of this.#each(known)) {
      for (const spec of limits) {
        const spend = spends.get(spec.id)
        if (spend === undefined) continue
        advance(counted(spec, at.fleet), spend.spent, at.nowUs, 0)
        if (
          spend.spent.units === 0 &&
          spend.spent.freeAtUs <= at.nowUs &&
          at.nowUs - spend.repliedUs > spec.windowUs
        ) {
          spends.delete(spec.id)
        }
      }
    }
    for (const spendsByName of [this.#lanes, this.#pools]) {
      for (const [name, spends] of spendsByName) if (spends.size === 0) spendsByName.delete(name)
    }
  }

  #limited(spec: LimitSpec, spend: LimitSpend, fleet: Fleet, nowUs: number): LimitSpec {
    if (spend.left === undefined || nowUs >= settledUs(spec, spend)) return spec
    if (spend.budget === undefined) {
      const fresh = spend.repliedUs - spend.leftUs <= spec.windowUs * FRESH
      const tight = fleet.pods > 1 && spend.repliedUs < countsUntilUs(spec, spend.tightUs)
      spend.budget = fresh && !tight ? shareOf(spend.left, fleet) : 0
      if (isBucket(spec)) {
        // Lowers a bucket to this pod's part of the remaining units; it refills from there.
        const tooMuch = remaining(spec, spend.spent, nowUs) - spend.budget
        if (tooMuch > 0) charge(spec, spend.spent, nowUs, tooMuch)
      }
    }
    if (isBucket(spec)) return spec
    if (spend.ceiling === undefined && nowUs >= spend.repliedUs + MISSED_AFTER_US) {
      spend.ceiling = spend.spent.units + Math.max(0, spend.budget)
    }
    const most = spend.ceiling ?? spend.spent.units + Math.max(0, spend.budget)
    return most < spec.limit ? { ...spec, limit: most } : spec
  }

  #spendOf(lane: SpendingLane, spec: LimitSpec): LimitSpend {
    const [spendsByName, name] = this.#placeOf(lane, spec)
    let spends = spendsByName.get(name)
    if (spends === undefined) {
      spends = new Map()
      spendsByName.set(name, spends)
    }
    let spend = spends.get(spec.id)
    if (spend === undefined) {
      spend = new LimitSpend()
      spends.set(spec.id, spend)
    }
    return spend
  }

  #placeOf(
    { lane, pool }: SpendingLane,
    { span }: LimitSpec,
  ): [spendsByName: Map<string, Map<string, LimitSpend>>, name: string] {
    if (span === 'pool' && pool !== undefined) return [this.#pools, pool]
    return [this.#lanes, span === 'vendor' ? '' : lane]
  }

  *#each(known: KnownLanes): Iterable<[SpendingLane, Map<string, LimitSpend>, ofPool: boolean]> {
    for (const [lane, spends] of this.#lanes) yield [known.ref(lane), spends, false]
    for (const [pool, spends] of this.#pools) {
      const at = known.poolRef(pool)
      if (at !== undefined) yield [at, spends, true]
    }
  }

  *#all(): Iterable<LimitSpend> {
    for (const spends of this.#lanes.values()) yield* spends.values()
    for (const spends of this.#pools.values()) yield* spends.values()
  }
}

/** The limits in force of each lane and each pool. */
export interface KnownLanes {
  ref(lane: string): SpendingLane
  /** Undefined if there is no such pool. */
  poolRef(pool: string): SpendingLane | undefined
}

export interface At {
  fleet: Fleet
  nowUs: number
}

function costIn(spec: LimitSpec, cost: number): number {
  return Math.min(cost, capacity(spec))
}

/**
 * When all units have left the window that were used before the others noticed this pod's outage.
 */
function settledUs(spec: LimitSpec, spend: LimitSpend): number {
  return countsUntilUs(spec, spend.repliedUs + MISSED_AFTER_US)
}

/** How long a call has to wait, at most until this pod may use more. */
function waitFor(spec: LimitSpec, spend: LimitSpend, cost: number, nowUs: number): number {
  if (fits(spec, spend.spent, nowUs, cost)) return 0
  const wait = Math.max(1, waitUs(spec, spend.spent, nowUs, cost))
  const changes = [spend.repliedUs + MISSED_AFTER_US, settledUs(spec, spend)]
  const next = spend.budget === undefined ? undefined : changes.find((atUs) => atUs > nowUs)
  return next === undefined ? wait : Math.min(wait, Math.max(1, next - nowUs))
}

function takeUnreportedOf(
  spec: LimitSpec,
  spend: LimitSpend,
  limit: number,
  nowUs: number,
): Spent[] {
  const { unreported } = spend
  advance(spec, unreported, nowUs, 0)
  spend.unreported = emptyCount()
  if (isBucket(spec)) {
    const units = Math.ceil((Math.max(0, unreported.freeAtUs - nowUs) * spec.limit) / spec.windowUs)
    return units > 0 ? [{ limit, stamp: 0, units }] : []
  }
  if (unreported.units === 0) return []
  if (spec.algorithm === 'fixed-window')
    return [{ limit, stamp: unreported.newestSlice, units: unreported.units }]
  const spent: Spent[] = []
  for (
    let stamp = Math.max(0, unreported.newestSlice - unreported.slices.length + 1);
    stamp <= unreported.newestSlice;
    stamp++
  ) {
    const units = unreported.slices[stamp % unreported.slices.length] as number
    if (units > 0) spent.push({ limit, stamp, units })
  }
  return spent
}
