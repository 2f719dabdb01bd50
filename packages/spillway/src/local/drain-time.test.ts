import { describe, expect, it } from 'vitest'
import { createRandom } from '../core/random.js'
import { DrainTime } from './drain-time.js'

const withoutJitter = () => 0.5

describe('estimated drain time of a queue', () => {
  it('drain time is the waiting calls times the usual duration, divided by the calls that run', () => {
    const drain = new DrainTime(withoutJitter)
    drain.queued(0, true)
    for (let end = 1; end <= 20; end++) drain.ended(end * 50, 200)
    expect(drain.retryAfterMs(1_000, 40, 4)).toBe((40 * 200) / 4)
  })

  it('drain time varies by at most 20 % and uses that range', () => {
    const drain = new DrainTime(createRandom(3))
    drain.ended(0, 1_000)
    const waits = Array.from({ length: 1_000 }, () => drain.retryAfterMs(0, 10, 1))
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(8_000)
    expect(Math.min(...waits)).toBeLessThan(8_100)
    expect(Math.max(...waits)).toBeLessThanOrEqual(12_000)
    expect(Math.max(...waits)).toBeGreaterThan(11_900)
  })

  it('drain time follows the duration of calls when they become slower', () => {
    const drain = new DrainTime(withoutJitter)
    drain.ended(0, 100)
    for (let end = 0; end < 50; end++) drain.ended(end * 1_000, 1_000)
    expect(drain.retryAfterMs(50_000, 10, 1)).toBeGreaterThan(9_500)
  })

  it('drain time grows while no running call ends at all', () => {
    const drain = new DrainTime(withoutJitter)
    drain.ended(0, 100)
    drain.queued(1_000, true)
    expect(drain.retryAfterMs(1_050, 5, 1)).toBe(500)
    expect(drain.retryAfterMs(4_000, 5, 1)).toBe(15_000)
  })

  it('drain time follows the rate of starts while slots are free', () => {
    const drain = new DrainTime(withoutJitter)
    drain.ended(0, 1)
    drain.queued(0, true)
    for (let start = 0; start < 20; start++) drain.started()
    expect(drain.retryAfterMs(5_000, 8, 0)).toBe(2_000)
  })

  it('rate of starts forgets what happened more than 20 seconds ago', () => {
    const drain = new DrainTime(withoutJitter)
    drain.queued(0, true)
    for (let start = 0; start < 1_000; start++) drain.started()
    drain.retryAfterMs(10_000, 1, 0)
    for (let seconds = 11; seconds <= 60; seconds++) {
      drain.started()
      drain.retryAfterMs(seconds * 1_000, 1, 0)
    }
    expect(drain.retryAfterMs(60_000, 10, 0)).toBe(10_000)
  })

  it('drain time of more than a minute or of nearly nothing varies as well', () => {
    for (const [durationMs, shortestMs, longestMs] of [
      [100_000_000, 40_000, 60_000],
      [1, 100, 150],
    ] as const) {
      const drain = new DrainTime(createRandom(5))
      drain.ended(0, durationMs)
      const waits = Array.from({ length: 1_000 }, () => drain.retryAfterMs(0, 1, 1))
      expect(Math.min(...waits)).toBeGreaterThanOrEqual(shortestMs)
      expect(Math.max(...waits)).toBeLessThanOrEqual(longestMs)
      expect(new Set(waits).size).toBeGreaterThan(20)
    }
  })

  it('drain time is 1 second while nothing is known, and otherwise about 125 ms to 50 seconds', () => {
    const drain = new DrainTime(withoutJitter)
    expect(drain.retryAfterMs(50_000, 100, 5)).toBe(1_000)
    expect(drain.retryAfterMs(50_000, 100, 0)).toBe(1_000)
    drain.ended(50_000, 1)
    expect(drain.retryAfterMs(50_000, 1, 5)).toBe(125)
    drain.ended(50_000, 100_000_000)
    expect(drain.retryAfterMs(50_000, 1, 1)).toBe(50_000)
  })
})
