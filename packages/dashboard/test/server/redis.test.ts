// test-group: io

import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { redisStore } from '../../../spillway/src/store/redis/redis-store.js'
import { createVirtualClock } from '../../../spillway/src/testing/virtual-clock.js'
import { type RedisServer, startRedis } from '../../../spillway/test/redis-server.js'
import { startPod } from './dashboard-kit.js'

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

const GUARD = {
  breaker: { consecutiveFailures: 3, openMs: '30s' },
  limits: [{ unit: 'requests', limit: 100, windowMs: '1h' }],
} as const

describe('dashboards of two pods over Redis', () => {
  it('both pods show when the next unit of a limit becomes free', async () => {
    const store = redisStore({ url: redis.url, commandTimeoutMs: 10_000 })
    const pods = await Promise.all(['busy', 'idle'].map((pod) => startPod({ store, pod })))
    const [busy, idle] = pods as [(typeof pods)[0], (typeof pods)[0]]
    const limits = [
      { unit: 'requests', limit: 3, windowMs: '1h' },
      // Refills one token in 2.4 hours, so none during the test.
      { unit: 'tokens', limit: 10, windowMs: '24h', algorithm: 'token-bucket' },
    ] as const
    for (const { spillway } of pods) spillway.guard('used-up', { limits })
    const cost = { tokens: 1 }
    for (let call = 0; call < 3; call++) {
      await busy.spillway.guard('used-up').run(() => 'fine', { lane: 'gpt', cost })
    }
    const reader = await idle.read()
    const hasWait = (lane: { lane: string; limits: object[] }) =>
      lane.lane === 'gpt' && lane.limits.length > 0
    const { guards } = await reader.until('guards', (tick) =>
      tick.guards.some(({ lanes }) => lanes.some(hasWait)),
    )
    const [requests, tokens] = guards[0]?.lanes.find(hasWait)?.limits ?? []
    expect(requests).toMatchObject({ id: 'requests', used: 3, remaining: 0, scope: 'shared' })
    // After the oldest slice of the hour has expired, including the jitter allowance.
    expect(requests?.nextFreeMs).toBeGreaterThan(3_000_000)
    expect(requests?.nextFreeMs).toBeLessThan(4_500_000)
    expect(tokens).toMatchObject({ id: 'tokens', remaining: 7, nextFreeMs: 0 })
    await Promise.all(pods.map(({ spillway }) => spillway.close({ graceMs: 0 })))
    await store.close()
  })

  it('the pages of both pods agree and show when Redis is lost and when it is back', async () => {
    // Commands time out only when the test lets time pass. A starved Redis would otherwise count as an outage, and the
    // outcomes of an outage stay in one pod.
    const storeClock = createVirtualClock()
    const stores = ['a', 'b'].map(() => redisStore({ url: redis.url, clock: storeClock }))
    await vi.waitUntil(async () => {
      await storeClock.advance(10)
      return stores.every(({ ready }) => ready)
    })
    const pods = await Promise.all(
      stores.map((store, index) => startPod({ store, pod: `pod-${index}` })),
    )
    const [one, other] = pods as [(typeof pods)[0], (typeof pods)[0]]
    for (const { spillway } of pods) spillway.guard('openai', GUARD)
    const reader = await other.read()
    await reader.until('fleet', ({ store, pods }) => store.status === 'shared' && pods.length === 2)
    const fail = () => Promise.reject(new Error('broken'))
    const guard = one.spillway.guard('openai')
    await guard.run(() => 'fine', { lane: 'gpt' })
    await other.spillway.guard('openai').run(() => 'fine', { lane: 'gpt' })
    for (let call = 0; call < 3; call++) await guard.run(fail, { lane: 'gpt' }).catch(() => {})
    const opened = await reader.until('transition')
    expect(opened).toMatchObject({ guard: 'openai', lane: 'gpt', to: 'open' })
    const agreed = await reader.until('fleet', ({ pods }) =>
      pods.every(({ guards }) => guards[0]?.[5] === 2),
    )
    expect(agreed.pods).toHaveLength(2)
    // Requested on one pod, effective on the other.
    expect(await other.act({ act: 'reset', guard: 'openai', lane: 'gpt' })).toMatchObject({
      status: 200,
    })
    await vi.waitUntil(() => guard.snapshot().breakers[0]?.state === 'closed', 5_000)
    expect(reader.all('fleet').some(({ store }) => store.status === 'unreachable')).toBe(false)
    redis.pause()
    const passing = setInterval(() => storeClock.advance(10), 20)
    onTestFinished(() => clearInterval(passing))
    const lost = await reader.until('fleet', ({ store }) => store.status === 'unreachable')
    expect(lost.store).toMatchObject({ degraded: true })
    expect(lost.store.problems.length).toBeGreaterThan(0)
    expect(lost.pods.length).toBe(2)
    const shares = await reader.until('guards', ({ guards }) =>
      guards.some(({ lanes }) => lanes.some(({ limits }) => limits[0]?.scope === 'local')),
    )
    const limit = shares.guards[0]?.lanes.find(({ lane }) => lane === 'gpt')?.limits[0]
    // Half of the limit; its usage is unknown during an outage.
    expect(limit).toMatchObject({ id: 'requests', limit: 50 })
    expect(limit).not.toHaveProperty('used')
    expect((await other.act({ act: 'reset', guard: 'openai' })).status).toBe(503)
    redis.resume()
    const after = reader.all('fleet').length
    await vi.waitFor(
      () =>
        expect(
          reader
            .all('fleet')
            .slice(after)
            .some(({ store }) => store.status === 'shared'),
        ).toBe(true),
      15_000,
    )
    await Promise.all(pods.map(({ spillway }) => spillway.close({ graceMs: 0 })))
    await Promise.all(stores.map((store) => store.close()))
  })
})
