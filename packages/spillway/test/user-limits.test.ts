// test-group: io

import { redisStore } from 'spillway/redis'
import { createUserLimits, memoryStore, type Store, type UserLevel } from 'spillway/shared'
import { createVirtualClock } from 'spillway/testing'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type RedisCluster, startCluster } from './redis-cluster.js'
import { type RedisServer, startRedis } from './redis-server.js'
import { START_MS } from './topologies.js'

let server: RedisServer
let cluster: RedisCluster
const stores: Record<string, Store> = { memory: memoryStore() }
beforeAll(async () => {
  ;[server, cluster] = await Promise.all([startRedis(), startCluster()])
  const redis = redisStore({ url: server.url, commandTimeoutMs: 2_000 })
  const inCluster = redisStore({ urls: cluster.urls, commandTimeoutMs: 2_000 })
  await vi.waitUntil(() => redis.ready && inCluster.ready, { timeout: 5_000 })
  Object.assign(stores, { redis, 'a cluster': inCluster })
}, START_MS)
afterAll(async () => {
  await Promise.all(Object.values(stores).map((store) => store.close()))
  await Promise.all([server.stop(), cluster.stop()])
})

const HOUR = 3_600_000
let names = 0

describe.each(['memory', 'redis', 'a cluster'])('user limits (%s)', (kind) => {
  const create = (levels: UserLevel[]) =>
    createUserLimits({ store: stores[kind] as Store, name: `n${names++}`, levels })
  const passes = async (limits: ReturnType<typeof create>, times: number, subject: object) => {
    const results = await Promise.all(Array.from({ length: times }, () => limits.check(subject)))
    return results.filter(({ allowed }) => allowed).length
  }

  it('user limits count each user separately and exactly under concurrency', async () => {
    const limits = create([{ per: 'user', limit: 60, windowMs: HOUR }])
    expect(await passes(limits, 500, { user: 'ann' })).toBe(60)
    expect(await passes(limits, 10, { user: 'bob' })).toBe(10)
  })

  it('check() returns remaining units, reset time and wait', async () => {
    const limits = create([{ per: 'user', limit: 3, windowMs: HOUR }])
    const first = await limits.check({ user: 'ann', cost: 2 })
    expect(first).toMatchObject({ allowed: true, level: 'user', remaining: 1, retryAfterMs: 0 })
    expect(first.resetMs).toBeCloseTo((HOUR * 2) / 3, -3)
    const second = await limits.check({ user: 'ann', cost: 2 })
    expect(second).toMatchObject({ allowed: false, level: 'user', remaining: 1 })
    expect(second.retryAfterMs).toBeCloseTo(HOUR / 3, -3)
  })

  it('a refusal by one level charges no level and names the refusing one', async () => {
    const limits = create([
      { per: 'global', limit: 1_000, windowMs: HOUR },
      { per: 'user', limit: 100, windowMs: HOUR },
      { per: 'ip', limit: 5, windowMs: HOUR },
    ])
    const subject = { user: 'ann', ip: '10.0.0.1' }
    expect(await passes(limits, 50, subject)).toBe(5)
    expect(await limits.check(subject)).toMatchObject({ allowed: false, level: 'ip' })
    const elsewhere = await limits.check({ user: 'ann', ip: '10.0.0.2' })
    expect(elsewhere).toMatchObject({ allowed: true, level: 'ip', remaining: 4 })
    const ofUser = await limits.check({ user: 'ann' })
    expect(ofUser).toMatchObject({ level: 'user', remaining: 100 - 7 })
  })

  it('tiers have their own limits, which may be unlimited', async () => {
    const limits = create([
      { per: 'tier', limit: { free: 5, pro: 20, enterprise: 'unlimited' }, windowMs: HOUR },
    ])
    expect(await passes(limits, 10, { tier: 'free', user: 'ann' })).toBe(5)
    expect(await passes(limits, 10, { tier: 'free', user: 'bob' })).toBe(0)
    expect(await passes(limits, 30, { tier: 'pro' })).toBe(20)
    expect(await limits.check({ tier: 'enterprise' })).toEqual({
      allowed: true,
      level: undefined,
      remaining: Number.POSITIVE_INFINITY,
      resetMs: 0,
      retryAfterMs: 0,
    })
    expect(await passes(limits, 3, { tier: 'toString' })).toBe(3)
  })

  it('endpoint limits count per address, with a window per endpoint', async () => {
    const limits = create([
      { per: 'endpoint', limit: { '/api/search': 20 }, windowMs: '1m' },
      { per: 'endpoint', limit: { '/api/export': 5 }, windowMs: '5m' },
    ])
    const from = (ip: string, endpoint: string) => ({ ip, endpoint })
    expect(await passes(limits, 30, from('10.0.0.1', '/api/search'))).toBe(20)
    expect(await passes(limits, 30, from('10.0.0.1', '/api/export'))).toBe(5)
    expect(await passes(limits, 30, from('10.0.0.2', '/api/export'))).toBe(5)
    expect(await passes(limits, 30, from('10.0.0.2', '/api/other'))).toBe(30)
  })

  it('user names that look like parts of a key are kept apart', async () => {
    const limits = create([{ per: 'user', limit: 1, windowMs: HOUR }])
    const users = ['a', '{a}', 'a}:u', 'a:b', 'a b', 'a%3ab', '']
    for (const user of users) expect(await passes(limits, 2, { user })).toBe(1)
  })

  it('a cost above the bucket size is granted once when the bucket is full', async () => {
    const limits = create([{ per: 'user', limit: 5, windowMs: HOUR }])
    expect(await limits.check({ user: 'ann', cost: 50 })).toMatchObject({
      allowed: true,
      remaining: 0,
    })
    expect(await limits.check({ user: 'ann', cost: 50 })).toMatchObject({ allowed: false })
  })

  it('sliding windows count exactly under concurrency, beside a token bucket of the same user', async () => {
    const window = { algorithm: 'sliding-window', windowMs: HOUR } as const
    const limits = create([
      { per: 'global', limit: 1_000, ...window },
      { per: 'user', limit: 60, ...window },
      { per: 'user', limit: 90, windowMs: HOUR },
    ])
    expect(await passes(limits, 500, { user: 'ann' })).toBe(60)
    const refused = await limits.check({ user: 'ann' })
    expect(refused).toMatchObject({ allowed: false, level: 'user', remaining: 0 })
    expect(refused.retryAfterMs).toBeLessThanOrEqual(HOUR)
    expect(refused.retryAfterMs).toBeGreaterThan(HOUR - 60_000)
    expect(await passes(limits, 10, { user: 'bob' })).toBe(10)
  })

  it('user limits name the invalid option', async () => {
    expect(() => create([{ per: 'usr' as 'user', limit: 1, windowMs: 1 }])).toThrow(
      "userLimits.levels[0].per: must be one of 'global', 'tier', 'user', 'ip', 'endpoint', got \"usr\"; did you mean 'user'?",
    )
    expect(() => create([{ per: 'tier', limit: { free: 0 }, windowMs: 1 }])).toThrow(
      'userLimits.levels[0].limit.free: must be a positive integer',
    )
    const limits = create([{ per: 'user', limit: 1, windowMs: 1 }])
    await expect(limits.check({ user: 'a', cost: 0 })).rejects.toThrow('cost: must be')
    const noStore = { levels: [] } as unknown as Parameters<typeof createUserLimits>[0]
    expect(() => createUserLimits(noStore)).toThrow('userLimits.store: must be a store')
  })
})

