/**
 * Half an hour of constant load through two gateways with random faults. Afterwards nothing may be left over: heap,
 * descriptors, Redis keys, slots and permits are compared at rest before and after.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createMockVendor } from '@spillway/mock-vendor'
import { createRandom } from 'spillway/testing'
import { freePort } from '../faults/fleet.js'
import { startRedis } from '../faults/redis-process.js'
import { startGateway } from '../gateway-process.js'
import { atLeast, atMost, type Figure, reported, type Scenario } from '../scenario.js'
import { Load } from './load.js'
import { plotSoak } from './plot.js'
import { type InjectedFault, injectFaults, type Site } from './random-faults.js'
import { countKeys, countLastingKeys, type Sample, sampleGateway } from './sample.js'

const PER_SECOND = 300
const CALLERS = 50
const SEED = 1
const WARM_UP_MS = 60_000
const SAMPLE_MS = 10_000
const WINDOW_MS = 20_000
/** Longer than every window and lease, so that counts return to zero. */
const REST_MS = 2 * WINDOW_MS
/** Live heap at rest afterwards, relative to the heap at rest after the warm-up. */
const MOST_HEAP_GROWTH = 1.1
/** A leak of keys grows with time; lanes and users that are in use do not. */
const MOST_KEY_GROWTH = 1.1
/** Kept-alive connections open and close at any time. */
const MOST_MORE_DESCRIPTORS = 20

/** By the name that `--only` takes. */
const MINUTES: Readonly<Record<string, number>> = { short: 2 }
const DEFAULT_MINUTES = 30

export const soak: Scenario = {
  name: 'soak',
  what: `${DEFAULT_MINUTES} minutes at ${PER_SECOND} requests/s through two gateways with random faults; --only short for two minutes`,
  seconds: DEFAULT_MINUTES * 60 + 160,
  async run(only) {
    const minutes = only === undefined ? DEFAULT_MINUTES : MINUTES[only]
    if (minutes === undefined) {
      throw new Error(`unknown part; known: ${Object.keys(MINUTES).join(', ')}`)
    }
    return soakFor(minutes * 60_000)
  },
  plots: () => ({ soak: plotSoak(samples, injected) }),
}

const samples: Sample[] = []
const injected: InjectedFault[] = []

async function soakFor(ms: number): Promise<Figure[]> {
  const vendor = createMockVendor({ knobs: { latencyMs: [20, 80], tokens: [5, 20], tokenMs: 5 } })
  const { url } = await vendor.start()
  const redis = await startRedis(await freePort())
  const keys = Array.from({ length: CALLERS }, (_, index) => `caller-key-${index}`)
  const env = {
    REDIS_URL: `redis://127.0.0.1:${redis.port}`,
    NODE_OPTIONS: `--import=${new URL('./collect-garbage.js', import.meta.url)}`,
    ...Object.fromEntries(keys.map((key, index) => [`CALLER_${index}`, key])),
  }
  const gateways = [await startGateway(configOf(url), env), await startGateway(configOf(url), env)]
  const site: Site = { vendor, gateways, redis }
  const random = createRandom(SEED)
  const load = new Load({
    urls: gateways.map((gateway) => gateway.url),
    keys,
    perSecond: PER_SECOND,
    random: createRandom(SEED + 1),
  })
  const startMs = performance.now()
  const secondsSince = () => (performance.now() - startMs) / 1_000
  const sample = async () => {
    samples.push({
      atS: secondsSince(),
      sent: load.sent,
      succeeded: load.answers.get('200') ?? 0,
      gateways: await Promise.all(gateways.map(sampleGateway)),
      redisKeys: await countKeys(site.redis),
    })
    return samples.at(-1)!
  }
  const atRest = async () => {
    await sleep(REST_MS)
    return sample()
  }
  try {
    process.stderr.write('  warming up …\n')
    await load.run(WARM_UP_MS)
    const before = await atRest()
    const note = (name: string) => {
      injected.push({ name, atS: secondsSince() })
      process.stderr.write(`  ${Math.round(secondsSince())} s: ${name}\n`)
    }
    const faults = injectFaults(site, ms, random, note)
    const loading = load.run(ms)
    const sampling = setInterval(() => void sample().catch(() => {}), SAMPLE_MS)
    await Promise.all([faults, loading])
    clearInterval(sampling)
    const after = await atRest()
    return [
      ...answerFigures(load),
      reported('faults injected', injected.length),
      ...gateways.flatMap((_, index) => leakFigures(index, before, after)),
      reported(
        'Redis keys, most in the first third',
        mostKeys(samples.slice(0, samples.length / 3)),
      ),
      atMost(
        'Redis keys, last third / first third',
        mostKeys(samples.slice((samples.length * 2) / 3)) /
          mostKeys(samples.slice(0, samples.length / 3)),
        MOST_KEY_GROWTH,
      ),
      atMost('Redis keys without expiry', await countLastingKeys(site.redis), 0),
    ]
  } finally {
    await load.close()
    await Promise.all(gateways.map((gateway) => gateway.stop()))
    await vendor.close()
    await site.redis.stop()
  }
}

function configOf(url: string): object {
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
          { limit: 2 * PER_SECOND * (WINDOW_MS / 1_000), windowMs: WINDOW_MS },
          { unit: 'tokens', limit: 100_000_000, windowMs: WINDOW_MS },
        ],
        concurrency: { limit: 200 },
        timeout: { callMs: '5s', firstByteMs: '2s', idleMs: '2s' },
        retry: { attempts: 2, budget: 0.2 },
      },
    },
    routes: [{ path: '/v1/*', vendor: 'vendor', models: ['gpt', '*'] }],
    callers: Array.from({ length: CALLERS }, (_, index) => ({
      key: `env:CALLER_${index}`,
      user: `user-${index}`,
    })),
  }
}

function mostKeys(part: readonly Sample[]): number {
  return Math.max(...part.map(({ redisKeys = 0 }) => redisKeys))
}

function answerFigures({ sent, aborted, answers, lost }: Load): Figure[] {
  const answered = [...answers.values()].reduce((total, count) => total + count, 0)
  for (const [what, count] of [...answers, ...lost]) process.stderr.write(`  ${what}: ${count}\n`)
  return [
    reported('requests', sent),
    reported('answered with 200', answers.get('200') ?? 0),
    reported('refused or failed with an answer', answered - (answers.get('200') ?? 0)),
    reported('aborted by the client', aborted),
    reported('cut off by the vendor', lost.get('UND_ERR_SOCKET') ?? 0),
    atMost('without an answer', sent - answered - aborted - (lost.get('UND_ERR_SOCKET') ?? 0), 0),
  ]
}

function leakFigures(index: number, before: Sample, after: Sample): Figure[] {
  const old = before.gateways[index]!
  const now = after.gateways[index]!
  const name = `gateway ${index + 1}`
  return [
    reported(`${name}: heap at rest before, MB`, old.heapMb),
    reported(`${name}: heap at rest after, MB`, now.heapMb),
    atMost(`${name}: heap after / before`, now.heapMb / old.heapMb, MOST_HEAP_GROWTH),
    atMost(
      `${name}: descriptors more than before`,
      now.descriptors - old.descriptors,
      MOST_MORE_DESCRIPTORS,
    ),
    atMost(`${name}: slots held at rest`, now.active, 0),
    atMost(`${name}: calls queued at rest`, now.waiting, 0),
    atMost(`${name}: requests inside at rest`, now.running, 0),
    atLeast(`${name}: limit free at rest, %`, now.headroom * 100, 99.9),
  ]
}
