// test-group: io

/** A change by one pod's store reaches the watchers of another one over a real server. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { BreakerView } from '../src/store/port.js'
import {
  type RedisStore,
  type RedisStoreOptions,
  redisStore,
} from '../src/store/redis/redis-store.js'
import { type RedisServer, startRedis } from './redis-server.js'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

const SPEC = {
  consecutive: 2,
  failureRate: 0,
  slowRate: 0,
  windowUs: 30_000_000,
  windowCalls: 0,
  minimumCalls: 1,
  openUs: 10_000_000,
  openFactor: 1,
  maxOpenUs: 10_000_000,
  probes: 1,
  successes: 1,
  probeLeaseUs: 5_000_000,
  quorum: 1,
}
const REF = { guard: 'vendor: {1}', lane: 'gpt 4%', spec: SPEC }
const TRIP = { ...REF, command: { kind: 'trip' } } as const

async function connect(options: RedisStoreOptions = { url: server.url }): Promise<RedisStore> {
  const store = redisStore({ commandTimeoutMs: 1_000, ...options })
  onTestFinished(() => store.close())
  await vi.waitUntil(() => store.ready, { interval: 2 })
  return store
}

function createWatcher() {
  const views: [guard: string, lane: string, BreakerView][] = []
  const watcher = {
    views,
    gaps: 0,
    onView: (...told: (typeof views)[number]) => void views.push(told),
    onGap: () => void watcher.gaps++,
  }
  return watcher
}

async function watching(store: RedisStore) {
  const watcher = createWatcher()
  const stop = store.breakers.watch(watcher)
  await vi.waitUntil(() => watcher.gaps === 1, { interval: 2 })
  return { watcher, stop }
}

/** Number of subscriptions as the server reports it. */
async function subscribers(): Promise<number> {
  const list = String(await server.send('CLIENT', 'LIST'))
  return list.split('\n').filter((line) => line.includes(' sub=1 ')).length
}

const subscribersAre = (wanted: number) =>
  vi.waitUntil(async () => (await subscribers()) === wanted, { interval: 5 })

describe('breaker changes pushed through Redis', () => {
  it('watchers of other pods receive the view that the changing pod received', async () => {
    const [one, other] = [await connect(), await connect()]
    const { watcher } = await watching(other)
    const view = await one.breakers.command(TRIP)
    await vi.waitUntil(() => watcher.views.length > 0, { interval: 1 })
    expect(watcher.views).toEqual([[REF.guard, REF.lane, view]])
    expect(watcher.gaps).toBe(1)
  })

  it('watchers ignore foreign messages on the breaker channel', async () => {
    const store = await connect()
    const { watcher } = await watching(store)
    for (const text of ['', 'hello', 'a b 1 2 3', `a b ${'x '.repeat(14)}`]) {
      await server.send('PUBLISH', 'sw1:breakers', text)
    }
    await store.breakers.command(TRIP)
    await vi.waitUntil(() => watcher.views.length > 0, { interval: 1 })
    expect(watcher.views).toHaveLength(1)
  })

  it('all watchers of a store share one connection, which closes with the last watcher', async () => {
    const store = await connect()
    // The server may not have seen yet that the connections of earlier tests were closed.
    await subscribersAre(0)
    const { stop } = await watching(store)
    const another = createWatcher()
    const stopAnother = store.breakers.watch(another)
    expect(await subscribers()).toBe(1)
    stop()
    await store.breakers.command(TRIP)
    await vi.waitUntil(() => another.views.length > 0, { interval: 1 })
    stopAnother()
    await subscribersAre(0)
    await watching(store)
    await store.close()
    await subscribersAre(0)
    store.breakers.watch(createWatcher())
    expect(await subscribers()).toBe(0)
  })

  it('watchers are notified of a gap after the connection was lost', async () => {
    const store = await connect()
    const { watcher } = await watching(store)
    await server.send('CLIENT', 'KILL', 'TYPE', 'pubsub')
    await expect.poll(() => watcher.gaps).toBe(2)
    await store.breakers.command(TRIP)
    await expect.poll(() => watcher.views.length).toBe(1)
  })

  it('sync takes one round trip for all lanes of a guard', async () => {
    const store = await connect()
    const lanes = Array.from({ length: 50 }, (_, index) => ({
      ...REF,
      lane: `l${index}`,
      renew: [],
    }))
    await store.breakers.sync(lanes)
    const { commands } = store
    await store.breakers.command({ ...TRIP, lane: 'l7' })
    const other = { ...REF, guard: 'other', renew: [] }
    const views = await store.breakers.sync([...lanes.slice(0, 9), other, ...lanes.slice(9)])
    expect(views.map(({ kind }) => kind).indexOf(1)).toBe(7)
    expect(views).toHaveLength(51)
    // EVALSHA, EVAL the first time, and one command per guard.
    expect(store.commands - commands).toBeLessThanOrEqual(4)
    expect(await store.breakers.sync([])).toEqual([])
  })

  it('breaker counts although the server forbids PUBLISH and SUBSCRIBE', async () => {
    await server.send('ACL', 'SETUSER', 'mute', 'on', '>pw', '~*', '+@all', 'resetchannels')
    const store = await connect({ url: server.url.replace('//', '//mute:pw@') })
    store.breakers.watch(createWatcher())
    expect((await store.breakers.command(TRIP)).kind).toBe(1)
  })
})

describe('application-provided client', () => {
  it("an application's client is duplicated for the subscription and left unchanged", async () => {
    const client = createClient({ url: server.url, disableOfflineQueue: true })
    client.on('error', () => {})
    onTestFinished(() => client.destroy())
    await client.connect()
    const store = await connect({ client })
    const { watcher } = await watching(store)
    await server.send('CLIENT', 'KILL', 'TYPE', 'pubsub')
    await vi.waitUntil(() => watcher.gaps === 2, { interval: 5 })
    await store.breakers.command(TRIP)
    await vi.waitUntil(() => watcher.views.length > 0, { interval: 1 })
    await store.close()
    await subscribersAre(0)
    expect(await client.ping()).toBe('PONG')
    expect(client.isPubSubActive).toBe(false)
  })
})

describe('process with a breaker watcher', () => {
  it.each([
    ['ends when it has nothing else to do', ''],
    ['ends once it is closed', 'await store.close()'],
    ['ends when it is closed before it is connected', 'await store.close()', 'nothing'],
  ])('a process that watches breakers %s', async (_, end, until = 'watching') => {
    const program = `
      import { redisStore } from './dist/store/redis/redis-store.js'
      const store = redisStore({ url: process.argv[1] })
      const alive = setInterval(() => {}, 1_000)
      const gap = new Promise((resolve) => store.breakers.watch({ onView() {}, onGap: resolve }))
      if (process.argv[2] === 'watching') await gap
      clearInterval(alive)
      ${end}
      console.log('done')`
    const args = ['--input-type=module', '--eval', program, server.url, until]
    const { stdout } = await promisify(execFile)(process.execPath, args, {
      cwd: fileURLToPath(new URL('..', import.meta.url)),
      timeout: 100_000,
    })
    expect(stdout.trim()).toBe('done')
  })
})
