import type { Algorithm } from './algorithm.js'

/**
 * Pacing: one unit every `windowMs` / `limit`, never two together, however long nobody came. Promise:
 * after the slot of a grant of cost c no other slot begins for c beats. Who waits gets a slot and may
 * be woken a few milliseconds after it has begun.
 */
export function leakyBucket(limit: number, windowMs: number): Algorithm {
  const beatMs = windowMs / limit
  let freeAtMs = Number.NEGATIVE_INFINITY

  return {
    capacity: limit,
    tryTake(nowMs, cost, sinceMs = nowMs) {
      if (freeAtMs > nowMs) return false
      // A timer wakes the waiter a little late. Its slot still began when it was free, else a pace
      // of one a millisecond would come out as one in two. A pod that was blocked for longer does
      // not catch up: that would be a burst.
      const slotMs = sinceMs < freeAtMs ? Math.max(freeAtMs, nowMs - MOST_LATE_MS) : nowMs
      freeAtMs = slotMs + cost * beatMs
      return true
    },
    waitMs: (nowMs, _cost, ahead) => Math.max(0, freeAtMs - nowMs) + ahead * beatMs,
    remaining: (nowMs) => (freeAtMs > nowMs ? 0 : 1),
  }
}

const MOST_LATE_MS = 10
