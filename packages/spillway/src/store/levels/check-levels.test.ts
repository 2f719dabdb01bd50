import { describe, expect, it } from 'vitest'
import { fc } from '../../../test/fast-check.js'
import type { LevelCharge, LevelReply } from '../port.js'
import { capacityUs, checkLevels } from './check-levels.js'
import type { ChargeLog } from './sliding-window.js'

const START_US = 1_800_000_000_000_000
const SECOND_US = 1_000_000
/** One unit per second, at most ten at once. */
const slow = { key: '{ann}:u', limit: 60, windowUs: 60 * SECOND_US, burst: 10 }
/** Ten units per second, at most 30 at once. */
const fast = { key: '{*}:g', limit: 600, windowUs: 60 * SECOND_US, burst: 30 }
const window: LevelCharge = {
  ...{ key: '{ip}:i', limit: 5, windowUs: 60 * SECOND_US, burst: 5 },
  algorithm: 'sliding-window',
}

function setup() {
  const buckets = new Map<string, number>()
  const logs = new Map<string, ChargeLog>()
  return {
    buckets,
    logs,
    check: (levels: readonly LevelCharge[], cost: number, afterUs = 0) =>
      checkLevels(buckets, [{ levels, cost }], START_US + afterUs, logs)[0] as LevelReply,
  }
}

describe('one token bucket', () => {
  it('granted request of one token bucket returns what is left and when the bucket is full again', () => {
    const { check, buckets } = setup()
    expect(check([slow], 3)).toEqual({
      ...{ refusedBy: 0, waitUs: 0, tightest: 1, remaining: 7, resetUs: 3 * SECOND_US },
      ...{ atUs: START_US, fullAtUs: [START_US + 3 * SECOND_US] },
    })
    expect(buckets.get(slow.key)).toBe(START_US + 3 * SECOND_US)
  })

  it('refused request of one token bucket returns its exact wait and charges nothing', () => {
    const { check, buckets } = setup()
    check([slow], 8)
    expect(check([slow], 3)).toEqual({
      ...{ refusedBy: 1, waitUs: SECOND_US, tightest: 1, remaining: 2, resetUs: 8 * SECOND_US },
      ...{ atUs: START_US, fullAtUs: [] },
    })
    expect(buckets.get(slow.key)).toBe(START_US + 8 * SECOND_US)
    expect(check([slow], 3, SECOND_US - 1)).toMatchObject({ refusedBy: 1, waitUs: 1 })
    expect(check([slow], 3, SECOND_US)).toMatchObject({ refusedBy: 0, remaining: 0 })
  })

  it('cost above the burst of a token bucket takes all of it', () => {
    const { check } = setup()
    expect(check([slow], 1_000)).toMatchObject({ refusedBy: 0, remaining: 0 })
    expect(check([slow], 1_000)).toMatchObject({ refusedBy: 1, waitUs: 10 * SECOND_US })
  })

  it('token bucket whose limit does not divide its window grants its burst of single units at once', () => {
    const { check } = setup()
    const uneven = { ...slow, limit: 7 }
    for (let left = 9; left >= 0; left--) {
      expect(check([uneven], 1)).toMatchObject({ refusedBy: 0, remaining: left })
    }
    expect(check([uneven], 1).refusedBy).toBe(1)
  })

  it('every request of a batch is charged after the one before it', () => {
    const buckets = new Map<string, number>()
    const requests = [6, 5, 4].map((cost) => ({ levels: [slow], cost }))
    const replies = checkLevels(buckets, requests, START_US, new Map())
    expect(replies.map(({ refusedBy }) => refusedBy)).toEqual([0, 1, 0])
  })

  it.each([[slow], [slow, fast]])(
    'token bucket of a clock that was set back counts as empty, and one that is slightly ahead stays as it is',
    (...levels) => {
      const { check, buckets } = setup()
      // Five seconds more than the bucket can be ahead by charges.
      buckets.set(slow.key, START_US + 15 * SECOND_US)
      expect(check(levels, 1).waitUs).toBe(6 * SECOND_US)
      buckets.set(slow.key, START_US + 15 * SECOND_US + 1)
      expect(check(levels, 1).waitUs).toBe(SECOND_US)
    },
  )

  it.each([[slow], [slow, fast]])(
    'token bucket refills after the clock was set back by an hour, although requests are refused meanwhile',
    (...levels) => {
      const { check } = setup()
      check(levels, 1, 3_600 * SECOND_US)
      const refused = Array.from({ length: 12 }, (_, second) =>
        check(levels, 1, second * SECOND_US),
      )
      expect(refused.map(({ refusedBy }) => refusedBy)).toEqual([1, ...Array(11).fill(0)])
    },
  )

  it('refused request writes nothing', () => {
    const { check, buckets, logs } = setup()
    check([slow, window], 5)
    check([slow], 5)
    const writes: string[] = []
    buckets.set = (key) => {
      writes.push(key)
      return buckets
    }
    logs.set = (key) => {
      writes.push(key)
      return logs
    }
    for (const levels of [[slow], [window], [slow, window], [fast, slow]]) {
      expect(check(levels, 1).refusedBy).toBeGreaterThan(0)
    }
    expect(writes).toEqual([])
  })

  it('rounding adds less than one unit to a token bucket', () => {
    // Ten units take 14.3 us, and each alone 2 us.
    expect(capacityUs({ key: 'u', limit: 7, windowUs: 10, burst: 10 })).toBe(15)
  })
})

