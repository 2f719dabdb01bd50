/**
 * Cost of the gateway per request, compared with a proxy that only forwards and with another gateway. Each runs in
 * its own process and forwards to the same vendor on this machine. No request is refused, and a response that is not
 * the vendor's ends the bench.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import { BenchError } from '../bench-error.js'
import { startBareProxy } from '../gateway/bare-proxy.js'
import { LONG_REQUEST, PATH, REQUEST, STREAMED_REQUEST } from '../gateway/chat.js'
import { type Forwarder, openLoad } from '../gateway/checked-load.js'
import { portkeyHeaders, portkeyName, startPortkey } from '../gateway/portkey-gateway.js'
import { CALLER_KEY, type SpillwayGateway, startGateway } from '../gateway/spillway-gateway.js'
import { startVendor, type Vendor } from '../gateway/vendor.js'
import { CONNECTIONS } from '../gateway/wrk.js'
import {
  type Comparison,
  type Figure,
  median,
  type Preparation,
  type Round,
  type Suite,
} from '../measure.js'
import { peerName } from '../peer-name.js'
import { startRedis } from '../redis-server.js'

const ROUND_SECONDS = 1
const ROUNDS = { warmUp: 1, counted: 15 }
/** Warm-up before the rounds, until all code is optimised. Slow contenders get the same number of requests. */
const WARM_UP = { requests: 20_000, seconds: 10 }

const HEADERS = { 'content-type': 'application/json', authorization: `Bearer ${CALLER_KEY}` }

async function requestsPerSecond(
  forwarder: Forwarder,
  vendor: Vendor,
  preparation: Preparation,
  body = REQUEST,
): Promise<Round> {
  const load = await openLoad(forwarder, vendor, preparation, body)
  await load({
    seconds: WARM_UP.seconds,
    total: (await vendor.count()) + WARM_UP.requests,
  })
  return async () => {
    const { requests, seconds } = await load({ seconds: ROUND_SECONDS })
    return requests / seconds
  }
}

interface Versus extends Pick<Comparison, 'name' | 'what' | 'target' | 'peerName'> {
  store?: 'redis'
  body?: string
  startPeer(vendor: string, preparation: Preparation): Promise<Forwarder>
}

function versus({ startPeer, store, body, ...described }: Versus): Comparison {
  return {
    ...described,
    unit: 'requests/s',
    rounds: ROUNDS,
    async prepare(preparation) {
      const vendor = await startVendor(preparation)
      const redis = store && { redis: await startStore(preparation) }
      const { url } = await startGateway({ vendor: vendor.url, ...redis }, preparation)
      const peer = await startPeer(vendor.url, preparation)
      return {
        ours: await requestsPerSecond({ url, headers: HEADERS }, vendor, preparation, body),
        peer: await requestsPerSecond(peer, vendor, preparation, body),
      }
    },
  }
}

async function startStore({ atEnd }: Preparation): Promise<string> {
  const server = await startRedis()
  atEnd(() => server.stop())
  return server.url
}

const BARE = {
  peerName: `bare proxy, ${peerName('undici')}`,
  startPeer: async (vendor: string, preparation: Preparation) => ({
    url: await startBareProxy(vendor, preparation),
    headers: HEADERS,
  }),
}

const gatewayVsBare = versus({
  name: 'gateway-vs-bare',
  what: `requests through nine stages, ${CONNECTIONS} connections`,
  target: 0.6,
  ...BARE,
})

const gatewayVsPortkey = versus({
  name: 'gateway-vs-portkey',
  what: 'the same, compared with another gateway',
  target: 10,
  peerName: portkeyName(),
  startPeer: async (vendor, preparation) => ({
    url: await startPortkey(preparation),
    headers: { ...HEADERS, ...portkeyHeaders(vendor) },
  }),
})

const gatewayRedisVsBare = versus({
  name: 'gateway-redis-vs-bare',
  what: 'the same with counts that are shared through Redis',
  target: 0.45,
  store: 'redis',
  ...BARE,
})

