/**
 * A process with several pods. Each pod has its own Spillway and its own connections to Redis. They share an event
 * loop, because one process per pod would need more memory and CPUs than one machine has.
 */
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
import { createSpillway } from 'spillway'
import { redisStore } from 'spillway/redis'
import { createRandom } from 'spillway/testing'
import { counted, RoundTrips } from './counted-store.js'
import { type FromGroup, nowMs, type PodGroup, type ToGroup } from './messages.js'

const STARTING_MS = 5_000
const MOST_SAMPLES = 20_000

const trips = new RoundTrips()
const openings: Opening[] = []
const http = new Agent({ keepAlive: true })
let requests = 0
let served = 0
let startMs = Number.POSITIVE_INFINITY
let group: PodGroup

/** A call carries the time at which it was sent, so that a vendor without CPU time does not record it too late. */
function call(vendor: number): Promise<void> {
  const headers = { 'x-sent-ms': String(nowMs()) }
  const path = `/${vendor}`
  return new Promise((resolve, reject) => {
    request({ port: group.vendorPort, path, headers, agent: http }, (response) => {
      response.resume()
      const { statusCode = 0 } = response
      if (statusCode === 200) resolve()
      else reject(Object.assign(new Error(`answer ${statusCode}`), { status: statusCode }))
    })
      .on('error', reject)
      .end()
  })
}

function startPod(pod: number, own: readonly number[], podsOf: readonly number[]): () => void {
  const { plan, redisPort } = group
  const store = counted(redisStore({ url: `redis://127.0.0.1:${redisPort}` }), trips)
  const spillway = createSpillway({ store, pod: `pod-${pod}`, expectedPods: plan.pods })
  const random = createRandom(101 + pod)
  const guards = own.map((vendor) => {
    const guard = spillway.guard(`vendor-${vendor}`, guardOf(plan))
    guard.breaker?.onChange(({ from, to }) => {
      if (from !== 'closed' || to !== 'open') return
      openings.push({ vendor, pod, atMs: nowMs() - startMs })
    })
    return { guard, vendor }
  })
  return () => {
    for (const { guard, vendor } of guards) {
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
        nextMs += drawPauseMs(plan, podsOf[vendor]!, random)
        setTimeout(ask, nextMs - nowMs())
      }
      let nextMs = startMs + drawPauseMs(plan, podsOf[vendor]!, random)
      setTimeout(ask, nextMs - nowMs())
    }
  }
}

async function create(): Promise<(() => void)[]> {
  const { plan, from, until } = group
  const assigned = assignVendors(plan)
  const podsOf = countPods(assigned, plan.vendors)
  const begins: (() => void)[] = []
  for (let pod = from; pod < until; pod++) {
    begins.push(startPod(pod, assigned[pod]!, podsOf))
    await sleep(STARTING_MS / (until - from))
  }
  return begins
}

async function measure(begins: readonly (() => void)[]): Promise<void> {
  await sleep(startMs - nowMs())
  trips.reset()
  openings.length = 0
  for (const begin of begins) begin()
  await sleep(startMs + group.plan.durationMs - nowMs())
  const commands = { ...trips.commands }
  const every = Math.ceil(trips.tookMs.length / MOST_SAMPLES)
  const roundTripsMs = trips.tookMs.filter((_, index) => index % every === 0)
  await sleep(CALL_TIMEOUT_MS)
  toParent({ result: { requests, served, commands, openings, roundTripsMs } })
}

function toParent(message: FromGroup): void {
  process.send?.(message)
}

let begins: (() => void)[]
process.on('message', async (message: ToGroup) => {
  if ('create' in message) {
    group = message.create
    begins = await create()
    toParent('ready')
  } else {
    startMs = message.startMs
    await measure(begins)
  }
})
process.on('disconnect', () => process.exit())
