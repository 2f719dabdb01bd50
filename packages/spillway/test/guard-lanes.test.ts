/** A guard has at most `maxLanes` lanes, whatever lane names its calls use. */
import { describe, expect, it } from 'vitest'
import { onEvent, type SpillwayEvent } from '../src/core/events.js'
import { sleep } from '../src/core/time/sleep.js'
import { createCircuitBreaker } from '../src/shared/circuit-breaker/circuit-breaker.js'
import { createSharedRateLimiter } from '../src/shared/rate-limiter/rate-limiter.js'
import { memoryStore } from '../src/store/memory/memory-store.js'
import type { SyncRequest } from '../src/store/port.js'
import { createVirtualClock } from '../src/testing/virtual-clock.js'
import {
  createGuardPod,
  createJob,
  EVERYWHERE,
  type GuardPod,
  vendorError,
  type Where,
} from './guard-pod.js'
import { usualOrLong } from './long-run.js'

const BREAKER = { consecutiveFailures: 1, openMs: 60_000, rampMs: 0 }
const LIMITS = [{ limit: 1_000, windowMs: 60_000 }]
const lanesOf = ({ guard }: GuardPod) => guard.snapshot().lanes.slice().sort()
const breakersOf = ({ guard }: GuardPod) => guard.snapshot().breakers.map(({ lane }) => lane)
const fail = () => {
  throw vendorError(500)
}

