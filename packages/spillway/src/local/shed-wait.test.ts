import { describe, expect, it } from 'vitest'
import { createRandom } from '../core/random.js'
import { ShedWait } from './shed-wait.js'

/** Waits that are handed out at one moment of a shedding that began at 0. */
function waitsAfter(elapsedMs: number, times = 500): number[] {
  const wait = new ShedWait(createRandom(7))
  for (let nowMs = 0; nowMs < elapsedMs; nowMs += 1_000) wait.nextMs(nowMs)
  return Array.from({ length: times }, () => wait.nextMs(elapsedMs))
}

describe('wait after load shedding', () => {
  for (const [afterMs, shortestMs, longestMs] of [
    [0, 1_000, 3_000],
    [9_999, 1_000, 3_000],
    [10_000, 2_000, 6_000],
    [20_000, 4_000, 12_000],
    [30_000, 8_000, 24_000],
    [40_000, 16_000, 30_000],
    [3_600_000, 16_000, 30_000],
  ] as const) {
    it(`after ${afterMs} ms of shedding, callers are asked to wait ${shortestMs} to ${longestMs} ms at random`, () => {
      const waits = waitsAfter(afterMs)
      expect(Math.min(...waits)).toBeGreaterThanOrEqual(shortestMs)
      expect(Math.max(...waits)).toBeLessThanOrEqual(longestMs)
      // The whole range is used, so that callers do not come back together.
      const range = longestMs - shortestMs
      expect(Math.min(...waits)).toBeLessThan(shortestMs + range / 10)
      expect(Math.max(...waits)).toBeGreaterThan(longestMs - range / 10)
    })
  }

  it('10 seconds without a refusal end the shedding, and waits are short again', () => {
    const wait = new ShedWait(() => 0.5)
    for (let nowMs = 0; nowMs <= 60_000; nowMs += 1_000) wait.nextMs(nowMs)
    expect(wait.nextMs(69_999)).toBe(23_000)
    expect(wait.nextMs(79_999)).toBe(2_000)
  })
})
