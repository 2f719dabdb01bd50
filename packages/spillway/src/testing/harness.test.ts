import { describe, expect, it } from 'vitest'
import { fc } from '../../test/fast-check.js'
import { sleep } from '../core/time/sleep.js'
import { createCircuitBreaker } from '../shared/circuit-breaker/circuit-breaker.js'
import { createMembership, type Membership } from '../shared/membership.js'
import { createSharedRateLimiter } from '../shared/rate-limiter/rate-limiter.js'
import { createHarness, type HarnessOptions, type PodTools } from './harness.js'
import { PodClock } from './pod-clock.js'
import { createVendor } from './vendor.js'
import { createVirtualClock } from './virtual-clock.js'

const toolsOf = (pod: PodTools) => pod

function createFleet<T>(options: Partial<HarnessOptions<T>> & Pick<HarnessOptions<T>, 'create'>) {
  return createHarness<T>({ pods: 3, seed: 1, ...options })
}

const joining = ({ name, clock, store, random }: PodTools): Membership =>
  createMembership({ pod: name, clock, store, random })

describe('test fleet', () => {
  it('pods of a fleet share one store over separate connections', async () => {
    const fleet = createFleet({ create: joining, connection: { latencyMs: 4 } })
    await fleet.run(3_000)
    expect(fleet.pods.map(({ name }) => name)).toEqual(['pod-1', 'pod-2', 'pod-3'])
    expect(fleet.pods.map(({ value }) => value.live)).toEqual([3, 3, 3])
    expect(fleet.pods.every(({ store }) => store.counts.answered > 1)).toBe(true)
    expect(await fleet.store.pods.list({ group: 'pods:fleet' })).toHaveLength(3)
  })

  it('one pod of a fleet can be cut off alone', async () => {
    const fleet = createFleet({ create: joining })
    await fleet.run(1_500)
    fleet.pods[1]?.store.goDown()
    await fleet.run(10_000)
    expect(fleet.pods.map(({ value }) => value.live)).toEqual([2, 3, 2])
    fleet.pods[1]?.store.comeBack()
    await fleet.run(2_000)
    expect(fleet.pods.map(({ value }) => value.live)).toEqual([3, 3, 3])
  })

  it('a killed pod runs no timers, and its sent commands still run', async () => {
    const fleet = createFleet({ create: toolsOf })
    const [dying] = fleet.pods
    const ticks: number[] = []
    const tick = () => {
      ticks.push(fleet.clock.now())
      dying?.clock.schedule(100, tick)
    }
    tick()
    await fleet.run(250)
    const beat = { group: 'pods:fleet', pod: 'a', lifeUs: 1e9, snapshot: '' }
    let received = false
    void Promise.resolve(dying?.store.pods.beat(beat)).finally(() => {
      received = true
    })
    fleet.kill(0)
    dying?.clock.schedule(10, tick)
    await fleet.run(1_000)
    expect(ticks).toEqual([0, 100, 200])
    expect(received).toBe(false)
    expect(await fleet.store.pods.list({ group: 'pods:fleet' })).toHaveLength(1)
    expect(fleet.pods.map(({ alive }) => alive)).toEqual([false, true, true])
    expect(dying?.signal.aborted).toBe(true)
    expect(() => fleet.pods[0]?.value).toThrow('pod-1 was killed')
    expect(() => fleet.kill(7)).toThrow('unknown pod 7')
    expect(fleet.clock.pending).toBe(0)
  })

  it('new pods join the fleet and dead ones expire', async () => {
    const fleet = createFleet({ create: joining })
    await fleet.run(500)
    fleet.kill(2)
    const joined = fleet.start({ name: 'late' })
    await fleet.run(3_000)
    expect(joined.value.live).toBe(4)
    await fleet.run(4_000)
    expect(joined.value.live).toBe(3)
    expect(joined.clock.now()).toBe(7_000)
    expect(await fleet.settle(joined.value.members())).toHaveLength(3)
  })

  it('after a store restart all pods join the new store', async () => {
    const fleet = createFleet({ create: joining })
    await fleet.run(2_500)
    const before = fleet.store
    fleet.pods[0]?.store.goDown()
    fleet.restartStore()
    expect(fleet.store).not.toBe(before)
    expect(await fleet.store.pods.list({ group: 'pods:fleet' })).toEqual([])
    await fleet.run(1_000)
    expect(await fleet.store.pods.list({ group: 'pods:fleet' })).toHaveLength(2)
    fleet.pods[0]?.store.comeBack()
    await fleet.run(2_000)
    expect(fleet.pods.map(({ value }) => value.live)).toEqual([3, 3, 3])
  })

  it('each pod has its own random sequence', () => {
    const draw = (greedy: number) => {
      const fleet = createFleet({ create: toolsOf })
      for (let i = 0; i < greedy; i++) fleet.pods[0]?.random()
      return [fleet.pods[1]?.random(), fleet.pods[2]?.random(), fleet.random()]
    }
    expect(draw(0)).toEqual(draw(10))
    expect(new Set(draw(0)).size).toBe(3)
  })
})

