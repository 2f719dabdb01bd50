// test-group: io, slow

/** The shared circuit breaker in a fleet: real processes, a real server, and a vendor that counts. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type RedisStore, redisStore } from 'spillway/redis'
import { type CircuitBreakerOptions, createCircuitBreaker } from 'spillway/shared'
import { createRandom } from 'spillway/testing'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  type BreakerPod,
  type Counts,
  type MockVendor,
  startBreakerPod,
  startMockVendor,
} from './breaker-pods.js'
import { usualOrLong } from './long-run.js'
import { type RedisServer, startRedis } from './redis-server.js'

/** Starting a process is what costs most here. */
const PODS = usualOrLong(5, 8)
/** Longer than any of these tests. */
const LONG_MS = 600_000

let server: RedisServer
let vendor: MockVendor
let store: RedisStore
const starting: Promise<BreakerPod>[] = []
let pods: BreakerPod[] = []

function startOne(): Promise<BreakerPod> {
  const pod = startBreakerPod(server.url, vendor.port)
  starting.push(pod)
  return pod
}

beforeAll(async () => {
  ;[server, vendor] = await Promise.all([startRedis(), startMockVendor()])
  store = redisStore({ url: server.url, commandTimeoutMs: 2_000 })
  pods = await Promise.all(Array.from({ length: PODS }, startOne))
  await vi.waitUntil(() => store.ready, { timeout: 5_000 })
})
afterAll(async () => {
  for (const pod of await Promise.allSettled(starting)) {
    if (pod.status === 'fulfilled') await pod.value.stop()
  }
  await store?.close()
  await Promise.all([vendor?.stop(), server?.stop()])
})
beforeEach(() => {
  vendor.probes = { now: vendor.probes.now, most: 0, total: 0 }
  vendor.calls = 0
  vendor.answer = () => ({ status: 200, afterMs: 0 })
})

type Options = Omit<CircuitBreakerOptions, 'name' | 'store'>

/** Creates the breaker on all pods, and one here that only listens. */
async function openBreaker(name: string, options: Options, isBroken = (_pod: number) => false) {
  // No quorum, because this process must not count as a pod.
  const breaker = createCircuitBreaker({ name, store, ...options, quorum: 1 })
  const changes: string[] = []
  breaker.onChange(({ to }) => changes.push(to))
  onTestFinished(async () => {
    await Promise.all([breaker.close(), ...pods.map((pod) => pod.ask('close', { name }))])
  })
  await Promise.all(pods.map((pod, at) => pod.ask('open', { name, options, broken: isBroken(at) })))
  await breaker.allow()
  return { breaker, changes }
}

function eachPod<T>(ask: (pod: BreakerPod, at: number) => Promise<T>): Promise<T[]> {
  return Promise.all(pods.map(ask))
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)]!
}

function untilAll(name: string, state: string): Promise<number[]> {
  return eachPod((pod) => pod.ask('until', { name, state }))
}

