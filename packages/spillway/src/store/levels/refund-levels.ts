/**
 * Refunds the units of requests that never started. Twin: `redis/lua/refund-levels.lua`.
 *
 * A token bucket gets back only units that were not refilled since the charge. Otherwise a bucket that has been full
 * since then could grant more than its burst. The units of a request are refilled by the time at which its bucket would
 * be full without later requests. That is `fullAtUs` of its reply, less the refunds to the bucket since then, so each
 * bucket has a log of its refunds.
 */
import type { LevelCharge, LevelRequest } from '../port.js'
import { type Buckets, capacityUs, isWindow, toUs } from './check-levels.js'
import { type ChargeLogs, LevelWindow } from './sliding-window.js'

/** The time that a bucket takes to refill has this many parts. Refunds in the same part share an entry of the log. */
const PARTS = 16

export function refundLevels(
  buckets: Buckets,
  requests: readonly LevelRequest[],
  nowUs: number,
  logs: ChargeLogs,
): void {
  for (const { levels, cost, atUs, fullAtUs } of requests) {
    if (atUs === undefined || fullAtUs === undefined) continue
    for (const [index, level] of levels.entries()) {
      if (isWindow(level)) refundWindow(logs, level, cost, atUs, nowUs)
      // If `atUs` is later than now, the clock was set back since the charge.
      else if (atUs <= nowUs) {
        refundBucket(buckets, logs, level, cost, atUs, fullAtUs[index] as number, nowUs)
      }
    }
  }
}

function refundWindow(
  logs: ChargeLogs,
  level: LevelCharge,
  cost: number,
  atUs: number,
  nowUs: number,
): void {
  const stored = logs.get(level.key)
  if (stored === undefined) return
  const window = new LevelWindow(level, stored, nowUs)
  window.refund(cost, atUs)
  window.save(logs)
}

function refundBucket(
  buckets: Buckets,
  logs: ChargeLogs,
  level: LevelCharge,
  cost: number,
  atUs: number,
  ownFullAtUs: number,
  nowUs: number,
): void {
  const full = buckets.get(level.key)
  if (full === undefined) return
  const capacity = capacityUs(level)
  const key = refundLogKey(level.key)
  /** The end of a part of time and the microseconds refunded in it, alternating. */
  const log: number[] = []
  let refundedSince = 0
  const stored = logs.get(key) ?? []
  for (let index = 0; index < stored.length; index += 2) {
    const [endUs, refundedUs] = [stored[index] as number, stored[index + 1] as number]
    if (endUs <= nowUs - capacity) continue
    log.push(endUs, refundedUs)
    if (endUs > atUs) refundedSince += refundedUs
  }
  const costUs = toUs(level, Math.min(cost, level.burst))
  const backUs = Math.min(costUs, full - nowUs, ownFullAtUs - refundedSince - nowUs)
  if (backUs <= 0) return
  buckets.set(level.key, full - backUs)
  const partUs = Math.ceil(capacity / PARTS)
  const endUs = (Math.floor(nowUs / partUs) + 1) * partUs
  if (log.at(-2) === endUs) (log[log.length - 1] as number) += backUs
  else log.push(endUs, backUs)
  logs.set(key, log, endUs + capacity)
}

/** In the slot of the bucket. */
export function refundLogKey(bucket: string): string {
  return `${bucket}:refunds`
}
