import { describe, expect, it } from 'vitest'
import { EstimateCounts } from './estimate-counts.js'
import type { UnitLimit } from './options.js'
import { type Correction, type Cost, LanePermit } from './permit.js'

const limit = (unit: string, id: string, learn = false) =>
  ({ unit, spec: { id, learn } }) as unknown as UnitLimit
const REQUESTS = limit('requests', 'r')
const TOKENS = limit('tokens', 't')

/** A permit for one request and 100 tokens, booked at the stamps 7 and 8. */
function setup() {
  const settled: [lane: string, corrections: Correction[]][] = []
  const estimates = new EstimateCounts()
  const onSettle = (lane: string, corrections: Correction[]) =>
    void settled.push([lane, corrections])
  const limits = [REQUESTS, TOKENS]
  const permit = new LanePermit('a', limits, [1, 100], [7, 8], 5_000, onSettle, estimates)
  return { permit, settled, estimates }
}

describe('permit of a lane', () => {
  it('a permit knows its lane, its cost by unit and when it was granted', () => {
    const { permit } = setup()
    expect(permit.lane).toBe('a')
    expect(permit.cost).toEqual({ requests: 1, tokens: 100 })
    expect(permit.grantedUs).toBe(5_000)
    expect(permit.basePauseOnly).toBe(false)
  })

  it.each([
    [{ tokens: 60 }, -40],
    [{ tokens: 130 }, 30],
    [{ tokens: 60.4 }, -40],
    [{ tokens: -5 }, -100],
    [{ tokens: 0 }, -100],
  ])('settling %j corrects the booked 100 tokens by %d', (actual, delta) => {
    const { permit, settled } = setup()
    permit.settle(actual)
    expect(settled).toEqual([['a', [{ id: 't', stamp: 8, delta }]]])
  })

  it.each<[Cost]>([
    [{}],
    [{ tokens: 100 }],
    [{ tokens: 100.3 }],
    [{ tokens: Number.NaN }],
    [{ tokens: Number.POSITIVE_INFINITY }],
    [{ dollars: 3 }],
  ])('settling %j corrects nothing', (actual) => {
    const { permit, settled } = setup()
    permit.settle(actual)
    expect(settled).toEqual([])
  })

  it('a refund returns the cost under every limit, and only the first settlement counts', () => {
    const { permit, settled } = setup()
    permit.refund()
    permit.settle({ tokens: 60 })
    permit.refund()
    expect(settled).toEqual([
      [
        'a',
        [
          { id: 'r', stamp: 7, delta: -1 },
          { id: 't', stamp: 8, delta: -100 },
        ],
      ],
    ])
  })

  it('only a settlement with an actual cost is compared with the estimate', () => {
    const returned = setup()
    returned.permit.refund()
    expect(returned.estimates.snapshot()).toEqual([])
    const unknown = setup()
    unknown.permit.settle({ requests: 1 })
    expect(unknown.estimates.snapshot()).toEqual([])
    const known = setup()
    known.permit.settle({ tokens: 50 })
    expect(known.estimates.snapshot()).toMatchObject([
      { unit: 'tokens', reserved: 100, actual: 50 },
    ])
  })
})

describe('permit of a call that the vendor refused', () => {
  const learning = [limit('tokens', 't', true), limit('dollars', 'd')]

  it('without a limit that learns there is no report, and the permit can still be settled', () => {
    const { permit, settled } = setup()
    expect(permit.refused([REQUESTS, TOKENS])).toBeUndefined()
    permit.refund()
    expect(settled).toHaveLength(1)
  })

  it('the report has costs, bookings and stamps under the present limits, 0 for new ones', () => {
    const { permit, settled } = setup()
    expect(permit.refused(learning)).toEqual({ costs: [100, 0], booked: [100, 0], stamps: [8, 0] })
    permit.settle({ tokens: 60 })
    expect(settled).toEqual([])
  })

  it('a corrected booking is reported as corrected', () => {
    const { permit } = setup()
    permit.settle({ tokens: 60 })
    expect(permit.refused([REQUESTS, ...learning])).toEqual({
      ...{ costs: [1, 100, 0], booked: [1, 60, 0], stamps: [7, 8, 0] },
    })
  })

  it('a second report books nothing, because the first one has refunded the cost', () => {
    const { permit } = setup()
    permit.refused(learning)
    expect(permit.refused(learning)).toEqual({ costs: [100, 0], booked: [0, 0], stamps: [8, 0] })
  })
})
