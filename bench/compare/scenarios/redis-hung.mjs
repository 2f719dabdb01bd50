/**
 * Two pods share limits of 20 requests per second in Redis, counted over windows of 5 s and of 1 s. After 3 s Redis
 * hangs for 5 s, then it continues. SIGSTOP keeps the connections open, and nothing is answered. There are two limits:
 * - The calm limit gets half of the requests that it allows, so no call should wait. The first columns show the results
 *   of its calls while Redis hangs.
 * - The busy limit gets twice the requests that it allows. The last column has the most requests in a window.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { startPods } from '../parts/pods.mjs'
import { startRedis } from '../parts/redis.mjs'
import { evenlyByPod } from '../parts/seeded.mjs'
import { startVendor, worstWindow } from '../parts/vendor.mjs'

const PODS = 2
const HANG_AT_MS = 3_000
const HANG_MS = 5_000
const SECONDS = 10
const PER_SECOND = 20
const WINDOWS_MS = [5_000, 1_000]
const LIMITERS = [
  { name: 'Spillway', limiter: 'spillway' },
  { name: 'rate-limiter-flexible, insuranceLimiter', limiter: 'rate-limiter-flexible' },
  {
    name: 'rate-limiter-flexible, RLWrapperTimeouts',
    limiter: 'rate-limiter-flexible-timeouts',
  },
  { name: 'Bottleneck', limiter: 'bottleneck' },
  { name: '@fastify/rate-limit, skipOnError', limiter: 'fastify-rate-limit' },
  {
    name: '@fastify/rate-limit, skipOnError, commandTimeout',
    limiter: 'fastify-rate-limit-timeout',
  },
  { name: 'BullMQ limiter', limiter: 'bullmq' },
]

export async function run(progress) {
  const rows = []
  for (const windowMs of WINDOWS_MS) {
    const limit = (PER_SECOND * windowMs) / 1_000
    const rule = `${limit} in ${windowMs / 1_000} s`
    for (const { name, limiter } of LIMITERS) {
      progress(`${name}, ${rule}`)
      rows.push({ name, rule, ...(await measure(limiter, limit, windowMs)) })
    }
  }
  return rows
}

async function measure(limiter, limit, windowMs) {
  const redis = await startRedis()
  const calm = await startVendor()
  const busy = await startVendor()
  const { host, port, url } = redis
  const calmTimes = evenlyByPod({ pods: PODS, perSecond: PER_SECOND / 2, seconds: SECONDS - 1 })
  const busyTimes = evenlyByPod({ pods: PODS, perSecond: PER_SECOND * 2, seconds: SECONDS - 1 })
  const fleet = await startPods(
    'limited-pod.mjs',
    calmTimes.map((times, index) => ({
      limiter,
      redis: { host, port, url },
      pod: `${index}`,
      pods: PODS,
      limit,
      windowMs,
      loads: [
        { name: 'calm', vendorUrl: calm.url, times, again: false },
        { name: 'busy', vendorUrl: busy.url, times: busyTimes[index], again: false },
      ],
      runMs: SECONDS * 1_000,
    })),
  )
  try {
    await sleep(1_000)
    const results = fleet.start()
    await sleep(HANG_AT_MS)
    redis.hang()
    await sleep(HANG_MS)
    redis.resume()
    const calls = (await results).flatMap(([calmEnds]) => calmEnds)
    const worst = worstWindow(busy.arrivals, windowMs)
    return { ...figuresOf(calls), worst: Math.round((100 * worst) / limit) }
  } finally {
    redis.resume()
    await fleet.stop()
    await redis.stop()
    calm.stop()
    busy.stop()
  }
}

/** Of the calls of the calm limit that were made while Redis hung. */
function figuresOf(calls) {
  const endMs = HANG_AT_MS + HANG_MS
  const during = calls.filter(({ atMs }) => atMs >= HANG_AT_MS && atMs < endMs)
  const share = (some) => Math.round((100 * some.length) / during.length)
  return {
    hung: share(during.filter(({ tookMs }) => tookMs > 1_000)),
    longest: Math.round(Math.max(...during.map(({ tookMs }) => tookMs)) / 100) / 10,
    answered: share(
      during.filter(({ result, atMs, tookMs }) => result === 'answered' && atMs + tookMs < endMs),
    ),
    refused: share(during.filter(({ result }) => result === 'refused')),
    failed: share(during.filter(({ result }) => result === 'failed')),
  }
}
