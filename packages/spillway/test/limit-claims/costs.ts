/** What a call costs, on which limits, and what becomes of it when it cost something else. */
import { describe, expect, it } from 'vitest'
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

    it('are all charged or none: a refusal by the second costs nothing on the first', async () => {
      const pod = ofBoth()
      await take(pod(), tokens(95))
      expect(await passing(pod, 20, tokens(6))).toBe(0)
      expect(await usedOf(pod)).toEqual({ requests: 1, tokens: 95, images: 0 })
      expect(await passing(pod, 20, tokens(5))).toBe(1)
      expect(await usedOf(pod)).toEqual({ requests: 2, tokens: 100, images: 0 })
    })

    it('hold for a call as far as it has to do with them', async () => {
      const pod = ofBoth()
      expect(await passing(pod, 5, { cost: { images: 1 } })).toBe(3)
      expect(await passing(pod, 20)).toBe(7)
      expect(await usedOf(pod)).toEqual({ requests: 10, tokens: 0, images: 3 })
    })

    it('may be on one unit, such as a second and a day', async () => {
      const limits = [
        { limit: 5, windowMs: LONG_MS / 2 },
        { limit: 8, windowMs },
      ]
      const pod = createVendor(fleet, { limits })
      expect(await passing(pod, 20)).toBe(5)
      expect(await usedOf(pod)).toEqual({ requests: 5, 'requests#2': 5 })
    })
  })

  describe.each(ALGORITHMS)('%s', (algorithm) => {
    const ofTokens = (limit: number) =>
      createVendor(fleet, { limits: [{ unit: 'tokens', limit, windowMs, algorithm }] })

    it('takes weighted costs, and lets a small one pass where a large one does not', async () => {
      const pod = ofTokens(10)
      expect(await passing(pod, 5, tokens(4))).toBe(2)
      expect(await passing(pod, 5, tokens(3))).toBe(0)
      expect(await passing(pod, 5, tokens(1))).toBe(2)
    })

    it('lowers an estimate above the limit to the limit, and grants it', async () => {
      const pod = ofTokens(10)
      const permit = await take(pod(), tokens(1_000))
      expect(permit.cost).toEqual({ tokens: 10 })
      expect(await usedOf(pod)).toEqual({ tokens: 10 })
      expect(await passing(pod, 2, tokens(1))).toBe(0)
    })

    it('takes back what a call did not use, to the unit', async () => {
      const pod = ofTokens(10)
      const one = pod()
      const [first, second] = [await take(one, tokens(4)), await take(one, tokens(6))]
      first.refund()
      second.settle({ tokens: 5 })
      await one.close()
      expect(await usedOf(pod)).toEqual({ tokens: 5 })
      expect(await passing(pod, 9, tokens(1))).toBe(5)
    })

    it('counts a settlement once, the first', async () => {
      const pod = ofTokens(10)
      const one = pod()
      const permit = await take(one, tokens(10))
      permit.settle({ tokens: 6 })
      permit.settle({ tokens: 1 })
      permit.refund()
      await one.close()
      expect(await usedOf(pod)).toEqual({ tokens: 6 })
    })

    it('turns what a call used beyond its estimate into debt, bounded by one limit', async () => {
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
    'takes back what was booked in a %s, and nothing that was booked in an earlier one',
    async (algorithm) => {
      const limits = [{ limit: 2, windowMs: 200, algorithm }]
      const pod = createVendor(fleet, { jitterMs: 200, limits })
      const one = pod()
      const old = await take(one)
      await fleet.sleep(450)
      await take(one)
      old.refund()
      await one.close()
      expect(await usedOf(pod)).toEqual({ requests: 1 })
    },
  )

  describe('lanes', () => {
    const lanes = () =>
      createVendor(fleet, {
        limits: [
          { limit: 5, windowMs },
          { unit: 'tokens', limit: 8, windowMs, per: 'vendor' },
        ],
      })

    it('count apart from one another', async () => {
      const pod = lanes()
      expect(await passing(pod, 9, { lane: 'mini' })).toBe(5)
      expect(await passing(pod, 9, { lane: 'large' })).toBe(5)
      expect(await passing(pod, 9)).toBe(5)
      expect(await usedOf(pod, { lane: 'mini' })).toEqual({ requests: 5, tokens: 0 })
    })

    it('share a limit that is the vendor’s, and are charged nothing else when it refuses', async () => {
      const pod = lanes()
      expect(await passing(pod, 9, { lane: 'mini', ...tokens(2) })).toBe(4)
      expect(await passing(pod, 9, { lane: 'large', ...tokens(1) })).toBe(0)
      expect(await usedOf(pod, { lane: 'large' })).toEqual({ requests: 0, tokens: 8 })
      expect(await passing(pod, 9, { lane: 'large' })).toBe(5)
    })

    it('give back to the vendor what one of them did not use', async () => {
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