describe(`a fleet of ${PODS} pods`, () => {
  it(`half-open breakers of ${PODS} pods never have more than three probes at the vendor`, async ({
    annotate,
  }) => {
    const [name, rounds] = ['rounds', usualOrLong(12, 200)]
    const options = { consecutiveFailures: 1, openMs: 120, probes: 3, successes: 2, rampMs: 0 }
    const { breaker, changes } = await openBreaker(name, options)
    const random = createRandom(3)
    // Most probes succeed; then calls arrive and fail.
    vendor.answer = (probe) =>
      probe
        ? { status: random() < 0.75 ? 200 : 500, afterMs: 5 + 20 * random() }
        : { status: 500, afterMs: 0 }
    const times = (state: string) => changes.filter((to) => to === state).length
    const hammering = eachPod((pod) =>
      pod.ask('hammer', { name, lines: 3, pauseMs: 3, forMs: 600_000 }),
    )
    await breaker.trip()
    await vi.waitUntil(() => times('half-open') >= rounds, { interval: 20 })
    await eachPod((pod) => pod.ask('rest', { name }))
    await hammering
    await annotate(
      `${vendor.probes.total} probes in ${times('half-open')} rounds, ${times('closed')} closed`,
    )
    expect(vendor.probes.most).toBe(3)
    expect(vendor.probes.total).toBeGreaterThan(2 * rounds)
    expect(times('closed')).toBeGreaterThan(rounds / 10)
    expect(times('open')).toBeGreaterThan(0.9 * rounds)
  })

  it('breaker opens on every pod after one pod has recorded fifty failures', async () => {
    const name = 'fifty'
    const { breaker } = await openBreaker(name, { consecutiveFailures: 50, openMs: LONG_MS })
    const [first, second] = pods
    await first!.ask('record', { name, outcome: 'failure', times: 49 })
    expect(await second!.ask('state', { name })).toMatchObject({ state: 'closed' })
    await first!.ask('record', { name, outcome: 'failure' })
    await untilAll(name, 'open')
    expect(breaker.snapshot()).toMatchObject({ state: 'open', failures: 50 })
  })

  it('simultaneous failures of all pods are counted exactly, and a success resets them', async () => {
    const name = 'exactly'
    const each = 3
    const { breaker } = await openBreaker(name, {
      consecutiveFailures: PODS * each + 1,
      openMs: LONG_MS,
    })
    await eachPod((pod) => pod.ask('record', { name, outcome: 'failure', times: each }))
    const failures = pods.length * each
    await vi.waitUntil(() => breaker.snapshot().failures >= failures)
    expect(breaker.snapshot()).toMatchObject({
      state: 'closed',
      failures,
      consecutiveFailures: failures,
    })
    await pods[0]!.ask('record', { name, outcome: 'success' })
    await vi.waitUntil(() => breaker.snapshot().consecutiveFailures === 0)
    expect(breaker.snapshot()).toMatchObject({ state: 'closed', failures })
    await eachPod((pod) => pod.ask('record', { name, outcome: 'failure', times: each + 1 }))
    await untilAll(name, 'open')
  })

  it('a breaker closes after the pod with its only probe was killed', async ({ annotate }) => {
    const [name, probeLeaseMs] = ['killed', 2_000]
    const options = { openMs: 100, probes: 1, successes: 1, probeLeaseMs, rampMs: 0 }
    const { breaker } = await openBreaker(name, options)
    await breaker.trip()
    const killedPod = pods.pop()!
    await killedPod.ask('until', { name, state: 'half-open' })
    expect(await killedPod.ask('hold', { name })).toBe(true)
    await vi.waitUntil(() => vendor.probes.now === 1)
    const hammering = eachPod((pod) =>
      pod.ask('hammer', { name, lines: 2, pauseMs: 50, forMs: 600_000 }),
    )
    // While alive, the pod keeps its probe although that takes longer than a lease.
    await sleep(1.5 * probeLeaseMs)
    expect(vendor.probes.total).toBe(1)
    const killedMs = performance.now()
    await killedPod.kill()
    await vi.waitUntil(() => breaker.state() === 'closed', { timeout: 10_000, interval: 5 })
    const tookMs = performance.now() - killedMs
    await eachPod((pod) => pod.ask('rest', { name }))
    await hammering
    await annotate(`closed again ${tookMs.toFixed(0)} ms after the kill`)
    expect(vendor.probes.most).toBe(1)
    pods.push(await startOne())
  })

  it('a trip reaches all pods by push, long before their next heartbeat, and they refuse in memory', async ({
    annotate,
  }) => {
    const [name, rounds] = ['spread', usualOrLong(15, 100)]
    const { breaker } = await openBreaker(name, { consecutiveFailures: 1, openMs: LONG_MS })
    const tookMs: number[] = []
    const askedMs: number[] = []
    for (let round = 0; round < rounds; round++) {
      const failedMs = await pods[round % PODS]!.ask('record', { name, outcome: 'failure' })
      const heardMs = await untilAll(name, 'open')
      tookMs.push(Math.max(...heardMs) - failedMs)
      if (round === rounds - 1) break
      await breaker.reset()
      await untilAll(name, 'closed')
      const beganMs = performance.now()
      await eachPod((pod) => pod.ask('state', { name }))
      askedMs.push(performance.now() - beganMs)
    }
    tookMs.sort((one, other) => one - other)
    const [p50, p99] = [median(tookMs), tookMs[Math.ceil(rounds * 0.99) - 1]!]
    await annotate(
      `to the last of ${PODS} pods: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, ` +
        `most ${tookMs.at(-1)!.toFixed(1)} ms`,
    )
    // Pods that only polled once a second would need almost a second until the last one has the state. On a busy
    // machine even a request to each of them takes a while.
    expect(p50).toBeLessThan(500 + 10 * median(askedMs))

    const times = 10_000
    const refusals = await eachPod((pod) => pod.ask('refuse', { name, times }))
    expect(refusals).toEqual(Array.from(pods, () => ({ refused: times, commands: 0 })))
  })

  it('fleet continues without the one pod whose network is broken', async ({ annotate }) => {
    const name = 'one-broken'
    const options = { quorum: 2, failureRate: 0.5, openMs: LONG_MS }
    const { changes } = await openBreaker(name, options, (pod) => pod === 0)
    const load = { name, perSecond: 50, forMs: 2_000 }
    const [sick, ...others] = await eachPod((pod) => pod.ask('load', load))
    await annotate(`the sick pod made ${sick!.called} calls, and refused ${sick!.refused}`)
    expect(changes).toEqual([])
    for (const { called, succeeded, refused } of others) {
      expect({ succeeded, refused }).toEqual({ succeeded: called, refused: 0 })
      expect(called).toBeGreaterThan(10)
    }
    expect(sick).toMatchObject({ succeeded: 0 })
    expect(sick!.refused).toBeGreaterThan(sick!.called)
    const states = await eachPod((pod) => pod.ask('state', { name }))
    expect(states.map(({ state }) => state)).toEqual(Array(PODS).fill('closed'))
    expect(states.map(({ selfIsolated }) => selfIsolated)).toEqual([
      true,
      ...Array(PODS - 1).fill(false),
    ])
  })

  it('fleet stops calling when half of its pods fail', async () => {
    const name = 'half-broken'
    const options = { quorum: 2, failureRate: 0.5, openMs: LONG_MS }
    await openBreaker(name, options, (pod) => pod % 2 === 0)
    const load = { name, perSecond: 50, forMs: 1_500 }
    const counts = await eachPod((pod) => pod.ask('load', load))
    await untilAll(name, 'open')
    for (const { refused } of counts) expect(refused).toBeGreaterThan(0)
  })

  it('a breaker with failureRate 0.5 never opens for 5 % of errors', async ({ annotate }) => {
    const name = 'five-percent'
    const { changes } = await openBreaker(name, { failureRate: 0.5 })
    const random = createRandom(20)
    vendor.answer = () => ({ status: random() < 0.05 ? 500 : 200, afterMs: 0 })
    const counts: (Counts & { commands: number })[] = []
    const sum = (of: 'called' | 'succeeded' | 'refused' | 'commands') =>
      counts.reduce((total, count) => total + count[of], 0)
    const load = { name, perSecond: 1_000 / PODS, forMs: 1_000 }
    const beganMs = performance.now()
    // A busy machine needs more seconds for the same number of calls.
    while (sum('called') < usualOrLong(1_000, 10_000)) {
      counts.push(...(await eachPod((pod) => pod.ask('load', load))))
    }
    const tookS = (performance.now() - beganMs) / 1_000
    const [called, failed] = [sum('called'), sum('called') - sum('succeeded')]
    await annotate(
      `${called} calls, ${failed} failed, ${(sum('commands') / called).toFixed(2)} commands a call`,
    )
    expect(changes).toEqual([])
    expect(sum('refused')).toBe(0)
    expect(failed / called).toBeCloseTo(0.05, 1)
    const { calls, failures } = await pods[0]!.ask('state', { name })
    expect(failures / calls).toBeLessThan(0.1)
    // Each pod reports failures at once, successes ten times a second, and syncs once a second.
    expect(sum('commands')).toBeLessThan(failed + PODS * tookS * (10 + 1) + 200)
  })

  it('breaker state survives new pods and the replacement of every pod', async () => {
    const most = PODS + 2
    const counting = { consecutiveFailures: most, openMs: LONG_MS, windowMs: 300_000 }
    const names = ['counting', 'opened', 'isolated'] as const
    for (const name of names) await openBreaker(name, counting)
    const oneMore = (pod: BreakerPod) => pod.ask('record', { name: 'counting', outcome: 'failure' })
    await eachPod(oneMore)
    await oneMore(pods[0]!)
    await pods[1]!.ask('record', { name: 'opened', outcome: 'failure', times: most })
    const { breaker: isolated } = await openBreaker('isolated', counting)
    await isolated.isolate(LONG_MS)

    const replaced = pods
    const replacements = await Promise.all(pods.map(startOne))
    pods = []
    for (const [at, old] of replaced.entries()) {
      // A new pod joins the fleet when it opens its breakers. Then an old one leaves.
      const young = replacements[at]!
      for (const name of names) await young.ask('open', { name, options: counting })
      pods.push(young)
      for (const name of names) await old.ask('close', { name })
      await old.stop()
    }
    const stateOf = async (name: string) =>
      (await eachPod((pod) => pod.ask('state', { name }))).map(({ state }) => state)
    expect(await stateOf('counting')).toEqual(Array(PODS).fill('closed'))
    expect(await stateOf('opened')).toEqual(Array(PODS).fill('open'))
    expect(await stateOf('isolated')).toEqual(Array(PODS).fill('isolated'))
    // All failures but one are still counted.
    await oneMore(pods[3]!)
    await untilAll('counting', 'open')
  })
})
