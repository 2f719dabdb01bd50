import { EventEmitter } from 'node:events'
import * as ioredis6 from 'ioredis'
import * as ioredis5 from 'ioredis5'
import { createClient, createCluster, createSentinel } from 'redis'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { validate } from '../../core/options/checks.js'
import { createKeys } from '../keys.js'
import { connectRedis, describeServers } from './connection/connect.js'
import { type RedisConnectionOptions, readConnection } from './redis-options.js'

const check = (options: object) => validate('redis', options, readConnection)
const quiet = { access: createKeys('sw'), warn() {} }
const nodes = [{ host: '127.0.0.1', port: 1 }]

describe('Redis store options', () => {
  it.each([
    [{ url: 'http://localhost' }, 'redis.url: must be a URL such as redis://host:6379'],
    [{ url: 'redis://localhost/cache' }, 'redis.url: must be a URL such as'],
    [{ url: 'redis://:100%@localhost' }, 'redis.url: must be a URL such as redis://host:6379'],
    [{ url: '' }, 'redis.url: is empty; check the environment variable'],
    [{ url: '  ' }, 'redis.url: is empty; check the environment variable'],
    [{ url: undefined }, 'redis.url: is empty; check the environment variable'],
    [{ url: null }, 'redis.url: is empty; check the environment variable'],
    [{ url: '', sentinels: ['redis://a'] }, 'redis.url: is empty; check the environment variable'],
    [{ tls: {} }, 'redis.tls: needs a rediss: URL'],
    [{ url: 'redis://localhost', tls: {} }, 'redis.tls: needs a rediss: URL'],
    [{ urls: ['redis://a'], tls: {} }, 'redis.tls: needs a rediss: URL'],
    [{ client: {} }, 'redis.client: must be a client or cluster of node-redis'],
    [{ client: null }, 'redis.client: must be a client or cluster of node-redis'],
    [{ uri: 'redis://localhost' }, "redis.uri: unknown option; did you mean 'url'?"],
    [{ url: 'redis://a', urls: ['redis://a'] }, 'redis.url: must not come together with urls'],
    [{ urls: [] }, 'redis.urls: must have at least one entry'],
    [{ urls: ['redis://a', 'b'] }, 'redis.urls[1]: must be a URL such as redis://host:6379'],
    [{ urls: ['redis://a/1'] }, 'redis.urls[0]: must not name a database: a cluster has only 0'],
    [
      { urls: ['redis://a'], database: 2 },
      'redis.database: must be 0, the only database of a cluster',
    ],
    [
      { urls: ['redis://a', 'rediss://b'] },
      'redis.urls[1]: must have the same scheme as the first URL',
    ],
    [{ urls: ['unix:///tmp/a'] }, 'redis.urls[0]: must not be a unix: URL'],
    [{ sentinels: ['redis://a/1'] }, 'set the database of the servers with redis.database'],
    [{ master: 'm' }, 'redis.master: needs sentinels'],
    [{ url: 'redis://:a@b', password: 'c' }, 'redis.password: is also in the URL'],
    [{ url: 'redis://b/1', database: 2 }, 'redis.database: is also in the URL'],
    [{ username: 'me' }, 'redis.username: needs a password'],
    [{ driver: 'iovalkey' }, "redis.driver: must be 'redis', 'ioredis' or one of these packages"],
    [{ driver: {} }, 'redis.driver: must be'],
  ])('Redis options %o are rejected', (options, message) => {
    expect(() => check(options)).toThrow(message)
  })

  it('error messages never contain the password of a URL', () => {
    const connect = () => check({ url: 'redis://me:secret@localhost/cache' })
    expect(connect).toThrow('redis.url: must be a URL')
    expect(connect).not.toThrow('secret')
  })

  it.each([
    { url: 'redis://me:p%40ss@[::1]:7000/3' },
    { url: 'unix:///tmp/redis.sock' },
    { urls: ['rediss://a', 'rediss://b:7001'], password: 'x', tls: { ca: 'x' } },
    { sentinels: ['redis://s:p@a', 'redis://b'], master: 'm', password: 'x', database: 2 },
    { driver: 'ioredis' },
    { driver: ioredis5 },
    { driver: ioredis6.Redis },
  ])('Redis options %o are accepted', (options) => {
    expect(() => check(options)).not.toThrow()
  })

  it('host, port, login and database are read from the URL', () => {
    expect(check({ url: 'rediss://me:p%40ss@[::1]:7000/3' }).url).toEqual({
      address: { host: '::1', port: 7000 },
      secure: true,
      username: 'me',
      password: 'p@ss',
      database: 3,
    })
    expect(check({ sentinels: ['redis://a'] }).sentinels?.[0]?.address).toEqual({
      host: 'a',
      port: 26379,
    })
  })
})

/** The part of a node-redis client that the store uses. */
class FakeClient extends EventEmitter {
  isOpen = true
  isReady = true
  sent: unknown[][] = []
  given: object | undefined

  withCommandOptions(options: object): this {
    this.given = options
    return this
  }

  async sendCommand(...args: unknown[]): Promise<string> {
    this.sent.push(args)
    return 'OK'
  }
}

class FakeCluster extends FakeClient {
  hearing = new Map<(text: string) => void, string>()
  getSlotMaster(): void {}

  async subscribe(channel: string, hear: (text: string) => void): Promise<void> {
    this.hearing.set(hear, channel)
  }

  async unsubscribe(_: string, hear: (text: string) => void): Promise<void> {
    this.hearing.delete(hear)
  }
}

