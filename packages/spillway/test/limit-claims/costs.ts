/** Costs of a call, the limits they count on, and settlement. */
import { describe, expect } from 'vitest'
import { it } from '../concurrent-tests.js'
import { createVendor, type Fleet, LONG_MS, passing, take, usedOf } from './fleet.js'

const ALGORITHMS = ['sliding-window', 'token-bucket', 'fixed-window'] as const

export function claimCosts(fleet: Fleet): void {
  const windowMs = LONG_MS
  const tokens = (count: number) => ({ cost: { tokens: count } })

  describe('several limits', () => {
    const ofBoth = () =>
      createVendor(fleet, {
        limits: [
          { limit: 10, windowMs },
          { unit: 'tokens', limit: 100, windowMs, algorithm: 'token-bucket' },
          { unit: 'images', limit: 3, windowMs, algorithm: 'fixed-window' },
        ],
      })

    it('limits are charged all or none: a refusal by the second costs nothing on the first', async () => {
      const pod = ofBoth()
      await take(pod(), tokens(95))
      expect(await passing(pod, 20, tokens(6))).toBe(0)
      expect(await usedOf(pod)).toEqual({ requests: 1, tokens: 95, images: 0 })
      expect(await passing(pod, 20, tokens(5))).toBe(1)
      expect(await usedOf(pod)).toEqual({ requests: 2, tokens: 100, images: 0 })
    })

    it('a limit counts only the units that a call names', async () => {
      const pod = ofBoth()
      expect(await passing(pod, 5, { cost: { images: 1 } })).toBe(3)
      expect(await passing(pod, 20)).toBe(7)
      expect(await usedOf(pod)).toEqual({ requests: 10, tokens: 0, images: 3 })
    })

    it('two limits may count the same unit over different windows', async () => {
      const limits = [
        { limit: 5, windowMs: LONG_MS / 2 },
        { limit: 8, windowMs },
      ]
      const pod = createVendor(fleet, { limits })
      expect(await passing(pod, 20)).toBe(5)
      expect(await usedOf(pod)).toEqual({ requests: 5, 'requests#2': 5 })
    })
  })

  describe.each(ALGORITHMS)('costs (%s)', (algorithm) => {
    const ofTokens = (limit: number) =>
      createVendor(fleet, { limits: [{ unit: 'tokens', limit, windowMs, algorithm }] })

    it('a small cost is granted where a large one is refused', async () => {
      const pod = ofTokens(10)
      expect(await passing(pod, 5, tokens(4))).toBe(2)
      expect(await passing(pod, 5, tokens(3))).toBe(0)
      expect(await passing(pod, 5, tokens(1))).toBe(2)
    })

    it('an estimate above the limit is lowered to the limit and granted', async () => {
      const pod = ofTokens(10)
      const permit = await take(pod(), tokens(1_000))
      expect(permit.cost).toEqual({ tokens: 10 })
      expect(await usedOf(pod)).toEqual({ tokens: 10 })
      expect(await passing(pod, 2, tokens(1))).toBe(0)
    })

    it('settle() and refund() return unused cost exactly', async () => {
      const pod = ofTokens(10)
      const one = pod()
      const [first, second] = [await take(one, tokens(4)), await take(one, tokens(6))]
      first.refund()
      second.settle({ tokens: 5 })
      await one.close()
      expect(await usedOf(pod)).toEqual({ tokens: 5 })
      expect(await passing(pod, 9, tokens(1))).toBe(5)
    })

    it('only the first settlement of a permit counts', async () => {
      const pod = ofTokens(10)
      const one = pod()
      const permit = await take(one, tokens(10))
      permit.settle({ tokens: 6 })
      permit.settle({ tokens: 1 })
      permit.refund()
      await one.close()
      expect(await usedOf(pod)).toEqual({ tokens: 6 })
    })

    it('cost beyond the estimate becomes debt of at most one limit', async () => {
      const pod = ofTokens(10)
      const one = pod()
      const permit = await take(one, tokens(10))
      permit.settle({ tokens: 14 })
      const other = await take(one, tokens(0))
      other.settle({ tokens: 1_000_000 })
      await one.close()
      const answer = await pod().acquire(tokens(1))
      expect(answer).toMatchObject({ allowed: false })
      expect((answer as { retryAfterMs: number }).retryAfterMs).toBeLessThan(windowMs * 1.2)
      const debt = { 'sliding-window': 20, 'fixed-window': 20, 'token-bucket': 10 }
      expect(await usedOf(pod)).toEqual({ tokens: debt[algorithm] })
    })
  })

  // In real time, the edge of a fixed window may fall between any two lines of a test.
  const windows = fleet.kind === 'memory' ? ['sliding-window', 'fixed-window'] : ['sliding-window']
  it.each(windows as ('sliding-window' | 'fixed-window')[])(
    'a refund counts in the current %s and not for an earlier one',
    async (algorithm) => {
      const limits = [{ limit: 2, windowMs: 200, algorithm }]
      const pod = createVendor(fleet, { jitterMs: 1_000, limits })
      const one = pod()
      const old = await take(one)
      await fleet.sleep(1_250)
      await take(one)
      old.refund()
      await one.close()
      expect(await usedOf(pod)).toEqual({ requests: 1 })
    },
  )

  describe('limits per lane and per vendor', () => {
    const lanes = () =>
      createVendor(fleet, {
        limits: [
          { limit: 5, windowMs },
          { unit: 'tokens', limit: 8, windowMs, per: 'vendor' },
        ],
      })

    it('lanes are counted separately', async () => {
      const pod = lanes()
      expect(await passing(pod, 9, { lane: 'mini' })).toBe(5)
      expect(await passing(pod, 9, { lane: 'large' })).toBe(5)
      expect(await passing(pod, 9)).toBe(5)
      expect(await usedOf(pod, { lane: 'mini' })).toEqual({ requests: 5, tokens: 0 })
    })

    it('lanes share a vendor limit, and its refusal costs nothing else', async () => {
      const pod = lanes()
      expect(await passing(pod, 9, { lane: 'mini', ...tokens(2) })).toBe(4)
      expect(await passing(pod, 9, { lane: 'large', ...tokens(1) })).toBe(0)
      expect(await usedOf(pod, { lane: 'large' })).toEqual({ requests: 0, tokens: 8 })
      expect(await passing(pod, 9, { lane: 'large' })).toBe(5)
    })

    it('settling in one lane returns vendor units to all lanes', async () => {
      const pod = lanes()
      const one = pod()
      const permit = await take(one, { lane: 'mini', ...tokens(8) })
      permit.settle({ tokens: 1 })
      await one.close()
      expect(await usedOf(pod, { lane: 'large' })).toEqual({ requests: 0, tokens: 1 })
      expect(await usedOf(pod, { lane: 'mini' })).toEqual({ requests: 1, tokens: 1 })
    })
  })
}