const longPromptVsBare = versus({
  name: 'long-prompt-vs-bare',
  what: 'requests of 500 kB, about 100,000 tokens',
  target: 0.8,
  body: LONG_REQUEST,
  ...BARE,
})

const workers2Vs1: Comparison = {
  name: 'workers-2-vs-1',
  what: 'two workers that share their counts through Redis',
  // On two cores the vendor, Redis and the load generator compete for the same CPUs.
  target: 0.5,
  peerName: 'one worker',
  unit: 'requests/s',
  rounds: ROUNDS,
  async prepare(preparation) {
    const vendor = await startVendor(preparation)
    const start = async (workers: number) => {
      const redis = await startStore(preparation)
      const { url } = await startGateway({ vendor: vendor.url, redis, workers }, preparation)
      return requestsPerSecond({ url, headers: HEADERS }, vendor, preparation)
    }
    return { ours: await start(2), peer: await start(1) }
  },
}

const STEADY = { perSecond: 200, seconds: 3, vendorMs: 20 }
const PERCENTILE = 0.99

/** 99th percentile of the time to the complete response, at a constant rate that does not wait for responses. */
async function steadyP99Ms(pool: Pool): Promise<number> {
  const total = STEADY.perSecond * STEADY.seconds
  const startMs = performance.now()
  const tookMs = await Promise.all(
    Array.from({ length: total }, async (_, index) => {
      const dueMs = startMs + (index * 1_000) / STEADY.perSecond
      await sleep(Math.max(0, dueMs - performance.now()))
      const sentMs = performance.now()
      const { statusCode, body } = await pool.request({
        method: 'POST',
        path: PATH,
        headers: HEADERS,
        body: REQUEST,
      })
      await body.dump()
      if (statusCode !== 200) throw new BenchError(`answered with status ${statusCode}`)
      return performance.now() - sentMs
    }),
  )
  return tookMs.sort((one, other) => one - other)[Math.ceil(PERCENTILE * total) - 1] as number
}

const addedP99: Figure = {
  name: 'added-p99-ms',
  what: `additional p99, compared with the bare proxy, at ${STEADY.perSecond} requests/s to a vendor that takes ${STEADY.vendorMs} ms`,
  target: { atMost: 5 },
  unit: 'ms',
  rounds: { warmUp: 1, counted: 7 },
  async prepare(preparation) {
    const vendor = await startVendor(preparation, STEADY.vendorMs)
    const gateway = await startGateway({ vendor: vendor.url }, preparation)
    const bare = await startBareProxy(vendor.url, preparation)
    const [ours, theirs] = [gateway.url, bare].map((url) => {
      const pool = new Pool(url)
      preparation.atEnd(() => pool.destroy())
      return pool
    }) as [Pool, Pool]
    return async () => (await steadyP99Ms(ours)) - (await steadyP99Ms(theirs))
  },
}

const PAIRS = 48
const AT_ONCE = 8

/** Milliseconds to the first byte of a streamed response body. */
async function firstByteMs(pool: Pool): Promise<number> {
  const startMs = performance.now()
  const { statusCode, headers, body } = await pool.request({
    method: 'POST',
    path: PATH,
    headers: HEADERS,
    body: STREAMED_REQUEST,
  })
  let tookMs = 0
  let text = ''
  for await (const chunk of body) {
    tookMs ||= performance.now() - startMs
    text += chunk
  }
  const type = `${headers['content-type']}`
  if (statusCode === 200 && type.startsWith('text/event-stream') && text.endsWith('[DONE]\n\n')) {
    return tookMs
  }
  throw new BenchError(`not a streamed answer: ${statusCode} ${type}\n${text}`)
}

/** Warm-up: before its code is optimised, a gateway is about four times as slow. */
async function warmUp(pool: Pool, { signal }: Preparation): Promise<void> {
  const endMs = performance.now() + WARM_UP.seconds * 1_000
  for (let sent = 0; sent < WARM_UP.requests && performance.now() < endMs; sent += AT_ONCE) {
    signal.throwIfAborted()
    await Promise.all(Array.from({ length: AT_ONCE }, () => firstByteMs(pool)))
  }
}

