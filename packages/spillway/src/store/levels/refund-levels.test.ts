import { describe, expect, it } from 'vitest'
import { fc } from '../../../test/fast-check.js'
import type { LevelReply } from '../port.js'
import { checkLevels } from './check-levels.js'
import { refundLevels, refundLogKey } from './refund-levels.js'
import { type ChargeLog, LevelWindow } from './sliding-window.js'

const START_US = 1_800_000_000_000_000
const SECOND_US = 1_000_000
/** One unit per second, at most ten at once. */
const level = { key: '{ann}:u', limit: 60, windowUs: 60 * SECOND_US, burst: 10 }

function setup() {
  const buckets = new Map<string, number>()
  const logs = new Map<string, ChargeLog>()
  const check = (afterUs: number, cost: number) =>
    checkLevels(buckets, [{ levels: [level], cost }], START_US + afterUs, logs)[0] as LevelReply
  return {
    buckets,
    logs,
    /** Undefined: refused. */
    charge(afterUs: number, cost = 1): LevelReply | undefined {
      const reply = check(afterUs, cost)
      return reply.refusedBy === 0 ? reply : undefined
    },
    refund(afterUs: number, charged: LevelReply | undefined, cost = 1) {
      if (charged === undefined) throw new Error('was refused')
      const { atUs, fullAtUs } = charged
      const request = { levels: [level], cost, atUs, fullAtUs }
      refundLevels(buckets, [request], START_US + afterUs, logs)
    },
    /** Units left, without changing anything. */
    left(afterUs: number): number | undefined {
      const request = { levels: [level], cost: 1 }
      return checkLevels(new Map(buckets), [request], START_US + afterUs, logs)[0]?.remaining
    },
  }
}