describe('pod clock', () => {
  it('a pod clock has the configured skew and drift', async () => {
    const pods = [{}, { skewMs: -90_000 }, { skewMs: 500, driftPpm: 1_000 }]
    const fleet = createFleet({ create: toolsOf, pods })
    await fleet.run(1_000_000)
    const trueMs = fleet.clock.wallMs()
    const [right, behind, fast] = fleet.pods.map(({ clock }) => clock.wallMs() - trueMs)
    expect([right, behind]).toEqual([0, -90_000])
    expect(fast).toBeCloseTo(1_500, 3)
    expect(fleet.pods[2]?.clock.now()).toBeCloseTo(1_001_000, 3)
  })

  it('a drifting clock fires a timer at its own due time, never early and hardly late', async () => {
    const delays = fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }), { minLength: 1 })
    const drift = fc.double({ min: -400_000, max: 400_000, noNaN: true })
    await fc.assert(
      fc.asyncProperty(delays, drift, fc.nat(1e6), async (all, driftPpm, startMs) => {
        const base = createVirtualClock({ startMs })
        const clock = new PodClock(base, { driftPpm })
        for (const delayMs of all) {
          const dueMs = clock.now() + delayMs
          await base.until(sleep(clock, delayMs))
          expect(clock.now()).toBeGreaterThanOrEqual(dueMs)
          expect(clock.now() - dueMs).toBeLessThan(1e-6)
        }
        expect(base.pending).toBe(0)
      }),
    )
  })

  it('a loop that rearms a timer for the remaining time ends after few timers', async () => {
    const base = createVirtualClock({ startMs: 123_456.789 })
    const clock = new PodClock(base, { driftPpm: 33.3 })
    let armed = 0
    const waitUntil = (untilMs: number): Promise<void> => {
      armed++
      const leftMs = untilMs - clock.now()
      return leftMs > 0 ? sleep(clock, leftMs).then(() => waitUntil(untilMs)) : Promise.resolve()
    }
    for (let i = 1; i <= 1_000; i++) await base.until(waitUntil(clock.now() + i / 7))
    expect(armed).toBeLessThan(4_000)
  })

  it('an unreferenced pod timer does not keep the process alive', () => {
    const base = createVirtualClock()
    const clock = new PodClock(base)
    const timer = clock.schedule(10, () => {})
    timer.unref()
    expect(base.pending).toBe(0)
    timer.ref()
    expect(base.pending).toBe(1)
    timer.cancel()
    timer.ref()
    expect(base.pending).toBe(0)
  })
})