describe.each(EVERYWHERE)('with a store in %s,', (where: Where) => {
  const create = (options: Parameters<typeof createGuardPod>[0]) =>
    createGuardPod({ breaker: BREAKER, limits: LIMITS, ...options }, { where })

  it('thousands of lane names leave a guard with maxLanes lanes in every map', async () => {
    const pod = create({
      maxLanes: 20,
      throttle: {},
      concurrency: { adaptive: 'aimd', limit: 100, min: 1, max: 50 },
    })
    for (let i = 0; i < usualOrLong(1_000, 10_000); i++) {
      pod.quick({ lane: `lane ${i}` })
      if (i % 50 === 0) await pod.clock.advance(10)
    }
    await pod.clock.advance(1_000)
    const { breakers, laneLimits, throttles, lanes } = pod.guard.snapshot()
    for (const list of [breakers, laneLimits, throttles, lanes]) {
      // One more for (other).
      expect(list.length).toBeLessThanOrEqual(21)
    }
    const served = pod.quick({ lane: 'lane 1' })
    await pod.clock.advance(100)
    expect(served.state).toBe('resolved')
  })

  it('an open lane is not dropped, however many other lanes are used', async () => {
    const pod = create({ maxLanes: 3 })
    pod.run(fail, { lane: 'open' })
    await pod.clock.advance(100)
    for (let i = 0; i < 100; i++) {
      pod.quick({ lane: `lane ${i}` })
      await pod.clock.advance(10)
    }
    expect(pod.guard.breaker?.state({ lane: 'open' })).toBe('open')
    const refused = pod.quick({ lane: 'open' })
    await pod.clock.advance(10)
    expect(refused.error).toMatchObject({ code: 'CIRCUIT_OPEN' })
  })

  it('an isolated lane is not dropped and stays isolated while maxLanes other lanes are in use', async () => {
    const pod = create({ maxLanes: 2 })
    const job = createJob()
    for (const lane of ['a', 'b']) pod.run(job.fn, { lane })
    await pod.clock.advance(100)
    void pod.guard.breaker?.isolate('1h', { lane: 'isolated' })
    await pod.clock.advance(100)
    for (let i = 0; i < 20; i++) {
      pod.quick({ lane: `lane ${i}` })
      await pod.clock.advance(10)
    }
    expect(lanesOf(pod)).toContain('isolated')
    const refused = pod.quick({ lane: 'isolated' })
    await pod.clock.advance(10)
    expect(refused.error).toMatchObject({ code: 'CIRCUIT_OPEN' })
    job.finish()
  })

  it('a lane that the vendor has paused is not dropped', async () => {
    const pod = create({ maxLanes: 2, breaker: { consecutiveFailures: 100 } })
    pod.run(
      () => {
        throw vendorError(429, { 'retry-after': '30' })
      },
      { lane: 'paused' },
    )
    await pod.clock.advance(100)
    for (let i = 0; i < 50; i++) {
      pod.quick({ lane: `lane ${i}` })
      await pod.clock.advance(10)
    }
    expect(lanesOf(pod)).toContain('paused')
    const refused = pod.quick({ lane: 'paused' })
    await pod.clock.advance(10)
    expect(refused.error).toMatchObject({ code: 'VENDOR_LIMITED' })
  })

  it('a lane in use is not dropped, and calls beyond maxLanes share (other), with one event', async () => {
    const events: SpillwayEvent[] = []
    const stop = onEvent((event) => events.push(event))
    const pod = create({ maxLanes: 2 })
    const job = createJob()
    const seen: string[] = []
    for (const lane of ['a', 'b', 'c', 'd', 'e']) {
      pod.run(
        (context) => {
          seen.push(context.lane)
          return job.fn(context)
        },
        { lane },
      )
      await pod.clock.advance(10)
    }
    expect(lanesOf(pod)).toEqual(['(other)', 'a', 'b'])
    // The function still gets the name of the model that the caller chose.
    expect(seen).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect(await pod.used('(other)')).toBe(3)
    expect(events.filter(({ type }) => type === 'lanes.full')).toEqual([
      { type: 'lanes.full', name: 'openai', lane: '(other)', maxLanes: 2 },
    ])
    job.finish()
    await pod.clock.advance(1_000)
    pod.quick({ lane: 'c' })
    await pod.clock.advance(10)
    expect(lanesOf(pod)).toContain('c')
    stop()
  })

  it('(other) has a working breaker and limits of its own', async () => {
    const pod = create({ maxLanes: 1, limits: [{ limit: 2, windowMs: 60_000 }] })
    const job = createJob()
    pod.run(job.fn, { lane: 'a' })
    await pod.clock.advance(10)
    for (const lane of ['b', 'c']) pod.quick({ lane })
    await pod.clock.advance(10)
    const limited = pod.quick({ lane: 'd' })
    await pod.clock.advance(10)
    expect(limited.error).toMatchObject({ code: 'VENDOR_LIMITED' })
    await pod.clock.advance(61_000)
    pod.run(fail, { lane: 'e' })
    await pod.clock.advance(100)
    const refused = pod.quick({ lane: 'f' })
    const own = pod.quick({ lane: 'a' })
    await pod.clock.advance(10)
    expect(refused.error).toMatchObject({ code: 'CIRCUIT_OPEN' })
    expect(own.value).toBe('done')
    job.finish()
  })

  it('reading the state, the snapshot or the headroom of a lane does not create it', async () => {
    const pod = create({})
    const { guard } = pod
    await pod.clock.advance(100)
    expect(guard.breaker?.state({ lane: 'a' })).toBe('closed')
    expect(guard.breaker?.snapshot({ lane: 'a' })).toMatchObject({ lane: 'a', state: 'closed' })
    expect(guard.headroom('a')).toBe(1)
    await pod.clock.advance(100)
    expect(breakersOf(pod)).toEqual([])
    expect(lanesOf(pod)).toEqual([])
  })

  it('a call that shedding or a user limit refuses does not create a lane', async () => {
    const pod = create({
      shed: { when: ({ user }) => user === 'shed' },
      userLimits: [{ per: 'user', limit: 1, windowMs: 60_000 }],
    })
    for (const user of ['shed', 'limited', 'limited', 'limited']) {
      pod.quick({ lane: `lane of ${user} ${pod.clock.now()}`, user })
      await pod.clock.advance(100)
    }
    expect(breakersOf(pod)).toEqual(['lane of limited 100'])
    expect(lanesOf(pod)).toEqual(['lane of limited 100'])
  })

  it('a retry whose lane was dropped while it waited runs in a lane that exists', async () => {
    const pod = create({
      maxLanes: 1,
      breaker: { consecutiveFailures: 100 },
      retry: { attempts: 2, budget: 1, baseMs: 1_000, jitter: 'none' },
    })
    let attempts = 0
    const retried = pod.run(
      () => {
        if (attempts++ === 0) fail()
        return 'done'
      },
      { lane: 'retried', idempotent: true },
    )
    await pod.clock.advance(500)
    const job = createJob()
    pod.run(job.fn, { lane: 'another' })
    await pod.clock.advance(2_000)
    expect(retried.value).toBe('done')
    expect(lanesOf(pod)).toEqual(['(other)', 'another'])
    job.finish()
  })
})

