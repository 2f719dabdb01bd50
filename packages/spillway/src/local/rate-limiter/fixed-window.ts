import type { Algorithm } from './algorithm.js'

/**
 * A counter that starts from zero at every multiple of `windowMs`, as simple vendors count. Promise:
 * at most `limit` per calendar window, which allows twice that around its edge: use `sliding-window`
 * where this matters.
 */
export function fixedWindow(limit: number, windowMs: number): Algorithm {
  let window = Number.NEGATIVE_INFINITY
  let used = 0

  const usedAt = (nowMs: number) => (Math.floor(nowMs / windowMs) > window ? 0 : used)

  return {
    capacity: limit,
    tryTake(nowMs, cost) {
      const taken = usedAt(nowMs) + cost
      if (taken > limit) return false
      window = Math.max(window, Math.floor(nowMs / windowMs))
      used = taken
      return true
    },
    waitMs(nowMs, cost, ahead) {
      if (usedAt(nowMs) + ahead + cost <= limit) return 0
      // The rest of this window, then a whole one for each limit's worth in front.
      const current = Math.floor(nowMs / windowMs)
      const inThis = Math.max(0, Math.min(ahead, limit - usedAt(nowMs)))
      const windows = 1 + Math.floor((ahead - inThis + cost - 1) / limit)
      return (current + windows) * windowMs - nowMs
    },
    remaining: (nowMs) => limit - usedAt(nowMs),
  }
}
