// test-group: io, slow

/** Calls that wait for shared permits: real processes and a real server. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { endWithThisProcess } from './end-with-process.js'
import { type RedisServer, startRedis } from './redis-server.js'
import { inequality } from './saturated-fleet.js'

const PROGRAM = fileURLToPath(new URL('fixtures/waiting-pod.mjs', import.meta.url))
const PODS = 4
/** Without a message a waiting call sleeps for a minute. All tests stay far below. */
const WINDOW_MS = 60_000
/** With long windows a permit is usable however late a starved process reads it. */
const PATIENT = { jitterMs: WINDOW_MS / 4 }

class Pod {
  readonly #child: ChildProcess
  readonly #replies = new Map<number, { resolve(result: unknown): void; reject(e: Error): void }>()
  readonly #forget: () => void
  #id = 0

  constructor(url: string) {
    this.#child = fork(PROGRAM, [url])
    this.#forget = endWithThisProcess(this.#child.pid)
    this.#child.on('message', ({ id, result, error }: Record<string, unknown>) => {
      const reply = this.#replies.get(id as number)
      this.#replies.delete(id as number)
      if (error === undefined) reply?.resolve(result)
      else reply?.reject(new Error(String(error)))
    })
  }

  send<T = number>(command: string, details: object = {}): Promise<T> {
    const id = ++this.#id
    this.#child.send({ id, command, ...details })
    return new Promise<T>((resolve, reject) => {
      this.#replies.set(id, { resolve: resolve as (result: unknown) => void, reject })
    })
  }

  async stop(): Promise<void> {
    const gone = once(this.#child, 'exit')
    this.#child.disconnect()
    await gone
    this.#forget()
  }
}

let server: RedisServer
let pods: Pod[] = []
let listener: ReturnType<typeof createClient>
/** Messages that wake a pod. */
let wakes: string[] = []

beforeAll(async () => {
  server = await startRedis()
  pods = Array.from({ length: PODS }, () => new Pod(server.url))
  listener = createClient({ url: server.url })
  await listener.connect()
  await listener.pSubscribe('*:wake:permits:*', (text) => {
    wakes.push(text)
  })
  await Promise.all(pods.map((pod) => pod.send('ready')))
})
afterAll(async () => {
  await Promise.all(pods.map((pod) => pod.stop()))
  listener?.destroy()
  await server?.stop()
})

const pod = (index: number) => pods[index] as Pod

/** Resolves when this many pods have a subscription, which they open when a call waits. */
const untilListening = (count: number) =>
  vi.waitUntil(
    async () => {
      const channels = (await server.send('PUBSUB', 'CHANNELS', '*:wake:permits:*')) as string[]
      return channels.length >= count
    },
    { timeout: 20_000 },
  )

/** Resolves when the lane has been refused something, after which its waiting pods are stored. */
const untilRefused = (name: string) =>
  vi.waitUntil(
    async () => {
      const lane = String(await server.send('GET', `sw1:{${name}}:l:default`))
      return lane.includes('wake:permits')
    },
    { timeout: 20_000 },
  )

describe('waiting pods', () => {
  it('a settlement in one pod starts a call that waits in another pod', async ({ annotate }) => {
    const limits = [{ unit: 'tokens', limit: 100, windowMs: WINDOW_MS }]
    const limiter = { name: 'settled', limits, ...PATIENT }
    const cost = { tokens: 100 }
    expect(await pod(0).send('acquire', { limiter, cost, withinMs: 0 })).toBeDefined()
    const waiting = pod(1).send('acquire', { limiter, cost, withinMs: 2 * WINDOW_MS })
    await untilRefused('settled')
    await untilListening(1)
    const settledMs = await pod(0).send('settle', { actual: { tokens: 0 } })
    const tookMs = (await waiting) - settledMs
    await annotate(`started ${tookMs.toFixed(1)} ms after the settlement`)
    expect(tookMs).toBeLessThan(WINDOW_MS / 4)
  })

  it('a refund in one pod starts a guarded call that waits in another pod', async ({
    annotate,
  }) => {
    const limits = [{ unit: 'tokens', limit: 100, windowMs: WINDOW_MS, per: 'vendor' }]
    const limiter = { name: 'refunded', limits, ...PATIENT }
    const cost = { tokens: 60 }
    expect(await pod(0).send('acquire', { limiter, cost, withinMs: 0 })).toBeDefined()
    const waiting = pod(1).send('run', { guard: limiter, cost })
    await vi.waitUntil(
      async () => String(await server.send('GET', 'sw1:{refunded}:g')).includes('wake:permits'),
      { timeout: 20_000 },
    )
    await untilListening(1)
    const settledMs = await pod(0).send('settle', { actual: { tokens: 10 } })
    const tookMs = (await waiting) - settledMs
    await annotate(`started ${tookMs.toFixed(1)} ms after the settlement`)
    expect(tookMs).toBeLessThan(WINDOW_MS / 4)
  })

  it('raised limits and overrides start calls that wait in other pods', async ({ annotate }) => {
    const limits = [{ limit: 1, windowMs: '1h' }]
    const limiter = { name: 'raised', limits, ...PATIENT }
    expect(await pod(0).send('acquire', { limiter, withinMs: 0 })).toBeDefined()
    const waiting = [1, 2, 3].map((index) => pod(index).send('run', { guard: limiter }))
    await untilListening(3)
    await untilRefused('raised')
    const raisedMs = await pod(0).send('setLimits', {
      limiter,
      limits: [{ ...limits[0], limit: 4 }],
    })
    const tookMs = Math.max(...(await Promise.all(waiting))) - raisedMs
    const again = [1, 2, 3].map((index) => pod(index).send('run', { guard: limiter }))
    await untilRefused('raised')
    const override = { limiter, unit: 'requests', limit: 100, forMs: '10m' }
    const overriddenMs = await pod(0).send('override', override)
    const tookAgainMs = Math.max(...(await Promise.all(again))) - overriddenMs
    const figures = `${tookMs.toFixed(1)} ms and ${tookAgainMs.toFixed(1)} ms`
    await annotate(`the last of three pods started after ${figures}`)
    expect(tookMs).toBeLessThan(WINDOW_MS / 4)
    expect(tookAgainMs).toBeLessThan(WINDOW_MS / 4)
  })

  it('a lane sends at most 20 messages per second however many permits are settled', async ({
    annotate,
  }) => {
    const limits = [{ limit: 600, windowMs: '1h' }]
    const limiter = { name: 'storm', limits, ...PATIENT }
    await Promise.all(
      Array.from({ length: 600 }, () => pod(0).send('acquire', { limiter, withinMs: '20s' })),
    )
    const waiting = [1, 2, 3].flatMap((index) =>
      Array.from({ length: 200 }, () => pod(index).send('acquire', { limiter, withinMs: '2h' })),
    )
    await untilRefused('storm')
    await untilListening(3)
    wakes = []
    const startMs = performance.now()
    await pod(0).send('settleAll', { actual: { requests: 0 }, everyMs: 5 })
    await Promise.all(waiting)
    const seconds = (performance.now() - startMs) / 1_000
    await annotate(`${wakes.length} messages in ${seconds.toFixed(1)} s`)
    expect(wakes.length).toBeGreaterThan(0)
    expect(wakes.length).toBeLessThanOrEqual(20 * Math.ceil(seconds))
  })
})