it('a replaced guard keeps the lanes that calls of the old one still use', async () => {
  const pod = createGuardPod({ breaker: BREAKER, maxLanes: 2 })
  const job = createJob()
  pod.run(job.fn, { lane: 'a' })
  const next = pod.spillway.replaceGuard('openai', { breaker: BREAKER, maxLanes: 1 })
  void next.run(() => 'done', { lane: 'b' })
  await pod.clock.advance(10)
  expect(next.snapshot().lanes.slice().sort()).toEqual(['(other)', 'a'])
  job.finish()
  await pod.clock.advance(10)
  void next.run(() => 'done', { lane: 'b' })
  await pod.clock.advance(10)
  expect(next.snapshot().lanes).toContain('b')
})

it('a breaker without a guard keeps at most maxLanes lanes', async () => {
  const clock = createVirtualClock()
  const breaker = createCircuitBreaker({ name: 'b', clock, ...BREAKER, maxLanes: 5 })
  breaker.record('failure', { lane: 'open' })
  for (let i = 0; i < 100; i++) await breaker.run(() => i, { lane: `lane ${i}` })
  expect(breaker.state({ lane: 'open' })).toBe('open')
  await expect(breaker.run(() => 1, { lane: 'open' })).rejects.toMatchObject({
    code: 'CIRCUIT_OPEN',
  })
  await breaker.close()
})

it('a shared rate limiter with all lanes in use lets further names share one limit', async () => {
  const clock = createVirtualClock()
  const store = memoryStore({ clock })
  const limits = [{ limit: 2, windowMs: 60_000 }]
  const limiter = createSharedRateLimiter({ name: 'l', store, limits, clock, maxLanes: 1 })
  for (let i = 0; i < 3; i++) limiter.acquireWithin('1h', { lane: 'a' }).catch(() => {})
  await clock.advance(10)
  const allowed: boolean[] = []
  for (const lane of ['b', 'c', 'd']) allowed.push((await limiter.acquire({ lane })).allowed)
  expect(allowed).toEqual([true, true, false])
  const closing = limiter.close()
  await clock.advance(10)
  await closing
})

it('an invalid maxLanes is rejected with an error that names the option', () => {
  for (const maxLanes of [0, 1.5, -1, '10']) {
    expect(() => createGuardPod({ maxLanes: maxLanes as number })).toThrow('maxLanes')
  }
})

it('a pod asks the store about at most 50 lanes per second, in turn, and only about lanes used recently', async () => {
  const pod = createGuardPod({ breaker: { consecutiveFailures: 100 } }, { where: 'remote' })
  const syncs: (readonly SyncRequest[])[] = []
  const { breakers } = pod.store
  const sync = breakers.sync.bind(breakers)
  breakers.sync = (requests) => {
    syncs.push(requests)
    return sync(requests)
  }
  for (let i = 0; i < 120; i++) pod.quick({ lane: `lane ${i}` })
  await pod.clock.advance(500)
  const requestedLanes = new Set<string>()
  for (let second = 0; second < 3; second++) {
    syncs.length = 0
    await pod.clock.advance(1_000)
    const requests = syncs.flat()
    expect(requests.length).toBeLessThanOrEqual(50)
    for (const { lane } of requests) requestedLanes.add(lane)
  }
  for (let i = 0; i < 120; i++) expect(requestedLanes).toContain(`lane ${i}`)
  await pod.clock.advance(1_000)
  syncs.length = 0
  await pod.clock.advance(10_000)
  expect(syncs.flat().filter(({ lane }) => lane !== '')).toEqual([])
})

it('a pod reads the limits of a lane at most twice per second, however slowly the store answers', async () => {
  const pod = createGuardPod({ limits: LIMITS, jitterMs: 1_000 }, { where: 'remote' })
  const { limits } = pod.store
  const [take, figures] = [limits.take.bind(limits), limits.figures.bind(limits)]
  let reads = 0
  // Silent until the pod checks whether the store is reachable.
  limits.take = async (request) => {
    const reply = await take(request)
    await sleep(pod.clock, 80)
    return reply
  }
  limits.figures = (request) => {
    reads++
    return figures(request)
  }
  for (let i = 0; i < 500; i++) {
    pod.quick({ lane: 'a' })
    await pod.clock.advance(10)
  }
  expect(reads).toBeGreaterThan(2)
  expect(reads).toBeLessThanOrEqual(10)
})
