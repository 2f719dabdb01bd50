import type { Algorithm } from './algorithm.js'

/**
 * A counter that restarts at every multiple of `windowMs` of the wall clock, as simple vendors
 * count. `wallOffsetMs` is the difference between the time of day and our clock. Promise: at most
 * `limit` per such window. Around the edge of two windows that allows twice as much; use
 * `sliding-window` if it matters.
 */
export function fixedWindow(limit: number, windowMs: number, wallOffsetMs: number): Algorithm {
  // Only the phase matters, and small numbers keep their fractions.
  const phaseMs = wallOffsetMs % windowMs
  let window = Number.NEGATIVE_INFINITY
  let used = 0

  const windowAt = (nowMs: number) => Math.floor((nowMs + phaseMs) / windowMs)
  const usedAt = (nowMs: number) => (windowAt(nowMs) > window ? 0 : used)

  return {
    capacity: limit,
    tryTake(nowMs, cost) {
      const taken = usedAt(nowMs) + cost
      if (taken > limit) return false
      window = Math.max(window, windowAt(nowMs))
      used = taken
      return true
    },
    waitMs(nowMs, cost, ahead) {
      if (usedAt(nowMs) + ahead + cost <= limit) return 0
      // The rest of this window, then a whole window for each full limit ahead.
      const current = windowAt(nowMs)
      const inThis = Math.max(0, Math.min(ahead, limit - usedAt(nowMs)))
      const windows = 1 + Math.floor((ahead - inThis + cost - 1) / limit)
      return (current + windows) * windowMs - phaseMs - nowMs
    },
    remaining: (nowMs) => limit - usedAt(nowMs),
  }
}
