/** Lanes with limits of their own, and lanes that share the limits of a pool. */
import type { SharedRateLimiterOptions } from 'spillway/shared'
import { describe, expect } from 'vitest'
import { it } from '../concurrent-tests.js'
import { createVendor, type Fleet, isWaiting, LONG_MS, passing, take, usedOf } from './fleet.js'

const OPUS = ['claude-opus-4-1', 'claude-opus-4-5', 'claude-opus-4-5-fast'] as const
const tokens = (limit: number) => ({ unit: 'tokens', limit, windowMs: LONG_MS })
const requests = (limit: number) => ({ limit, windowMs: LONG_MS })

export function claimPools(fleet: Fleet): void {
  const create = (options: Partial<SharedRateLimiterOptions> = {}) =>
    createVendor(fleet, {
      limits: [requests(100)],
      lanes: [
        { match: 'gpt-4o-mini*', limits: [requests(5)] },
        { match: 'claude-opus-4-*', pool: 'opus' },
      ],
      pools: { opus: { limits: [requests(10)] } },
      ...options,
    })

  describe('lanes and pools', () => {
    it('two models of one vendor have different limits', async () => {
      const pod = create({ lanes: [{ match: 'mini*', limits: [requests(5)] }], pools: {} })
      expect(await passing(pod, 8, { lane: 'mini-2024' })).toBe(5)
      expect(await passing(pod, 8, { lane: 'large' })).toBe(8)
      expect(await usedOf(pod, { lane: 'mini-2024' })).toEqual({ 'requests:mini*': 5 })
      expect(await usedOf(pod, { lane: 'large' })).toEqual({ requests: 8 })
    })

    it('lanes that match one entry without a pool have a count each', async () => {
      const pod = create()
      expect(await passing(pod, 8, { lane: 'gpt-4o-mini' })).toBe(5)
      expect(await passing(pod, 8, { lane: 'gpt-4o-mini-2024' })).toBe(5)
    })

    it('three lanes of a pool together get exactly the limit of the pool', async () => {
      const pod = create()
      const granted = await Promise.all(OPUS.map((lane) => passing(pod, 8, { lane })))
      expect(granted.reduce((sum, each) => sum + each, 0)).toBe(10)
      for (const lane of OPUS) expect(await usedOf(pod, { lane })).toEqual({ 'requests@opus': 10 })
    })

    it('a lane with limits in a pool is charged to both, or to none', async () => {
      const pod = create({
        lanes: [{ match: 'claude-opus-*', pool: 'opus', limits: [tokens(100)] }],
        pools: { opus: { limits: [tokens(150)] } },
      })
      const [a, b] = OPUS
      const usual = (lane: string) => ({ lane, cost: { tokens: 60 } })
      await take(pod(), usual(a))
      // The lane's own limit refuses, and the pool is not charged.
      expect(await passing(pod, 1, usual(a))).toBe(0)
      await take(pod(), usual(b))
      // The pool refuses, and the lane is not charged.
      expect(await passing(pod, 1, { lane: b, cost: { tokens: 35 } })).toBe(0)
      const own = 'tokens:claude-opus-*'
      expect(await usedOf(pod, { lane: a })).toEqual({ 'tokens@opus': 120, [own]: 60 })
      expect(await usedOf(pod, { lane: b })).toEqual({ 'tokens@opus': 120, [own]: 60 })
    })

    it('vendor-wide limits hold for pooled and other lanes together', async () => {
      const pod = create({ limits: [{ ...requests(12), per: 'vendor' }, tokens(1_000)] })
      expect(await passing(pod, 20, { lane: OPUS[0] })).toBe(10)
      expect(await passing(pod, 20, { lane: 'other' })).toBe(2)
      expect(await usedOf(pod, { lane: OPUS[1] })).toEqual({ 'requests@opus': 10, requests: 12 })
    })

    it('a 429 of one lane pauses its whole pool, and no other lane', async () => {
      const pod = create()
      const permit = await take(pod(), { lane: OPUS[0] })
      await pod().updateFromResponse({ status: 429, headers: { 'retry-after': '10' } }, permit)
      for (const lane of OPUS) {
        expect(await pod().acquire({ lane })).toMatchObject({ allowed: false, paused: true })
      }
      expect(await passing(pod, 2, { lane: 'gpt-4o-mini' })).toBe(2)
      expect(await passing(pod, 2, { lane: 'claude-haiku' })).toBe(2)
    })

    it('vendor headers of a pooled lane update the pool', async () => {
      const pod = create()
      const permit = await take(pod(), { lane: OPUS[0] })
      const headers = { 'x-ratelimit-remaining-requests': '3' }
      await pod().updateFromResponse({ status: 200, headers }, permit)
      expect(await usedOf(pod, { lane: OPUS[2] })).toEqual({ 'requests@opus': 7 })
      expect(await passing(pod, 5, { lane: OPUS[1] })).toBe(3)
    })

    it('units returned in one lane wake a request of another pod in another lane of the pool', async () => {
      const pod = create({ pools: { opus: { limits: [requests(1)] } } })
      const permit = await take(pod(), { lane: OPUS[0] })
      const waiting = pod().acquireWithin('2h', { lane: OPUS[1] })
      expect(await isWaiting(fleet, waiting)).toBe(true)
      permit.refund()
      expect(await fleet.answered(waiting)).toMatchObject({ allowed: true })
    })

    it('a settled cost corrects the pool and the limits of the lane', async () => {
      const pod = create({
        lanes: [{ match: '*', pool: 'all', limits: [tokens(500)] }],
        pools: { all: { limits: [tokens(800)] } },
      })
      const here = pod()
      const permit = await take(here, { lane: 'a', cost: { tokens: 300 } })
      permit.settle({ tokens: 40 })
      await here.close()
      expect(await usedOf(pod, { lane: 'a' })).toEqual({ 'tokens@all': 40, 'tokens:*': 40 })
      expect(await usedOf(pod, { lane: 'b' })).toEqual({ 'tokens@all': 40, 'tokens:*': 0 })
    })

    it('override() of a pool limit changes it for all lanes of the pool', async () => {
      const pod = create()
      await pod().override('requests@opus', 4, '1h')
      expect(await passing(pod, 8, { lane: OPUS[0] })).toBe(4)
      expect(await passing(pod, 8, { lane: OPUS[1] })).toBe(0)
      expect(await passing(pod, 8, { lane: 'gpt-4o-mini' })).toBe(5)
    })

    it('calls of lanes beyond maxLanes keep the limits of their entry', async () => {
      const pod = create({ maxLanes: 1, pools: { opus: { limits: [requests(1)] } } })
      const here = pod()
      await take(here, { lane: OPUS[0] })
      // A lane in which a request waits is not dropped.
      const waiting = here.acquireWithin('2h', { lane: OPUS[0] })
      expect(await isWaiting(fleet, waiting)).toBe(true)
      expect(await here.acquire({ lane: OPUS[1] })).toMatchObject({ allowed: false })
      expect(await here.acquire({ lane: 'plain' })).toMatchObject({ allowed: true })
      await here.close()
      await expect(waiting).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
    })
  })
}
