/**
 * Half an hour of constant load through two gateways with random faults. Heap, descriptors, Redis keys, slots and
 * permits at rest are compared before and after, to find leaks.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createMockVendor } from '@spillway/mock-vendor'
import { createRandom } from 'spillway/testing'
import { freePort } from '../faults/fleet.js'
import { startRedis } from '../faults/redis-process.js'
import { startGateway } from '../gateway-process.js'
import { atMost, type Figure, reported, type Scenario } from '../scenario.js'
import { answerFigures, keyFigures, leakFigures, machineFigures } from './figures.js'
import { Load } from './load.js'
import { plotSoak } from './plot.js'
import { FaultInjector, type Site } from './random-faults.js'
import {
  countKeys,
  countLastingKeys,
  type Sample,
  sampleGateway,
  waitedForCpuMs,
} from './sample.js'

const MINUTES = 30
const PER_SECOND = 300
const SEED = 1
const CALLERS = 50
const WARM_UP_MS = 60_000
/** Share of the requests for models without a name in the configuration. In the warm-up, so that all lanes exist. */
const UNKNOWN_MODELS = { inWarmUp: 0.2, underLoad: 0.02 }
const SAMPLE_MS = 10_000
const WINDOW_MS = 20_000
/** Longer than every window and lease, so that counts return to zero. */
const REST_MS = 2 * WINDOW_MS

export const soak: Scenario = {
  name: 'soak',
  what: `${MINUTES} minutes at ${PER_SECOND} requests/s through two gateways with random faults`,
  seconds: MINUTES * 60 + 180,
  options: ['minutes', 'rate', 'seed'],
  async run({ minutes = MINUTES, rate = PER_SECOND, seed = SEED }) {
    soakRun = new SoakRun(minutes * 60_000, rate, seed)
    return soakRun.run()
  },
  interrupted: () => soakRun.interrupted,
  plots: () => ({ soak: plotSoak(soakRun.samples, soakRun.faults) }),
  page: 'docs/project/soak-results.md',
}

let soakRun: SoakRun

class SoakRun {
  readonly samples: Sample[] = []
  /** Ctrl-C ends the load and the faults, and the figures so far are printed. */
  readonly #stop = new AbortController()
  readonly #startMs = performance.now()
  readonly #ms: number
  readonly #perSecond: number
  readonly #seed: number
  #injector: FaultInjector | undefined

  constructor(ms: number, perSecond: number, seed: number) {
    this.#ms = ms
    this.#perSecond = perSecond
    this.#seed = seed
  }

  get interrupted(): boolean {
    return this.#stop.signal.aborted
  }

  get faults() {
    return this.#injector?.injected ?? []
  }

