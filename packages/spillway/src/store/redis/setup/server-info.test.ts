import { describe, expect, it } from 'vitest'
import { judge } from './server-info.js'

const infoOf = (fields: object) =>
  Object.entries({ redis_version: '7.0.15', redis_mode: 'standalone', role: 'master', ...fields })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}:${value}\r\n`)
    .join('')

describe('Redis server info', () => {
  it.each([
    [{ redis_version: '6.0.16' }, 'h:1 is Redis 6.0.16, which is too old: scripts set keys'],
    [{ redis_version: '5.0.7' }, 'needs Redis 6.2 or newer, or Valkey'],
    [{ redis_mode: 'sentinel' }, 'h:1 is a Sentinel: name it in redis.sentinels'],
    [{ redis_mode: 'cluster' }, 'name it in redis.urls, not redis.url'],
    [{ redis_mode: undefined, server_mode: 'cluster' }, 'name it in redis.urls, not redis.url'],
    [{ redis_mode: undefined, server_mode: 'sentinel' }, 'name it in redis.sentinels'],
    [{ loading: 1 }, 'h:1 is still loading its data'],
    [
      { role: 'slave', master_host: 'm', master_port: 2 },
      'h:1 is a read-only replica of m:2: name the master',
    ],
  ])('a server with %o is rejected', (fields, message) => {
    expect(judge(infoOf(fields), 'server', 'h:1').problem?.message).toContain(message)
  })

  it.each([
    {},
    { redis_version: '6.2.0' },
    { redis_version: '8.2.1' },
    { redis_version: '7.2.4', server_name: 'valkey', valkey_version: '8.1.0' },
    { maxmemory: 1_000, maxmemory_policy: 'noeviction' },
    // Without maxmemory Redis evicts nothing.
    { maxmemory: 0, maxmemory_policy: 'allkeys-lru' },
  ])('a server with %o is accepted', (fields) => {
    expect(judge(infoOf(fields), 'server', 'h:1')).toEqual({})
  })

  it.each(['allkeys-lru', 'allkeys-random', 'volatile-lru', 'volatile-ttl'])(
    'eviction policy %s gives a warning, because all Spillway keys expire',
    (policy) => {
      const info = infoOf({ maxmemory: 1_000, maxmemory_policy: policy })
      expect(judge(info, 'server', 'h:1').warning).toContain(`maxmemory-policy ${policy}`)
    },
  )

  it('a cluster node may be a replica, but it has to run in cluster mode', () => {
    const info = infoOf({ redis_mode: 'cluster', role: 'slave' })
    expect(judge(info, 'cluster', 'h:1')).toEqual({})
    expect(judge(infoOf({}), 'cluster', 'h:1').problem?.message).toContain('not redis.urls')
  })

  it('an empty server info is accepted', () => {
    expect(judge('', 'server', 'h:1')).toEqual({})
  })
})