/** Each pod requests as much as it can get of the vendor limit they share. */
function createBusyFleet(seed: number, windowMs: number) {
  const limits = [{ limit: 50, windowMs }]
  const fleet = createHarness({
    seed,
    pods: [{}, { skewMs: -3_600_000, driftPpm: 200 }, { skewMs: 86_400_000, driftPpm: -200 }],
    connection: { latencyMs: (random) => 1 + 3 * random() },
    create: ({ name, clock, store, random }) =>
      createSharedRateLimiter({ name: 'openai', pod: name, limits, clock, store, random }),
  })
  const vendor = createVendor({
    clock: fleet.clock,
    random: fleet.random,
    serviceMs: (random) => 20 + 200 * random(),
    limits,
  })
  const log: string[] = []
  const work = async ({ name, value }: (typeof fleet.pods)[number]) => {
    for (;;) {
      const acquired = await value.acquireWithin('10s').catch((error) => error)
      if (!acquired.allowed) {
        log.push(`${name} ${acquired.code ?? 'refused'} at ${fleet.clock.now()}`)
        await sleep(fleet.clock, 10)
        continue
      }
      const { status } = await vendor.call()
      log.push(`${name} ${status} at ${fleet.clock.now()}`)
    }
  }
  for (const pod of fleet.pods) for (let i = 0; i < 10; i++) void work(pod)
  return { fleet, vendor, log }
}

describe('fleet over faulty connections', () => {
  it('three pods never exceed the vendor limit although replies get lost', async () => {
    const { fleet, vendor } = createBusyFleet(7, 1_000)
    for (const { store } of fleet.pods) store.loseReplies(0.01)
    await fleet.run(120_000)
    const lost = fleet.pods.reduce((sum, { store }) => sum + store.counts.lostReplies, 0)
    expect(lost).toBeGreaterThan(5)
    expect(vendor.mostInAnyWindow(1_000)).toBeLessThanOrEqual(50)
    expect(vendor.calls.throttled).toBe(0)
    // The pods use most of the limit.
    expect(vendor.calls.succeeded).toBeGreaterThan(0.8 * 50 * 120)
  })

  it('the same seed gives the same history, and another seed a different one', async () => {
    const history = async (seed: number) => {
      const { fleet, vendor, log } = createBusyFleet(seed, 1_000)
      for (const { store } of fleet.pods) {
        store.loseReplies(0.02)
        store.loseRequests(0.02)
      }
      await fleet.run(5_000)
      fleet.pods[0]?.store.goDown()
      vendor.failSome(0.3)
      await fleet.run(2_000)
      fleet.pods[0]?.store.comeBack()
      fleet.kill(1)
      await fleet.run(3_000)
      fleet.restartStore()
      vendor.brownOut(3)
      await fleet.run(5_000)
      const counts = fleet.pods.map(({ store }) => store.counts)
      return JSON.stringify([log, counts, vendor.calls, [...vendor.arrivals], fleet.clock.fired])
    }
    const first = await history(11)
    expect(first.length).toBeGreaterThan(10_000)
    expect(await history(11)).toBe(first)
    expect(await history(12)).not.toBe(first)
  })

  it('a breaker trips on all pods: at once by push, or with the next heartbeat if that was lost', async () => {
    const fleet = createFleet({
      connection: { latencyMs: 4 },
      create: ({ name, clock, store, random }) =>
        createCircuitBreaker({
          ...{ name: 'openai', pod: name, clock, store, random },
          consecutiveFailures: 5,
          openMs: '30s',
        }),
    })
    const states = () => fleet.pods.map(({ value }) => value.state())
    await fleet.settle(Promise.all(fleet.pods.map(({ value }) => value.run(() => 'fine'))))
    await fleet.run(500)
    fleet.pods[1]?.store.losePushes(1)
    const vendor = createVendor({ clock: fleet.clock, random: fleet.random, serviceMs: 10 })
    vendor.failAll()
    const calls = Array.from({ length: 5 }, () => fleet.pods[0]?.value.run(() => vendor.call()))
    await fleet.settle(Promise.all(calls))
    await fleet.run(10)
    expect(states()).toEqual(['open', 'closed', 'open'])
    expect(fleet.pods[1]?.store.counts.lostPushes).toBe(1)
    await fleet.run(1_000 + 4)
    expect(states()).toEqual(['open', 'open', 'open'])
  })
})
