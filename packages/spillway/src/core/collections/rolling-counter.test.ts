import { describe, expect, it } from 'vitest'
import { fc } from '../../../test/fast-check.js'
import { RollingCounter } from './rolling-counter.js'

const history = fc.array(
  fc.record({ pauseMs: fc.nat(400), amount: fc.integer({ min: 1, max: 9 }) }),
)

describe('RollingCounter', () => {
  it('rolling counter never undercounts, and overcounts by at most one slice', () => {
    fc.assert(
      fc.property(
        history,
        fc.integer({ min: 1, max: 1_000 }),
        fc.integer({ min: 1, max: 40 }),
        (steps, windowMs, slices) => {
          const counter = new RollingCounter(windowMs, slices)
          const log: { atMs: number; amount: number }[] = []
          const sliceMs = Math.ceil(windowMs / slices)
          let now = 0
          for (const { pauseMs, amount } of steps) {
            now += pauseMs
            counter.add(now, amount)
            log.push({ atMs: now, amount })
            const since = (ms: number) =>
              log.filter(({ atMs }) => atMs >= now - ms).reduce((sum, each) => sum + each.amount, 0)
            expect(counter.total(now)).toBeGreaterThanOrEqual(since(windowMs))
            expect(counter.total(now)).toBeLessThanOrEqual(since(counter.windowMs + sliceMs))
          }
        },
      ),
    )
  })

  it('rolling counter knows exactly when an amount will have left the window', () => {
    fc.assert(
      fc.property(history, fc.integer({ min: 1, max: 30 }), (steps, amount) => {
        const counter = new RollingCounter(100, 10)
        let now = 0
        for (const step of steps) {
          now += step.pauseMs
          counter.add(now, step.amount)
        }
        const before = counter.total(now)
        const waitMs = counter.msUntilLeft(now, amount)
        if (waitMs === Number.POSITIVE_INFINITY) {
          expect(before).toBeLessThan(amount)
        } else {
          expect(before - counter.total(now + waitMs - 0.001)).toBeLessThan(amount)
          expect(before - counter.total(now + waitMs)).toBeGreaterThanOrEqual(amount)
        }
      }),
    )
  })

  it('rolling counter is empty after a long silence', () => {
    const counter = new RollingCounter(1_000, 10)
    counter.add(0, 5)
    expect(counter.total(1e12)).toBe(0)
    counter.add(1e12, 1)
    expect(counter.total(1e12)).toBe(1)
  })
})
