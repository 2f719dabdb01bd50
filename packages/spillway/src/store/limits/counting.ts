/**
 * How each algorithm counts, as changes to a few numbers. The Lua twin of this file is
 * `redis/lua/include/counting.lua`: the same histories have to give the same replies.
 * All numbers are whole, and small enough for a double.
 */
import type { LimitSpec } from '../limit-spec.js'

/** What is kept of one limit. Fields mean different things to different algorithms. */
export interface Count {
  /** Windows: number of the newest slice, or of the window. */
  n: number
  /** Windows: units counted. */
  s: number
  /** Length of a slice (sliding) or of the window, that the numbers above were made with. */
  w: number
  /** Sliding window: units by slice, as a ring. */
  b: number[]
  /** Buckets: when the bucket is full again (token), or when the next beat is free (leaky). */
  f: number
  /** Buckets: the limit that `f` was computed with. */
  r: number
  /** Windows: the window, and the version of the limits, that the numbers above were made with. */
  u: number
  v: number
}

export function emptyCount(): Count {
  return { n: 0, s: 0, w: 0, b: [], f: 0, r: 0, u: 0, v: 0 }
}

/**
 * Brings a count to the present: drops what has left, and adapts to limits that have changed. Says
 * whether it had to adapt something: that has to be kept, because it depends on when it happened.
 */
export function advance(spec: LimitSpec, count: Count, now: number, version: number): boolean {
  if (spec.algorithm === 'sliding-window') return advanceSlices(spec, count, now, version)
  if (spec.algorithm === 'fixed-window') return advanceWindow(spec, count, now, version)
  return rescale(spec, count, now)
}

/**
 * Whether a count has to be made anew for this window. Two releases of a fleet may differ in it; then
 * the wider one counts, or each would undo what the other did and nothing would ever leave.
 */
function adopts(spec: LimitSpec, count: Count, sliceUs: number, version: number): boolean {
  if (count.w === sliceUs && count.u === spec.windowUs) return false
  return count.w === 0 || count.s === 0 || version > count.v || spec.windowUs > count.u
}

function advanceSlices(spec: LimitSpec, count: Count, now: number, version: number): boolean {
  const ownSliceUs = Math.ceil(spec.windowUs / spec.slices)
  if (adopts(spec, count, ownSliceUs, version)) {
    // Another window than before: what counted goes on counting, as if it had happened now.
    const length = Math.ceil(spec.windowUs / ownSliceUs) + 1
    const slice = Math.floor(now / ownSliceUs)
    count.w = ownSliceUs
    count.u = spec.windowUs
    count.v = version
    count.b = new Array(length).fill(0)
    count.b[slice % length] = count.s
    count.n = slice
    return count.s > 0
  }
  const slice = Math.floor(now / count.w)
  const length = count.b.length
  for (let passed = Math.max(count.n, slice - length) + 1; passed <= slice; passed++) {
    count.s -= sliceAt(count, passed)
    count.b[passed % length] = 0
  }
  count.n = Math.max(count.n, slice)
  return false
}

function advanceWindow(spec: LimitSpec, count: Count, now: number, version: number): boolean {
  if (adopts(spec, count, spec.windowUs, version)) {
    count.w = spec.windowUs
    count.u = spec.windowUs
    count.v = version
    count.n = Math.floor(now / spec.windowUs)
    return count.s > 0
  }
  const window = Math.floor(now / count.w)
  if (window > count.n) {
    count.n = window
    count.s = 0
  }
  return false
}

/** A debt is so many units; when the rate changes it takes more or less time to pay off. */
function rescale(spec: LimitSpec, count: Count, now: number): boolean {
  if (count.r === spec.limit && count.w === spec.windowUs) return false
  const inDebt = count.f > now && count.r > 0
  if (inDebt) {
    const units = ((count.f - now) * count.r) / count.w
    count.f = now + Math.ceil((units * spec.windowUs) / spec.limit)
  }
  count.r = spec.limit
  count.w = spec.windowUs
  return inDebt
}

function unitsToUs(spec: LimitSpec, units: number): number {
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
  if (spec.algorithm === 'leaky-bucket') return count.f <= now
  if (spec.algorithm === 'token-bucket') {
    return Math.max(count.f, now) + unitsToUs(spec, cost) - now <= burstUs(spec)
  }
  return count.s + cost <= spec.limit
}

