/**
 * client → A → B → C, and C answers every request with 503. The client, A and B each make at most 3 attempts. 50 client
 * requests are sent one after the other. The result is the number of requests at C per client request.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import {
  ConsecutiveBreaker,
  ConstantBackoff,
  circuitBreaker,
  handleAll,
  retry,
  wrap,
} from 'cockatiel'
import pRetry from 'p-retry'
import { createSpillway } from 'spillway'
import { createHops } from 'spillway/http'
import { startVendor } from '../parts/vendor.mjs'

const ATTEMPTS = 3
const REQUESTS = 50
const BACKOFF_MS = 5

async function get(url) {
  const answer = await fetch(url)
  await answer.text()
  if (!answer.ok) throw new Error(`status ${answer.status}`)
}

/** Each returns, for one tier, the function that calls the next one, and how the tier serves a request. */
const TIERS = {
  // https://github.com/sindresorhus/p-retry#usage: `retries` comes on top of the first attempt.
  'p-retry': () => ({
    call: (url) => pRetry(() => get(url), { retries: ATTEMPTS - 1, minTimeout: BACKOFF_MS }),
  }),
  // https://github.com/connor4312/cockatiel#retrypolicy-options: `maxAttempts` counts the retries.
  'cockatiel retry': () => {
    const policy = cockatielRetry()
    return { call: (url) => policy.execute(() => get(url)) }
  },
  // The first example of its README: `wrap` of a retry and a breaker that opens after 5 failures in a row.
  'cockatiel retry and breaker': () => {
    const breaker = circuitBreaker(handleAll, {
      halfOpenAfter: 10_000,
      breaker: new ConsecutiveBreaker(5),
    })
    const policy = wrap(cockatielRetry(), breaker)
    return { call: (url) => policy.execute(() => get(url)) }
  },
  // docs/how-to/mechanisms/retry-budget.md: the default budget is 0.2 retries per call.
  'Spillway retry': () => spillwayTier({}),
  // docs/how-to/deadlines.md
  'Spillway retry and hops': () => {
    const hops = createHops()
    return {
      ...spillwayTier({ fetch: { hops: true } }),
      serve: (request, response, next) => hops.handle(request, response, next),
    }
  },
  'Spillway retry, hops and breaker': () => {
    const hops = createHops()
    return {
      ...spillwayTier({ fetch: { hops: true }, breaker: { consecutiveFailures: 5 } }),
      serve: (request, response, next) => hops.handle(request, response, next),
    }
  },
}

export async function run(progress) {
  const rows = []
  for (const [name, createTier] of Object.entries(TIERS)) {
    progress(name)
    rows.push({ name, ...(await measure(createTier)) })
  }
  return rows
}

async function measure(createTier) {
  const c = await startVendor((_request, response) => response.writeHead(503).end())
  const b = await startTier(createTier(), c.url)
  const a = await startTier(createTier(), b.url)
  const client = createTier()
  let first = 0
  for (let i = 0; i < REQUESTS; i++) {
    await client.call(a.url).catch(() => {})
    if (i === 0) first = c.arrivals.length
  }
  for (const each of [a, b, c]) each.stop()
  return { first, mean: Math.round((100 * c.arrivals.length) / REQUESTS) / 100 }
}

/** A service that answers 200 if its call to the next one succeeds, 503 otherwise. */
async function startTier({ call, serve = (_request, _response, next) => next() }, nextUrl) {
  const server = createServer((request, response) => {
    serve(request, response, () =>
      call(nextUrl).then(
        () => response.end('ok'),
        () => response.writeHead(503).end(),
      ),
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = () => server.close().closeAllConnections()
  return { url: `http://127.0.0.1:${server.address().port}`, stop }
}

function cockatielRetry() {
  const backoff = new ConstantBackoff(BACKOFF_MS)
  return retry(handleAll, { maxAttempts: ATTEMPTS - 1, backoff })
}

function spillwayTier(options) {
  const guard = createSpillway().guard('next', {
    retry: { attempts: ATTEMPTS, baseMs: BACKOFF_MS },
    timeout: { callMs: '10s' },
    ...options,
  })
  const call = async (url) => {
    const answer = await guard.fetch(url)
    await answer.text()
    if (!answer.ok) throw new Error(`status ${answer.status}`)
  }
  return { call }
}
