/**
 * Cost of rate limits per request of a Fastify server: with Spillway (two levels), and with Fastify's plugin (one
 * level). Both count every request and send the remaining units; no request is refused.
 */
import { BenchError } from '../bench-error.js'
import { CONNECTIONS, openWrk } from '../gateway/wrk.js'
import type { Comparison, Preparation, Round, Suite } from '../measure.js'
import { type By, startLimitedServer } from '../middleware/limited-server.js'
import { peerName } from '../peer-name.js'
import { startRedis } from '../redis-server.js'

const ROUND_SECONDS = 1
const ROUNDS = { warmUp: 2, counted: 15 }
const WARM_UP_SECONDS = 3

/** Response header with the remaining units, for each side. */
const LIMIT_HEADER: Record<By, string> = {
  spillway: 'ratelimit',
  'rate-limit': 'x-ratelimit-remaining',
}

async function requestsPerSecond(
  by: By,
  redis: string | undefined,
  preparation: Preparation,
): Promise<Round> {
  const url = await startLimitedServer(by, redis, preparation)
  await checkAnswer(by, url)
  const wrk = await openWrk({ url, headers: {} }, preparation)
  await wrk.run(WARM_UP_SECONDS)
  return async () => {
    const { requests, seconds } = await wrk.run(ROUND_SECONDS)
    return requests / seconds
  }
}

async function checkAnswer(by: By, url: string): Promise<void> {
  for (let tries = 0; tries < 50; tries++) {
    const response = await fetch(url)
    const text = await response.text()
    if (response.status !== 200 || text !== '{"hello":"world"}') {
      throw new BenchError(`${by} returned an unexpected response: ${response.status} ${text}`)
    }
    // Requests are not counted until the store is connected.
    if (response.headers.has(LIMIT_HEADER[by])) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new BenchError(`${by} sent no header with the remaining units`)
}

function versus(
  described: Pick<Comparison, 'name' | 'what' | 'target'>,
  store?: 'redis',
): Comparison {
  return {
    ...described,
    peerName: peerName('@fastify/rate-limit'),
    unit: 'requests/s',
    rounds: ROUNDS,
    async prepare(preparation) {
      const redis = store && (await startStore(preparation))
      return {
        ours: await requestsPerSecond('spillway', redis, preparation),
        peer: await requestsPerSecond('rate-limit', redis, preparation),
      }
    },
  }
}

async function startStore({ atEnd }: Preparation): Promise<string> {
  const server = await startRedis()
  atEnd(() => server.stop())
  return server.url
}

const inMemory = versus({
  name: 'middleware-vs-fastify-rate-limit',
  what: `requests to Fastify with levels of limits in memory, ${CONNECTIONS} connections`,
  target: 0.9,
})

const onRedis = versus(
  {
    name: 'middleware-redis-vs-fastify-rate-limit',
    what: 'the same with limits that are shared through Redis',
    target: 1,
  },
  'redis',
)

export const middleware: Suite = {
  name: 'middleware',
  what: "cost of limits in a Fastify server, compared with Fastify's plugin",
  benches: [inMemory, onRedis],
}
