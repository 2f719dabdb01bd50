/** A pod: sends requests to its vendors through its guards, and reports the results to its parent. */
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  assignVendors,
  CALL_TIMEOUT_MS,
  countPods,
  drawPauseMs,
  guardOf,
  type Opening,
} from '@spillway/simulator'
import { createSpillway, type Guard } from 'spillway'
import { redisStore } from 'spillway/redis'
import { createRandom } from 'spillway/testing'
import { counted, RoundTrips } from './counted-store.js'
import { type FromPod, nowMs, type PodOptions, type Start } from './messages.js'

const { plan, pod, redisPort, vendorPort }: PodOptions = JSON.parse(process.argv[2]!)
const assigned = assignVendors(plan)
const podsOf = countPods(assigned, plan.vendors)
const random = createRandom(101 + pod)
const http = new Agent({ keepAlive: true })
const trips = new RoundTrips()
const openings: Opening[] = []
let requests = 0
let served = 0
let startMs = Number.POSITIVE_INFINITY

function createGuard(vendor: number): Guard {
  const guard = spillway.guard(`vendor-${vendor}`, guardOf(plan))
  guard.breaker?.onChange(({ from, to }) => {
    if (from !== 'closed' || to !== 'open') return
    openings.push({ vendor, pod, atMs: nowMs() - startMs })
  })
  return guard
}

/** A call carries the time at which it was sent, so that a vendor without CPU time does not record it too late. */
function call(vendor: number): Promise<void> {
  const headers = { 'x-sent-ms': String(nowMs()) }
  const path = `/${vendor}`
  return new Promise((resolve, reject) => {
    request({ port: vendorPort, path, headers, agent: http }, (response) => {
      response.resume()
      const { statusCode = 0 } = response
      if (statusCode === 200) resolve()
      else reject(Object.assign(new Error(`answer ${statusCode}`), { status: statusCode }))
    })
      .on('error', reject)
      .end()
  })
}

function sendRequests(vendor: number, guard: Guard): void {
  const pauseMs = () => drawPauseMs(plan, podsOf[vendor]!, random)
  let nextMs = startMs + pauseMs()
  const ask = () => {
    if (nowMs() >= startMs + plan.durationMs) return
    requests++
    guard
      .run(() => call(vendor), { timeoutMs: CALL_TIMEOUT_MS })
      .then(
        () => served++,
        () => {},
      )
    // From the planned time on, so that late timers do not lower the load.
    nextMs += pauseMs()
    setTimeout(ask, nextMs - nowMs())
  }
  setTimeout(ask, nextMs - nowMs())
}

async function measure(): Promise<void> {
  await sleep(startMs - nowMs())
  trips.reset()
  openings.length = 0
  for (const [vendor, guard] of guards) sendRequests(vendor, guard)
  await sleep(startMs + plan.durationMs - nowMs())
  const commands = { ...trips.commands }
  const roundTripsMs = [...trips.tookMs]
  await sleep(CALL_TIMEOUT_MS)
  toParent({ result: { requests, served, commands, openings, roundTripsMs } })
}

function toParent(message: FromPod): void {
  process.send?.(message)
}

const store = counted(redisStore({ url: `redis://127.0.0.1:${redisPort}` }), trips)
const spillway = createSpillway({ store, pod: `pod-${pod}`, expectedPods: plan.pods })
const guards = new Map(assigned[pod]!.map((vendor) => [vendor, createGuard(vendor)]))

process.on('message', (message: Start) => {
  startMs = message.startMs
  void measure()
})
process.on('disconnect', () => process.exit())
toParent('ready')
