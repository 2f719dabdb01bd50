// test-group: io, slow

/** One gateway with two workers and Redis: behaviour for vendors, clients and operators. */
import { writeFileSync } from 'node:fs'
import { connect as connectSocket } from 'node:net'
import { join } from 'node:path'
import { createMockVendor, type MockVendor } from '@spillway/mock-vendor'
import { Client } from 'undici'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { readFeed } from '../../dashboard/test/server/dashboard-kit.js'
import { type RedisServer, startRedis } from '../../spillway/test/redis-server.js'
import { until } from '../../spillway/test/streams/stream-kit.js'
import { spawnGateway } from './gateway-process.js'

const LIMIT = 100
const WINDOW_MS = 2_000
/**
 * A permit counts for this long beyond its window. It is used within half of it, and the other half is for the way to
 * the vendor.
 */
const JITTER_MS = 100
/** A busy machine is late with everything. */
const PATIENCE = { timeout: 60_000, interval: 20 }

interface WorkerSnapshot {
  readonly worker: number
  readonly pid: number
  readonly state: string
  readonly guards: readonly { name: string; calls: number; active: number }[]
}

let redis: RedisServer
let vendor: MockVendor
let gateway: Awaited<ReturnType<typeof spawnGateway>>
let written: object

beforeAll(async () => {
  redis = await startRedis()
  vendor = createMockVendor({ knobs: { tokens: 1 } })
  const { url } = await vendor.start()
  const vendorWith = (guard: object) => ({ protocol: 'openai', url, ...guard })
  written = {
    workers: 2,
    pod: 'gateway-a',
    redis: { url: 'env:REDIS_URL', commandTimeoutMs: '10s' },
    drain: { graceMs: '30s' },
    vendors: {
      plain: vendorWith({}),
      limited: vendorWith({
        // Used units return at the end of a slice of the window, so more slices waste less of it.
        limits: [{ limit: LIMIT, windowMs: WINDOW_MS, slices: 100 }],
        queue: { size: 1_000, timeoutMs: '1m' },
        jitterMs: JITTER_MS,
      }),
      broken: vendorWith({ breaker: { consecutiveFailures: 4, openMs: '10m' } }),
      isolated: vendorWith({ breaker: { consecutiveFailures: 4, openMs: '10m' } }),
    },
    routes: ['plain', 'limited', 'broken', 'isolated'].map((name) => ({
      vendor: name,
      models: [name],
    })),
  }
  gateway = await spawnGateway({ config: written, env: { REDIS_URL: redis.url } })
  await vi.waitFor(async () => expect(await ready()).toContain('"ready":2'), PATIENCE)
  await vi.waitFor(async () => expect(await fleetPods()).toHaveLength(2), PATIENCE)
}, 60_000)

afterAll(async () => {
  await gateway?.stop()
  await vendor?.close()
  await redis?.stop()
})

const admin = async (path: string) => (await fetch(`${gateway.adminUrl}${path}`)).text()
const ready = () => admin('/health/ready')

