import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { LimitSpec } from '../limit-spec.js'
import { emptyGuard, emptyLane, type LaneState } from './lane-state.js'
import { takePermits } from './transitions.js'
import { takeUsual } from './usual-take.js'

const START_US = 1_900_000_000_000_000

const spec = fc.record({
  algorithm: fc.oneof(
    { weight: 9, arbitrary: fc.constant('sliding-window' as const) },
    fc.constant('token-bucket' as const),
  ),
  limit: fc.integer({ min: 20, max: 900 }),
  windowUs: fc.integer({ min: 1_000_000, max: 20_000_000 }),
  slices: fc.integer({ min: 1, max: 8 }),
})
const step = fc.record({
  passUs: fc.oneof({ weight: 5, arbitrary: fc.nat(100_000) }, fc.nat(9_000_000)),
  costs: fc.array(fc.tuple(fc.nat(30), fc.nat(30)), { maxLength: 4 }),
  pauseUs: fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, fc.nat(500_000)),
})

describe('the short way to a permit', () => {
  it('says and keeps what the long way does, wherever it says anything', () => {
    let short = 0
    fc.assert(
      fc.property(
        fc.tuple(spec, spec),
        fc.array(step, { minLength: 30, maxLength: 60 }),
        (specs, steps) => {
          const limits = specs.map(
            (each, index): LimitSpec => ({ ...each, id: `u${index}`, burst: 0, span: 'lane' }),
          )
          let lane: LaneState = emptyLane()
          let now = START_US
          for (const { passUs, costs, pauseUs } of steps) {
            now += passUs
            const request = { guard: 'g', lane: 'l', limits, version: 0, costs }
            const mine = structuredClone(lane)
            const reply = takeUsual(mine, request, now)
            const long = takePermits(lane, emptyGuard(), request, now)
            if (reply !== undefined) {
              short++
              expect(reply).toEqual(long.reply)
              expect(mine).toEqual(lane)
            }
            lane = reply === undefined ? lane : mine
            if (pauseUs > 0) lane.p = now + pauseUs
          }
        },
      ),
      { numRuns: 300 },
    )
    expect(short).toBeGreaterThan(500)
  })
})
