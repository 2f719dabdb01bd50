/** A Redis for twin tests: scripts run on it, and everything that is published is kept. */
import { createClient } from 'redis'
import { afterAll, beforeAll, vi } from 'vitest'
import { systemClock } from '../src/core/clock.js'
import { createScriptRunner, type ScriptRunner } from '../src/store/redis/runner.js'
import { type RedisServer, startRedis } from './redis-server.js'
import { connectTestRedis } from './test-connection.js'

export interface TwinRedis {
  /** Both are there once the tests run. */
  readonly server: RedisServer
  readonly runner: ScriptRunner
  /** All that is published, by channel. */
  readonly published: Map<string, string[]>
}

/** Started before the tests of a file, and stopped after them. */
export function twinRedis(): TwinRedis {
  const published = new Map<string, string[]>()
  let server: RedisServer
  let runner: ScriptRunner
  let listener: ReturnType<typeof createClient>
  beforeAll(async () => {
    server = await startRedis()
    const client = connectTestRedis({ url: server.url })
    runner = createScriptRunner(client, { commandTimeoutMs: 5_000, clock: systemClock })
    listener = createClient({ url: server.url })
    await listener.connect()
    await listener.pSubscribe('*', (text, channel) => {
      published.set(channel, [...(published.get(channel) ?? []), text])
    })
    await vi.waitUntil(() => client.ready, { timeout: 5_000 })
  })
  afterAll(async () => {
    listener.destroy()
    await runner.close()
    await server.stop()
  })
  return {
    get server() {
      return server
    },
    get runner() {
      return runner
    },
    published,
  }
}
