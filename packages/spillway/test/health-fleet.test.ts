// test-group: io

import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createHealth, createSpillway } from '../src/index.js'
import { redisStore } from '../src/store/redis/redis-store.js'
import { startRedis } from './redis-server.js'

const OPTIONS = {
  breaker: { failureRate: 0.9, minimumCalls: 1_000, windowMs: '1m', openMs: '30s' },
  limits: [{ unit: 'requests', limit: 1_000, windowMs: '1m' }],
} as const

describe('health over Redis', () => {
  it('health of one pod shows the counts of another one and keeps working without Redis', async () => {
    const redis = await startRedis()
    const stores = [0, 1].map(() => redisStore({ url: redis.url, commandTimeoutMs: 10_000 }))
    const [storeA, storeB] = stores as [(typeof stores)[0], (typeof stores)[0]]
    while (!storeA.ready || !storeB.ready) await sleep(5)
    const podA = createSpillway({ store: storeA, pod: 'a' })
    const podB = createSpillway({ store: storeB, pod: 'b' })
    const vendor = podA.guard('vendor', OPTIONS)
    podB.guard('vendor', OPTIONS)
    const health = createHealth({ spillway: podB })
    try {
      for (let i = 0; i < 30; i++)
        await vendor.run(() => Promise.reject(new Error('503'))).catch(() => {})
      for (let i = 0; i < 5; i++) await vendor.run(() => 'ok')
      await expect
        .poll(async () => (await health.ready()).fleet?.guards[0]?.requestsLastMinute, {
          timeout: 100_000,
        })
        .toBeGreaterThanOrEqual(35)
      const report = await health.ready()
      expect(report.status).toBe('healthy')
      expect(report.fleet).toMatchObject({ store: 'shared', livePods: 2 })
      expect(report.fleet?.guards[0]?.breakers).toMatchObject([
        { lane: 'default', state: 'closed', failures: 30, openUntil: undefined },
      ])
      await redis.kill()
      const alone = await health.ready()
      expect(alone).toMatchObject({
        status: 'degraded',
        ready: true,
        fleet: { store: 'unreachable' },
      })
    } finally {
      await Promise.all([podA.close({ graceMs: 0 }), podB.close({ graceMs: 0 })])
      for (const store of stores) await store.close()
      await redis.kill()
    }
  })
})
