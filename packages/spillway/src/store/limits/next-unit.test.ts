/** Read-only replies state exactly when the next unit becomes free. */
import { describe, expect, it } from 'vitest'
import { fc } from '../../../test/fast-check.js'
import { numberOfRuns } from '../../../test/long-run.js'
import type { LimitSpec } from '../limit-spec.js'
import { emptyGuard, emptyLane } from './lane-state.js'
import { takePermits } from './take-permits.js'
import { readLimits, settlePermits } from './transitions.js'

const START_US = 2_000_000_000_000_000
const step = fc.record({
  passedUs: fc.nat(700_000),
  cost: fc.integer({ min: 1, max: 8 }),
  /** Difference between actual and requested cost. */
  delta: fc.integer({ min: -4, max: 4 }),
})

describe.each(['sliding-window', 'fixed-window', 'token-bucket', 'leaky-bucket'] as const)(
  'wait for the next unit (%s)',
  (algorithm) => {
    it('the reported wait ends at the exact microsecond in which a unit can be taken', () => {
      const numRuns = numberOfRuns(300)
      let waited = 0
      fc.assert(
        fc.property(
          fc.integer({ min: 1, max: 30 }),
          fc.integer({ min: 100_000, max: 5_000_000 }),
          fc.integer({ min: 1, max: 12 }),
          fc.nat(10),
          fc.array(step, { minLength: 1, maxLength: 40 }),
          (limit, windowUs, slices, burst, steps) => {
            const spec: LimitSpec = {
              ...{ id: 'requests', algorithm, limit, windowUs, slices, span: 'lane' },
              burst: algorithm === 'token-bucket' ? burst : 0,
            }
            const ref = { guard: 'g', lane: 'a', limits: [spec], version: 0 }
            const [lane, guard] = [emptyLane(), emptyGuard()]
            let nowUs = START_US
            for (const { passedUs, cost, delta } of steps) {
              nowUs += passedUs
              const { reply } = takePermits(lane, guard, { ...ref, costs: [[cost]] }, nowUs)
              const settlements = [{ limit: 0, stamp: reply.stamps[0] as number, delta }]
              if (reply.granted > 0) settlePermits(lane, guard, { ...ref, settlements }, nowUs)
              const [figures] = readLimits(lane, guard, ref, nowUs).limits
              const { waitUs, remaining } = figures as typeof figures & object
              const takenAt = (atUs: number) => {
                const copies = [structuredClone(lane), structuredClone(guard)] as const
                return takePermits(...copies, { ...ref, costs: [[1]] }, atUs).reply.granted
              }
              expect(takenAt(nowUs + waitUs)).toBe(1)
              if (waitUs > 0) expect(takenAt(nowUs + waitUs - 1)).toBe(0)
              expect(remaining > 0).toBe(waitUs === 0)
              if (waitUs > 0) waited++
            }
          },
        ),
        { numRuns },
      )
      expect(waited).toBeGreaterThan(numRuns)
    })
  },
)
