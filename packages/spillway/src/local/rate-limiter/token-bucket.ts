import type { Algorithm } from './algorithm.js'

/**
 * A bucket of `burst` tokens, refilled at `limit` per `windowMs`, as GCRA: the whole state is the
 * time at which the bucket is full again. So there is nothing to refill and no fraction of a token
 * to lose. Promise: in any time t at most `burst` + t × rate.
 */
export function tokenBucket(limit: number, windowMs: number, burst: number): Algorithm {
  const tokenMs = windowMs / limit
  const burstMs = burst * tokenMs
  // Sums of fractions such as 1000/3 are off by less than this. A call that waited long enough must
  // pass.
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
