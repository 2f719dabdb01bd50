import { describe, expect, it } from 'vitest'
import { fc } from '../../../test/fast-check.js'
import { numberOfRuns } from '../../../test/long-run.js'
import type { LimitSpec } from '../limit-spec.js'
import { FastTake } from './fast-take.js'
import { emptyGuard, emptyLane } from './lane-state.js'
import { takePermits } from './take-permits.js'
import { settlePermits } from './transitions.js'

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
const rarely = <T>(usual: T, other: fc.Arbitrary<T>, weight = 9) =>
  fc.oneof({ weight, arbitrary: fc.constant(usual) }, other)
const step = fc.record({
  passUs: fc.oneof({ weight: 5, arbitrary: fc.nat(100_000) }, fc.nat(9_000_000)),
  costs: fc.array(fc.tuple(fc.nat(30), fc.nat(30)), { maxLength: 4 }),
  pauseUs: rarely(0, fc.nat(500_000)),
  settled: rarely(0, fc.integer({ min: -20, max: 20 }), 2),
  settleUs: rarely(0, fc.nat(2_000_000), 3),
  /** A pod of an earlier release that counts in a wider window. */
  old: rarely(false, fc.constant(true), 99),
})

describe('fast path of taking a permit', () => {
  it('the fast path gives the same reply and state as the general path wherever it applies', () => {
    const numRuns = numberOfRuns(150, 300)
    let short = 0
    let settledFast = 0
    fc.assert(
      fc.property(
        fc.tuple(spec, spec),
        fc.array(step, { minLength: 30, maxLength: 60 }),
        (specs, steps) => {
          const limits = specs.map(
            (each, index): LimitSpec => ({ ...each, id: `u${index}`, burst: 0, span: 'lane' }),
          )
          const pods = [limits, limits.map((each) => ({ ...each }))] as const
          const oldLimits = limits.map((each) => ({ ...each, windowUs: each.windowUs * 2 }))
          const [mine, other] = [emptyLane(), emptyLane()]
          let usual: FastTake | undefined
          let now = START_US
          for (const [
            index,
            { passUs, costs, pauseUs, settled, settleUs, old },
          ] of steps.entries()) {
            now += passUs
            const current = pods[index % 2 === 0 ? 0 : 1]
            const ref = { guard: 'g', lane: 'l', version: 0, limits: old ? oldLimits : current }
            const request = { ...ref, costs }
            const long = takePermits(other, emptyGuard(), request, now).reply
            const reply = usual?.take(request, now)
            if (reply === undefined) {
              expect(takePermits(mine, emptyGuard(), request, now).reply).toEqual(long)
              usual = FastTake.of(mine, ref.limits)
            } else {
              short++
              expect(reply).toEqual(long)
            }
            const settlements = [{ limit: 0, stamp: long.stamps[0] as number, delta: settled }]
            const settlement = { ...ref, settlements, pod: 'p', sequence: index }
            now += settleUs
            if (settled !== 0) {
              expect(settlePermits(other, emptyGuard(), settlement, now).reply).toBe(0)
              if (usual?.settle(settlement, now) === true) settledFast++
              else settlePermits(mine, emptyGuard(), settlement, now)
            }
            for (const lane of [mine, other]) {
              if (pauseUs > 0) lane.pausedUntilUs = now + pauseUs
            }
            expect(mine).toEqual(other)
          }
        },
      ),
      { numRuns },
    )
    expect(short).toBeGreaterThan(3 * numRuns)
    expect(settledFast).toBeGreaterThan(numRuns / 2)
  })
})
