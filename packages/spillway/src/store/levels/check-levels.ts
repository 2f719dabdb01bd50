/**
 * Charges several token buckets for one request, all of them or none. A bucket is one number: the
 * time at which it is full again. A cost above the size of a bucket takes all of it; otherwise the
 * request would wait forever. Twin: `redis/lua/check-levels.lua`.
 */

import { SET_BACK_US } from '../clock-setback.js'
import type { LevelCharge, LevelReply, LevelRequest } from '../port.js'

/** When each bucket is full again; undefined for one that is full. */
export interface Buckets {
  get(key: string): number | undefined
  /** The value matters until `fullAtUs`. */
  set(key: string, fullAtUs: number): void
}

export function checkLevels(
  buckets: Buckets,
  requests: readonly LevelRequest[],
  nowUs: number,
): LevelReply[] {
  const replies: LevelReply[] = []
  for (const { levels, cost } of requests) {
    const [only] = levels
    replies.push(
      only !== undefined && levels.length === 1
        ? checkLevel(buckets, only, cost, nowUs)
        : checkAll(buckets, levels, cost, nowUs),
    )
  }
  return replies
}

/** Cannot fill a bucket beyond its size. A bucket whose clock was set back is not emptied. */
export function refundLevels(
  buckets: Buckets,
  requests: readonly LevelRequest[],
  nowUs: number,
): void {
  for (const { levels, cost } of requests) {
    for (const level of levels) {
      const full = buckets.get(level.key)
      if (full === undefined) continue
      buckets.set(level.key, Math.max(nowUs, full - toUs(level, Math.min(cost, level.burst))))
    }
  }
}

function checkAll(
  buckets: Buckets,
  levels: readonly LevelCharge[],
  cost: number,
  now: number,
): LevelReply {
  let refusedBy = 0
  let waitUs = 0
  // Loops by index, because this runs for every call of a guard.
  for (let index = 0; index < levels.length; index++) {
    const level = levels[index] as LevelCharge
    const wait = next(buckets, level, cost, now) - now - capacityUs(level)
    if (wait <= waitUs) continue
    waitUs = wait
    refusedBy = index + 1
  }
  let remaining = Number.MAX_SAFE_INTEGER
  let resetUs = 0
  let tightest = 0
  for (let index = 0; index < levels.length; index++) {
    const level = levels[index] as LevelCharge
    const charged = next(buckets, level, cost, now)
    // A refusal takes nothing, so the remaining units are those from before.
    const full = refusedBy === 0 ? charged : charged - toUs(level, Math.min(cost, level.burst))
    const free = capacityUs(level) - (full - now)
    const left = Math.max(0, Math.floor((free * level.limit) / level.windowUs))
    if (refusedBy === 0) buckets.set(level.key, charged)
    if (refusedBy === 0 ? left < remaining : index + 1 === refusedBy) {
      remaining = left
      resetUs = full - now
      tightest = index + 1
    }
  }
  return { refusedBy, waitUs, tightest, remaining, resetUs }
}

/** The common case of one level, with one look-up and one computation. */
function checkLevel(buckets: Buckets, level: LevelCharge, cost: number, now: number): LevelReply {
  const capacity = capacityUs(level)
  const costUs = toUs(level, Math.min(cost, level.burst))
  const before = fullAtUs(buckets.get(level.key), toUs(level, level.burst), now)
  const waitUs = before + costUs - now - capacity
  const refused = waitUs > 0
  const full = refused ? before : before + costUs
  if (!refused) buckets.set(level.key, full)
  const resetUs = full - now
  const left = Math.max(0, Math.floor(((capacity - resetUs) * level.limit) / level.windowUs))
  return refused
    ? { refusedBy: 1, waitUs, tightest: 1, remaining: left, resetUs }
    : { refusedBy: 0, waitUs: 0, tightest: 1, remaining: left, resetUs }
}

/** When the bucket would be full again if it were charged. */
function next(buckets: Buckets, level: LevelCharge, cost: number, now: number): number {
  const burstUs = toUs(level, level.burst)
  return fullAtUs(buckets.get(level.key), burstUs, now) + toUs(level, Math.min(cost, level.burst))
}

/**
 * Never in the past, and never further ahead than the bucket's size: then the clock was set back.
 */
function fullAtUs(stored: number | undefined, burstUs: number, now: number): number {
  const full = Math.max(stored ?? 0, now)
  return full - now > burstUs + SET_BACK_US ? now + burstUs : full
}

function toUs({ limit, windowUs }: LevelCharge, units: number): number {
  return Math.ceil((units * windowUs) / limit)
}

/**
 * How far ahead of now a bucket may be charged. Each charge is rounded up to a whole microsecond, so `burst` charges of
 * one unit may take longer than a full bucket, and are granted nevertheless: less than one unit more than `burst`.
 */
function capacityUs(level: LevelCharge): number {
  return Math.min(level.burst * toUs(level, 1), toUs(level, level.burst + 1) - 1)
}
