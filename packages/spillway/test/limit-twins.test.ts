// test-group: io, slow

import { createClient } from 'redis'
import { expect, it } from 'vitest'
import { createKeys } from '../src/store/keys.js'
import type { LimitSpec } from '../src/store/limit-spec.js'
import { createRedisLimits } from '../src/store/redis/operations/redis-limits.js'
import { TOPOLOGIES } from './topologies.js'
import { claimLimitTwins } from './twin-claims/limits.js'
import { twinRedis } from './twin-claims/twin-redis.js'

const twin = twinRedis(TOPOLOGIES['one server'])
claimLimitTwins(twin)

/** Rewrites the last entry of the guard's list of waiting pods: { channel, text, wake us, need, served }. */
const AS_EARLIER_RELEASE = `
  local guard = cmsgpack.unpack(redis.call('GET', KEYS[1]))
  local entries = guard.w[1]
  local entry = entries[#entries]
  entries[#entries] = { entry[1], entry[2], entry[3], entry[4], false }
  redis.call('SET', KEYS[1], cmsgpack.pack(guard), 'PX', 60000)
  return #entries`

it('waiting pod of an earlier release gets its part of what is free', async () => {
  let atUs = 4_000_000_000_000_000
  const keys = createKeys('earlier-')
  const redis = createRedisLimits(
    twin.runner,
    keys,
    () => ({ close() {} }),
    () => String(atUs),
  )
  const window = { algorithm: 'fixed-window', windowUs: 800_000, slices: 1, burst: 0 } as const
  const limits: LimitSpec[] = [{ ...window, id: 'requests', limit: 4, span: 'vendor' }]
  const take = (pod: string) => {
    const costs = Array.from({ length: 6 }, () => [1])
    const waiter = { pod, forUs: 60_000_000 }
    return redis.take({ guard: 'g', lane: 'a', limits, version: 0, costs, waiter })
  }
  expect(await take('new')).toMatchObject({ granted: 4 })
  const { granted, waitUs } = await take('earlier')
  expect(granted).toBe(0)
  const client = createClient({ url: await twin.servers.anyUrl() })
  await client.connect()
  expect(await client.eval(AS_EARLIER_RELEASE, { keys: [keys.guard('g')] })).toBe(2)
  client.destroy()
  atUs += waitUs
  expect(await take('new')).toMatchObject({ granted: 2 })
})
