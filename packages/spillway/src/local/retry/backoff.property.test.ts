import { describe, expect, it } from 'vitest'
import { fc } from '../../../test/fast-check.js'
import { createRandom } from '../../core/random.js'
import { type BackoffPolicy, backoffMs } from './backoff.js'

const policies = fc.record({
  backoff: fc.constantFrom('constant', 'linear', 'exponential', 'decorrelated'),
  baseMs: fc.double({ min: 1, max: 5_000, noNaN: true }),
  maxMs: fc.double({ min: 1, max: 60_000, noNaN: true }),
  jitter: fc.oneof(
    fc.constantFrom('none', 'full', 'equal'),
    fc.double({ min: 0, max: 1, noNaN: true }),
  ),
}) as fc.Arbitrary<BackoffPolicy>

const plain: BackoffPolicy = { backoff: 'exponential', baseMs: 100, maxMs: 10_000, jitter: 'none' }
const waits = (policy: Partial<BackoffPolicy>, random = () => 0.5) =>
  [1, 2, 3, 4, 5].map((retry) => backoffMs({ ...plain, ...policy }, retry, 0, random))

describe('backoffMs', () => {
  it('backoff delay is at least 1 ms and at most maxMs for any policy, retry and random number', () => {
    fc.assert(
      fc.property(
        policies,
        fc.integer({ min: 1, max: 2_000 }),
        fc.double({ min: 0, max: 60_000, noNaN: true }),
        fc.integer(),
        (policy, retry, previousMs, seed) => {
          const delayMs = backoffMs(policy, retry, previousMs, createRandom(seed))
          expect(delayMs).toBeGreaterThanOrEqual(1)
          expect(delayMs).toBeLessThanOrEqual(policy.maxMs)
        },
      ),
      { numRuns: 2_000 },
    )
  })

  it('backoff delay stays within the bounds of its jitter mode', () => {
    fc.assert(
      fc.property(
        policies,
        fc.integer({ min: 1, max: 40 }),
        fc.integer(),
        (policy, retry, seed) => {
          fc.pre(policy.backoff !== 'decorrelated')
          const wholeMs = backoffMs({ ...policy, jitter: 'none' }, retry, 0, () => 0)
          const delayMs = backoffMs(policy, retry, 0, createRandom(seed))
          const { jitter, maxMs } = policy
          if (jitter === 'none') expect(delayMs).toBe(wholeMs)
          else if (jitter === 'full') expect(delayMs).toBeLessThanOrEqual(wholeMs)
          else if (jitter === 'equal') {
            expect(delayMs).toBeGreaterThanOrEqual(Math.min(wholeMs / 2, maxMs))
            expect(delayMs).toBeLessThanOrEqual(wholeMs)
          } else {
            expect(delayMs).toBeGreaterThanOrEqual(Math.min(wholeMs * (1 - jitter), maxMs) - 1e-9)
            expect(delayMs).toBeLessThanOrEqual(Math.max(1, wholeMs * (1 + jitter)) + 1e-9)
          }
        },
      ),
      { numRuns: 2_000 },
    )
  })

  it('decorrelated delay stays between the base and three times the previous delay', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5_000 }), fc.integer(), (previousMs, seed) => {
        const policy: BackoffPolicy = { ...plain, backoff: 'decorrelated' }
        const delayMs = backoffMs(policy, 2, previousMs, createRandom(seed))
        expect(delayMs).toBeGreaterThanOrEqual(100)
        expect(delayMs).toBeLessThanOrEqual(Math.max(100, previousMs) * 3)
      }),
    )
  })

  it('decorrelated backoff randomises the first delay as well', () => {
    expect(backoffMs({ ...plain, backoff: 'decorrelated' }, 1, 0, () => 0.5)).toBe(200)
    expect(backoffMs({ ...plain, backoff: 'decorrelated' }, 1, 300, () => 0.5)).toBe(500)
  })

  it('constant, linear and exponential backoff grow as named', () => {
    expect(waits({ backoff: 'constant' })).toEqual([100, 100, 100, 100, 100])
    expect(waits({ backoff: 'linear' })).toEqual([100, 200, 300, 400, 500])
    expect(waits({ backoff: 'exponential', maxMs: 1_000 })).toEqual([100, 200, 400, 800, 1_000])
  })

  it('full, equal and numeric jitter spread the delay as documented', () => {
    expect(waits({ jitter: 'full' }).slice(0, 2)).toEqual([50, 100])
    expect(waits({ jitter: 'equal' }, () => 0).slice(0, 2)).toEqual([50, 100])
    expect(waits({ jitter: 0.2 }, () => 0).slice(0, 2)).toEqual([80, 160])
    expect(waits({ jitter: 'full' }, () => 0)[0]).toBe(1)
    expect(waits({ jitter: 'equal' }).slice(0, 2)).toEqual([75, 150])
    expect(waits({ jitter: 0.2 }).slice(0, 2)).toEqual([100, 200])
    expect(waits({ jitter: 0.2 }, () => 1).slice(0, 2)).toEqual([120, 240])
  })
})
