import { RollingCounter } from '../../core/collections/rolling-counter.js'
import type { Algorithm } from './algorithm.js'

/**
 * Promise: never more than `limit` in any window of `windowMs`, wherever it begins. It is kept in
 * slices and not in a log of requests. A slice counts in full until its last moment has left the
 * window. So capacity returns at most one slice late (two, where slices do not divide the window).
 * Proof: any such window touches only slices that the counter adds up when the window's last grant
 * is made.
 */
export function slidingWindow(limit: number, windowMs: number, slices: number): Algorithm {
  const counter = new RollingCounter(windowMs, slices)

  return {
    capacity: limit,
    tryTake(nowMs, cost) {
      if (counter.total(nowMs) + cost > limit) return false
      counter.add(nowMs, cost)
      return true
    },
    waitMs(nowMs, cost, ahead) {
      const wanted = cost + ahead
      const missing = counter.total(nowMs) + Math.min(wanted, limit) - limit
      // Each full limit beyond the first takes one more window.
      const wholeWindowsMs = Math.floor((wanted - 1) / limit) * windowMs
      return Math.max(counter.msUntilLeft(nowMs, missing), wholeWindowsMs)
    },
    remaining: (nowMs) => limit - counter.total(nowMs),
  }
}
