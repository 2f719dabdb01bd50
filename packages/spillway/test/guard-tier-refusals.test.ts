/** Refusals by tier, in snapshots and metrics. */
import { Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { exposeToPrometheus } from '../src/observe/index.js'
import { createGuardPod, createJob } from './guard-pod.js'

describe('refusals by tier', () => {
  it('refused calls are counted by tier and code, before and in the queue', async () => {
    const { clock, run, guard, spillway } = createGuardPod({
      userLimits: [{ per: 'user', limit: { free: 1 }, windowMs: '1m' }],
      queue: { size: 1, timeoutMs: '1s' },
      concurrency: { limit: 1 },
    })
    const job = createJob()
    run(job.fn, { tier: 'pro' })
    run(job.fn, { tier: 'pro' })
    for (let call = 0; call < 3; call++) run(job.fn, { tier: 'pro' })
    await clock.advance(2_000)
    job.finish()
    await clock.settle()
    for (let call = 0; call < 3; call++) run(() => 'done', { tier: 'free', user: 'ann' })
    run(() => 'done')
    await clock.advance(100)
    expect(guard.snapshot().refusedByTier).toEqual([
      { tier: 'pro', code: 'QUEUE_FULL', count: 3 },
      { tier: 'pro', code: 'QUEUE_TIMEOUT', count: 1 },
      { tier: 'free', code: 'USER_LIMITED', count: 2 },
    ])
    const registry = new Registry()
    exposeToPrometheus({ spillway, registry })
    expect(await registry.metrics()).toContain(
      'spillway_refused_by_tier_total{guard="openai",tier="free",code="USER_LIMITED"} 2',
    )
  })

  it('tiers after the first 20, and very long names, count together', async () => {
    const { clock, quick, guard } = createGuardPod({ shed: { when: () => true } })
    quick({ tier: 'x'.repeat(1_000) })
    for (let tier = 0; tier < 500; tier++) quick({ tier: `tier ${tier}` })
    await clock.settle()
    const { refusedByTier } = guard.snapshot()
    expect(refusedByTier.length).toBeLessThanOrEqual(21)
    const counts = refusedByTier.map(({ count }) => count)
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(501)
    expect(refusedByTier.find(({ tier }) => tier === '(other)')?.count).toBeGreaterThan(450)
  })
})

describe('interval of CoDel', () => {
  it.each([
    [undefined, 200],
    [1_000, 1_100],
  ])(
    'with intervalMs %s the first call of a standing queue is dropped after about %i ms',
    async (intervalMs, expectedMs) => {
      const { clock, run } = createGuardPod({
        queue: { size: 10_000, timeoutMs: '1m', targetMs: 100, ...(intervalMs && { intervalMs }) },
        concurrency: { limit: 1 },
      })
      const calls = Array.from({ length: 1_000 }, () =>
        run(() => new Promise((done) => clock.schedule(10, () => done('done')))),
      )
      await clock.advance(3_000)
      const dropped = calls.flatMap(({ state, atMs }) => (state === 'rejected' ? [atMs ?? 0] : []))
      const firstMs = Math.min(...dropped)
      expect(firstMs).toBeGreaterThanOrEqual(expectedMs - 20)
      expect(firstMs).toBeLessThanOrEqual(expectedMs + 20)
    },
  )

  it('intervalMs must be a duration from 1 ms', () => {
    const create = () => createGuardPod({ queue: { size: 1, intervalMs: 0 } })
    expect(create).toThrow(/queue\.intervalMs/)
  })
})
