/** The ways in which servers can stand, and the packages that reach them. */
import * as ioredis6 from 'ioredis'
import * as ioredis5 from 'ioredis5'
import * as redis from 'redis'
import type { RedisConnectionOptions } from '../src/store/redis/redis-options.js'
import { startCluster } from './redis-cluster.js'
import { MASTER, startSentinels } from './redis-sentinels.js'
import { startRedis } from './redis-server.js'

export const DRIVERS = { 'node-redis': redis, 'ioredis 5': ioredis5, 'ioredis 6': ioredis6 }
export type DriverName = keyof typeof DRIVERS
export const DRIVER_NAMES = Object.keys(DRIVERS) as DriverName[]

/** All of them, or the one that SPILLWAY_TEST_DRIVER names. */
export function driversToTest(): DriverName[] {
  const wanted = process.env.SPILLWAY_TEST_DRIVER
  return wanted === undefined ? DRIVER_NAMES : DRIVER_NAMES.filter((name) => name === wanted)
}

export interface Servers {
  /** How to reach them. */
  readonly connection: RedisConnectionOptions
  /** Sends a command to whoever has the key, which is its second word. */
  send(...command: string[]): Promise<unknown>
  /** Sends it to everybody that keys are on, and answers with all that they do. */
  everywhere(...command: string[]): Promise<unknown[]>
  stop(): Promise<void>
}

export type TopologyName = 'one server' | 'Sentinels' | 'a cluster'

export const TOPOLOGIES: Record<TopologyName, () => Promise<Servers>> = {
  async 'one server'() {
    const server = await startRedis()
    return {
      connection: { url: server.url },
      send: server.send,
      everywhere: async (...command) => [await server.send(...command)],
      stop: server.stop,
    }
  },
  async Sentinels() {
    const watched = await startSentinels()
    const send = async (...command: string[]) => (await watched.master()).send(...command)
    return {
      connection: { sentinels: watched.urls, master: MASTER },
      send,
      everywhere: async (...command) => [await send(...command)],
      stop: watched.stop,
    }
  },
  async 'a cluster'() {
    const cluster = await startCluster()
    return {
      connection: { urls: cluster.urls.slice(0, 2) },
      send: async (...command) => (await cluster.masterOf(command[1] ?? '')).send(...command),
      everywhere: async (...command) =>
        Promise.all((await cluster.masters()).map((node) => node.send(...command))),
      stop: cluster.stop,
    }
  },
}
