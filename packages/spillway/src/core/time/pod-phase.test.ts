import { describe, expect, it } from 'vitest'
import { untilPodPhaseMs } from './pod-phase.js'

describe('untilPodPhaseMs', () => {
  it('the next heartbeat of a pod is at the same time whenever it is computed', () => {
    const nextMs = (nowMs: number) => nowMs + untilPodPhaseMs('pod-a', 1_000, nowMs)
    const first = nextMs(0)
    for (const nowMs of [1, 250, 499, 998]) expect(nextMs(first - nowMs)).toBeCloseTo(first, 6)
    expect(nextMs(first)).toBeCloseTo(first + 1_000, 6)
    expect(nextMs(first + 12)).toBeCloseTo(first + 1_000, 6)
  })

  it('a timer that fires slightly early does not cause two heartbeats in a row', () => {
    const first = untilPodPhaseMs('pod-a', 1_000, 0)
    expect(untilPodPhaseMs('pod-a', 1_000, first - 0.5)).toBeGreaterThan(1_000)
  })

  it('heartbeats of 200 pods are spread over the whole interval', () => {
    const tenths = new Set<number>()
    for (let pod = 0; pod < 200; pod++) {
      tenths.add(Math.floor(untilPodPhaseMs(`pod-${pod}`, 1_000, 0) / 100))
    }
    expect(tenths.size).toBeGreaterThanOrEqual(10)
  })
})