describe('application-provided Redis client', () => {
  const lazy = { lazyConnect: true }
  const offline = { ...lazy, enableOfflineQueue: false }
  const once = { ...offline, autoResendUnfulfilledCommands: false }
  const noRetry = { ...offline, retryDelayOnFailover: 0 }

  it.each([
    ['disableOfflineQueue: true', () => createClient()],
    ['defaults: { disableOfflineQueue: true }', () => createCluster({ rootNodes: [{}] })],
    [
      'must not be a Sentinel client of node-redis: after a failover it sends commands again that may already have run; use redis.sentinels instead',
      () => createSentinel({ name: 'm', sentinelRootNodes: nodes }),
    ],
    ['enableOfflineQueue: false', () => new ioredis6.Redis(lazy)],
    ['enableOfflineQueue: false', () => new ioredis5.Redis(lazy)],
    ['autoResendUnfulfilledCommands: false', () => new ioredis6.Redis(offline)],
    ['autoResendUnfulfilledCommands: false', () => new ioredis5.Redis(offline)],
    ['stringNumbers: false', () => new ioredis6.Redis({ ...once, stringNumbers: true })],
    ['enableOfflineQueue: false', () => new ioredis6.Cluster(nodes, lazy)],
    ['retryDelayOnFailover: 0', () => new ioredis6.Cluster(nodes, offline)],
    ['retryDelayOnFailover: 0', () => new ioredis5.Cluster(nodes, offline)],
    [
      'redisOptions: { autoResendUnfulfilledCommands: false }',
      () => new ioredis6.Cluster(nodes, { ...noRetry, clusterNodeRetryStrategy: () => 1 }),
    ],
  ])("an application's client is rejected with: %s", (message, create) => {
    expect(() => check({ client: create() })).toThrow(message)
  })

  it.each([
    () => createClient({ disableOfflineQueue: true }),
    () => createCluster({ rootNodes: [{}], defaults: { disableOfflineQueue: true } }),
    () => new ioredis6.Redis(once),
    () => new ioredis5.Redis(once),
    () => new ioredis5.Redis({ ...once, sentinels: nodes, name: 'm' }),
    () => new ioredis6.Cluster(nodes, noRetry),
    () => new ioredis5.Cluster(nodes, noRetry),
  ])("an application's client is accepted: %s", (create) => {
    expect(() => check({ client: create() })).not.toThrow()
  })

  it("an application's client cannot be combined with connection options", () => {
    const client = new FakeClient()
    const both = (options: RedisConnectionOptions) => () => check({ client, ...options })
    expect(both({ url: 'redis://a' })).toThrow('redis.client: must not come together with url')
    expect(both({ tls: {} })).toThrow('redis.client: must not come together with tls')
    expect(both({ password: 'a' })).toThrow('must not come together with password')
  })

  it('a cluster client receives each command by its key and never for a replica', async () => {
    const client = new FakeCluster()
    await connectRedis({ client }, quiet).send(['GET', '{a}'], '{a}')
    expect(client.sent.at(-1)).toEqual(['{a}', false, ['GET', '{a}']])
  })

  it("a cluster client's subscription survives reconnects until it is closed", async () => {
    const client = new FakeCluster()
    const notices: string[] = []
    const subscription = connectRedis({ client }, quiet).subscribe('channel', {
      onMessage: (text) => notices.push(text),
      onSubscribed: () => notices.push('may have missed something'),
    })
    await vi.waitUntil(() => notices.length === 1, { interval: 1 })
    const [[hear, channel]] = [...client.hearing] as [[(text: string) => void, string]]
    expect(channel).toBe('channel')
    hear('news')
    client.emit('node-ready')
    expect(notices).toEqual(['may have missed something', 'news', 'may have missed something'])
    subscription.close()
    hear('late')
    client.emit('node-ready')
    expect(notices).toHaveLength(3)
    expect(client.hearing.size).toBe(0)
  })

  it("the store overrides the timeout and type mapping of an application's client", async () => {
    const client = new FakeClient()
    await connectRedis({ client }, quiet).send(['PING'], undefined)
    expect(client.sent.at(-1)).toEqual([['PING']])
    expect(client.given).toEqual({ timeout: undefined, typeMapping: undefined })
  })

  it('a client that is being closed is not ready, although it reports ready', () => {
    const client = new FakeClient()
    const adapter = connectRedis({ client }, quiet)
    expect(adapter.ready).toBe(true)
    client.isOpen = false
    expect(adapter.ready).toBe(false)
  })

  it('the store sends nothing to an ioredis client that is not connected', async () => {
    const client = new ioredis6.Redis(once)
    onTestFinished(() => client.disconnect())
    const adapter = connectRedis({ client }, quiet)
    const failure = await adapter.send(['PING'], undefined).catch((error: unknown) => error)
    expect(adapter.kindOf(failure)).toBe('not-sent')
    expect(client.status).toBe('wait')
  })
})

describe('the servers in a warning', () => {
  it.each([
    [{ url: 'rediss://me:secret@[::1]:7000/3' }, 'rediss://[::1]:7000/3'],
    [{ url: 'redis://:secret@cache' }, 'redis://cache:6379'],
    [{ url: 'unix://me:secret@/tmp/redis.sock' }, 'unix:///tmp/redis.sock'],
    [{ urls: ['redis://:secret@a', 'redis://[fe80::1]:1'] }, 'redis://a:6379, redis://[fe80::1]:1'],
    [{ sentinels: ['redis://s:secret@a'] }, 'Sentinels redis://a:26379'],
    [{}, 'redis://127.0.0.1:6379'],
  ])('server URLs are shown without logins: %j', (options, shown) => {
    expect(describeServers(check(options))).toBe(shown)
  })
})

describe('a url that is left out', () => {
  it.each([
    {},
    { url: undefined, sentinels: ['redis://a'] },
    { url: undefined, urls: ['redis://a'] },
  ])('Redis options without a url are accepted: %j', (options) => {
    expect(() => check(options)).not.toThrow()
  })
})
