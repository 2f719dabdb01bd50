/** A Redis for twin tests: runs scripts and keeps everything that is published. */
import { createClient } from 'redis'
import { afterAll, beforeAll, vi } from 'vitest'
import { systemClock } from '../../src/core/time/clock.js'
import { createScriptRunner, type ScriptRunner } from '../../src/store/redis/connection/runner.js'
import { usualOrLong } from '../long-run.js'
import { connectTestRedis } from '../test-connection.js'
import { DRIVERS, driversToTest, type Servers, START_MS } from '../topologies.js'

export interface TwinRedis {
  /** Both are set once the tests run. */
  readonly servers: Servers
  readonly runner: ScriptRunner
  /** Published messages by channel. */
  readonly published: Map<string, string[]>
  /** Number of keys, and those without an expiry. */
  keys(): Promise<{ count: number; endless: string[] }>
}

const KEYS = `
  local keys, endless = redis.call('KEYS', '*'), {}
  for _, key in ipairs(keys) do
    if redis.call('PTTL', key) == -1 then endless[#endless + 1] = key end
  end
  return { #keys, endless }`

/** Random histories of at least 100 steps each, on one server. Topologies other than that see fewer. */
export const ALL_HISTORIES = usualOrLong(15, 1_000)

/** Connects before the tests of a file and closes after them. */
export function twinRedis(begin: () => Promise<Servers>): TwinRedis {
  const published = new Map<string, string[]>()
  let servers: Servers
  let runners: ScriptRunner[]
  let listener: ReturnType<typeof createClient>
  beforeAll(async () => {
    servers = await begin()
    const clients = driversToTest().map((name) =>
      connectTestRedis({ ...servers.connection, driver: DRIVERS[name] }),
    )
    runners = clients.map((client) =>
      createScriptRunner(client, { commandTimeoutMs: 60_000, clock: systemClock }),
    )
    listener = createClient({ url: await servers.anyUrl() })
    await listener.connect()
    await listener.pSubscribe('*', (text, channel) => {
      published.set(channel, [...(published.get(channel) ?? []), text])
    })
    await vi.waitUntil(() => clients.every(({ ready }) => ready), { timeout: 10_000 })
  }, START_MS)
  afterAll(async () => {
    listener.destroy()
    await Promise.all(runners.map((runner) => runner.close()))
    await servers.stop()
  })
  let turn = 0
  /** The client libraries take turns. */
  const runner: ScriptRunner = {
    run: (...args) => runners[turn++ % runners.length]!.run(...args),
    get slotOf() {
      return runners[0]?.slotOf
    },
    get commands() {
      return runners.reduce((sum, { commands }) => sum + commands, 0)
    },
    close: async () => {},
  }
  return {
    get servers() {
      return servers
    },
    runner,
    published,
    async keys() {
      const found = (await servers.everywhere('EVAL', KEYS, '0')) as [number, string[]][]
      return {
        count: found.reduce((sum, [count]) => sum + count, 0),
        endless: found.flatMap(([, endless]) => endless),
      }
    },
  }
}