describe('refunds of user limits', () => {
  it('refunding a charge of a user limit that is full again grants no more than the burst', () => {
    const { charge, refund } = setup()
    const late = charge(0)
    // The unit has flowed back meanwhile, so the bucket is full.
    expect(charge(SECOND_US, 10)).toBeDefined()
    refund(SECOND_US, late)
    expect(charge(SECOND_US)).toBeUndefined()
  })

  it('refunding a charge at once leaves a user limit as it was', () => {
    const { charge, refund, left } = setup()
    charge(0, 3)
    const charged = charge(0, 5)
    refund(10, charged, 5)
    expect(left(10)).toBe(6)
  })

  it('calls that wait and are refunded in order get back all that has not flowed back', () => {
    const { charge, refund, left } = setup()
    const charged = Array.from({ length: 10 }, () => charge(0))
    for (const each of charged) refund(5 * SECOND_US, each)
    // Ten units less the one that `left` would take.
    expect(left(5 * SECOND_US)).toBe(9)
  })

  it('two refunds of one moment return no unit twice', () => {
    const { charge, refund } = setup()
    const [first, second] = [charge(0, 5), charge(0, 5)]
    refund(0, first, 5)
    // The second charge has flowed back by now, because nothing was before it any more.
    expect(charge(5 * SECOND_US, 10)).toBeDefined()
    refund(5 * SECOND_US, second, 5)
    expect(charge(5 * SECOND_US)).toBeUndefined()
  })

  it('a charge from before the clock was set back counts as spent', () => {
    const { charge, refund, left } = setup()
    const charged = charge(SECOND_US, 5)
    refund(0, charged, 5)
    expect(left(SECOND_US)).toBe(4)
  })

  it('refunds of one part of time share an entry of the log, which is kept as long as it matters', () => {
    const { charge, refund, logs } = setup()
    const kept: number[] = []
    const set = logs.set.bind(logs)
    logs.set = (key: string, log: ChargeLog, ...[untilUs]: number[]) => {
      kept.push((untilUs as number) - START_US)
      return set(key, log)
    }
    charge(0, 2)
    const charged = [charge(0, 3), charge(0, 4)]
    refund(0, charged[0], 3)
    refund(624_999, charged[1], 4)
    refund(625_000, charge(625_000))
    expect(logs.get('{ann}:u:refunds')).toEqual([
      ...[START_US + 625_000, 7 * SECOND_US],
      ...[START_US + 1_250_000, SECOND_US],
    ])
    expect(kept).toEqual([10_625_000, 10_625_000, 11_250_000])
  })

  it('entry of the log is dropped once the bucket has been full since', () => {
    const { charge, refund, logs } = setup()
    refund(0, charge(0))
    for (const [afterUs, entries] of [
      [10_624_999, 2],
      [10_625_000, 1],
    ] as const) {
      const copy = setup()
      copy.logs.set(refundLogKey(level.key), logs.get(refundLogKey(level.key)) as ChargeLog)
      copy.refund(afterUs, copy.charge(afterUs))
      expect(copy.logs.get(refundLogKey(level.key))?.length).toBe(2 * entries)
    }
  })

  it('refund counts refunds after its charge, and not those of the part that ended then', () => {
    const { charge, refund, left } = setup()
    refund(100, charge(0, 3), 3)
    refund(625_001, charge(625_000, 3), 3)
    expect(left(625_001)).toBe(9)
  })

  it('charge that has flowed back meanwhile returns nothing and leaves no entry', () => {
    for (const afterUs of [3 * SECOND_US, 4 * SECOND_US]) {
      const { charge, refund, buckets, logs } = setup()
      const early = charge(0, 3)
      charge(2 * SECOND_US, 8)
      const before = new Map(buckets)
      refund(afterUs, early, 3)
      expect([buckets, logs.size]).toEqual([before, 0])
    }
  })

  it('refund never makes a bucket fuller than full', () => {
    const { charge, refund, buckets } = setup()
    const charged = charge(0, 5)
    buckets.set(level.key, START_US + SECOND_US)
    refund(0, charged, 5)
    expect(buckets.get(level.key)).toBe(START_US)
  })

  it('refund of an expired level, or without the reply to its charge, changes nothing', () => {
    const { charge, refund, buckets, logs } = setup()
    const charged = charge(0, 5) as LevelReply
    const request = { levels: [level], cost: 5 }
    const before = new Map(buckets)
    const { atUs, fullAtUs } = charged
    refundLevels(buckets, [request, { ...request, atUs }, { ...request, fullAtUs }], START_US, logs)
    expect([buckets, logs.size]).toEqual([before, 0])
    buckets.clear()
    refund(0, charged, 5)
    expect([buckets.size, logs.size]).toEqual([0, 0])
  })

  it('refund of several levels returns to each of them what it was charged', () => {
    const window = { ...level, key: '{ann}:w', limit: 5, algorithm: 'sliding-window' } as const
    const buckets = new Map<string, number>()
    const logs = new Map<string, ChargeLog>()
    const request = { levels: [window, level], cost: 2 }
    const [charged] = checkLevels(buckets, [request, request], START_US, logs)
    refundLevels(buckets, [{ ...request, ...charged }], START_US, logs)
    expect(new LevelWindow(window, logs.get(window.key), START_US).remaining).toBe(3)
    expect(buckets.get(level.key)).toBe(START_US + 2 * SECOND_US)
    logs.clear()
    refundLevels(buckets, [{ ...request, levels: [window], ...charged }], START_US, logs)
    expect(logs.size).toBe(0)
  })

  it('refund of a window without the time of its charge changes nothing', () => {
    const window = { ...level, key: '{ann}:w', limit: 5, algorithm: 'sliding-window' } as const
    const logs = new Map<string, ChargeLog>()
    const request = { levels: [window], cost: 2 }
    const [charged] = checkLevels(new Map(), [request], START_US, logs)
    refundLevels(new Map(), [{ ...request, fullAtUs: charged?.fullAtUs }], START_US, logs)
    expect(new LevelWindow(window, logs.get(window.key), START_US).remaining).toBe(3)
  })

  it('the log of refunds keeps at most 17 entries however many refunds there are', () => {
    const { charge, refund, logs } = setup()
    for (let call = 0; call < 1_000; call++) refund(call * 100_000, charge(call * 100_000))
    expect(logs.get(refundLogKey(level.key))?.length).toBeLessThanOrEqual(2 * 17)
  })

  it('refunds of any order and age never let calls use more than the burst and rate of a user limit', () => {
    const operation = fc.record({
      gapUs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 8 * SECOND_US })),
      cost: fc.integer({ min: 1, max: 10 }),
      /** After how many further operations the charge is refunded; not above 0: its call uses it. */
      refundedAfter: fc.integer({ min: -4, max: 4 }),
    })
    let [refunded, used] = [0, 0]
    fc.assert(
      fc.property(fc.array(operation, { minLength: 20, maxLength: 80 }), (operations) => {
        const { charge, refund } = setup()
        const due: { at: number; charged: LevelReply; cost: number }[] = []
        // A bucket from which only calls that were made take.
        let freeAtUs = 0
        let nowUs = 0
        for (const [index, { gapUs, cost, refundedAfter }] of operations.entries()) {
          nowUs += gapUs
          for (const { charged, cost: units } of due.filter(({ at }) => at === index)) {
            refund(nowUs, charged, units)
            refunded++
          }
          const charged = charge(nowUs, cost)
          if (charged === undefined) continue
          if (refundedAfter > 0) due.push({ at: index + refundedAfter, charged, cost })
          else {
            used++
            freeAtUs = Math.max(freeAtUs, nowUs) + cost * SECOND_US
            expect(freeAtUs - nowUs).toBeLessThanOrEqual(10 * SECOND_US)
          }
        }
      }),
    )
    expect(Math.min(refunded, used)).toBeGreaterThan(100)
  })
})
