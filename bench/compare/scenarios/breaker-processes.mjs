/**
 * Eight pods call one downstream: the first 50 times a second, the others 5 times a second each. After 2 s the
 * downstream answers every call with 503. The results are the number of calls that the other seven pods still send to
 * it, and the time of the last one. The first rule opens after 5 failures in a row, the second when half of the calls
 * of 10 s failed.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { startPods } from '../parts/pods.mjs'
import { startRedis } from '../parts/redis.mjs'
import { startVendor } from '../parts/vendor.mjs'

const PODS = 8
const HEALTHY_MS = 2_000
const DEAD_MS = 5_000
const BREAKERS = [
  { name: 'Spillway with Redis', rule: '5 in a row', breaker: 'spillway-consecutive' },
  { name: 'cockatiel', rule: '5 in a row', breaker: 'cockatiel-consecutive' },
  { name: 'Spillway with Redis', rule: 'half of 10 s', breaker: 'spillway-rate' },
  { name: 'cockatiel', rule: 'half of 10 s', breaker: 'cockatiel-rate' },
  { name: 'opossum', rule: 'half of 10 s', breaker: 'opossum-rate' },
]

export async function run(progress) {
  const rows = []
  for (const { name, rule, breaker } of BREAKERS) {
    progress(`${name}, ${rule}`)
    rows.push({ name, rule, ...(await measure(breaker)) })
  }
  return rows
}

async function measure(breaker) {
  const redis = await startRedis()
  let dead = false
  const downstream = await startVendor((_request, response) => {
    response.writeHead(dead ? 503 : 200).end()
  })
  const fleet = await startPods(
    'breaker-pod.mjs',
    Array.from({ length: PODS }, (_, index) => ({
      breaker,
      redisUrl: redis.url,
      pod: `${index}`,
      url: downstream.url,
      perSecond: index === 0 ? 50 : 5,
      runMs: HEALTHY_MS + DEAD_MS,
    })),
  )
  try {
    const ended = fleet.start()
    await sleep(HEALTHY_MS)
    dead = true
    const deadAtMs = performance.now()
    await ended
    const after = downstream.arrivals.filter(({ atMs }) => atMs >= deadAtMs)
    const others = after.filter(({ pod }) => pod !== '0')
    return {
      calls: others.length,
      untilMs: Math.round((others.at(-1)?.atMs ?? deadAtMs) - deadAtMs),
      first: after.length - others.length,
    }
  } finally {
    await fleet.stop()
    await redis.stop()
    downstream.stop()
  }
}
