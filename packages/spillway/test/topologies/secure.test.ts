// test-group: io, slow

/** TLS and logins for every topology and client library. */

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type RedisStoreOptions, redisStore } from 'spillway/redis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { type RedisCluster, startCluster } from '../redis-cluster.js'
import { MASTER, startSentinels, type Watched } from '../redis-sentinels.js'
import { type RedisServer, startRedis } from '../redis-server.js'
import { DRIVERS, driversToTest, START_MS } from '../topologies.js'

const file = (name: string) => fileURLToPath(new URL(`../fixtures/tls/${name}`, import.meta.url))
const CERTIFICATE = file('test-only-cert.pem')
/** Settings of the servers and of the clients. */
const TLS_SETTINGS = {
  'tls-cert-file': CERTIFICATE,
  'tls-key-file': file('test-only-key.pem'),
  'tls-ca-cert-file': CERTIFICATE,
  'tls-auth-clients': 'no',
  'tls-replication': 'yes',
  'tls-cluster': 'yes',
}
const tls = { ca: readFileSync(CERTIFICATE) }
const PASSWORD = 'p@ss:/word'
const login = `:${encodeURIComponent(PASSWORD)}@`
const settings = { ...TLS_SETTINGS, requirepass: PASSWORD, masterauth: PASSWORD }

let server: RedisServer
let watched: Watched
let cluster: RedisCluster
beforeAll(async () => {
  const secure = { settings, login, tls }
  const lines = Object.entries(TLS_SETTINGS).map(([name, value]) => `${name} ${value}`)
  const conf = [`sentinel auth-pass ${MASTER} ${PASSWORD}`, ...lines].join('\n')
  ;[server, watched, cluster] = await Promise.all([
    startRedis(secure),
    startSentinels({ ...secure, conf }),
    startCluster(secure),
  ])
}, START_MS)
afterAll(() => Promise.all([server.stop(), watched.stop(), cluster.stop()]))

function connect(options: RedisStoreOptions) {
  const store = redisStore({ commandTimeoutMs: 2_000, ...options })
  onTestFinished(() => store.close())
  return store
}

describe.each(driversToTest())('secure connections with %s', (name) => {
  const driver = DRIVERS[name]
  const withoutLogin = (url: string) => url.replace(/\/\/.*@/, '//')

  it.each<[string, () => RedisStoreOptions]>([
    ['one server', () => ({ url: server.url })],
    ['Sentinels', () => ({ sentinels: watched.urls, master: MASTER, password: PASSWORD })],
    ['a cluster', () => ({ urls: cluster.urls })],
    [
      'a cluster, with the password apart',
      () => ({
        urls: cluster.urls.map(withoutLogin),
        password: PASSWORD,
      }),
    ],
  ])(
    'a store connects with TLS and a password to %s',
    async (_, where) => {
      const store = connect({ ...where(), driver, tls })
      await vi.waitUntil(() => store.ready, { timeout: 10_000 })
      for (const guard of ['a', 'b', 'c', 'd', 'e']) {
        await store.limits.report({ guard, pod: 'p', requests: 1 })
      }
      const gap = new Promise<void>((resolve) => {
        store.breakers.watch({ onView() {}, onGap: resolve })
      })
      await gap
      expect(store.warnings).toEqual([])
    },
    15_000,
  )

  it('an untrusted certificate is reported as the problem', async () => {
    const store = connect({ url: server.url, driver })
    await vi.waitUntil(() => store.problem !== undefined, { timeout: 10_000 })
    expect(store.problem).toMatchObject({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
  })

  it.each([
    [
      { password: 'wrong' },
      'rejected the user name or password; check redis.username and redis.password (WRONGPASS',
    ],
    [
      { username: 'unknown', password: 'wrong' },
      'rejected the user name or password; check redis.username and redis.password (WRONGPASS',
    ],
    [{}, 'requires a password; set it in the URL or as redis.password (NOAUTH'],
  ])('a wrong login %o is reported as the problem', async (given, message) => {
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue()
    onTestFinished(() => warned.mockRestore())
    const store = connect({ url: withoutLogin(server.url), driver, tls, ...given })
    await vi.waitUntil(() => store.problem !== undefined, { timeout: 10_000 })
    expect(String(store.problem)).toContain(message)
    expect(store.ready).toBe(false)
  })
})
