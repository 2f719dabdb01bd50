/**
 * A vendor allows 50 requests in any second. 1, 2, 4 and 8 pods call it through one shared limit. Requests arrive in
 * bursts of 10 at random times and pods, 75 per second on average, more than the limit. The result is the number of
 * requests that arrive at the vendor.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { startPods } from '../parts/pods.mjs'
import { startRedis } from '../parts/redis.mjs'
import { burstsByPod } from '../parts/seeded.mjs'
import { startVendor, worstWindow } from '../parts/vendor.mjs'

const LIMIT = 50
const WINDOW_MS = 1_000
const SECONDS = 5
const PODS = [1, 2, 4, 8]
const LIMITERS = {
  Spillway: 'spillway',
  'rate-limiter-flexible': 'rate-limiter-flexible',
  Bottleneck: 'bottleneck',
  '@fastify/rate-limit': 'fastify-rate-limit',
  'BullMQ limiter': 'bullmq',
}

export async function run(progress) {
  const rows = []
  for (const [name, limiter] of Object.entries(LIMITERS)) {
    const row = { name }
    for (const pods of PODS) {
      progress(`${name}, ${pods} pods`)
      const { worst, used } = await measure(limiter, pods)
      row[`worst${pods}`] = worst
      row[`used${pods}`] = used
    }
    rows.push(row)
  }
  return rows
}

async function measure(limiter, pods) {
  const redis = await startRedis()
  const vendor = await startVendor()
  const { host, port, url } = redis
  const times = burstsByPod({ pods, perSecond: 75, burst: 10, seconds: SECONDS, seed: 1 })
  const runMs = SECONDS * 1_000
  const fleet = await startPods(
    'limited-pod.mjs',
    times.map((podTimes, index) => ({
      limiter,
      redis: { host, port, url },
      pod: `${index}`,
      pods,
      limit: LIMIT,
      windowMs: WINDOW_MS,
      loads: [{ name: 'vendor', vendorUrl: vendor.url, times: podTimes, again: true }],
      runMs,
    })),
  )
  try {
    // All pods are connected. Spillway's pods find each other once a second.
    await sleep(1_000)
    const startMs = performance.now()
    await fleet.start()
    const inTime = vendor.arrivals.filter(({ atMs }) => atMs < startMs + runMs)
    // The first second is not measured, because no call waits yet.
    const later = inTime.filter(({ atMs }) => atMs >= startMs + 1_000)
    const allowed = (LIMIT * (runMs - 1_000)) / WINDOW_MS
    return {
      worst: worstWindow(vendor.arrivals, WINDOW_MS),
      used: Math.round((100 * later.length) / allowed),
    }
  } finally {
    await fleet.stop()
    await redis.stop()
    vendor.stop()
  }
}
