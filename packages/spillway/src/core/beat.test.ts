import { describe, expect, it } from 'vitest'
import { untilBeatMs } from './beat.js'

describe('the beats of a pod', () => {
  it('come every so often, whenever one asks', () => {
    const nextMs = (nowMs: number) => nowMs + untilBeatMs('pod-a', 1_000, nowMs)
    const first = nextMs(0)
    for (const nowMs of [1, 250, 499, 998]) expect(nextMs(first - nowMs)).toBeCloseTo(first, 6)
    expect(nextMs(first)).toBeCloseTo(first + 1_000, 6)
    expect(nextMs(first + 12)).toBeCloseTo(first + 1_000, 6)
  })

  it('are one, and not two in a row, for a timer that fires a hair early', () => {
    const first = untilBeatMs('pod-a', 1_000, 0)
    expect(untilBeatMs('pod-a', 1_000, first - 0.5)).toBeGreaterThan(1_000)
  })

  it('are spread over a fleet', () => {
    const tenths = new Set<number>()
    for (let pod = 0; pod < 200; pod++) {
      tenths.add(Math.floor(untilBeatMs(`pod-${pod}`, 1_000, 0) / 100))
    }
    expect(tenths.size).toBeGreaterThanOrEqual(10)
  })
})
