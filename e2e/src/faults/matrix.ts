/** The faults: how each is injected into the store and how it is removed. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Fleet, freePort } from './fleet.js'
import { startRedis } from './redis-process.js'

export interface Fault {
  readonly name: string
  /** The store persists its data. */
  readonly durable?: true
  inject(fleet: Fleet): Promise<void>
  /** Undefined if the fault is an event that needs no repair: the fleet recovers from the end of `inject` on. */
  lift?(fleet: Fleet): Promise<void>
}

const everyNetwork = (fleet: Fleet, act: (network: Fleet['pods'][number]['network']) => void) => {
  for (const { network } of fleet.pods) act(network)
}

export const FAULTS: readonly Fault[] = [
  {
    name: 'killed',
    durable: true,
    inject: (fleet) => fleet.redis.kill(),
    async lift(fleet) {
      fleet.redis = await startRedis(fleet.redis.port, fleet.folder)
    },
  },
  {
    name: 'stopped',
    inject: async ({ redis }) => redis.signal('SIGSTOP'),
    lift: async ({ redis }) => redis.signal('SIGCONT'),
  },
  {
    name: 'latency',
    inject: async (fleet) =>
      everyNetwork(fleet, (network) => {
        network.latencyMs = 200
      }),
    lift: async (fleet) =>
      everyNetwork(fleet, (network) => {
        network.latencyMs = 0
      }),
  },
  {
    name: 'stutter',
    async inject(fleet) {
      fleet.injecting = setInterval(() => {
        everyNetwork(fleet, (network) => network.freeze())
        setTimeout(() => everyNetwork(fleet, (network) => network.thaw()), 150)
      }, 600)
    },
    lift: async ({ injecting }) => clearInterval(injecting),
  },
  {
    name: 'empty',
    async inject(fleet) {
      const { port } = fleet.redis
      await fleet.redis.stop()
      fleet.redis = await startRedis(port)
    },
  },
  {
    name: 'failover',
    async inject(fleet) {
      const { redis } = fleet
      const replica = await startRedis(await freePort())
      await replica.command(`REPLICAOF 127.0.0.1 ${redis.port}`)
      await sleep(2_000)
      // The replica is cut off here; later writes are lost.
      await replica.command('REPLICAOF NO ONE')
      await sleep(1_500)
      await redis.stop()
      fleet.redis = replica
      everyNetwork(fleet, (network) => {
        network.target = replica.port
        network.cut()
      })
    },
  },
  {
    name: 'flush',
    inject: async ({ redis }) => void (await redis.command('SCRIPT FLUSH')),
  },
  {
    name: 'cut',
    async inject(fleet) {
      fleet.injecting = setInterval(() => {
        everyNetwork(fleet, (network) => network.cutMidCommand())
      }, 300)
    },
    lift: async ({ injecting }) => clearInterval(injecting),
  },
  {
    name: 'clients',
    async inject({ redis }) {
      await redis.command('CONFIG SET maxclients 1')
      await redis.command('CLIENT KILL TYPE normal SKIPME yes')
      await redis.command('CLIENT KILL TYPE pubsub')
    },
    lift: async ({ redis }) => void (await redis.command('CONFIG SET maxclients 1000')),
  },
  {
    name: 'read-only',
    async inject(fleet) {
      fleet.other = await startRedis(await freePort())
      await fleet.redis.command(`REPLICAOF 127.0.0.1 ${fleet.other.port}`)
    },
    lift: async ({ redis }) => void (await redis.command('REPLICAOF NO ONE')),
  },
  {
    name: 'memory',
    inject: async ({ redis }) => void (await redis.command('CONFIG SET maxmemory 1')),
    lift: async ({ redis }) => void (await redis.command('CONFIG SET maxmemory 0')),
  },
  {
    name: 'dns',
    async inject(fleet) {
      for (const pod of fleet.pods) pod.send('dns-gone')
      await sleep(50)
      everyNetwork(fleet, (network) => network.cut())
    },
    lift: async (fleet) => {
      for (const pod of fleet.pods) pod.send('dns-back')
    },
  },
  {
    name: 'partition',
    inject: async ({ pods }) => pods[1]?.network.freeze(),
    lift: async ({ pods }) => pods[1]?.network.thaw(),
  },
]
