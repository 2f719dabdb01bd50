/**
 * Finds the limit that a vendor's answer is about, and learns from it. Twin:
 * `redis/lua/include/learn-from-feedback.lua`.
 */
import type { FeedbackRequest } from '../port.js'
import { fits, refund, used } from './counting.js'
import type { CountedLimit } from './lane-state.js'
import { learnFromLeft, learnFromRefusal } from './learned-limit.js'

type Answer = Pick<FeedbackRequest, 'grantedUs' | 'left' | 'pauseUs' | 'refused' | 'throttled'>

export interface Lesson {
  /** Index of the limit that was learned; undefined: none. */
  limit: number | undefined
  /** The lowered limit holds calls back, so the lane needs no pause. */
  holds: boolean
}

const NOTHING: Lesson = { limit: undefined, holds: false }
/** `Retry-After` is in whole seconds, so it may be this much longer than the vendor's window. */
const ROUNDED_UP_US = 1_000_000

/** Also replaces the limits in `entries` by those in force from now on. */
export function learnFromFeedback(
  entries: readonly CountedLimit[],
  answer: Answer,
  now: number,
  version: number,
): Lesson {
  if (answer.throttled) return learnFromThrottled(entries, answer, now, version)
  const { grantedUs, left } = answer
  let lesson = NOTHING
  for (const { limit, remaining } of left) {
    const entry = entries[limit] as CountedLimit
    if (entry.spec.learn !== true || grantedUs === 0) continue
    const spec = learnFromLeft(entry.spec, entry.count, remaining, { grantedUs, now, version })
    if (spec === undefined) continue
    entry.spec = spec
    lesson = { limit, holds: false }
  }
  return lesson
}

function learnFromThrottled(
  entries: readonly CountedLimit[],
  { grantedUs, left, pauseUs, refused }: Answer,
  now: number,
  version: number,
): Lesson {
  if (refused === undefined) return NOTHING
  const { costs, booked, stamps } = refused
  const limit = limitOf(entries, costs, left, now)
  // The vendor did not count the call.
  for (const [index, { spec, count }] of entries.entries()) {
    const units = booked[index] as number
    if (units > 0) refund(spec, count, now, stamps[index] as number, units)
  }
  if (limit === undefined) return NOTHING
  const entry = entries[limit] as CountedLimit
  const cost = costs[limit] as number
  const spec = learnFromRefusal(entry.spec, entry.count, { grantedUs, cost }, now, version)
  if (spec === undefined) return NOTHING
  entry.spec = spec
  const isShort = pauseUs === undefined || pauseUs <= spec.windowUs + ROUNDED_UP_US
  const fitsAgain = fits(spec, entry.count, now, Math.min(cost, spec.limit))
  return { limit, holds: isShort && !fitsAgain }
}

/**
 * The limit that a call exceeded: one that the vendor says has less left than the call costs, otherwise the one that
 * is used most. Undefined if the vendor says that enough is left of all.
 */
function limitOf(
  entries: readonly CountedLimit[],
  costs: readonly number[],
  left: Answer['left'],
  now: number,
): number | undefined {
  let best: number | undefined
  let isBestReported = false
  let mostUsed = 0
  for (const [index, { spec, count }] of entries.entries()) {
    const cost = costs[index] as number
    if (spec.learn !== true || cost === 0) continue
    const reported = left.find(({ limit }) => limit === index)?.remaining
    const isReported = reported !== undefined && reported < cost
    if (reported !== undefined && !isReported && reported * 10 >= spec.limit) continue
    const usedPart = used(spec, count, now) / spec.limit
    const isBetter = isReported === isBestReported ? usedPart > mostUsed : isReported
    if (best !== undefined && !isBetter) continue
    best = index
    isBestReported = isReported
    mostUsed = usedPart
  }
  return best
}
