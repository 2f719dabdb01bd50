/** Pods with large calls beside pods with small ones, all of them saturated. Virtual time. */
import { describe, expect, it } from 'vitest'
import type { LimitSpec } from '../src/store/limit-spec.js'
import { capacity } from '../src/store/limits/counting.js'
import { emptyGuard, emptyLane } from '../src/store/limits/lane-state.js'
import { takePermits } from '../src/store/limits/take-permits.js'
import { fc } from './fast-check.js'
import { type FleetOptions, inequality, saturate } from './saturated-fleet.js'

/** 100 tokens per second. */
const RATE = 100
const BUCKET: LimitSpec = {
  ...{ id: 'tokens', algorithm: 'token-bucket', span: 'lane' },
  ...{ limit: RATE, windowUs: 1_000_000, slices: 1, burst: 0 },
}
const WINDOW: LimitSpec = { ...BUCKET, algorithm: 'sliding-window', slices: 10 }
const LATE = { mean: 1, most: 20 }
const VERY_LATE = { mean: 40, most: 400 }

interface Grant {
  pod: number
  units: number
  atSeconds: number
}

/** Each pod always has 30 calls of its cost. */
async function grantsOf(
  limit: LimitSpec,
  costs: readonly number[],
  more: Partial<FleetOptions> = {},
): Promise<Grant[]> {
  const [lane, guard] = [emptyLane(), emptyGuard()]
  const grants: Grant[] = []
  const options: FleetOptions = {
    limits: [limit],
    costs: costs.map((cost) => [cost]),
    ...{ callers: 30, seconds: 30, seed: 1, lateMs: LATE },
    onGranted: (pod, calls, atSeconds) =>
      grants.push({ pod, units: calls * (costs[pod] as number), atSeconds }),
    ...more,
  }
  await saturate(options, (request, nowUs) => takePermits(lane, guard, request, nowUs))
  return grants
}

function unitsOf(grants: readonly Grant[], pods: readonly number[]): number[] {
  return pods.map((pod) =>
    grants.filter((each) => each.pod === pod).reduce((sum, { units }) => sum + units, 0),
  )
}

const sumOf = (numbers: readonly number[]) => numbers.reduce((sum, each) => sum + each, 0)

/** The longest time in which the pod was granted nothing, until the end at `seconds`. */
function longestWaitOf(grants: readonly Grant[], pod: number, seconds: number): number {
  const times = grants.filter((each) => each.pod === pod).map(({ atSeconds }) => atSeconds)
  return Math.max(...[...times, seconds].map((at, index) => at - (times[index - 1] ?? 0)))
}

describe('large calls', () => {
  it.for([20, 60, 100])(
    'a pod with calls of %i tokens gets the same share of a token bucket as three pods with calls of 1',
    async (cost) => {
      const costs = [cost, 1, 1, 1]
      const grants = await grantsOf(BUCKET, costs)
      const units = unitsOf(grants, [...costs.keys()])
      expect(inequality(units), units.join(', ')).toBeLessThan(0.2)
      expect(sumOf(units)).toBeGreaterThan(0.98 * 30 * RATE)
      expect(longestWaitOf(grants, 0, 30)).toBeLessThan((4 * (cost + 10)) / RATE + 0.5)
    },
  )

  it('a pod with large calls gets its share of a sliding window beside a pod with small calls', async () => {
    const grants = await grantsOf(WINDOW, [60, 1])
    const units = unitsOf(grants, [0, 1])
    expect(inequality(units), units.join(', ')).toBeLessThan(0.2)
  })

  /**
   * The bound: with n pods, each of them may be granted a whole bucket and the cost of the call before the call starts.
   */
  it('every call that fits into a token bucket starts in bounded time, and no bucket grants too much', async () => {
    const cost = fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: RATE }))
    const fleet = fc.record({
      costs: fc.array(cost, { minLength: 2, maxLength: 6 }),
      burst: fc.constantFrom(0, 150),
      seed: fc.nat(1_000),
      lateMs: fc.constantFrom(LATE, VERY_LATE),
    })
    await fc.assert(
      fc.asyncProperty(fleet, async ({ costs, burst, ...more }) => {
        const limit = { ...BUCKET, burst }
        const grants = await grantsOf(limit, costs, more)
        for (const [pod, each] of costs.entries()) {
          const bound = (costs.length * (capacity(limit) + each)) / RATE
          expect(longestWaitOf(grants, pod, 30), costs.join()).toBeLessThan(bound)
        }
        let free = capacity(limit)
        let lastSeconds = 0
        for (const { units, atSeconds } of grants) {
          free = Math.min(capacity(limit), free + (atSeconds - lastSeconds) * RATE) - units
          lastSeconds = atSeconds
          expect(free).toBeGreaterThan(-0.01)
        }
      }),
      { numRuns: 8 },
    )
  })

  it('units reserved for the large call of a pod that stops are free for the others after its wake time', async () => {
    for (let seed = 1; seed <= 3; seed++) {
      const grants = await grantsOf(BUCKET, [60, 1, 1, 1], { seed, stopsAfterSeconds: 4 })
      const stopped = grants.filter(({ pod }) => pod === 0)
      expect(stopped.length).toBeGreaterThan(0)
      // At most as long as 60 tokens take to flow back, and the time that a late pod has.
      const later = grants.filter(({ atSeconds }) => atSeconds > 4 + 60 / RATE + 0.5)
      const units = unitsOf(later, [1, 2, 3])
      expect(sumOf(units)).toBeGreaterThan(0.98 * (26 - 60 / RATE - 0.5) * RATE)
      expect(inequality(units), units.join(', ')).toBeLessThan(0.2)
    }
  })
})
