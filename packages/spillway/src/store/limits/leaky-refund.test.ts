import { describe, expect, it } from 'vitest'
import { emptyGuard, emptyLane } from './lane-state.js'
import { takePermits } from './take-permits.js'
import { settlePermits } from './transitions.js'

const START_US = 1_800_000_000_000_000
const INTERVAL_US = 40_000

function setup() {
  const [lane, guard] = [emptyLane(), emptyGuard()]
  const spec = {
    id: 'requests',
    algorithm: 'leaky-bucket',
    limit: 25,
    windowUs: 25 * INTERVAL_US,
    slices: 1,
    burst: 0,
    span: 'lane',
  } as const
  const ref = { guard: 'g', lane: 'a', limits: [spec], version: 0 }
  return {
    take(afterUs: number) {
      return takePermits(lane, guard, { ...ref, costs: [[1]] }, START_US + afterUs).reply
    },
    refund(afterUs: number, [stamp = 0]: readonly number[]) {
      const settlements = [{ limit: 0, stamp, delta: -1 }]
      settlePermits(lane, guard, { ...ref, settlements }, START_US + afterUs)
    },
  }
}

describe('leaky bucket refunds', () => {
  it('refunding an earlier permit does not bring the next grant closer to the last one', () => {
    const { take, refund } = setup()
    const late = take(0)
    expect(take(INTERVAL_US).granted).toBe(1)
    refund(INTERVAL_US + 1_000, late.stamps)
    const next = take(INTERVAL_US + 1_000)
    expect(next).toMatchObject({ granted: 0, waitUs: INTERVAL_US - 1_000 })
    expect(take(2 * INTERVAL_US).granted).toBe(1)
  })

  it('refunding the last permit makes its turn free again', () => {
    const { take, refund } = setup()
    const unused = take(0)
    refund(1_000, unused.stamps)
    expect(take(1_000).granted).toBe(1)
  })
})
