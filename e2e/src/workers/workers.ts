/**
 * One gateway with two workers. Measures the use of a shared limit, the time until a breaker opened by one worker
 * refuses on the other, and the requests lost with a killed worker.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createMockVendor, type MockVendor } from '@spillway/mock-vendor'
import { Client } from 'undici'
import { freePort } from '../faults/fleet.js'
import { startRedis } from '../faults/redis-process.js'
import { type GatewayProcess, startGateway } from '../gateway-process.js'
import { atLeast, atMost, type Figure, reported, type Scenario } from '../scenario.js'
import { longestSpan, mostIn, startTimes } from './call-times.js'

const LIMIT = 100
const WINDOW_MS = 2_000
/** Default jitter for this window: a permit counts for this long beyond it. */
const JITTER_MS = 100
const WINDOWS = 5
const CLIENTS = 20
const TRIPS = 10
/** Pause between two requests of a client, so that a new worker can start. */
const REST_MS = 50
/** A request without an answer for this long counts as hanging. */
const HANG_MS = 20_000
/** A client detects a lost connection within this time; later requests go to another worker. */
const NOTICED_MS = 100

interface WorkerSnapshot {
  readonly worker: number
  readonly pid: number
  readonly state: string
  readonly guards?: readonly { name: string; calls: number }[]
}

export const workers: Scenario = {
  name: 'workers',
  what: 'two workers of one gateway: a shared limit, a shared breaker, a killed worker',
  seconds: 30,
  async run() {
    const vendor = createMockVendor({ knobs: { latencyMs: 20, tokens: 1 } })
    const { url } = await vendor.start()
    const redis = await startRedis(await freePort())
    const env = { REDIS_URL: `redis://127.0.0.1:${redis.port}` }
    const gateway = await startGateway(configOf(url), env)
    try {
      return [
        ...(await shareLimit(gateway, vendor)),
        ...(await shareBreaker(gateway)),
        ...(await killWorker(gateway)),
      ]
    } finally {
      await gateway.stop()
      await vendor.close()
      await redis.stop()
    }
  },
}

function configOf(url: string): object {
  const vendor = (guard: object) => ({ protocol: 'openai', url, ...guard })
  return {
    workers: 2,
    log: { level: 'info' },
    vendors: {
      plain: vendor({}),
      limited: vendor({
        limits: [{ limit: LIMIT, windowMs: WINDOW_MS }],
        queue: { size: 1_000, timeoutMs: '1m' },
      }),
      broken: vendor({ breaker: { consecutiveFailures: 3, openMs: '10m' } }),
    },
    routes: ['plain', 'limited', 'broken'].map((name) => ({ vendor: name, models: [name] })),
  }
}

async function shareLimit(gateway: GatewayProcess, vendor: MockVendor): Promise<Figure[]> {
  const clients = Array.from({ length: CLIENTS }, () => connect(gateway))
  let isOver = false
  const load = clients.map(async ({ chat }) => {
    while (!isOver) await chat('limited')
  })
  // The first window of a lane begins with the whole limit at once.
  await sleep(2 * WINDOW_MS)
  vendor.clear()
  const startMs = performance.now()
  await sleep(WINDOWS * WINDOW_MS)
  const endMs = performance.now()
  const used = vendor.counts.arrived / ((LIMIT * (endMs - startMs)) / WINDOW_MS)
  isOver = true
  await Promise.all(load)
  await Promise.all(clients.map(({ close }) => close()))
  const calls = (await snapshots(gateway)).map((each) => callsOf(each, 'limited'))
  // Log lines are buffered for a short time.
  await sleep(1_000)
  const started = startTimes(gateway.log(), 'limited')
  const wall = (atMs: number) => performance.timeOrigin + atMs
  const whole = [...started.values()].filter((ms) => ms >= wall(startMs) && ms <= wall(endMs))
  const arrivals = vendor.calls.filter(({ model }) => model === 'limited')
  const inTime = arrivals.filter(({ headers, atMs }) => {
    const startedMs = started.get(String(headers['x-request-id'])) ?? Number.NEGATIVE_INFINITY
    return wall(atMs) - startedMs <= JITTER_MS / 2
  })
  const arrivedInTime = inTime.map(({ atMs }) => atMs)
  return [
    atMost('most started in any window, of 100', mostIn(WINDOW_MS, [...started.values()]), LIMIT),
    // A permit is used within half of the jitter; the other half covers the network to the vendor.
    atMost('most in any window at the vendor', mostIn(WINDOW_MS, arrivedInTime), LIMIT),
    reported('calls later than the jitter allows', arrivals.length - inTime.length),
    reported('most in any window, with late calls', vendor.mostInAnyWindow(WINDOW_MS)),
    atLeast('limit used, %', used * 100, 90),
    atLeast('least used window, %', (WINDOW_MS / longestSpan(LIMIT, whole)) * 100, 90),
    atLeast('calls of the idler worker', Math.min(...calls), 1),
  ]
}

