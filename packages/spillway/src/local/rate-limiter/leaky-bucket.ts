import type { Algorithm } from './algorithm.js'

/**
 * Pacing: one unit every `windowMs` / `limit`, never two together, even after a quiet time.
 * Promise: after the slot of a grant of cost c, no other slot begins for c intervals. A waiting
 * call may be woken a few milliseconds after its slot began.
 */
export function leakyBucket(limit: number, windowMs: number): Algorithm {
  const beatMs = windowMs / limit
  let freeAtMs = Number.NEGATIVE_INFINITY

  return {
    capacity: limit,
    tryTake(nowMs, cost, sinceMs = nowMs) {
      if (freeAtMs > nowMs) return false
      // A timer wakes the call a little late. Its slot still began when it was free; otherwise a
      // pace of one per millisecond would become one per two. A pod that was blocked for longer
      // does not catch up, because that would be a burst.
      const slotMs = sinceMs < freeAtMs ? Math.max(freeAtMs, nowMs - MOST_LATE_MS) : nowMs
      freeAtMs = slotMs + cost * beatMs
      return true
    },
    waitMs: (nowMs, _cost, ahead) => Math.max(0, freeAtMs - nowMs) + ahead * beatMs,
    remaining: (nowMs) => (freeAtMs > nowMs ? 0 : 1),
  }
}

const MOST_LATE_MS = 10
