/** The server topologies and the packages that connect to them. */
import * as ioredis6 from 'ioredis'
import * as ioredis5 from 'ioredis5'
import * as redis from 'redis'
import { afterAll } from 'vitest'
import type { RedisConnectionOptions } from '../src/store/redis/redis-options.js'
import { startCluster } from './redis-cluster.js'
import { MASTER, startSentinels } from './redis-sentinels.js'
import { type RedisServer, startRedis } from './redis-server.js'

export const DRIVERS = { 'node-redis': redis, 'ioredis 5': ioredis5, 'ioredis 6': ioredis6 }
export type DriverName = keyof typeof DRIVERS
const DRIVER_NAMES = Object.keys(DRIVERS) as DriverName[]

/** All drivers, or the one that SPILLWAY_TEST_DRIVER names. */
export function driversToTest(): DriverName[] {
  const wanted = process.env.SPILLWAY_TEST_DRIVER
  return wanted === undefined ? DRIVER_NAMES : DRIVER_NAMES.filter((name) => name === wanted)
}

export interface Servers {
  /** How to connect to the servers. */
  readonly connection: RedisConnectionOptions
  /** The server that owns the key. */
  at(key: string): Promise<RedisServer>
  /** Sends a command to the server that owns its key, the second word. */
  send(...command: string[]): Promise<unknown>
  /** Sends a command to every server that owns keys and returns all replies. */
  everywhere(...command: string[]): Promise<unknown[]>
  /** The URL of a server on which messages are received. */
  anyUrl(): Promise<string>
  stop(): Promise<void>
}

/** The longest time the servers may take to start. */
export const START_MS = 120_000

/** The servers of a test file, shared by several suites in turn; each finds them empty. */
export function sharedServers(topology: TopologyName): () => Promise<Servers> {
  let started: Promise<Servers> | undefined
  afterAll(async () => (await started)?.stop())
  return async () => {
    started ??= TOPOLOGIES[topology]()
    const servers = await started
    await servers.everywhere('FLUSHALL')
    return { ...servers, stop: async () => {} }
  }
}

export type TopologyName = 'one server' | 'Sentinels' | 'a cluster'

export const TOPOLOGIES: Record<TopologyName, () => Promise<Servers>> = {
  async 'one server'() {
    const server = await startRedis()
    return serversOf(
      { url: server.url },
      { at: async () => server, all: async () => [server], stop: server.stop },
    )
  },
  async Sentinels() {
    const watched = await startSentinels()
    const { master, stop, urls } = watched
    return serversOf(
      { sentinels: urls, master: MASTER },
      { at: master, all: async () => [await master()], stop },
    )
  },
  async 'a cluster'() {
    const cluster = await startCluster()
    const { masterOf: at, masters: all, stop, urls } = cluster
    return serversOf({ urls: urls.slice(0, 2) }, { at, all, stop })
  },
}

interface Found {
  at(key: string): Promise<RedisServer>
  all(): Promise<RedisServer[]>
  stop(): Promise<void>
}

function serversOf(connection: RedisConnectionOptions, { at, all, stop }: Found): Servers {
  return {
    connection,
    at,
    send: async (...command) => (await at(command[1] ?? '')).send(...command),
    everywhere: async (...command) =>
      Promise.all((await all()).map((server) => server.send(...command))),
    anyUrl: async () => (await at('')).url,
    stop,
  }
}
