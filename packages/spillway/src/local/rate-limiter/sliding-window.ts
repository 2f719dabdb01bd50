import { RollingCounter } from '../../core/collections/rolling-counter.js'
import type { Algorithm } from './algorithm.js'

/**
 * Promise: never more than `limit` in any window of `windowMs`, wherever it begins. Kept in slices
 * instead of a log per request: a slice counts in full until its last moment has left the window,
 * so what is free comes back at most one slice late (two, where slices do not divide the window).
 * Proof: a window of that length touches at most the slices the counter adds up when its last grant
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
      // What exceeds the limit comes a whole window later for each limit's worth.
      const wholeWindowsMs = Math.floor((wanted - 1) / limit) * windowMs
      return Math.max(counter.msUntilLeft(nowMs, missing), wholeWindowsMs)
    },
    remaining: (nowMs) => limit - counter.total(nowMs),
  }
}
