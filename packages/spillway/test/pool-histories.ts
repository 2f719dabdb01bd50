/** Random traffic of three lanes in one pool, and the check that no window exceeds a limit. */
import { expect } from 'vitest'
import type { LimitSpec } from '../src/store/limit-spec.js'
import type { LimitStore } from '../src/store/port.js'
import { fc } from './fast-check.js'

const LANES = ['claude-opus-4-1', 'claude-opus-4-5', 'claude-opus-4-5-fast'] as const
export const START_US = 4_000_000_000_000_000

const window = {
  algorithm: 'sliding-window',
  slices: 10,
  burst: 0,
} as const

export const poolHistories = fc.record({
  poolLimit: fc.integer({ min: 3, max: 40 }),
  /** Of each lane, beside the pool; undefined: only the pool. */
  laneLimit: fc.option(fc.integer({ min: 2, max: 30 }), { nil: undefined }),
  /** Of all lanes. */
  vendorLimit: fc.option(fc.integer({ min: 10, max: 60 }), { nil: undefined }),
  windowUs: fc.integer({ min: 500_000, max: 5_000_000 }),
  steps: fc.array(
    fc.record({
      pauseUs: fc.oneof(fc.constant(0), fc.nat(300_000), fc.nat(3_000_000)),
      lane: fc.nat(LANES.length - 1),
      pod: fc.nat(2),
      costs: fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 5 }),
      /** How much of the first call's cost is returned, and how many steps later. */
      refund: fc.option(fc.record({ units: fc.nat(6), later: fc.nat(3) }), { nil: undefined }),
    }),
    { minLength: 30, maxLength: 80 },
  ),
})

export type PoolHistory = typeof poolHistories extends fc.Arbitrary<infer T> ? T : never

interface Spent {
  atUs: number
  lane: string
  units: number
}

/** Returns how many calls were granted and refused. */
export async function replayPool(
  store: LimitStore,
  guard: string,
  history: PoolHistory,
  setTime: (us: number) => unknown,
): Promise<{ granted: number; refused: number }> {
  const { poolLimit, laneLimit, vendorLimit, windowUs, steps } = history
  const spec = { ...window, windowUs }
  const limits: LimitSpec[] = [{ ...spec, id: 'tokens@opus', limit: poolLimit, span: 'pool' }]
  if (laneLimit !== undefined) {
    limits.push({ ...spec, id: 'tokens:opus*', limit: laneLimit, span: 'lane' })
  }
  if (vendorLimit !== undefined) {
    limits.push({ ...spec, id: 'tokens', limit: vendorLimit, span: 'vendor' })
  }
  const spent: Spent[] = []
  const refunds: { step: number; run: () => Promise<unknown> }[] = []
  const counts = { granted: 0, refused: 0 }
  let nowUs = START_US
  let sequence = 0
  for (const [step, { pauseUs, lane: index, pod, costs, refund }] of steps.entries()) {
    nowUs += pauseUs
    await setTime(nowUs)
    for (const due of refunds.filter((each) => each.step === step)) await due.run()
    const lane = LANES[index] as string
    const ref = { guard, lane, pool: 'opus', limits, version: 0 }
    const most = Math.min(...limits.map(({ limit }) => limit))
    const bounded = costs.map((cost) => Math.min(cost, most))
    const requestedCosts = bounded.map((cost) => limits.map(() => cost))
    const waiter = { pod: `p${pod}`, forUs: 10_000_000 }
    const reply = await store.take({ ...ref, costs: requestedCosts, waiter })
    counts.granted += reply.granted
    counts.refused += bounded.length - reply.granted
    const taken = bounded.slice(0, reply.granted).map((units) => ({ atUs: nowUs, lane, units }))
    spent.push(...taken)
    const [first] = taken
    if (refund === undefined || first === undefined) continue
    const units = Math.min(refund.units, first.units)
    refunds.push({
      step: step + 1 + refund.later,
      async run() {
        const settlements = limits.map((_, limit) => {
          return { limit, stamp: reply.stamps[limit] as number, delta: -units }
        })
        const request = { ...ref, pod: 's', sequence: ++sequence, settlements }
        await store.settle(request)
        first.units -= units
      },
    })
  }
  expectWithin(spent, windowUs, poolLimit)
  if (vendorLimit !== undefined) expectWithin(spent, windowUs, vendorLimit)
  for (const lane of laneLimit === undefined ? [] : LANES) {
    const ofLane = spent.filter((each) => each.lane === lane)
    expectWithin(ofLane, windowUs, laneLimit as number)
  }
  return counts
}

/** In every window that begins with a grant. */
function expectWithin(spent: readonly Spent[], windowUs: number, limit: number): void {
  for (const { atUs: fromUs } of spent) {
    const inside = spent.filter(({ atUs }) => atUs >= fromUs && atUs < fromUs + windowUs)
    const units = inside.reduce((sum, each) => sum + each.units, 0)
    expect(units).toBeLessThanOrEqual(limit)
  }
}
