import { describe, expect, it } from 'vitest'
import { fc } from '../../../test/fast-check.js'
import { numberOfRuns } from '../../../test/long-run.js'
import type { LimitSpec } from '../limit-spec.js'
import { emptyGuard, emptyLane } from './lane-state.js'
import { takePermits } from './take-permits.js'
import { readLimits, settlePermits } from './transitions.js'

const START_US = 1_800_000_000_000_000
const SECOND_US = 1_000_000

/** One unit per second, at most ten at once. */
function setup(change: Partial<LimitSpec> = {}) {
  const [lane, guard] = [emptyLane(), emptyGuard()]
  const spec: LimitSpec = {
    ...{ id: 'requests', algorithm: 'token-bucket', slices: 1, span: 'lane' },
    ...{ limit: 60, windowUs: 60 * SECOND_US, burst: 10 },
    ...change,
  }
  const ref = { guard: 'g', lane: 'a', limits: [spec], version: 0 }
  return {
    take(afterUs: number, cost = 1) {
      return takePermits(lane, guard, { ...ref, costs: [[cost]] }, START_US + afterUs).reply
    },
    refund(afterUs: number, [stamp = 0]: readonly number[], units = 1) {
      const settlements = [{ limit: 0, stamp, delta: -units }]
      settlePermits(lane, guard, { ...ref, settlements }, START_US + afterUs)
    },
    remaining: (afterUs: number) =>
      readLimits(lane, guard, ref, START_US + afterUs).limits[0]?.remaining,
  }
}

describe('token bucket refunds', () => {
  it('refunding a permit of a token bucket that is full again grants no more than the burst', () => {
    const { take, refund } = setup()
    const late = take(0)
    // The unit has flowed back meanwhile, so the bucket is full.
    expect(take(SECOND_US, 10).granted).toBe(1)
    refund(SECOND_US, late.stamps)
    expect(take(SECOND_US).granted).toBe(0)
  })

  it('refunding a permit of a token bucket that was never full meanwhile frees its units', () => {
    const { take, refund, remaining } = setup()
    const late = take(0, 4)
    expect(take(SECOND_US, 7).granted).toBe(1)
    expect(remaining(SECOND_US)).toBe(0)
    // One of the four units flowed back and would not have fitted without the permit.
    refund(SECOND_US, late.stamps, 4)
    expect(remaining(SECOND_US)).toBe(3)
  })

  it('a token bucket is as full as before when a permit is refunded at once', () => {
    const { take, refund, remaining } = setup()
    take(0, 3)
    const permits = [take(SECOND_US, 2), take(SECOND_US, 4)]
    refund(SECOND_US + 1, permits[0]?.stamps ?? [], 2)
    refund(SECOND_US + 2, permits[1]?.stamps ?? [], 4)
    expect(remaining(SECOND_US + 2)).toBe(8)
  })

  it('refunds of any order and age never let calls use more than burst and rate allow', () => {
    const operation = fc.record({
      gapUs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 8 * SECOND_US })),
      cost: fc.integer({ min: 1, max: 10 }),
      /** After how many further operations the permit is returned; -1: its call uses it. */
      returnedAfter: fc.integer({ min: -4, max: 4 }),
    })
    const numRuns = numberOfRuns(100)
    let returned = 0
    fc.assert(
      fc.property(fc.array(operation, { minLength: 20, maxLength: 80 }), (operations) => {
        const { take, refund } = setup()
        const due: { at: number; stamps: readonly number[]; cost: number }[] = []
        // A bucket from which only calls that were made take.
        let freeAtUs = 0
        let nowUs = 0
        for (const [index, { gapUs, cost, returnedAfter }] of operations.entries()) {
          nowUs += gapUs
          for (const { stamps, cost: units } of due.filter(({ at }) => at === index)) {
            refund(nowUs, stamps, units)
            returned++
          }
          const reply = take(nowUs, cost)
          if (reply.granted === 0) continue
          if (returnedAfter > 0) due.push({ at: index + returnedAfter, stamps: reply.stamps, cost })
          else {
            freeAtUs = Math.max(freeAtUs, nowUs) + cost * SECOND_US
            expect(freeAtUs - nowUs).toBeLessThanOrEqual(10 * SECOND_US)
          }
        }
      }),
      { numRuns },
    )
    expect(returned).toBeGreaterThan(numRuns)
  })

  it('a busy token bucket frees refunded units in full, however many calls came between', () => {
    const { take, refund, remaining } = setup({ limit: 6_000, burst: 1_000 })
    const permits: { stamps: readonly number[]; at: number }[] = []
    let nowUs = 0
    expect(take(0, 900).granted).toBe(1)
    // A call of 20 units every 200 ms is just what flows back; each returns half of it ten seconds later.
    for (let call = 0; call < 500; call++) {
      nowUs += 200_000
      const reply = take(nowUs, 20)
      if (reply.granted === 1) permits.push({ stamps: reply.stamps, at: nowUs + 10 * SECOND_US })
      const before = remaining(nowUs) ?? 0
      for (; permits[0] !== undefined && permits[0].at <= nowUs; permits.shift()) {
        refund(nowUs, permits[0].stamps, 10)
      }
      const after = remaining(nowUs) ?? 0
      if (call > 100 && after < 700) expect(after - before).toBeGreaterThanOrEqual(10)
    }
  })
})
