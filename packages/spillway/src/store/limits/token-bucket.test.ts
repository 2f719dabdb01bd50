/** A token bucket counts in microseconds, which its limit need not divide. */
import { describe, expect, it } from 'vitest'
import { fc } from '../../../test/fast-check.js'
import { numberOfRuns } from '../../../test/long-run.js'
import type { LimitSpec } from '../limit-spec.js'
import { emptyGuard, emptyLane } from './lane-state.js'
import { takePermits } from './take-permits.js'
import { readLimits } from './transitions.js'

const NOW_US = 2_000_000_000_000_000

function bucket(limit: number, windowUs: number, burst: number) {
  const spec: LimitSpec = {
    ...{ id: 'requests', algorithm: 'token-bucket', slices: 1, span: 'lane' },
    ...{ limit, windowUs, burst },
  }
  const ref = { guard: 'g', lane: 'a', limits: [spec], version: 0 }
  const [lane, guard] = [emptyLane(), emptyGuard()]
  return {
    take: (costs: readonly number[]) =>
      takePermits(lane, guard, { ...ref, costs: costs.map((cost) => [cost]) }, NOW_US).reply,
    remaining: () => readLimits(lane, guard, ref, NOW_US).limits[0]?.remaining,
  }
}

const limit = fc.integer({ min: 1, max: 500 })
const windowUs = fc.integer({ min: 1_000_000, max: 100_000_000 })
const burst = fc.integer({ min: 1, max: 300 })

describe('token bucket', () => {
  it('a full token bucket grants exactly its burst of single units at one moment', () => {
    fc.assert(
      fc.property(limit, windowUs, burst, (perWindow, window, units) => {
        const { take, remaining } = bucket(perWindow, window, units)
        expect(remaining()).toBe(units)
        for (let left = units - 1; left >= 0; left--) {
          expect(take([1]).granted).toBe(1)
          expect(remaining()).toBe(left)
        }
        expect(take([1])).toMatchObject({ granted: 0 })
      }),
      { numRuns: numberOfRuns(100) },
    )
  })

  it('a token bucket never grants more units than its burst at one moment, whatever they cost', () => {
    const costs = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 60 })
    let exhausted = 0
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 500_000 }),
        windowUs,
        burst,
        costs,
        (perWindow, window, units, plan) => {
          const { take } = bucket(perWindow, window, units)
          let taken = 0
          // A cost above the burst is granted once, from a full bucket.
          for (const cost of plan.filter((each) => each <= units)) {
            if (take([cost]).granted === 1) taken += cost
            else exhausted++
          }
          expect(taken).toBeLessThanOrEqual(units)
        },
      ),
    )
    expect(exhausted).toBeGreaterThan(50)
  })
})