async function act(path: string, body: object): Promise<Response> {
  return fetch(`${gateway.adminUrl}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

async function fleetPods(): Promise<{ pod: string }[]> {
  return (JSON.parse(await admin('/status')) as { pods: { pod: string }[] }).pods
}

async function workers(): Promise<WorkerSnapshot[]> {
  return (JSON.parse(await admin('/snapshot')) as { workers: WorkerSnapshot[] }).workers
}

/** Waits until two workers are ready, none of them with one of these process ids. */
async function replaced(...pids: readonly (number | undefined)[]): Promise<void> {
  await vi.waitFor(async () => {
    const running = await workers()
    const states = running.map(({ worker, state }) => `${worker} ${state}`)
    expect(states).toEqual(['1 ready', '2 ready'])
    expect(running.filter(({ pid }) => pids.includes(pid))).toEqual([])
    expect(await ready()).toContain('"ready":2')
  }, PATIENCE)
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

async function sumOf(metric: string): Promise<number> {
  const lines = (await admin('/metrics')).split('\n').filter((line) => line.startsWith(metric))
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

const guardOf = (worker: WorkerSnapshot | undefined, name: string) =>
  worker?.guards.find((guard) => guard.name === name)

/** A client with one connection, so all its requests go to the same worker. */
function connect(): { chat: ReturnType<typeof chatWith>; close(): Promise<void> } {
  const client = new Client(gateway.url, { headersTimeout: 120_000, bodyTimeout: 120_000 })
  return { chat: chatWith(client), close: () => client.destroy() }
}

let lastRequest = 0

const chatWith =
  (client: Client) =>
  async (model: string, mock: object = {}) => {
    const { statusCode, headers, body } = await client.request({
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
    return { status: statusCode, decision: String(headers['spillway-decision']) }
  }

/** One connection to each worker, in the order of workers. */
async function oneToEach() {
  const clients = [connect(), connect()]
  const before = await workers()
  await clients[0]?.chat('plain')
  const after = await workers()
  const served = after.findIndex(
    (each, index) => guardOf(each, 'plain')?.calls !== guardOf(before[index], 'plain')?.calls,
  )
  if (served === 1) clients.reverse()
  return clients as [ReturnType<typeof connect>, ReturnType<typeof connect>]
}

interface RequestLine {
  readonly msg: string
  readonly id: string
  readonly time: number
  readonly model?: string
  readonly waitedMs: number
  readonly durationMs: number
}

/** When each call to a vendor began, in milliseconds since 1970, by request id. From the log of all workers. */
function startTimes(model: string): Map<string, number> {
  const lines = gateway.stdout().split('\n').slice(0, -1)
  const requests = lines
    .map((line) => JSON.parse(line) as RequestLine)
    .filter((line) => line.msg === 'request' && line.model === model)
  return new Map(
    requests.map(({ id, time, durationMs, waitedMs }) => [id, time - durationMs + waitedMs]),
  )
}

/** How often a worker has lost its Redis server. */
const outages = () => gateway.stdout().split('store.degraded').length - 1

/** The time that each run of `count` times took. */
function spansOf(count: number, times: readonly number[]): number[] {
  return times.slice(count).map((time, index) => time - (times[index] as number))
}

/** The most in any window. */
function mostIn(windowMs: number, times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b)
  let first = 0
  return sorted.reduce((most, time, index) => {
    while (time - (sorted[first] as number) >= windowMs) first++
    return Math.max(most, index - first + 1)
  }, 0)
}

describe('gateway with two workers', () => {
  it('two workers are two pods of the fleet behind one port and one admin port', async () => {
    const pods = (await fleetPods()).map(({ pod }) => pod.replace(/-[^-]*$/, '')).toSorted()
    expect(pods).toEqual(['gateway-a-worker-1', 'gateway-a-worker-2'])
    expect(JSON.parse(await ready())).toMatchObject({
      status: 'ready',
      workers: { ready: 2, total: 2 },
    })
    const clients = await oneToEach()
    for (const { chat, close } of clients) {
      expect((await chat('plain')).status).toBe(200)
      await close()
    }
    for (const worker of await workers()) {
      expect(guardOf(worker, 'plain')?.calls).toBeGreaterThan(0)
    }
  })

  it('the dashboard shows decisions of all workers, whichever of them serves it', async () => {
    const reader = await readFeed(`${gateway.adminUrl}/dashboard/events`)
    const clients = await oneToEach()
    // The worker records only some of many calls, so each sends until one appears.
    await vi.waitFor(async () => {
      for (const { chat } of clients) await chat('plain')
      const records = reader.all('decisions').flatMap((each) => each.records)
      const pods = new Set(records.map(({ pod }) => pod.replace(/-[^-]*$/, '')))
      expect([...pods].toSorted()).toEqual(['gateway-a-worker-1', 'gateway-a-worker-2'])
    }, PATIENCE)
    for (const { close } of clients) await close()
    reader.close()
  })

  it('two workers under saturating load start at most 100 calls in any window and use more than 90 % of three in a row', async () => {
    // As many calls as fit in 800 ms wait, so the limit decides and not how soon a busy machine answers one of them.
    const clients = Array.from({ length: 40 }, connect)
    let isOver = false
    const load = clients.map(async ({ chat }) => {
      while (!isOver) expect((await chat('limited')).status).toBe(200)
    })
    let before: number
    // While Redis seems unreachable, each worker uses its own share, and the sum is not exact. So measure again then.
    do {
      before = outages()
      vendor.clear()
      await vi.waitFor(
        () => {
          const times = [...startTimes('limited').values()].toSorted((a, b) => a - b)
          expect(vendor.calls.length).toBeGreaterThan(4 * LIMIT)
          // The least time that the calls of three windows took. A busy machine stops the workers at other times.
          expect(Math.min(...spansOf(3 * LIMIT, times))).toBeLessThan((3 * WINDOW_MS) / 0.9)
        },
        { timeout: 150_000, interval: 500 },
      )
    } while (outages() > before)
    isOver = true
    await Promise.all(load)
    await Promise.all(clients.map(({ close }) => close()))
    const ids = vendor.calls.map(({ headers }) => String(headers['x-request-id']))
    await vi.waitFor(() => {
      const logged = startTimes('limited')
      expect(ids.filter((id) => !logged.has(id))).toEqual([])
    }, PATIENCE)
    const started = startTimes('limited')
    const calls = vendor.calls.map(({ headers, atMs }) => ({
      atMs: performance.timeOrigin + atMs,
      loggedMs: started.get(String(headers['x-request-id'])) ?? Number.NaN,
    }))
    // A busy machine may write the line of a call late. Then its arrival is closer to its start.
    const starts = calls.map(({ atMs, loggedMs }) => Math.min(atMs, loggedMs))
    const delays = calls.map(({ atMs, loggedMs }) => Math.round(atMs - loggedMs))
    expect(mostIn(WINDOW_MS, starts), `ms until arrival: ${delays}`).toBeLessThanOrEqual(LIMIT)
    // A call that a busy machine delays by more than the jitter allows may arrive in a later window.
    const inTime = calls.filter(
      ({ atMs, loggedMs }) => loggedMs <= atMs && atMs - loggedMs <= JITTER_MS / 2,
    )
    expect(inTime.length).toBeGreaterThan(LIMIT)
    expect(
      mostIn(
        WINDOW_MS,
        inTime.map(({ atMs }) => atMs),
      ),
    ).toBeLessThanOrEqual(LIMIT)
    for (const worker of await workers()) {
      expect(guardOf(worker, 'limited')?.calls).toBeGreaterThan(0)
    }
  }, 240_000)

  it('a breaker that one worker opened refuses calls of the other worker', async () => {
    const [one, two] = await oneToEach()
    const refused = expect.stringContaining('stage=breaker;reason=CIRCUIT_OPEN')
    for (let i = 0; i < 4; i++) expect((await one.chat('broken', { status: 500 })).status).toBe(500)
    // Redis has counted the failures before the other worker reports a success, which would reset their count.
    await vi.waitFor(
      async () => expect((await one.chat('broken', { status: 500 })).decision).toEqual(refused),
      PATIENCE,
    )
    // Until its replica has the change, the other worker may call the vendor.
    await vi.waitFor(
      async () => expect((await two.chat('broken')).decision).toEqual(refused),
      PATIENCE,
    )
    await Promise.all([one.close(), two.close()])
  })

  it('an action on the admin port reaches all workers', async () => {
    const action = { action: 'isolate', guard: 'isolated', by: 'test', forMs: 600_000 }
    expect((await act('/actions', action)).status).toBe(200)
    for (const { chat, close } of await oneToEach()) {
      await vi.waitFor(async () => expect((await chat('isolated')).status).toBe(503), PATIENCE)
      await close()
    }
  })

  it('a killed worker fails only its own requests, is replaced, and its counts are kept', async () => {
    const [one, two] = await oneToEach()
    const slow = { latencyMs: 3_000 }
    const requests = { one: one.chat('plain', slow), two: two.chat('plain', slow) }
    const outcome = Promise.allSettled([requests.one, requests.two])
    await vi.waitFor(async () => {
      const active = (await workers()).map((each) => guardOf(each, 'plain')?.active)
      expect(active).toEqual([1, 1])
    }, PATIENCE)
    const counted = await sumOf('spillway_requests_total')
    const [victim] = await workers()
    process.kill(victim?.pid as number, 'SIGKILL')
    const [lost, kept] = await outcome
    expect([lost.status, kept.status]).toEqual(['rejected', 'fulfilled'])
    expect(kept).toMatchObject({ value: { status: 200 } })
    await replaced(victim?.pid)
    expect(await sumOf('spillway_requests_total')).toBeGreaterThanOrEqual(counted)
    expect(await sumOf('spillway_worker_restarts_total')).toBe(1)
    await Promise.all([one.close(), two.close()])
  }, 120_000)

  it('connections that a worker had not taken when it was killed are answered by another worker', async () => {
    const [victim] = await workers()
    const pid = victim?.pid as number
    process.kill(pid, 'SIGSTOP')
    const clients = Array.from({ length: 10 }, connect)
    let answered = 0
    const answers = clients.map(async ({ chat }) => {
      const { status } = await chat('plain')
      answered++
      return status
    })
    // The worker that does not run was handed one, and no other because it has not taken that one.
    await vi.waitFor(() => expect(answered).toBe(9), PATIENCE)
    process.kill(pid, 'SIGKILL')
    expect(await Promise.all(answers)).toEqual(clients.map(() => 200))
    await Promise.all(clients.map(({ close }) => close()))
    await replaced(pid)
  }, 120_000)

  it('a reload reaches all workers, and a refused file does not reach a replaced worker', async () => {
    const file = join(gateway.folder, 'spillway.yaml')
    writeFileSync(file, JSON.stringify({ ...written, body: { maxBytes: '1kb' } }))
    // The gateway may have detected the change of the file before the signal.
    const reloaded = await act('/config/reload', { by: 'test' })
    expect(await reloaded.json()).toMatchObject({ ok: true })
    await vi.waitFor(async () => expect(await sumOf('spillway_config_generation ')).toBe(2))
    const tooLarge = async () => {
      const clients = await oneToEach()
      const answers = await Promise.all(clients.map(({ chat }) => chat('x'.repeat(2_000))))
      await Promise.all(clients.map(({ close }) => close()))
      return answers.map(({ status }) => status)
    }
    expect(await tooLarge()).toEqual([413, 413])
    writeFileSync(file, 'vendors: nothing')
    expect((await act('/config/check', { by: 'test' })).status).toBe(422)
    expect((await act('/config/reload', { by: 'test' })).status).toBe(422)
    const [, victim] = await workers()
    process.kill(victim?.pid as number, 'SIGKILL')
    await replaced(victim?.pid)
    expect(await tooLarge()).toEqual([413, 413])
  }, 120_000)

  it('connections that a worker refuses because it is drained alone are served by the other worker', async () => {
    const [one, two] = await oneToEach()
    const [draining, other] = (await workers()).map(({ pid }) => pid)
    // Runs until its client disconnects.
    const running = one.chat('plain', { latencyMs: 600_000 }).catch(() => 'disconnected')
    await vi.waitFor(async () => {
      const active = (await workers()).map((each) => guardOf(each, 'plain')?.active)
      expect(active).toEqual([1, 0])
    }, PATIENCE)
    process.kill(draining as number, 'SIGTERM')
    await vi.waitFor(async () => expect(await ready()).toContain('draining'), PATIENCE)
    const clients = Array.from({ length: 10 }, connect)
    const statuses = await Promise.all(
      clients.map(async ({ chat }) => (await chat('plain')).status),
    )
    expect(statuses).toEqual(clients.map(() => 200))
    // The drained worker requests this from all workers, and ends without the answer.
    process.kill(other as number, 'SIGSTOP')
    const stateOrError = workers().catch(() => 'disconnected')
    await Promise.all([one, two, ...clients].map(({ close }) => close()))
    expect(await running).toBe('disconnected')
    await until('the drained worker has ended', () => !isRunning(draining as number), 40_000)
    process.kill(other as number, 'SIGCONT')
    await stateOrError
    await replaced(draining)
  }, 120_000)

  it('connections that are reset while no worker runs do not end the next workers', async () => {
    const restarts = await sumOf('spillway_worker_restarts_total')
    const before = (await workers()).map(({ pid }) => pid)
    for (const pid of before) process.kill(pid, 'SIGKILL')
    const port = Number(new URL(gateway.url).port)
    for (let i = 0; i < 20; i++) {
      const socket = connectSocket(port, '127.0.0.1', () => socket.resetAndDestroy())
      socket.on('error', () => {})
    }
    await replaced(...before)
    for (const { chat, close } of await oneToEach()) {
      expect((await chat('plain')).status).toBe(200)
      await close()
    }
    expect(await sumOf('spillway_worker_restarts_total')).toBe(restarts + 2)
  }, 120_000)

  it('SIGTERM lets the requests of all workers finish and ends with exit code 0', async () => {
    const clients = await oneToEach()
    const slow = clients.map(({ chat }) => chat('plain', { latencyMs: 1_000 }))
    await vi.waitFor(async () => {
      const active = (await workers()).map((each) => guardOf(each, 'plain')?.active)
      expect(active).toEqual([1, 1])
    }, PATIENCE)
    gateway.child.kill('SIGTERM')
    expect((await Promise.all(slow)).map(({ status }) => status)).toEqual([200, 200])
    expect(await gateway.exit).toBe(0)
    await Promise.all(clients.map(({ close }) => close()))
  }, 60_000)
})