/** Measures the gateway and the vendor in turn, with `atOnce` requests in flight. */
async function addedMs(ours: Pool, direct: Pool, atOnce: number): Promise<number> {
  const [ourMs, directMs]: [number[], number[]] = [[], []]
  const take = async (pool: Pool, all: number[]) => {
    all.push(...(await Promise.all(Array.from({ length: atOnce }, () => firstByteMs(pool)))))
  }
  for (let done = 0; done < PAIRS; done += atOnce) {
    await take(ours, ourMs)
    await take(direct, directMs)
  }
  return median(ourMs) - median(directMs)
}

const firstByteAdded: Figure = {
  name: 'first-byte-added-ms',
  what: `additional time to the first byte of a stream, the larger of 1 and ${AT_ONCE} requests at once`,
  target: { atMost: 2 },
  unit: 'ms',
  rounds: { warmUp: 1, counted: 21 },
  async prepare(preparation) {
    const vendor = await startVendor(preparation)
    const gateway = await startGateway({ vendor: vendor.url }, preparation)
    const open = (url: string) => {
      const pool = new Pool(url)
      preparation.atEnd(() => pool.destroy())
      return pool
    }
    const [ours, direct] = [open(gateway.url), open(vendor.url)]
    for (const pool of [ours, direct]) await warmUp(pool, preparation)
    return async () => {
      const alone = await addedMs(ours, direct, 1)
      return Math.max(alone, await addedMs(ours, direct, AT_ONCE))
    }
  },
}

const FEW = 20_000
const MANY = 200_000
/** Longest duration of the run; a machine that needs longer is busy with other work. */
const LONGEST_SECONDS = 300
const COLLECTIONS = 3
const COLLECTING_MS = 300

const growthMemory: Comparison = {
  name: 'growth-memory',
  what: `heap of the gateway after ${MANY.toLocaleString('en-US')} requests`,
  target: 0.9,
  peerName: `the same after ${FEW.toLocaleString('en-US')}`,
  unit: 'bytes',
  // A single process, because with several each would receive too few requests.
  rounds: { warmUp: 0, counted: 1 },
  async prepare(preparation) {
    const vendor = await startVendor(preparation)
    const collector = new URL('../gateway/collect-on-signal.js', import.meta.url).href
    const nodeArgs = ['--expose-gc', '--import', collector]
    const gateway = await startGateway({ vendor: vendor.url, nodeArgs }, preparation)
    const load = await openLoad({ url: gateway.url, headers: HEADERS }, vendor, preparation)
    const keptAfter = async (total: number) => {
      await load({ seconds: LONGEST_SECONDS, total })
      if ((await vendor.count()) >= total) return keptBytes(gateway)
      throw new BenchError(`no ${total} requests in ${LONGEST_SECONDS} s`)
    }
    const few = await keptAfter(FEW)
    const many = await keptAfter(MANY)
    return { ours: () => many, peer: () => few }
  },
}

/** The minimum of several readings, because each reading allocates memory itself. */
async function keptBytes({ pid, adminUrl }: SpillwayGateway): Promise<number> {
  const samples: number[] = []
  while (samples.length < COLLECTIONS) {
    process.kill(pid, 'SIGUSR2')
    await sleep(COLLECTING_MS)
    const text = await (await fetch(`${adminUrl}/metrics`)).text()
    const bytes = /^nodejs_heap_size_used_bytes(?:{.*})? (\S+)/m.exec(text)?.[1]
    if (bytes === undefined) throw new BenchError(`no heap among the gateway's metrics:\n${text}`)
    samples.push(Number(bytes))
  }
  return Math.min(...samples)
}

export const gateway: Suite = {
  name: 'gateway',
  what: 'cost of the gateway per request, with all processes on this machine',
  benches: [
    gatewayVsBare,
    gatewayVsPortkey,
    gatewayRedisVsBare,
    longPromptVsBare,
    workers2Vs1,
    firstByteAdded,
    addedP99,
    growthMemory,
  ],
}