async function shareBreaker(gateway: GatewayProcess): Promise<Figure[]> {
  const [one, two] = await oneToEach(gateway)
  const delays: number[] = []
  for (let trip = 0; trip < TRIPS; trip++) {
    for (let failure = 0; failure < 3; failure++) await one.chat('broken', { status: 500 })
    const openedMs = performance.now()
    while ((await two.chat('broken', { latencyMs: 0 })) !== 503) {
      if (performance.now() - openedMs > 10_000) throw new Error('the breaker did not open')
    }
    delays.push(performance.now() - openedMs)
    await act(gateway, { action: 'reset', guard: 'broken', lane: 'broken', by: 'e2e' })
    for (const { chat } of [one, two]) while ((await chat('broken')) !== 200) await sleep(5)
  }
  await Promise.all([one.close(), two.close()])
  return [atMost('breaker on the other worker, ms', Math.max(...delays), 50)]
}

async function killWorker(gateway: GatewayProcess): Promise<Figure[]> {
  const clients = Array.from({ length: CLIENTS }, () => connect(gateway))
  const failures: { client: number; sentMs: number }[] = []
  let answered = 0
  let isOver = false
  const load = clients.map(async ({ chat }, client) => {
    while (!isOver) {
      const sentMs = performance.now()
      const status = await chat('plain').catch(() => 0)
      if (status === 200) answered++
      else failures.push({ client, sentMs })
      await sleep(REST_MS)
    }
  })
  await sleep(1_000)
  const [victim] = await snapshots(gateway)
  const killedMs = performance.now()
  process.kill(victim?.pid as number, 'SIGKILL')
  const servesAgain = async () => {
    // A new connection may go to the new worker; existing connections stay on their worker.
    const probe = connect(gateway)
    await probe.chat('plain').catch(() => {})
    await probe.close()
    const [first] = await snapshots(gateway)
    return first?.worker === 1 && first.pid !== victim?.pid && callsOf(first, 'plain') > 0
  }
  while (!(await servesAgain().catch(() => false))) await sleep(10)
  const recoveredMs = performance.now() - killedMs
  await sleep(1_000)
  isOver = true
  await Promise.all(load)
  await Promise.all(clients.map(({ close }) => close()))
  const late = failures.filter(({ sentMs }) => sentMs > killedMs + NOTICED_MS)
  const perClient = clients.map((_, index) => failures.filter((each) => each.client === index))
  return [
    reported('requests answered around the kill', answered),
    reported('requests lost with the worker', failures.length),
    atMost('most requests lost of one client', Math.max(...perClient.map((all) => all.length)), 1),
    atMost('requests lost after the kill', late.length, 0),
    atMost('until the new worker serves, ms', recoveredMs, 2_000),
  ]
}

let lastRequest = 0

/** A client with one connection, so all its requests go to one worker as long as that lives. */
function connect({ url }: GatewayProcess) {
  const client = new Client(url, { headersTimeout: HANG_MS, bodyTimeout: HANG_MS })
  return {
    close: () => client.destroy(),
    async chat(model: string, mock: object = {}): Promise<number> {
      const { statusCode, body } = await client.request({
        path: '/v1/chat/completions',
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-mock': JSON.stringify(mock),
          'x-request-id': `request-${++lastRequest}`,
        },
        body: JSON.stringify({ model, messages: [] }),
      })
      await body.text()
      return statusCode
    },
  }
}

/** One connection to each worker. New connections go to the workers in turn. */
async function oneToEach(gateway: GatewayProcess) {
  const calls = async () => (await snapshots(gateway)).map((each) => callsOf(each, 'plain'))
  const served = async (client: ReturnType<typeof connect>) => {
    const before = await calls()
    await client.chat('plain')
    return (await calls()).findIndex((count, index) => count !== before[index])
  }
  const one = connect(gateway)
  const first = await served(one)
  for (;;) {
    const two = connect(gateway)
    if ((await served(two)) !== first) return [one, two] as const
    await two.close()
  }
}

async function snapshots({ adminUrl }: GatewayProcess): Promise<readonly WorkerSnapshot[]> {
  const answer = await fetch(`${adminUrl}/snapshot`)
  return ((await answer.json()) as { workers: WorkerSnapshot[] }).workers
}

function callsOf({ guards = [] }: WorkerSnapshot, name: string): number {
  return guards.find((guard) => guard.name === name)?.calls ?? 0
}

async function act({ adminUrl }: GatewayProcess, action: object): Promise<void> {
  const answer = await fetch(`${adminUrl}/actions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(action),
  })
  if (!answer.ok) throw new Error(`the action failed: ${await answer.text()}`)
}
