/**
 * How each algorithm counts. Twin: `redis/lua/include/counting.lua`; both have to give the same replies for the
 * same history. All numbers are whole and small enough for a double.
 */

import { DAY_US, isEnding, windowAt, windowEndUs } from '../calendar-day.js'
import type { LimitSpec } from '../limit-spec.js'
import type { LearnedLimit } from './learned-state.js'

/** The state of one limit. Windows use the first four fields and the last two, buckets the others. */
export interface Count {
  /** Number of the newest slice (sliding window) or of the current window (fixed window). */
  newestSlice: number
  /** Units counted in the window. */
  units: number
  /** Length of a slice, or of the fixed window, that the numbers above refer to. Buckets: the window. */
  sliceUs: number
  /** Sliding window: units by slice, as a ring. */
  slices: number[]
  /** Token bucket: when it is full again. Leaky bucket: when the next unit may pass. */
  freeAtUs: number
  /** The limit that `freeAtUs` was computed with. */
  bucketLimit: number
  /**
   * Token bucket: how little it was in debt, and when. Each low point is followed only by higher ones, so the first
   * one after a time is the lowest since then.
   */
  lows: LowPoint[]
  /** The window, and the version of the limits, that a window's numbers refer to. */
  windowUs: number
  version: number
  /** What was learned about the vendor's limit, if it is lower than configured. */
  learned: LearnedLimit | undefined
}

interface LowPoint {
  atUs: number
  /** How long the bucket would have taken to be full. */
  debtUs: number
}

/** More low points than this are merged. */
const MOST_LOWS = 8

export function emptyCount(): Count {
  return {
    newestSlice: 0,
    units: 0,
    sliceUs: 0,
    slices: [],
    freeAtUs: 0,
    bucketLimit: 0,
    lows: [],
    windowUs: 0,
    version: 0,
    learned: undefined,
  }
}

/**
 * Brings a count to the present: drops what has left the window, and adapts to changed limits. Returns whether
 * it adapted something. That has to be saved, because it depends on when it happened.
 */
export function advance(spec: LimitSpec, count: Count, now: number, version: number): boolean {
  if (spec.algorithm === 'sliding-window') return advanceSlices(spec, count, now, version)
  if (spec.algorithm === 'fixed-window') return advanceWindow(spec, count, now, version)
  return rescale(spec, count, now)
}

/**
 * Whether a count has to be rebuilt for this window. Two releases of a fleet may use different windows. Then the
 * wider one is used: otherwise each would undo what the other did, and nothing would ever leave the window.
 */
function adopts(spec: LimitSpec, count: Count, sliceUs: number, version: number): boolean {
  if (count.sliceUs === sliceUs && count.windowUs === spec.windowUs) return false
  return (
    count.sliceUs === 0 ||
    count.units === 0 ||
    version > count.version ||
    spec.windowUs > count.windowUs
  )
}

function advanceSlices(spec: LimitSpec, count: Count, now: number, version: number): boolean {
  const ownSliceUs = Math.ceil(spec.windowUs / spec.slices)
  if (adopts(spec, count, ownSliceUs, version)) {
    // The window has changed: all units keep counting, as if they had been used now.
    const length = Math.ceil(spec.windowUs / ownSliceUs) + 1
    const slice = Math.floor(now / ownSliceUs)
    count.sliceUs = ownSliceUs
    count.windowUs = spec.windowUs
    count.version = version
    count.slices = new Array(length).fill(0)
    count.slices[slice % length] = count.units
    count.newestSlice = slice
    return count.units > 0
  }
  const slice = Math.floor(now / count.sliceUs)
  const length = count.slices.length
  for (let passed = Math.max(count.newestSlice, slice - length) + 1; passed <= slice; passed++) {
    count.units -= sliceAt(count, passed)
    count.slices[passed % length] = 0
  }
  count.newestSlice = Math.max(count.newestSlice, slice)
  return false
}

function advanceWindow(spec: LimitSpec, count: Count, now: number, version: number): boolean {
  if (adopts(spec, count, spec.windowUs, version)) {
    count.sliceUs = spec.windowUs
    count.windowUs = spec.windowUs
    count.version = version
    count.newestSlice = windowAt(spec, count.sliceUs, now)
    return count.units > 0
  }
  const window = windowAt(spec, count.sliceUs, now)
  if (window > count.newestSlice) {
    count.newestSlice = window
    count.units = 0
  }
  return false
}

