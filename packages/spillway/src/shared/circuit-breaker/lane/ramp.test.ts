import { describe, expect, it } from 'vitest'
import { RecentPeak } from './lane-traffic.js'
import { mostAtOnce } from './ramp.js'

describe('the ramp after closing', () => {
  const ramp = { rampMs: 6_000, probes: 3, carried: 100 }

  it('ramp begins with a quarter of the former load and ends after a third of rampMs', () => {
    expect(mostAtOnce({ ...ramp, closedForMs: 0 })).toBe(25)
    expect(mostAtOnce({ ...ramp, closedForMs: 2_000 })).toBe(100)
  })

  it('ramp doubles six times within rampMs, and rounds down', () => {
    const steps = [500, 1_000, 3_000, 6_000]
    expect(steps.map((closedForMs) => mostAtOnce({ ...ramp, closedForMs }))).toEqual([
      ...[35, 50, 200, 1_600],
    ])
  })

  it('ramp begins with the number of probes if the pod carried few calls', () => {
    expect(mostAtOnce({ ...ramp, carried: 4, closedForMs: 0 })).toBe(3)
  })

  it('RecentPeak is the highest concurrency of the last 30 to 60 seconds', () => {
    const peak = new RecentPeak()
    peak.note(7, 0)
    peak.note(2, 30_000)
    expect(peak.value).toBe(7)
    peak.note(3, 60_000)
    expect(peak.value).toBe(3)
    peak.note(0, 600_000)
    expect(peak.value).toBe(0)
  })
})