describe('user limits over time', () => {
  it('user limit grants a burst and then a steady rate', async () => {
    const clock = createVirtualClock()
    const limits = createUserLimits({
      store: memoryStore({ clock }),
      levels: [{ per: 'user', limit: 60, windowMs: '1m', burst: 10 }],
    })
    let passed = 0
    for (let second = 0; second < 600; second++) {
      for (let i = 0; i < 5; i++) if ((await limits.check({ user: 'ann' })).allowed) passed++
      await clock.advance(1_000)
    }
    expect(passed).toBe(10 + 599)
  })

  it('every user-limit key expires after at most its window and a margin', async () => {
    const keys = (await server.send('KEYS', '*')) as string[]
    expect(keys.length).toBeGreaterThan(10)
    for (const key of keys) {
      const life = (await server.send('PTTL', key)) as number
      expect(life).toBeGreaterThan(0)
      expect(life).toBeLessThanOrEqual(HOUR + 1_000)
    }
  })

  it('a sliding window of 60 units stores less than 600 bytes per user, which expire with it', async () => {
    const limits = createUserLimits({
      store: stores.redis as Store,
      name: 'sized',
      levels: [{ per: 'user', limit: 60, windowMs: '1m', algorithm: 'sliding-window' }],
    })
    for (let call = 0; call < 60; call++) await limits.check({ user: 'ann' })
    const key = 'sw1:{ann}:uw:sized'
    expect(await server.send('STRLEN', key)).toBeLessThan(600)
    const lifeMs = (await server.send('PTTL', key)) as number
    expect(lifeMs).toBeGreaterThan(30_000)
    expect(lifeMs).toBeLessThanOrEqual(61_000)
  })

  it('a user limit stores one short number per user', async () => {
    const user = '550e8400-e29b-41d4-a716-446655440000'
    const limits = createUserLimits({
      store: stores.redis as Store,
      levels: [{ per: 'user', limit: 60, windowMs: '1m' }],
    })
    await limits.check({ user })
    const key = `sw1:{${user}}:u`
    // Valkey 9 stores a short number inside its key object, Redis without one.
    expect(['int', 'embstr']).toContain(await server.send('OBJECT', 'ENCODING', key))
    expect(key.length).toBeLessThanOrEqual(44)
  })
})
