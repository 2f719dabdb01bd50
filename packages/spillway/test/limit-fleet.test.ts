// test-group: io, slow

/** The shared rate limiter in a fleet: real processes, a real server, and a vendor that counts. */
import { redisStore } from 'spillway/redis'
import { createSharedRateLimiter } from 'spillway/shared'
import { createRandom } from 'spillway/testing'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { usualOrLong } from './long-run.js'
import {
  type Arrival,
  HAS_FAKETIME,
  mostInAWindow,
  type Pod,
  startPod,
  startVendor,
  type Task,
  type Vendor,
} from './pods.js'
import { type RedisServer, startRedis } from './redis-server.js'

/** Starting a process is what costs most here. */
const PODS = usualOrLong(5, 8)
const HOUR_MS = 3_600_000

let server: RedisServer
let vendor: Vendor
let starting: Promise<Pod>[] = []
let pods: Pod[] = []
beforeAll(async () => {
  ;[server, vendor] = await Promise.all([startRedis(), startVendor()])
  const options = { url: server.url, vendorPort: vendor.port }
  starting = Array.from({ length: PODS }, (_, pod) =>
    startPod(pod === PODS - 1 && HAS_FAKETIME ? { ...options, clock: '+1h' } : options),
  )
  pods = await Promise.all(starting)
})
afterAll(async () => {
  for (const pod of await Promise.allSettled(starting)) {
    if (pod.status === 'fulfilled') await pod.value.stop()
  }
  await Promise.all([vendor?.stop(), server?.stop()])
})

/** Runs a task on the first `count` pods at the same time and sums up the results. */
async function runOn(count: number, taskOf: (pod: number) => Task) {
  const reports = await Promise.all(pods.slice(0, count).map((pod, at) => pod.run(taskOf(at))))
  const sum = (what: 'passed' | 'failed' | 'replies' | 'lost') =>
    reports.reduce((total, report) => total + report[what], 0)
  const passed = sum('passed')
  const arrivals: Arrival[] = []
  await vi.waitUntil(() => arrivals.push(...vendor.takeArrivals()) && arrivals.length >= passed)
  return { passed, failed: sum('failed'), replies: sum('replies'), lost: sum('lost'), arrivals }
}

const sumOf = (arrivals: readonly Arrival[], unitsOf: (arrival: Arrival) => number) =>
  arrivals.reduce((sum, arrival) => sum + unitsOf(arrival), 0)

/**
 * The used share of the limit: how much longer than a window it takes, on average, until as many
 * calls have arrived as a window allows.
 */
function shareUsed(arrivals: readonly Arrival[], limit: number, windowMs: number): number {
  const takesMs = arrivals.slice(limit).map(({ atMs }, index) => atMs - arrivals[index]!.atMs)
  return (windowMs * takesMs.length) / takesMs.reduce((sum, ms) => sum + ms, 0)
}

