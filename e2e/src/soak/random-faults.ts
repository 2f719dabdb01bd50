/** Faults of the vendor, of Redis and of the configuration, one at a time, in random order. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { MockKnobs, MockVendor } from '@spillway/mock-vendor'
import type { Random } from 'spillway/testing'
import { type RedisProcess, startRedis } from '../faults/redis-process.js'
import type { GatewayProcess } from '../gateway-process.js'

/** What faults act on. `redis` is replaced when a server is started again. */
export interface Site {
  readonly vendor: MockVendor
  readonly gateways: readonly GatewayProcess[]
  redis: RedisProcess
}

/** A fault that was injected, in seconds since the start of the run. */
export interface InjectedFault {
  readonly name: string
  readonly atS: number
}

interface Fault {
  readonly name: string
  inject(site: Site): Promise<void> | void
  lift(site: Site): Promise<void> | void
}

const SHORTEST_MS = 2_000
const LONGEST_MS = 8_000
const LONGEST_PAUSE_MS = 12_000

const FAULTS: readonly Fault[] = [
  vendorFault('vendor fails', { status: 500, errorRate: 0.6 }),
  vendorFault('vendor limits', { status: 429, retryAfterMs: 1_000, errorRate: 0.5 }),
  vendorFault('vendor is slow', { latencyMs: [500, 1_500] }),
  vendorFault('vendor hangs', { neverAnswer: true }),
  vendorFault('vendor stalls', { stallAfter: 2 }),
  vendorFault('vendor cuts off', { cutAfter: 2 }),
  vendorFault('vendor sends garbage', { garbage: 'sse' }),
  {
    name: 'Redis hangs',
    inject: ({ redis }) => redis.signal('SIGSTOP'),
    lift: ({ redis }) => redis.signal('SIGCONT'),
  },
  {
    name: 'Redis is killed and returns empty',
    inject: ({ redis }) => redis.kill(),
    async lift(site) {
      site.redis = await startRedis(site.redis.port)
    },
  },
  {
    name: 'Redis closes all connections',
    async inject({ redis }) {
      await redis.command('CLIENT KILL TYPE normal SKIPME yes')
      await redis.command('CLIENT KILL TYPE pubsub')
    },
    lift: () => {},
  },
  {
    name: 'configuration is read again',
    inject({ gateways }) {
      for (const gateway of gateways) gateway.signal('SIGHUP')
    },
    lift: () => {},
  },
]

function vendorFault(name: string, knobs: MockKnobs): Fault {
  return {
    name,
    inject: ({ vendor }) => vendor.set(knobs),
    lift: ({ vendor }) => vendor.reset(),
  }
}

/** Injects faults for this long and lifts the last one. */
export async function injectFaults(
  site: Site,
  ms: number,
  random: Random,
  note: (name: string) => void,
): Promise<void> {
  const endMs = performance.now() + ms
  while (performance.now() < endMs) {
    await sleep(Math.min(random() * LONGEST_PAUSE_MS, endMs - performance.now()))
    const fault = FAULTS[Math.floor(random() * FAULTS.length)]!
    note(fault.name)
    await fault.inject(site)
    await sleep(SHORTEST_MS + random() * (LONGEST_MS - SHORTEST_MS))
    await fault.lift(site)
  }
}
