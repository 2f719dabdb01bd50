/** Fleets of many pods and vendors. */
import { simulatePods } from '@spillway/simulator'
import { describe, expect, it } from 'vitest'
import { usualOrLong } from '../../spillway/test/long-run.js'

const PLAN = { pods: 12, vendors: 4, durationMs: 30_000, outageEveryMs: 30_000 }

describe('simulatePods', () => {
  it('the same seed gives the same figures, byte for byte', async () => {
    const durationMs = usualOrLong(8_000, 30_000)
    const plan = { ...PLAN, durationMs, outageEveryMs: durationMs }
    const one = JSON.stringify(await simulatePods(plan, { seed: 3 }))
    expect(JSON.stringify(await simulatePods(plan, { seed: 3 }))).toBe(one)
    expect(JSON.stringify(await simulatePods(plan, { seed: 4 }))).not.toBe(one)
  })

  it('12 pods use their limits without exceeding them, and all pods of a vendor open its breaker', async () => {
    const figures = await simulatePods({ ...PLAN, durationMs: 60_000 })
    expect(figures.worstWindow).toBeLessThanOrEqual(1)
    expect(figures.limitUse).toBeGreaterThan(0.85)
    expect(figures.breaker.openings).toBeGreaterThan(0)
    expect(figures.breaker.agreed).toBe(1)
    expect(figures.breaker.spreadMostMs).toBeLessThan(50)
    const kinds = Object.values(figures.commandsByKind).reduce((sum, each) => sum + each, 0)
    expect(kinds).toBeCloseTo(figures.commandsPerSecond, 6)
    expect(figures.commandsByKind['limits.take']).toBeGreaterThan(0)
  })

  it('every vendor has at least two pods, however few pods there are', async () => {
    const figures = await simulatePods({ ...PLAN, pods: 2, durationMs: 1_000 })
    expect(figures.vendorsPerPod).toBe(4)
  })

  it('a run that is shorter than a window has no share of the limit, and every other figure is a number', async () => {
    const { limitUse, ...others } = await simulatePods({ ...PLAN, pods: 2, durationMs: 1_000 })
    expect(limitUse).toBeUndefined()
    // NaN becomes null in JSON.
    expect(JSON.stringify(others)).not.toContain('null')
  })
})