/** A debt is a number of units. When the rate changes, it takes more or less time to flow back. */
function rescale(spec: LimitSpec, count: Count, now: number): boolean {
  if (count.bucketLimit === spec.limit && count.sliceUs === spec.windowUs) return false
  const inDebt = count.freeAtUs > now && count.bucketLimit > 0
  if (inDebt) {
    const units = ((count.freeAtUs - now) * count.bucketLimit) / count.sliceUs
    count.freeAtUs = now + Math.ceil((units * spec.windowUs) / spec.limit)
    for (const low of count.lows) {
      const lowUnits = (low.debtUs * count.bucketLimit) / count.sliceUs
      low.debtUs = Math.floor((lowUnits * spec.windowUs) / spec.limit)
    }
  }
  count.bucketLimit = spec.limit
  count.sliceUs = spec.windowUs
  return inDebt
}

export function unitsToUs(spec: LimitSpec, units: number): number {
  return Math.ceil((units * spec.windowUs) / spec.limit)
}

/**
 * How far ahead of now a token bucket may be charged. Each charge is rounded up to a whole microsecond, so a burst of
 * single units may take longer than a full bucket, and fits nevertheless: less than one unit more than `burst`.
 */
function burstUs(spec: LimitSpec): number {
  const burst = spec.burst === 0 ? spec.limit : spec.burst
  return Math.min(burst * unitsToUs(spec, 1), unitsToUs(spec, burst + 1) - 1)
}

export function fits(spec: LimitSpec, count: Count, now: number, cost: number): boolean {
  if (cost === 0) return true
  if (spec.algorithm === 'leaky-bucket') return count.freeAtUs <= now
  if (spec.algorithm === 'token-bucket') {
    return Math.max(count.freeAtUs, now) + unitsToUs(spec, cost) - now <= burstUs(spec)
  }
  if (isEnding(spec, count.sliceUs, count.newestSlice, now)) return false
  return count.units + cost <= spec.limit
}

/** The largest cost that can ever fit. */
export function capacity({ algorithm, limit, burst }: LimitSpec): number {
  return algorithm === 'token-bucket' && burst > 0 ? burst : limit
}

/** How long until `cost` fits. A cost that can never fit waits for a whole window. */
export function waitUs(spec: LimitSpec, count: Count, now: number, cost: number): number {
  if (spec.algorithm === 'leaky-bucket') return count.freeAtUs - now
  if (spec.algorithm === 'token-bucket') {
    return Math.max(count.freeAtUs, now) + unitsToUs(spec, cost) - burstUs(spec) - now
  }
  if (spec.algorithm === 'fixed-window') {
    return windowEndUs(spec, count.sliceUs, count.newestSlice) - now
  }
  const length = count.slices.length
  let missing = count.units + cost - spec.limit
  for (
    let slice = Math.max(0, count.newestSlice - length + 1);
    slice <= count.newestSlice;
    slice++
  ) {
    missing -= sliceAt(count, slice)
    if (missing <= 0) return (slice + length) * count.sliceUs - now
  }
  return spec.windowUs
}

/** Books a cost. */
export function charge(spec: LimitSpec, count: Count, now: number, cost: number): void {
  if (isBucket(spec)) {
    noteLow(spec, count, now)
    count.freeAtUs = Math.max(count.freeAtUs, now) + unitsToUs(spec, cost)
    return
  }
  count.units += cost
  if (spec.algorithm === 'sliding-window') {
    const index = count.newestSlice % count.slices.length
    count.slices[index] = (count.slices[index] as number) + cost
  }
}

/**
 * Where a permit granted now is booked, for settling: its slice or window, its turn in a leaky bucket, or the time in
 * a token bucket.
 */
export function stampOf(spec: LimitSpec, count: Count, now: number): number {
  if (spec.algorithm === 'leaky-bucket') return count.freeAtUs
  return isBucket(spec) ? now : count.newestSlice
}

/** Returns units that were booked under `stamp` and not used, if that slice still counts. */
export function refund(
  spec: LimitSpec,
  count: Count,
  now: number,
  stamp: number,
  units: number,
): void {
  if (spec.algorithm === 'token-bucket') {
    refundTokens(spec, count, now, stamp, units)
  } else if (spec.algorithm === 'leaky-bucket') {
    // Only the last turn can be returned: after an earlier one, the next call would be too close to the last.
    if (stamp === count.freeAtUs) {
      count.freeAtUs = Math.max(now, count.freeAtUs - unitsToUs(spec, units))
    }
  } else if (spec.algorithm === 'fixed-window') {
    if (stamp === count.newestSlice) count.units = Math.max(0, count.units - units)
  } else if (stamp > count.newestSlice - count.slices.length && stamp <= count.newestSlice) {
    const index = stamp % count.slices.length
    const back = Math.min(units, count.slices[index] as number)
    count.slices[index] = (count.slices[index] as number) - back
    count.units -= back
  }
}

