import { describe, expect, it } from 'vitest'
import { fc } from '../../../test/fast-check.js'
import { numberOfRuns } from '../../../test/long-run.js'
import type { LimitSpec } from '../limit-spec.js'
import { advance, charge, emptyCount, fits, refund, unitsToUs } from './counting.js'

const SECOND_US = 1_000_000
const START_US = 1_000 * SECOND_US
/** A unit flows back every 100 ms. */
const SPEC: LimitSpec = {
  id: 'calls',
  algorithm: 'token-bucket',
  limit: 10,
  windowUs: SECOND_US,
  slices: 1,
  burst: 0,
  span: 'lane',
  learn: false,
}
const UNIT_US = SECOND_US / 10

function bucket() {
  const count = emptyCount()
  let nowUs = START_US
  return {
    get count() {
      return count
    },
    get nowUs() {
      return nowUs
    },
    get debtUs() {
      return Math.max(0, count.freeAtUs - nowUs)
    },
    pass(us: number) {
      nowUs += us
    },
    /** Returns the stamp of the units. */
    charge(units: number, spec = SPEC) {
      advance(spec, count, nowUs, 0)
      charge(spec, count, nowUs, units)
      return nowUs
    },
    refund(stamp: number, units: number, spec = SPEC) {
      advance(spec, count, nowUs, 0)
      refund(spec, count, nowUs, stamp, units)
    },
  }
}

describe('counts of changed windows', () => {
  const sliding = (change: Partial<LimitSpec>): LimitSpec => ({
    ...SPEC,
    algorithm: 'sliding-window',
    slices: 10,
    ...change,
  })
  const used = () => {
    const count = emptyCount()
    advance(sliding({}), count, START_US, 0)
    charge(sliding({}), count, START_US, 4)
    return count
  }

  it('a newer release changes the window, also one with slices of equal length', () => {
    const count = used()
    const wider = sliding({ windowUs: 2 * SECOND_US, slices: 20 })
    expect(advance(wider, count, START_US, 1)).toBe(true)
    expect([count.windowUs, count.units]).toEqual([2 * SECOND_US, 4])
    expect(advance(wider, count, START_US, 1)).toBe(false)
  })

  it('releases with an equal window and other slices keep the slices in use', () => {
    const count = used()
    expect(advance(sliding({ slices: 20 }), count, START_US, 0)).toBe(false)
    expect(count.slices).toHaveLength(11)
  })
})

describe('what fits', () => {
  it('a cost of 0 fits a limit that is used up', () => {
    const one = bucket()
    one.charge(10)
    expect([fits(SPEC, one.count, one.nowUs, 1), fits(SPEC, one.count, one.nowUs, 0)]).toEqual([
      ...[false, true],
    ])
  })

  it('a token bucket whose units are rounded up holds less than one unit more than its burst', () => {
    // A unit takes 10 / 7 µs, rounded up to 2. Ten microseconds of debt are seven units.
    const spec = { ...SPEC, limit: 7, windowUs: 10 }
    const count = emptyCount()
    advance(spec, count, START_US, 0)
    count.freeAtUs = START_US + 9
    expect(fits(spec, count, START_US, 1)).toBe(true)
    count.freeAtUs = START_US + 10
    expect(fits(spec, count, START_US, 1)).toBe(false)
  })
})

/** Keeps the debt before every charge and refund, instead of a few low points. */
class ExactBucket {
  #debtUs = 0
  #atUs = START_US
  readonly #past: { atUs: number; debtUs: number }[] = []

  get debtUs() {
    return this.#debtUs
  }

  #note(nowUs: number) {
    this.#debtUs = Math.max(0, this.#debtUs - (nowUs - this.#atUs))
    this.#atUs = nowUs
    this.#past.push({ atUs: nowUs, debtUs: this.#debtUs })
  }

  charge(nowUs: number, units: number) {
    this.#note(nowUs)
    this.#debtUs += unitsToUs(SPEC, units)
  }

  refund(nowUs: number, stamp: number, units: number) {
    this.#note(nowUs)
    const since = this.#past.filter(({ atUs }) => atUs > stamp)
    const lowestUs = Math.min(this.#debtUs, ...since.map(({ debtUs }) => debtUs))
    const backUs = Math.min(unitsToUs(SPEC, units), lowestUs)
    this.#debtUs -= backUs
    for (const each of since) each.debtUs -= backUs
  }
}

const event = fc.record({
  passUs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 6 * UNIT_US })),
  units: fc.integer({ min: 1, max: 6 }),
  /** Refunds the charge this many charges ago. */
  refunds: fc.option(fc.nat(6), { freq: 3 }),
})

/** Runs the same charges and refunds in both buckets, and returns their debts after each. */
function compare(events: { passUs: number; units: number; refunds: number | null }[]) {
  const counted = bucket()
  const exact = new ExactBucket()
  const charges: { stamp: number; units: number }[] = []
  return events.map(({ passUs, units, refunds }) => {
    counted.pass(passUs)
    const [back] = refunds === null ? [] : charges.splice(-1 - refunds, 1)
    if (back === undefined) {
      charges.push({ stamp: counted.charge(units), units })
      exact.charge(counted.nowUs, units)
    } else {
      counted.refund(back.stamp, back.units)
      exact.refund(counted.nowUs, back.stamp, back.units)
    }
    return { counted: counted.debtUs, exact: exact.debtUs }
  })
}

describe('low points of a token bucket', () => {
  it('a token bucket with few charges returns as much as one that remembers all debts', () => {
    fc.assert(
      fc.property(fc.array(event, { minLength: 2, maxLength: 9 }), (events) => {
        for (const { counted, exact } of compare(events)) expect(counted).toBe(exact)
      }),
      { numRuns: numberOfRuns(1_000) },
    )
  })

  it('a token bucket with many charges never returns more than one that remembers all debts', () => {
    let equal = 0
    let all = 0
    fc.assert(
      fc.property(fc.array(event, { minLength: 20, maxLength: 60 }), (events) => {
        for (const { counted, exact } of compare(events)) {
          expect(counted).toBeGreaterThanOrEqual(exact)
          if (counted === exact) equal++
          all++
        }
      }),
      { numRuns: numberOfRuns(200) },
    )
    expect(equal).toBeGreaterThan(0.5 * all)
  })

  it('a ninth low point merges the two with the most similar debts into the lower debt at the later time', () => {
    const one = bucket()
    const stamps: number[] = []
    // Debts before the charges, in units: 0, 3, 6, 9, 12, 13, 16, 19, 22. The fifth and sixth are the most similar.
    for (const units of [3, 3, 3, 3, 1, 3, 3, 3, 3]) {
      stamps.push(one.charge(units))
      one.pass(1)
    }
    expect(one.count.lows).toHaveLength(8)
    const merged = one.count.lows[4]
    expect(merged?.atUs).toBe(stamps[5])
    expect(Math.round((merged?.debtUs ?? 0) / UNIT_US)).toBe(12)
    expect(one.count.lows[3]?.atUs).toBe(stamps[3])
    expect(one.count.lows[5]?.atUs).toBe(stamps[6])
  })

  it('low points of a token bucket keep their units when the limit changes', () => {
    const one = bucket()
    const stamp = one.charge(10)
    one.pass(5 * UNIT_US)
    one.charge(3)
    // Five units of debt were the least since the permit. With half of the limit each unit takes twice as long.
    const slower = { ...SPEC, limit: 5 }
    one.refund(stamp, 10, slower)
    expect(one.debtUs).toBe(3 * 2 * UNIT_US)
  })
})