/** The largest cost that can ever fit. */
export function capacity({ algorithm, limit, burst }: LimitSpec): number {
  return algorithm === 'token-bucket' && burst > 0 ? burst : limit
}

/** How long until `cost` fits. What can never fit is asked to come back in a window's time. */
export function waitUs(spec: LimitSpec, count: Count, now: number, cost: number): number {
  if (spec.algorithm === 'leaky-bucket') return count.f - now
  if (spec.algorithm === 'token-bucket') {
    return Math.max(count.f, now) + unitsToUs(spec, cost) - burstUs(spec) - now
  }
  if (spec.algorithm === 'fixed-window') return (count.n + 1) * count.w - now
  const length = count.b.length
  let missing = count.s + cost - spec.limit
  for (let slice = Math.max(0, count.n - length + 1); slice <= count.n; slice++) {
    missing -= sliceAt(count, slice)
    if (missing <= 0) return (slice + length) * count.w - now
  }
  return spec.windowUs
}

/** Books a cost and says where, for settling. */
export function charge(spec: LimitSpec, count: Count, now: number, cost: number): void {
  if (isBucket(spec)) {
    count.f = Math.max(count.f, now) + unitsToUs(spec, cost)
    return
  }
  count.s += cost
  if (spec.algorithm === 'sliding-window') {
    const index = count.n % count.b.length
    count.b[index] = (count.b[index] as number) + cost
  }
}

/** Where a permit granted now is booked. */
export function stampOf(spec: LimitSpec, count: Count): number {
  return isBucket(spec) ? 0 : count.n
}

/** Gives back units that were booked under `stamp` and not used, as far as that still counts. */
export function refund(
  spec: LimitSpec,
  count: Count,
  now: number,
  stamp: number,
  units: number,
): void {
  if (isBucket(spec)) {
    count.f = Math.max(now, count.f - unitsToUs(spec, units))
  } else if (spec.algorithm === 'fixed-window') {
    if (stamp === count.n) count.s = Math.max(0, count.s - units)
  } else if (stamp > count.n - count.b.length && stamp <= count.n) {
    const index = stamp % count.b.length
    const back = Math.min(units, count.b[index] as number)
    count.b[index] = (count.b[index] as number) - back
    count.s -= back
  }
}

/** Books units that were used beyond what was asked for. The debt is bounded by one limit's worth. */
export function overrun(spec: LimitSpec, count: Count, now: number, units: number): void {
  if (isBucket(spec)) {
    const most = now + burstUs(spec) + spec.windowUs
    count.f = Math.min(Math.max(count.f, now) + unitsToUs(spec, units), Math.max(most, count.f))
    return
  }
  const most = Math.max(0, 2 * spec.limit - count.s)
  charge(spec, count, now, Math.min(units, most))
}

/** Units that could be taken now. */
export function remaining(spec: LimitSpec, count: Count, now: number): number {
  if (spec.algorithm === 'leaky-bucket') return count.f <= now ? 1 : 0
  if (spec.algorithm === 'token-bucket') {
    const freeUs = burstUs(spec) - Math.max(0, count.f - now)
    return Math.max(0, Math.floor((freeUs * spec.limit) / spec.windowUs))
  }
  return Math.max(0, spec.limit - count.s)
}

/** Units taken and not yet flowed back. */
export function used(spec: LimitSpec, count: Count, now: number): number {
  if (!isBucket(spec)) return count.s
  const whole = spec.algorithm === 'leaky-bucket' ? 1 : spec.burst === 0 ? spec.limit : spec.burst
  return whole - remaining(spec, count, now)
}

/** How long this count still means something, whatever it is a count of. */
export function lifeUs(count: Count, now: number): number {
  // What is booked in the newest slice, or in the window, is the last to leave.
  const slices = Math.max(1, count.b.length)
  const windowUs = count.w === 0 ? count.u : (count.n + slices) * count.w - now
  return Math.max(0, count.f - now, windowUs)
}

/** The clock was set back by so much: what counted goes on counting, as if it had happened now. */
export function rebase(count: Count, backUs: number): void {
  if (count.r > 0) count.f -= backUs
  else count.w = 0
}

export function isBucket(spec: LimitSpec): boolean {
  return spec.algorithm === 'token-bucket' || spec.algorithm === 'leaky-bucket'
}

function sliceAt(count: Count, slice: number): number {
  return count.b[slice % count.b.length] as number
}
