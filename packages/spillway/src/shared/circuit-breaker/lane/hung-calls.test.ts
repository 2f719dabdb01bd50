import { describe, expect, it } from 'vitest'
import { HungCalls } from './hung-calls.js'

const WINDOW_MS = 30_000

describe('calls that hung', () => {
  it('calls that hung are not reported before the first answer', () => {
    const calls = new HungCalls()
    calls.failed(0, 10_000)
    expect(calls.report(10_000, WINDOW_MS, 0)).toBeUndefined()
  })

  it('calls that hung are reported by when they began, together with the last answered call', () => {
    const calls = new HungCalls()
    calls.answeredMs = 1_000
    for (const startMs of [2_000, 2_000, 1_500]) calls.failed(startMs, startMs + 10_000)
    expect(calls.report(12_000, WINDOW_MS, 4)).toEqual({
      answeredAgoUs: 11_000_000,
      failed: [
        [10_500_000, 1],
        [10_000_000, 2],
      ],
      overdue: 4,
    })
  })

  it('calls that hung are forgotten once a call that began later is answered', () => {
    const calls = new HungCalls()
    calls.answeredMs = 0
    calls.failed(1_000, 11_000)
    calls.failed(2_000, 12_000)
    calls.answeredMs = 1_500
    expect(calls.report(12_000, WINDOW_MS, 0)?.failed).toEqual([[10_000_000, 1]])
    calls.failed(1_200, 13_000)
    expect(calls.report(12_000, WINDOW_MS, 0)?.failed).toEqual([[10_000_000, 1]])
  })

  it('calls that hung no longer count when they ended before the window', () => {
    const calls = new HungCalls()
    calls.answeredMs = 0
    calls.failed(1_000, 11_000)
    calls.failed(2_000, 12_000)
    expect(calls.report(41_500, WINDOW_MS, 0)?.failed).toEqual([[39_500_000, 1]])
  })

  it('a hundred calls that hung are reported in at most 16 entries, none of them later than it was', () => {
    const calls = new HungCalls()
    calls.answeredMs = 0
    for (let startMs = 1; startMs <= 100; startMs++) calls.failed(startMs, 10_000)
    const failed = calls.report(10_000, WINDOW_MS, 0)?.failed ?? []
    expect(failed.length).toBeLessThanOrEqual(16)
    expect(failed.reduce((sum, [, times]) => sum + times, 0)).toBe(100)
    // An answer to a call that began after half of them drops at least those.
    calls.answeredMs = 50
    const left = calls.report(10_000, WINDOW_MS, 0)?.failed ?? []
    expect(left.reduce((sum, [, times]) => sum + times, 0)).toBeLessThanOrEqual(50)
  })
})