  async run(): Promise<Figure[]> {
    const vendor = createMockVendor({ knobs: { latencyMs: [20, 80], tokens: [5, 20], tokenMs: 5 } })
    const { url } = await vendor.start()
    const redis = await startRedis(await freePort())
    const keys = Array.from({ length: CALLERS }, (_, index) => `caller-key-${index}`)
    const env = {
      REDIS_URL: `redis://127.0.0.1:${redis.port}`,
      NODE_OPTIONS: `--import=${new URL('./collect-garbage.js', import.meta.url)}`,
      ...Object.fromEntries(keys.map((key, index) => [`CALLER_${index}`, key])),
    }
    const configs = {
      original: configOf(url, this.#perSecond, 0.2),
      changed: configOf(url, this.#perSecond, 0.3),
    }
    const gateways = [
      await startGateway(configs.original, env),
      await startGateway(configs.original, env),
    ]
    const site: Site = { vendor, gateways, configs, redis }
    const load = new Load({
      urls: gateways.map((gateway) => gateway.url),
      keys,
      perSecond: this.#perSecond,
      random: createRandom(this.#seed + 1),
      nowS: this.#nowS,
    })
    const stop = () => this.#stop.abort()
    process.once('SIGINT', stop).once('SIGTERM', stop)
    try {
      return await this.#measure(site, load)
    } finally {
      process.off('SIGINT', stop).off('SIGTERM', stop)
      await load.close()
      await Promise.all(gateways.map((gateway) => gateway.stop()))
      await vendor.close()
      await site.redis.stop()
    }
  }

  async #measure(site: Site, load: Load): Promise<Figure[]> {
    const { signal } = this.#stop
    const injector = new FaultInjector(site, this.#nowS, signal)
    this.#injector = injector
    process.stderr.write('  warming up, with every fault once …\n')
    await Promise.all([load.run(WARM_UP_MS, UNKNOWN_MODELS.inWarmUp, signal), injector.round()])
    const before = await this.#atRest(site, load)
    const cpuMs = waitedForCpuMs()
    const fromMs = performance.now()
    const firstSample = this.samples.length
    const sampling = setInterval(() => void this.#sample(site, load).catch(() => {}), SAMPLE_MS)
    await Promise.all([
      load.run(this.#ms, UNKNOWN_MODELS.underLoad, signal),
      injector.atRandom(this.#ms, createRandom(this.#seed)),
    ])
    clearInterval(sampling)
    const measuredMs = performance.now() - fromMs
    const waitedMs = cpuMs === undefined ? undefined : waitedForCpuMs()! - cpuMs
    const measured = this.samples.slice(firstSample)
    const figures = [
      ...answerFigures(load, injector.injected),
      reported('faults injected', injector.injected.length),
      ...machineFigures(measured, waitedMs && waitedMs / measuredMs),
    ]
    const after = await this.#atRest(site, load)
    if (before === undefined || after === undefined) {
      return [...figures, { ...reported('stopped after, s', this.#nowS()), holds: false }]
    }
    return [
      ...figures,
      ...site.gateways.flatMap((_, index) => leakFigures(index, before, after)),
      ...keyFigures(measured),
      atMost('Redis keys without expiry', await countLastingKeys(site.redis), 0),
    ]
  }

  /** A sample without load and without connections of clients and to vendors. Undefined if the run is stopped. */
  async #atRest(site: Site, load: Load): Promise<Sample | undefined> {
    const { signal } = this.#stop
    if (signal.aborted) return undefined
    process.stderr.write(`  ${Math.round(this.#nowS())} s: at rest …\n`)
    await load.disconnect()
    await site.vendor.close()
    await site.vendor.start()
    await sleep(REST_MS, undefined, { signal }).catch(() => {})
    return signal.aborted ? undefined : this.#sample(site, load)
  }

  async #sample({ gateways, redis }: Site, load: Load): Promise<Sample> {
    const sample = {
      atS: this.#nowS(),
      sent: load.sent,
      succeeded: load.succeeded,
      gateways: await Promise.all(gateways.map(sampleGateway)),
      redisKeys: await countKeys(redis),
    }
    this.samples.push(sample)
    return sample
  }

  readonly #nowS = () => (performance.now() - this.#startMs) / 1_000
}

function configOf(url: string, perSecond: number, budget: number): object {
  return {
    expectedPods: 2,
    log: { level: 'silent' },
    vendors: {
      vendor: {
        protocol: 'openai',
        url,
        queue: { size: 200, timeoutMs: '2s' },
        userLimits: [{ per: 'user', limit: 10_000, windowMs: WINDOW_MS }],
        breaker: { failureRate: 0.5, openMs: '2s' },
        limits: [
          { limit: 2 * perSecond * (WINDOW_MS / 1_000), windowMs: WINDOW_MS },
          { unit: 'tokens', limit: 100_000_000, windowMs: WINDOW_MS },
        ],
        concurrency: { limit: 200 },
        timeout: { callMs: '5s', firstByteMs: '2s', idleMs: '2s' },
        retry: { attempts: 2, budget },
      },
    },
    routes: [{ path: '/v1/*', vendor: 'vendor', models: ['gpt', '*'] }],
    callers: Array.from({ length: CALLERS }, (_, index) => ({
      key: `env:CALLER_${index}`,
      user: `user-${index}`,
    })),
  }
}