describe('rate-limited fleet', () => {
  it('two pods with 15 concurrent calls get exactly 10 permits', async () => {
    const limiter = { name: 'two', jitterMs: 1_000, limits: [{ limit: 10, windowMs: 1_000 }] }
    const { passed } = await runOn(2, (pod) => ({
      job: 'ask',
      limiter,
      commandTimeoutMs: 1_000,
      calls: 8 - pod,
    }))
    expect(passed).toBe(10)
  })

  it.skipIf(!HAS_FAKETIME)(
    'one pod of the rate-limited fleet has a clock an hour ahead (needs faketime)',
    () => {
      const isAhead = pods.map(({ ready }) => ready.wallMs - Date.now() > HOUR_MS / 2)
      expect(isAhead.lastIndexOf(false)).toBe(PODS - 2)
      expect(isAhead.indexOf(true)).toBe(PODS - 1)
    },
  )

  it('the fleet keeps the vendor limit and uses nearly all of it although 1 % of replies are lost', async ({
    annotate,
  }) => {
    const [limit, windowMs] = [60, 6_000]
    const limits = [{ limit, windowMs }]
    const lanes = ['small', 'medium', 'large']
    // The same calls at the same time, without a lost reply: a busy machine uses less of these lanes, too.
    const controlLanes = ['huge', 'images', 'speech']
    const { arrivals, replies, lost } = await runOn(PODS, (pod) => ({
      job: 'press',
      limiter: { name: 'fleet', jitterMs: 100, limits },
      control: { name: 'control', jitterMs: 100, limits },
      lose: { every: 100, offset: Math.round((100 / PODS) * pod), key: '{fleet}' },
      lanes,
      controlLanes,
      // Starts with what the limit allows, so that not everything is used at once.
      calmMs: windowMs,
      everyMs: (windowMs / limit) * PODS,
      forMs: 2 * windowMs + 500,
      mostInABurst: 3,
    }))
    expect(lost / replies).toBeCloseTo(0.01, 2)

    const shareOf = (names: readonly string[]) => {
      const shares = names.map((name) => {
        const ofLane = arrivals.filter(({ lane }) => lane === name)
        expect(mostInAWindow(ofLane, windowMs)).toBeLessThanOrEqual(limit)
        return shareUsed(ofLane, limit, windowMs)
      })
      return shares.reduce((sum, each) => sum + each, 0) / shares.length
    }
    const [share, control] = [shareOf(lanes), shareOf(controlLanes)]
    const percent = (part: number) => `${(part * 100).toFixed(1)} %`
    await annotate(`used ${percent(share)} of the contract, ${percent(control)} without loss`)
    expect(share).toBeGreaterThanOrEqual(0.93 * control)
  })

  it('the fleet keeps a token limit although 1,000 concurrent calls only know estimates', async ({
    annotate,
  }) => {
    const [limit, windowMs] = [300_000, 1_000]
    const limiter = {
      name: 'tokens',
      jitterMs: 500,
      limits: [
        { unit: 'tokens', limit, windowMs },
        // The same tokens in a window that holds the whole test, to check the final sum.
        { unit: 'ledger', limit: 10_000_000, windowMs: HOUR_MS },
      ],
    }
    const random = createRandom(8)
    const { arrivals, lost } = await runOn(PODS, (pod) => ({
      job: 'spend',
      limiter,
      commandTimeoutMs: 300,
      // At least the first reply of one pod.
      lose: { every: 10, offset: 9 - pod, key: '}:q:' },
      calls: Array.from({ length: 1_000 / PODS }, () => {
        const estimate = Math.round(100 + 900 * random())
        return [estimate, Math.round(estimate * (0.5 + random()))]
      }),
    }))
    expect(arrivals).toHaveLength(1_000)

    const actual = (call: Arrival) => call.actual
    const overrun = (call: Arrival) => Math.max(0, call.actual - call.estimate)
    const mostUsed = mostInAWindow(arrivals, windowMs, actual)
    const mostOverrun = mostInAWindow(arrivals, windowMs, overrun)
    await annotate(`used ${mostUsed} of ${limit} tokens, ${mostOverrun} beyond estimates`)
    expect(mostUsed).toBeLessThanOrEqual(limit + mostOverrun)
    expect(
      mostInAWindow(arrivals, windowMs, (call) => actual(call) - overrun(call)),
    ).toBeLessThanOrEqual(limit)

    // Settlements whose replies were lost were sent again and count once.
    expect(lost).toBeGreaterThan(0)
    expect(await usedOfLedger(limiter)).toBe(sumOf(arrivals, actual))
  })
})

/** The final sum, as seen by a new pod. */
async function usedOfLedger(limiter: Task['limiter']): Promise<number | undefined> {
  const store = redisStore({ url: server.url, commandTimeoutMs: 2_000 })
  onTestFinished(() => store.close())
  await vi.waitUntil(() => store.ready, { timeout: 5_000 })
  const { limits } = await createSharedRateLimiter({ store, ...limiter }).figures()
  return limits.find(({ id }) => id === 'ledger')?.used
}
