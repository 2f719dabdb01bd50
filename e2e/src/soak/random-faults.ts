/** Faults of the vendor, of Redis and of the configuration, one at a time. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { MockKnobs, MockVendor } from '@spillway/mock-vendor'
import type { Random } from 'spillway/testing'
import { type RedisProcess, startRedis } from '../faults/redis-process.js'
import type { GatewayProcess } from '../gateway-process.js'

/** What faults act on. `redis` is replaced when a server is started again. */
export interface Site {
  readonly vendor: MockVendor
  readonly gateways: readonly GatewayProcess[]
  /** The second one replaces every guard. */
  readonly configs: { readonly original: object; readonly changed: object }
  redis: RedisProcess
}

/** A fault that was injected, in seconds since the start of the run. */
export interface InjectedFault {
  readonly name: string
  /** The vendor does not complete answers that it has begun, so the gateway cannot either. */
  readonly breaksAnswers: boolean
  readonly atS: number
  /** Infinity while it lasts. */
  untilS: number
}

interface Fault {
  readonly name: string
  readonly breaksAnswers?: true
  inject(site: Site): Promise<void> | void
  lift(site: Site): Promise<void> | void
}

const SHORTEST_MS = 2_000
const LONGEST_MS = 8_000
const LONGEST_PAUSE_MS = 12_000
const PAUSE_IN_ROUND_MS = 1_000

const FAULTS: readonly Fault[] = [
  vendorFault('vendor fails', { status: 500, errorRate: 0.6 }),
  vendorFault('vendor limits', { status: 429, retryAfterMs: 1_000, errorRate: 0.5 }),
  vendorFault('vendor is slow', { latencyMs: [500, 1_500] }),
  vendorFault('vendor hangs', { neverAnswer: true }),
  { ...vendorFault('vendor stalls', { stallAfter: 2 }), breaksAnswers: true },
  { ...vendorFault('vendor cuts off', { cutAfter: 2 }), breaksAnswers: true },
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
    name: 'configuration is changed',
    inject: ({ gateways, configs }) => reload(gateways, configs.changed),
    lift: ({ gateways, configs }) => reload(gateways, configs.original),
  },
]

function reload(gateways: readonly GatewayProcess[], config: object): void {
  for (const gateway of gateways) {
    gateway.rewrite(config)
    gateway.signal('SIGHUP')
  }
}

function vendorFault(name: string, knobs: MockKnobs): Fault {
  return {
    name,
    inject: ({ vendor }) => vendor.set(knobs),
    lift: ({ vendor }) => vendor.reset(),
  }
}

export class FaultInjector {
  readonly injected: InjectedFault[] = []
  readonly #site: Site
  readonly #nowS: () => number
  readonly #signal: AbortSignal

  /** `signal` ends the current fault, and no other one follows. */
  constructor(site: Site, nowS: () => number, signal: AbortSignal) {
    this.#site = site
    this.#nowS = nowS
    this.#signal = signal
  }

  /** Every fault once. */
  async round(): Promise<void> {
    for (const fault of FAULTS) {
      await this.#inject(fault, SHORTEST_MS)
      await this.#pause(PAUSE_IN_ROUND_MS)
    }
  }

  /** Random faults with pauses, until this time has passed. */
  async atRandom(ms: number, random: Random): Promise<void> {
    const endMs = performance.now() + ms
    while (performance.now() < endMs && !this.#signal.aborted) {
      await this.#pause(Math.min(random() * LONGEST_PAUSE_MS, endMs - performance.now()))
      const fault = FAULTS[Math.floor(random() * FAULTS.length)]!
      await this.#inject(fault, SHORTEST_MS + random() * (LONGEST_MS - SHORTEST_MS))
    }
  }

  async #inject(fault: Fault, ms: number): Promise<void> {
    if (this.#signal.aborted) return
    const { name, breaksAnswers = false } = fault
    const noted = { name, breaksAnswers, atS: this.#nowS(), untilS: Number.POSITIVE_INFINITY }
    this.injected.push(noted)
    process.stderr.write(`  ${Math.round(noted.atS)} s: ${name}\n`)
    await fault.inject(this.#site)
    await this.#pause(ms)
    await fault.lift(this.#site)
    noted.untilS = this.#nowS()
  }

  #pause(ms: number): Promise<void> {
    return sleep(Math.max(0, ms), undefined, { signal: this.#signal }).catch(() => {})
  }
}