const SLIDING = { algorithm: 'sliding-window', limit: 100, windowMs: 500 } as const
const BUCKET = { algorithm: 'token-bucket', limit: 100, burst: 10, windowMs: 1_000 } as const
const FIXED = { algorithm: 'fixed-window', limit: 100, windowMs: 500 } as const

type Limit = typeof SLIDING | typeof BUCKET | typeof FIXED

function claimEqualShares(...rows: [string, Limit][]): void {
  it.concurrent.for(rows)(
    'four saturated pods get equal shares of %s',
    async ([, limit], { annotate }) => {
      const guard = { name: `shared by ${limit.algorithm}`, limits: [limit] }
      const task = { guard, callers: 30, forMs: 9_500, warmUpMs: 1_500 }
      const { calls, turns } = await measure('saturate', task)
      await annotate(`calls by pod: ${calls.join(', ')}`)
      expectEqualShares(calls, turns)
      // Of the 400 turns that a pod has on an idle machine.
      const [total, ran] = [sum(calls), sum(turns) / (PODS * 400)]
      expect(total).toBeGreaterThan(limit.limit * 4 * ran)
    },
  )
}

// Two at a time, because these mostly wait.
describe('saturated pods of a window and a bucket', () => {
  claimEqualShares(['a sliding window', SLIDING], ['a token bucket', BUCKET])
})

describe('saturated pods of a window and of estimates', () => {
  claimEqualShares(['a fixed window', FIXED])

  it.concurrent('four saturated pods that settle their estimates get equal shares', async ({
    annotate,
  }) => {
    const limits = [{ unit: 'tokens', limit: 3_000, windowMs: 500 }]
    // On a busy machine replies take longer than the usual jitter, and five late ones in a row refuse a call.
    const limiter = { name: 'estimates', limits, jitterMs: 1_000 }
    const costs = { estimate: 100, actual: 40, holdMs: 50 }
    const task = { limiter, callers: 10, forMs: 9_500, warmUpMs: 1_500, ...costs }
    const { calls, turns } = await measure('spend', task)
    await annotate(`calls by pod: ${calls.join(', ')}`)
    expectEqualShares(calls, turns)
  })
})

const sum = (counts: readonly number[]) => counts.reduce((all, each) => all + each, 0)

/** The calls of each pod, and how often the machine let its process run. All pods count in the same period. */
async function measure(command: string, task: object) {
  const startMs = performance.timeOrigin + performance.now()
  const counts = await Promise.all(
    pods.map((each) => each.send<{ calls: number; turns: number }>(command, { ...task, startMs })),
  )
  return { calls: counts.map(({ calls }) => calls), turns: counts.map(({ turns }) => turns) }
}

/** On a busy machine, pods differ by as much as the machine lets them run. `equal-shares.test.ts` is exact. */
function expectEqualShares(calls: readonly number[], turns: readonly number[]): void {
  const shown = `calls by pod: ${calls.join(', ')}; turns: ${turns.join(', ')}`
  expect(inequality(calls), shown).toBeLessThan(0.2 + inequality(turns))
}