describe('several levels', () => {
  it('granted request is charged to every level and returns the figures of the tightest one', () => {
    const { check, buckets, logs } = setup()
    expect(check([fast, slow, window], 2)).toEqual({
      ...{ refusedBy: 0, waitUs: 0, tightest: 3, remaining: 3, resetUs: 60 * SECOND_US },
      atUs: START_US,
      fullAtUs: [START_US + SECOND_US / 5, START_US + 2 * SECOND_US, 0],
    })
    expect([...buckets.values()]).toEqual([START_US + SECOND_US / 5, START_US + 2 * SECOND_US])
    expect(logs.get(window.key)).toEqual([START_US, 2])
  })

  it('request that two levels refuse returns the one with the longer wait, and charges no level', () => {
    const { check, buckets, logs } = setup()
    check([slow], 10)
    check([window], 5, SECOND_US)
    const before = [new Map(buckets), new Map(logs)]
    const refused = { fullAtUs: [], atUs: START_US + 2 * SECOND_US, remaining: 0 }
    const byWindow = { waitUs: 59 * SECOND_US, resetUs: 59 * SECOND_US }
    expect(check([fast, slow, window], 3, 2 * SECOND_US)).toEqual({
      ...{ ...refused, ...byWindow, refusedBy: 3, tightest: 3 },
    })
    expect(check([window, slow, fast], 3, 2 * SECOND_US)).toEqual({
      ...{ ...refused, ...byWindow, refusedBy: 1, tightest: 1 },
    })
    expect([buckets, logs]).toEqual(before)
  })

  it('refusal returns the figures of the refusing bucket as they were before the request', () => {
    const { check } = setup()
    check([slow], 8)
    expect(check([fast, slow], 3)).toMatchObject({
      ...{ refusedBy: 2, tightest: 2, waitUs: SECOND_US },
      ...{ remaining: 2, resetUs: 8 * SECOND_US },
    })
  })

  it('the first one of several levels with the same rest or wait is returned', () => {
    const { check } = setup()
    const twin = { ...slow, key: '{ann}:t' }
    expect(check([slow, twin], 10).tightest).toBe(1)
    expect(check([slow, twin], 1)).toMatchObject({ refusedBy: 1, tightest: 1 })
  })

  it('request without levels is granted', () => {
    const { check } = setup()
    expect(check([], 1)).toMatchObject({ refusedBy: 0, waitUs: 0, tightest: 0, fullAtUs: [] })
  })

  it('sliding window whose clock was set back is saved even when another level refuses', () => {
    const { check, logs } = setup()
    check([window], 5, 100 * SECOND_US)
    check([slow], 10)
    const refusal = check([slow, window], 1)
    expect(refusal).toMatchObject({ refusedBy: 2, waitUs: 60 * SECOND_US })
    expect(logs.get(window.key)).toEqual([START_US, 5])
  })

  it('one token bucket gives the same reply alone and beside a level with more left', () => {
    const step = fc.record({
      afterUs: fc.nat(3 * SECOND_US),
      cost: fc.integer({ min: 1, max: 14 }),
    })
    const level = fc.record({
      limit: fc.integer({ min: 1, max: 90 }),
      windowUs: fc.integer({ min: SECOND_US, max: 90 * SECOND_US }),
      burst: fc.integer({ min: 1, max: 12 }),
    })
    let refused = 0
    fc.assert(
      fc.property(level, fc.array(step, { maxLength: 30 }), (given, steps) => {
        const own = { ...given, key: 'own' }
        const large = { key: 'large', limit: 1_000_000, windowUs: SECOND_US, burst: 1_000_000 }
        const [alone, beside] = [setup(), setup()]
        let passedUs = 0
        for (const { afterUs, cost } of steps) {
          passedUs += afterUs
          const reply = alone.check([own], cost, passedUs)
          const { fullAtUs, ...others } = beside.check([own, large], cost, passedUs)
          expect({ ...others, fullAtUs: fullAtUs.slice(0, 1) }).toEqual(reply)
          refused += reply.refusedBy
        }
      }),
    )
    expect(refused).toBeGreaterThan(100)
  })
})
