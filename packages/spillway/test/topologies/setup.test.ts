// test-group: io

/** Servers with an unsuitable setup: reported at once by name, until it is fixed. */
import { readFileSync } from 'node:fs'
import { redisStore } from 'spillway/redis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { createKeys } from '../../src/store/keys.js'
import type { Store } from '../../src/store/port.js'
import type { NewJob, QueueRef } from '../../src/store/queue-port.js'
import { SCRIPTS } from '../../src/store/redis/scripts.gen.js'
import { type RedisCluster, startCluster } from '../redis-cluster.js'
import { type RedisServer, startRedis } from '../redis-server.js'
import { DRIVERS, driversToTest, START_MS } from '../topologies.js'

/** The permissions that docs/operations/redis.md calls sufficient. */
const LEAST = (() => {
  const page = readFileSync(
    new URL('../../../../docs/operations/redis.md', import.meta.url),
    'utf8',
  )
  const [, rules = ''] = /ACL SETUSER spillway on >password (.*?)```/s.exec(page) ?? []
  return rules.trim().replace(/\s+/g, ' ')
})()

let server: RedisServer
let cluster: RedisCluster
beforeAll(async () => {
  ;[server, cluster] = await Promise.all([startRedis(), startCluster()])
}, START_MS)
afterAll(() => Promise.all([server.stop(), cluster.stop()]))

function connect(options: Parameters<typeof redisStore>[0]) {
  const warned = vi.spyOn(process, 'emitWarning').mockReturnValue()
  const store = redisStore({ commandTimeoutMs: 2_000, ...options })
  onTestFinished(async () => {
    warned.mockRestore()
    await store.close()
  })
  return { store, warned }
}

const JOB: NewJob = {
  data: '1',
  priority: 2,
  delayUs: 0,
  deadlineUs: 0,
  key: '',
  tenant: '',
  cost: {},
  attempts: 1,
}

/** Requests a job from an empty job queue, so that the worker is parked. */
async function park(store: Store, ref: QueueRef, worker: string): Promise<void> {
  await store.queues.reserve({
    ...ref,
    worker,
    wanted: 1,
    leaseUs: 1_000_000,
    parkUs: 60_000_000,
    agingUs: 1_000_000,
    deadUs: 1_000_000,
    take: { guard: ref.guard, lane: 'a', limits: [], version: 0, units: [] },
    keep: 0,
    breaker: undefined,
    probes: [],
  })
}

const setUser = (node: RedisServer, name: string, rules: string) =>
  node.send('ACL', 'SETUSER', name, 'reset', 'on', '>pw', ...rules.split(' '))
const as = (name: string, url: string) => url.replace('//', `//${name}:pw@`)

async function problemOf(options: Parameters<typeof redisStore>[0]): Promise<string> {
  const { store, warned } = connect(options)
  await vi.waitUntil(() => store.problem !== undefined, { timeout: 5_000 })
  expect(store.ready).toBe(false)
  const { message } = store.problem as Error
  const warning = `${message.replace(/\.$/, '')}. Limits and breakers are not shared until it can be used; Spillway keeps trying.`
  expect(store.warnings).toEqual([warning])
  expect(warned).toHaveBeenCalledWith(warning, {
    type: 'SpillwayWarning',
    code: 'SPILLWAY_STORE_UNREACHABLE',
  })
  return message
}

describe.each(driversToTest())('server setup with %s', (name) => {
  const driver = DRIVERS[name]

  it('the permissions in the docs are sufficient', async () => {
    await setUser(server, 'least', LEAST)
    const { store } = connect({ url: as('least', server.url), driver })
    await vi.waitUntil(() => store.ready, { timeout: 5_000 })
    await new Promise<void>((onGap) => void store.breakers.watch({ onView() {}, onGap }))
    expect(store.warnings).toEqual([])
  })

  it('the store works without permission for INFO', async () => {
    await setUser(server, 'modest', `${LEAST} -info`)
    const { store } = connect({ url: as('modest', server.url), driver })
    await vi.waitUntil(() => store.ready, { timeout: 5_000 })
    await store.limits.report({ guard: 'g', pod: 'p', requests: 1 })
    expect(store.warnings).toEqual([])
  })

  it('a missing permission for SELECT is reported', async () => {
    await setUser(server, 'selecting', `${LEAST} +select`)
    const { store } = connect({ url: as('selecting', server.url), database: 3, driver })
    await vi.waitUntil(() => store.ready, { timeout: 5_000 })
    await setUser(server, 'confined', LEAST)
    const message = await problemOf({ url: as('confined', server.url), database: 3, driver })
    expect(message).toContain('denies this user commands that Spillway needs (NOPERM')
    expect(message).toContain('select')
  })

  it.each([
    ['-zadd -hset', 'may not run HSET, ZADD. Grant it: ACL SETUSER … +hset +zadd'],
    ['-evalsha', 'may not run EVALSHA. Grant it: ACL SETUSER … +evalsha'],
    ['-eval', 'may not run EVAL. Grant it: ACL SETUSER … +eval'],
    ['resetkeys ~other:*', 'on keys sw1:*. Grant it: ACL SETUSER … +eval ~sw1:*'],
  ])('a user with %s gets a report of the missing permissions', async (rules, message) => {
    await setUser(server, 'less', `${LEAST} ${rules}`)
    expect(await problemOf({ url: as('less', server.url), driver })).toContain(message)
  })

  it('a permission granted later needs no restart', async () => {
    await setUser(server, 'later', `${LEAST} -set`)
    const { store } = connect({ url: as('later', server.url), driver })
    await vi.waitUntil(() => store.problem !== undefined, { timeout: 5_000 })
    await server.send('ACL', 'SETUSER', 'later', '+set')
    await vi.waitUntil(() => store.ready, { timeout: 5_000 })
    expect(store.problem).toBeUndefined()
  })

  it('missing permission for PUBLISH or SUBSCRIBE gives a warning, and counting works', async () => {
    await setUser(server, 'mute', `${LEAST} resetchannels`)
    const { store } = connect({ url: as('mute', server.url), driver })
    await vi.waitUntil(() => store.ready, { timeout: 5_000 })
    store.breakers.watch({ onView() {}, onGap() {} })
    await vi.waitUntil(() => store.warnings.length === 3, { timeout: 5_000 })
    expect(store.warnings).toEqual([
      expect.stringContaining('may not run PUBLISH on the channel sw1:breakers'),
      expect.stringContaining('may not run PUBLISH on the channel sw1:wake:*'),
      expect.stringContaining('may not run SUBSCRIBE on the channel sw1:breakers'),
    ])
  })

  it('the permissions in the docs wake workers, and missing channels give a warning', async () => {
    await setUser(server, 'waking', LEAST)
    await setUser(server, 'silent', `${LEAST} resetchannels &sw1:breakers`)
    const [waking, silent] = [
      connect({ url: as('waking', server.url), driver }).store,
      connect({ url: as('silent', server.url), driver }).store,
    ]
    await vi.waitUntil(() => waking.ready && silent.ready, { timeout: 5_000 })
    expect(waking.warnings).toEqual([])
    expect(silent.warnings).toEqual([
      expect.stringMatching(/PUBLISH on the channel sw1:wake:\*\. .* \+publish &sw1:wake:\*$/),
    ])
    const woken = vi.fn()
    const sleeping = new Promise<void>((onGap) => {
      const stop = waking.queues.onWake('sleeper', woken, onGap)
      onTestFinished(stop)
    })
    await sleeping
    const ref = { guard: `acl-${name}`, queue: 'q', lifeUs: 60_000_000 }
    await park(waking, ref, 'sleeper')
    await waking.queues.add({ ...ref, jobs: [JOB], maxSize: 10, maxPerTenant: 10 })
    await vi.waitUntil(() => woken.mock.calls.length > 0, { timeout: 5_000 })
    // Jobs can be added without permission to wake workers.
    const { jobs } = await silent.queues.add({ ...ref, jobs: [JOB], maxSize: 10, maxPerTenant: 10 })
    expect(jobs).toEqual([{ id: expect.any(String), fresh: true }])
  })

  it('a cluster node as a single server, and the reverse, is reported as the problem', async () => {
    expect(await problemOf({ url: cluster.urls[0], driver })).toContain('name it in redis.urls')
    expect(await problemOf({ urls: [server.url], driver })).toContain('name it in redis.url')
  })

  it('a cluster user needs permission for CLUSTER SLOTS on every node', async () => {
    for (const node of cluster.nodes) await setUser(node, 'blind', LEAST)
    const urls = cluster.urls.map((url) => as('blind', url))
    expect(await problemOf({ urls, driver })).toContain('may not run CLUSTER SLOTS')
    for (const node of cluster.nodes) {
      await setUser(node, 'seeing', `${LEAST} +cluster|slots +asking`)
    }
    const { store } = connect({ urls: cluster.urls.map((url) => as('seeing', url)), driver })
    await vi.waitUntil(() => store.ready, { timeout: 5_000 })
    const [first] = await cluster.masters()
    await setUser(first as RedisServer, 'partly', `${LEAST} +cluster|slots -zadd`)
    for (const node of cluster.nodes) {
      if (node !== first) await setUser(node, 'partly', `${LEAST} +cluster|slots`)
    }
    const partly = cluster.urls.map((url) => as('partly', url))
    expect(await problemOf({ urls: partly, driver })).toContain(`${first?.port}: the user`)
  })

  it('a database that does not exist is reported as the problem', async () => {
    expect(await problemOf({ url: server.url, database: 99, driver })).toContain(
      'does not have this database',
    )
  })

  it('a password for a server without one is reported as the problem', async () => {
    const message = await problemOf({ url: server.url, password: 'x', driver })
    expect(message).toContain(
      'has no password, but one is configured; remove it from the URL or redis.password',
    )
  })
})

describe('Redis replica', () => {
  it('a replica is reported with its master and used once it is promoted', async () => {
    const replica = await startRedis({ settings: { replicaof: `127.0.0.1 ${server.port}` } })
    onTestFinished(() => replica.stop())
    const { store } = connect({ url: replica.url })
    await vi.waitUntil(() => store.problem !== undefined, { timeout: 5_000 })
    expect(String(store.problem)).toContain(`is a read-only replica of 127.0.0.1:${server.port}`)
    await replica.send('REPLICAOF', 'NO', 'ONE')
    await vi.waitUntil(() => store.ready, { timeout: 5_000 })
  })

  it('a master that became a replica is left and not written to', async () => {
    const other = await startRedis()
    onTestFinished(() => other.stop())
    const { store } = connect({ url: other.url })
    await vi.waitUntil(() => store.ready, { timeout: 5_000 })
    await other.send('REPLICAOF', '127.0.0.1', `${server.port}`)
    const report = store.limits.report({ guard: 'g', pod: 'p', requests: 1 })
    await expect(report).rejects.toMatchObject({ kind: 'server' })
    await vi.waitUntil(() => !store.ready, { timeout: 5_000 })
    await other.send('REPLICAOF', 'NO', 'ONE')
    await vi.waitUntil(() => store.ready, { timeout: 5_000 })
  })
})

describe('server that evicts keys', () => {
  it.each(['allkeys-lru', 'volatile-ttl'])('eviction by %s gives one warning', async (policy) => {
    const settings = { maxmemory: '100mb', 'maxmemory-policy': policy }
    const other = await startRedis({ settings })
    onTestFinished(() => other.stop())
    const { store, warned } = connect({ url: other.url })
    await vi.waitUntil(() => store.ready, { timeout: 5_000 })
    await new Promise<void>((onGap) => void store.breakers.watch({ onView() {}, onGap }))
    expect(store.warnings).toEqual([expect.stringContaining(`maxmemory-policy ${policy}`)])
    expect(warned).toHaveBeenCalledOnce()
  })
})

describe('access check', () => {
  it('access check tries every command that any script calls', () => {
    const named = (text: string, by: RegExp) =>
      new Set(Array.from(text.matchAll(by), ([, command]) => command))
    const { checkAccess, ...others } = SCRIPTS
    const tried = named(checkAccess.text, /(?:pcall|try)\('([A-Z]+)'/g)
    for (const { name, text } of Object.values(others)) {
      // Commands called with `pcall` are optional.
      for (const command of named(text, /\.call\('([A-Z]+)'/g))
        expect(tried, name).toContain(command)
    }
  })

  it('access check leaves no key behind', async () => {
    const { store } = connect({ url: server.url, prefix: 'tidy' })
    await vi.waitUntil(() => store.ready, { timeout: 5_000 })
    const key = createKeys('tidy').check('check')
    await expect.poll(() => server.send('EXISTS', key)).toBe(0)
  })
})
