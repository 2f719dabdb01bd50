import { EventEmitter } from 'node:events'
import { describe, expect, it, vi } from 'vitest'
import { connectNodeRedis } from './node-redis.js'
import type { NodeRedisOptions } from './node-redis-options.js'

/** Has what a client of node-redis has, as far as we use it. */
class FakeClient extends EventEmitter {
  isOpen = true
  isReady = true
  sent: unknown[][] = []
  options: object | undefined

  withCommandOptions(options: object): this {
    this.options = options
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

class FakeSentinel extends FakeClient {
  getMasterNode(): void {}
}

describe('connectNodeRedis', () => {
  it.each([
    [{ url: 'http://localhost' }, 'redis.url: must be a URL such as redis://host:6379'],
    [{ url: 'redis://localhost/cache' }, 'redis.url: must be a URL such as'],
    [{ tls: {} }, 'redis.tls: needs a rediss: URL'],
    [{ url: 'redis://localhost', tls: {} }, 'redis.tls: needs a rediss: URL'],
    [{ client: {} }, 'redis.client: must be a client or cluster of node-redis'],
    [{ client: null }, 'redis.client: must be a client or cluster of node-redis'],
    [{ client: new FakeSentinel() }, 'redis.client: must not be a Sentinel client'],
    [{ client: new FakeClient(), url: 'redis://localhost' }, 'must not come together with url'],
    [{ uri: 'redis://localhost' }, "redis.uri: unknown option; did you mean 'url'?"],
  ])('refuses %o', (options, message) => {
    expect(() => connectNodeRedis(options as NodeRedisOptions)).toThrow(message)
  })

  it('never repeats a password from a URL', () => {
    const connect = () => connectNodeRedis({ url: 'redis://me:secret@localhost/cache' })
    expect(connect).toThrow(expect.not.objectContaining({ message: /secret/ }))
  })

  it('sends a command to the node of its key in a cluster, and never to a replica', async () => {
    const client = new FakeCluster()
    await connectNodeRedis({ client }).send(['GET', '{a}'], '{a}')
    expect(client.sent).toEqual([['{a}', false, ['GET', '{a}']]])
  })

  it('listens through a cluster, which reconnects by itself, until it is closed', async () => {
    const client = new FakeCluster()
    const told: string[] = []
    const subscription = connectNodeRedis({ client }).subscribe('channel', {
      onMessage: (text) => told.push(text),
      onSubscribed: () => told.push('may have missed something'),
    })
    await vi.waitUntil(() => told.length === 1, { interval: 1 })
    const [[hear, channel]] = [...client.hearing] as [[(text: string) => void, string]]
    expect(channel).toBe('channel')
    hear('news')
    client.emit('node-ready')
    expect(told).toEqual(['may have missed something', 'news', 'may have missed something'])
    subscription.close()
    hear('late')
    client.emit('node-ready')
    expect(told).toHaveLength(3)
    expect(client.hearing.size).toBe(0)
  })

  it('takes no timeout and no type mapping over from a client', async () => {
    const client = new FakeClient()
    await connectNodeRedis({ client }).send(['PING'], undefined)
    expect(client.sent).toEqual([[['PING']]])
    expect(client.options).toEqual({ timeout: undefined, typeMapping: undefined })
  })

  it('is not ready on a client that is being closed, which still calls itself ready', () => {
    const client = new FakeClient()
    const adapter = connectNodeRedis({ client })
    expect(adapter.ready).toBe(true)
    client.isOpen = false
    expect(adapter.ready).toBe(false)
  })

  it.each([
    ['server', 'NOSCRIPT No matching script. Please use EVAL.'],
    ['server', 'ERR user_script:1: attempt to index nil'],
    ['server', 'OOM command not allowed'],
    ['not-sent', 'The client is offline'],
    ['not-sent', 'The client is closed'],
    ['not-sent', 'The queue is full'],
    ['ambiguous', 'Socket closed unexpectedly'],
    ['ambiguous', 'read ECONNRESET'],
    ['ambiguous', 'Disconnects client'],
    ['ambiguous', ''],
  ])('says %s of a command that failed with "%s"', (kind, message) => {
    const { kindOf } = connectNodeRedis({ client: new FakeClient() })
    expect(kindOf(new Error(message))).toBe(kind)
  })

  it('says how to install the package when it is missing, as a warning and as the problem', async () => {
    vi.doMock('redis', () => {
      throw new Error("Cannot find package 'redis'")
    })
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue()
    try {
      const client = connectNodeRedis({ url: 'redis://localhost' })
      await vi.waitUntil(() => client.problem !== undefined)
      const message =
        "the package 'redis' is missing: npm install redis, or pass a client of your own"
      expect(client.problem).toMatchObject({ message })
      expect(warned).toHaveBeenCalledExactlyOnceWith(message, { type: 'SpillwayWarning' })
      await client.close()
    } finally {
      warned.mockRestore()
      vi.doUnmock('redis')
    }
  })
})
