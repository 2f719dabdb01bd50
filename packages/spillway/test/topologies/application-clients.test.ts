// test-group: io, slow

/** Clients that an application already has, of every library and topology. */
import { setTimeout as sleep } from 'node:timers/promises'
import * as ioredis6 from 'ioredis'
import * as ioredis5 from 'ioredis5'
import { createClient, createCluster } from 'redis'
import { type RedisStore, redisStore } from 'spillway/redis'
import { createUserLimits } from 'spillway/shared'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { systemClock } from '../../src/core/time/clock.js'
import { createScriptRunner } from '../../src/store/redis/connection/runner.js'
import { type RedisCluster, startCluster } from '../redis-cluster.js'
import { MASTER, startSentinels, type Watched } from '../redis-sentinels.js'
import { type RedisServer, startRedis } from '../redis-server.js'
import { connectTestRedis } from '../test-connection.js'
import { START_MS } from '../topologies.js'
import { ADD } from './counting.js'

let server: RedisServer
let watched: Watched
let cluster: RedisCluster
beforeAll(async () => {
  ;[server, watched, cluster] = await Promise.all([startRedis(), startSentinels(), startCluster()])
}, START_MS)
afterAll(() => Promise.all([server.stop(), watched.stop(), cluster.stop()]))

/** The settings required by docs/operations/redis.md. */
const ONE = { enableOfflineQueue: false, autoResendUnfulfilledCommands: false }
const MANY = { enableOfflineQueue: false, retryDelayOnFailover: 0 }

interface Given {
  client: object
  close(): unknown
}

async function ofNodeRedis(port = server.port): Promise<Given> {
  const client = createClient({ url: `redis://127.0.0.1:${port}`, disableOfflineQueue: true })
  client.on('error', () => {})
  await client.connect()
  return { client, close: () => client.destroy() }
}

async function ofNodeRedisCluster(): Promise<Given> {
  const rootNodes = cluster.urls.map((url) => ({ url }))
  const client = createCluster({ rootNodes, defaults: { disableOfflineQueue: true } })
  client.on('error', () => {})
  await client.connect()
  return { client, close: () => client.destroy() }
}

function ioredisAt(Redis: typeof ioredis6.Redis, options: object): Given {
  const client = new Redis({ ...ONE, ...options })
  return { client, close: () => client.disconnect() }
}

function ioredisCluster(Cluster: typeof ioredis6.Cluster): Given {
  const nodes = cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port }))
  const client = new Cluster(nodes, MANY)
  return { client, close: () => client.disconnect() }
}

const Redis5 = ioredis5.Redis as unknown as typeof ioredis6.Redis
const Cluster5 = ioredis5.Cluster as unknown as typeof ioredis6.Cluster
const sentinels = () => ({
  sentinels: watched.sentinels.map(({ port }) => ({ host: '127.0.0.1', port })),
  name: MASTER,
})

const CLIENTS: Record<string, () => Promise<Given> | Given> = {
  'node-redis, one server': () => ofNodeRedis(),
  'node-redis, a cluster': ofNodeRedisCluster,
  'ioredis 5, one server': () => ioredisAt(Redis5, { port: server.port }),
  'ioredis 6, one server': () => ioredisAt(ioredis6.Redis, { port: server.port }),
  'ioredis 5, Sentinels': () => ioredisAt(Redis5, sentinels()),
  'ioredis 6, Sentinels': () => ioredisAt(ioredis6.Redis, sentinels()),
  'ioredis 5, a cluster': () => ioredisCluster(Cluster5),
  'ioredis 6, a cluster': () => ioredisCluster(ioredis6.Cluster),
}

let names = 0
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

describe.each(Object.keys(CLIENTS))('application-provided client: %s', (name) => {
  async function connect(): Promise<{ store: RedisStore; appClient: Given }> {
    const appClient = await (CLIENTS[name] as (typeof CLIENTS)[string])()
    onTestFinished(() => void appClient.close())
    const store = redisStore({ client: appClient.client, commandTimeoutMs: 2_000 })
    await vi.waitUntil(() => store.ready, { timeout: 5_000 })
    return { store, appClient }
  }

  it("an application's client runs scripts in many slots and is left open", async () => {
    const { store } = await connect()
    const limits = createUserLimits({
      store,
      name: `n${names++}`,
      levels: [
        { per: 'global', limit: 7, windowMs: '1h' },
        { per: 'user', limit: 5, windowMs: '1h' },
      ],
    })
    const ask = (user: string, times: number) =>
      Promise.all(Array.from({ length: times }, () => limits.check({ user })))
    const passed = async (user: string) =>
      (await ask(user, 9)).filter(({ allowed }) => allowed).length
    expect([await passed('ann'), await passed('bob')]).toEqual([5, 2])
    await store.close()
    const again = await connect()
    await again.store.limits.report({ guard: 'g', pod: 'p', requests: 1 })
    expect(again.store.warnings).toEqual([])
  })

  it("an application's client receives published messages over a separate connection", async () => {
    const [one, other] = [await connect(), await connect()]
    const views: string[] = []
    await new Promise<void>((onGap) => {
      one.store.breakers.watch({ onView: (guard) => void views.push(guard), onGap })
    })
    const guard = `g${names++}`
    const command = { kind: 'trip' } as const
    await other.store.breakers.command({ guard, lane: 'l', spec: SPEC, command })
    await expect.poll(() => views).toContain(guard)
    await one.store.close()
  })
})

describe('commands in flight when a server dies', () => {
  it.each(['own node-redis', 'own ioredis', 'node-redis', 'ioredis 5', 'ioredis 6'])(
    'commands in flight are not sent to the new server by %s',
    async (which) => {
      const first = await startRedis()
      const { port, url } = first
      const clients: Record<string, () => Promise<Given> | Given> = {
        'node-redis': () => ofNodeRedis(port),
        'ioredis 5': () => ioredisAt(Redis5, { port }),
        'ioredis 6': () => ioredisAt(ioredis6.Redis, { port }),
      }
      const appClient = await clients[which]?.()
      onTestFinished(() => void appClient?.close())
      const driver = which === 'own ioredis' ? ioredis6 : 'redis'
      const client = connectTestRedis(appClient ? { client: appClient.client } : { url, driver })
      const runner = createScriptRunner(client, { commandTimeoutMs: 300, clock: systemClock })
      onTestFinished(() => runner.close())
      await vi.waitUntil(() => client.ready, { timeout: 5_000 })
      await runner.run(ADD, ['warm'], [])

      // The server has received the commands but does not run them.
      first.pause()
      const underWay = [1, 2, 3].map(() =>
        runner.run(ADD, ['n'], []).catch(({ kind }: { kind: string }) => kind),
      )
      await sleep(20)
      await first.kill()
      const second = await startRedis({ port })
      onTestFinished(() => second.stop())
      expect(await Promise.all(underWay)).toEqual(['ambiguous', 'ambiguous', 'ambiguous'])
      await vi.waitUntil(() => runner.run(ADD, ['warm'], []).catch(() => false), {
        timeout: 10_000,
      })
      expect(await second.send('EXISTS', 'n')).toBe(0)
    },
    20_000,
  )
})