/**
 * Without the permit, the bucket might have been full since then, and what flowed back would have been lost. So no more
 * is returned than the bucket's smallest debt since the permit was granted.
 */
function refundTokens(
  spec: LimitSpec,
  count: Count,
  now: number,
  stamp: number,
  units: number,
): void {
  noteLow(spec, count, now)
  const { lows } = count
  const since = lows.findIndex(({ atUs }) => atUs > stamp)
  const lowestUs = since === -1 ? count.freeAtUs - now : (lows[since] as LowPoint).debtUs
  const backUs = Math.min(unitsToUs(spec, units), Math.max(0, lowestUs))
  count.freeAtUs -= backUs
  if (since === -1) return
  for (const low of lows.slice(since)) low.debtUs -= backUs
  const lowest = (lows[since] as LowPoint).debtUs
  count.lows = lows.filter(({ debtUs }, index) => index >= since || debtUs < lowest)
}

/** The debt of a token bucket is about to grow. */
function noteLow({ algorithm }: LimitSpec, count: Count, now: number): void {
  if (algorithm !== 'token-bucket') return
  const { lows } = count
  const debtUs = Math.max(0, count.freeAtUs - now)
  while (lows.length > 0 && (lows[lows.length - 1] as LowPoint).debtUs >= debtUs) lows.pop()
  if (lows[lows.length - 1]?.atUs === now) return
  lows.push({ atUs: now, debtUs })
  if (lows.length > MOST_LOWS) mergeLows(lows)
}

/** Merges the two with the most similar debts: the lower debt at the later time, so that less is returned. */
function mergeLows(lows: LowPoint[]): void {
  let best = 0
  let smallestUs = Number.POSITIVE_INFINITY
  for (let index = 0; index < lows.length - 1; index++) {
    const apartUs = (lows[index + 1] as LowPoint).debtUs - (lows[index] as LowPoint).debtUs
    if (apartUs >= smallestUs) continue
    smallestUs = apartUs
    best = index
  }
  const [lower, later] = [lows[best] as LowPoint, lows[best + 1] as LowPoint]
  lows.splice(best, 2, { atUs: later.atUs, debtUs: lower.debtUs })
}

/** Books units used beyond the booked cost. The debt is at most one limit. */
export function overrun(spec: LimitSpec, count: Count, now: number, units: number): void {
  if (isBucket(spec)) {
    noteLow(spec, count, now)
    const most = now + burstUs(spec) + spec.windowUs
    count.freeAtUs = Math.min(
      Math.max(count.freeAtUs, now) + unitsToUs(spec, units),
      Math.max(most, count.freeAtUs),
    )
    return
  }
  const most = Math.max(0, 2 * spec.limit - count.units)
  charge(spec, count, now, Math.min(units, most))
}

/** Units that could be taken now. */
export function remaining(spec: LimitSpec, count: Count, now: number): number {
  if (spec.algorithm === 'leaky-bucket') return count.freeAtUs <= now ? 1 : 0
  if (spec.algorithm === 'token-bucket') {
    const freeUs = burstUs(spec) - Math.max(0, count.freeAtUs - now)
    return Math.max(0, Math.floor((freeUs * spec.limit) / spec.windowUs))
  }
  if (isEnding(spec, count.sliceUs, count.newestSlice, now)) return 0
  return Math.max(0, spec.limit - count.units)
}

/** Units taken and not yet flowed back. */
export function used(spec: LimitSpec, count: Count, now: number): number {
  if (!isBucket(spec)) return count.units
  const whole = spec.algorithm === 'leaky-bucket' ? 1 : spec.burst === 0 ? spec.limit : spec.burst
  return whole - remaining(spec, count, now)
}

/** How long this count still matters. */
export function lifeUs(count: Count, now: number): number {
  // Units of the newest slice, or of the fixed window, are the last to leave.
  // Midnight of a time zone is at most a day after that of UTC.
  const slices = Math.max(1, count.slices.length) + (count.sliceUs === DAY_US ? 1 : 0)
  const windowUs =
    count.sliceUs === 0 ? count.windowUs : (count.newestSlice + slices) * count.sliceUs - now
  return Math.max(0, count.freeAtUs - now, windowUs)
}

/** The clock was set back: all units keep counting, as if they had been used now. */
export function rebase(count: Count, backUs: number): void {
  if (count.bucketLimit > 0) {
    count.freeAtUs -= backUs
    for (const low of count.lows) low.atUs -= backUs
  } else count.sliceUs = 0
}

export function isBucket(spec: LimitSpec): boolean {
  return spec.algorithm === 'token-bucket' || spec.algorithm === 'leaky-bucket'
}

function sliceAt(count: Count, slice: number): number {
  return count.slices[slice % count.slices.length] as number
}
