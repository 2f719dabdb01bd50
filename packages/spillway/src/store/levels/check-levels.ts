/**
 * Charges all levels of one request, or none of them. A token bucket is one number: the time at which it is full again.
 * A sliding window is a log of charges (`sliding-window.ts`). A cost above the size of a level takes all of it;
 * otherwise the request would wait forever. Twin: `redis/lua/check-levels.lua`.
 */

import { SET_BACK_US } from '../clock-setback.js'
import type { LevelCharge, LevelReply, LevelRequest } from '../port.js'
import { type ChargeLogs, LevelWindow } from './sliding-window.js'

/** When each bucket is full again; undefined for one that is full. */
export interface Buckets {
  get(key: string): number | undefined
  /** The value matters until `fullAtUs`. */
  set(key: string, fullAtUs: number): void
}

const NOTHING_CHARGED: readonly number[] = []

export function checkLevels(
  buckets: Buckets,
  requests: readonly LevelRequest[],
  nowUs: number,
  logs: ChargeLogs,
): LevelReply[] {
  const replies: LevelReply[] = []
  for (const { levels, cost } of requests) {
    const [only] = levels
    replies.push(
      only !== undefined && levels.length === 1 && only.algorithm !== 'sliding-window'
        ? checkLevel(buckets, only, cost, nowUs)
        : checkAll(buckets, levels, cost, nowUs, logs),
    )
  }
  return replies
}

export function isWindow({ algorithm }: LevelCharge): boolean {
  return algorithm === 'sliding-window'
}

function checkAll(
  buckets: Buckets,
  levels: readonly LevelCharge[],
  cost: number,
  now: number,
  logs: ChargeLogs,
): LevelReply {
  let refusedBy = 0
  let waitUs = 0
  const windows: (LevelWindow | undefined)[] = []
  // Loops by index, because this runs for every call of a guard.
  for (let index = 0; index < levels.length; index++) {
    const level = levels[index] as LevelCharge
    const window = isWindow(level) ? new LevelWindow(level, logs.get(level.key), now) : undefined
    windows.push(window)
    const wait = window?.waitUs(cost) ?? next(buckets, level, cost, now) - now - capacityUs(level)
    if (wait <= waitUs) continue
    waitUs = wait
    refusedBy = index + 1
  }
  const granted = refusedBy === 0
  let remaining = Number.MAX_SAFE_INTEGER
  let resetUs = 0
  let tightest = 0
  const fullAt: number[] = []
  for (let index = 0; index < levels.length; index++) {
    const window = windows[index]
    const level = levels[index] as LevelCharge
    const state = window === undefined ? chargeBucket(buckets, level, cost, now, granted) : window
    if (window !== undefined) {
      if (granted) window.charge(cost)
      if (granted || window.rebased) window.save(logs)
    }
    if (granted) fullAt.push(window === undefined ? now + state.resetUs : 0)
    if (granted ? state.remaining < remaining : index + 1 === refusedBy) {
      remaining = state.remaining
      resetUs = state.resetUs
      tightest = index + 1
    }
  }
  return { refusedBy, waitUs, tightest, remaining, resetUs, atUs: now, fullAtUs: fullAt }
}

/**
 * Charges a bucket if the request is granted. A refusal takes nothing, so the figures are those from before. A bucket
 * of a clock that was set back is stored nevertheless; otherwise it would stay empty until the clock has caught up.
 */
function chargeBucket(
  buckets: Buckets,
  level: LevelCharge,
  cost: number,
  now: number,
  granted: boolean,
): { remaining: number; resetUs: number } {
  const charged = next(buckets, level, cost, now)
  const full = granted ? charged : charged - toUs(level, Math.min(cost, level.burst))
  const free = capacityUs(level) - (full - now)
  if (granted || full < (buckets.get(level.key) ?? 0)) buckets.set(level.key, full)
  const remaining = Math.max(0, Math.floor((free * level.limit) / level.windowUs))
  return { remaining, resetUs: full - now }
}

/** The common case of one level, with one look-up and one computation. */
function checkLevel(buckets: Buckets, level: LevelCharge, cost: number, now: number): LevelReply {
  const capacity = capacityUs(level)
  const costUs = toUs(level, Math.min(cost, level.burst))
  const stored = buckets.get(level.key)
  const before = fullAtUs(stored, toUs(level, level.burst), now)
  const waitUs = before + costUs - now - capacity
  const refused = waitUs > 0
  const full = refused ? before : before + costUs
  // See `chargeBucket`.
  if (!refused || full < (stored ?? 0)) buckets.set(level.key, full)
  const resetUs = full - now
  const left = Math.max(0, Math.floor(((capacity - resetUs) * level.limit) / level.windowUs))
  return {
    refusedBy: refused ? 1 : 0,
    waitUs: refused ? waitUs : 0,
    tightest: 1,
    remaining: left,
    resetUs,
    atUs: now,
    fullAtUs: refused ? NOTHING_CHARGED : [full],
  }
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

export function toUs({ limit, windowUs }: LevelCharge, units: number): number {
  return Math.ceil((units * windowUs) / limit)
}

/**
 * How far ahead of now a bucket may be charged. Each charge is rounded up to a whole microsecond, so `burst` charges of
 * one unit may take longer than a full bucket, and are granted nevertheless: less than one unit more than `burst`.
 */
export function capacityUs(level: LevelCharge): number {
  return Math.min(level.burst * toUs(level, 1), toUs(level, level.burst + 1) - 1)
}
