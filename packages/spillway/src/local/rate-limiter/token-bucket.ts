import type { Algorithm } from './algorithm.js'

/**
 * A bucket of `burst` tokens, refilled at `limit` per `windowMs`, in GCRA form: the whole state is
 * the time at which the bucket would be full again, so there is nothing to refill and no fraction
 * of a token to lose. Promise: in any time t at most `burst` + t × rate.
 */
export function tokenBucket(limit: number, windowMs: number, burst: number): Algorithm {
  const tokenMs = windowMs / limit
  const burstMs = burst * tokenMs
  // Sums of fractions like 1000/3 are off by less than this; who waited its time must get through.
  const roundingMs = Math.min(1e-6, tokenMs / 1_000)
  let fullAtMs = Number.NEGATIVE_INFINITY

  const waitMs = (nowMs: number, cost: number, ahead: number) =>
    Math.max(0, Math.max(fullAtMs, nowMs) + (cost + ahead) * tokenMs - burstMs - nowMs)

  return {
    capacity: burst,
    tryTake(nowMs, cost) {
      const nextMs = Math.max(fullAtMs, nowMs) + cost * tokenMs
      if (nextMs - nowMs > burstMs + roundingMs) return false
      fullAtMs = nextMs
      return true
    },
    waitMs,
    remaining: (nowMs) =>
      Math.floor((burstMs - Math.max(0, fullAtMs - nowMs) + roundingMs) / tokenMs),
  }
}
