// test-group: io, slow

/** Replacing a guard refuses no call and keeps all shared state. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Guard, SharedGuard } from '../src/guard/guard.js'
import type { GuardOptions } from '../src/guard/options.js'
import { createSpillway } from '../src/index.js'
import { redisStore } from '../src/store/redis/index.js'
import { createGuardPod, createJob, EVERYWHERE, vendorError } from './guard-pod.js'
import { createOutageFleet, type OutageFleet } from './outage-fleet.js'
import { type RedisServer, startRedis } from './redis-server.js'

const LIMIT = 200
const WINDOW_MS = 10_000
/** A second or two in virtual time; other tests may run in parallel. */
const LONG_MS = 120_000

/** Replaces the guard in every pod, with other local stages; the old ones close when idle. */
function replaceAll({ each }: OutageFleet, options: GuardOptions): void {
  each(({ value }) => {
    const old = value.guard
    value.guard = value.spillway.replaceGuard('vendor', options)
    // As the gateway does once the old guard is no longer used.
    void old.close({ graceMs: '1s' })
  })
}

describe('fleet with repeatedly replaced guards', () => {
  it(
    'a fleet with replaced guards stays within its limit while the store fails and returns',
    async () => {
      const load = createOutageFleet({ limit: LIMIT, windowMs: WINDOW_MS, expectedPods: 4 })
      const limits = [{ limit: LIMIT, windowMs: WINDOW_MS }]
      let turn = 0
      const reload = () => replaceAll(load, { limits, concurrency: { limit: 100 + (turn++ % 2) } })
      for (let i = 0; i < 8; i++) {
        await load.run(1_500)
        reload()
      }
      load.each(({ store }) => store.goDown())
      for (let i = 0; i < 8; i++) {
        await load.run(1_500)
        reload()
      }
      load.each(({ store }) => store.comeBack())
      for (let i = 0; i < 8; i++) {
        await load.run(1_500)
        reload()
      }
      await load.run(2 * WINDOW_MS)
      expect(load.worst()).toBeLessThanOrEqual(105)
      expect(load.longestMs).toBeLessThanOrEqual(101)
      expect(load.status()).toBe('shared')
      // The limit is also used, not only kept.
      expect(load.used(WINDOW_MS)).toBeGreaterThan(80)
      await load.stop()
    },
    LONG_MS,
  )

  it(
    'a narrower window applies at once although the old one never empties',
    async () => {
      const load = createOutageFleet({ limit: LIMIT, windowMs: WINDOW_MS })
      await load.run(WINDOW_MS)
      replaceAll(load, { limits: [{ limit: LIMIT, windowMs: 1_000 }] })
      await load.run(2 * WINDOW_MS)
      const perWindow = load.used(WINDOW_MS)
      expect(perWindow).toBeGreaterThan(700)
      await load.stop()
    },
    LONG_MS,
  )
})

const BREAKER = {
  consecutiveFailures: 2,
  openMs: '60s',
  probes: 1,
  successes: 1,
  rampMs: 0,
} as const

describe.each(EVERYWHERE)('replaced guard, store: %s', (where) => {
  it('queued calls of a replaced guard still run, and holders of the old guard may call it', async () => {
    const { clock, run, quick, guard, spillway } = createGuardPod(
      { queue: { size: 5, timeoutMs: '60s' }, concurrency: { limit: 1 } },
      { where },
    )
    const job = createJob()
    run(job.fn)
    const waiting = quick()
    await clock.advance(10)
    const next = spillway.replaceGuard(guard.name, { concurrency: { limit: 1 } })
    expect(spillway.guard(guard.name)).toBe(next)
    const late = quick()
    job.finish()
    await clock.advance(10)
    expect([waiting.state, late.state]).toEqual(['resolved', 'resolved'])
    // Calls of both guards are counted together.
    expect(next.snapshot().calls).toBe(3)
    await clock.advance(10)
  })

  it.each([
    ['the same policy', BREAKER],
    ['another policy', { ...BREAKER, openMs: 30_000 }],
  ])('a replaced guard keeps an open circuit open with %s', async (_, breaker) => {
    const { clock, run, guard, spillway } = createGuardPod({ breaker: BREAKER }, { where })
    for (let i = 0; i < 2; i++) {
      run(() => {
        throw vendorError(500)
      })
      await clock.advance(10)
    }
    const next = spillway.replaceGuard(guard.name, { breaker, concurrency: { limit: 3 } })
    let called = 0
    const end = next.run(() => called++).catch((error) => error.code)
    await clock.advance(10)
    expect(await end).toBe('CIRCUIT_OPEN')
    const old = guard.close()
    await clock.advance(2_000)
    await old
    const again = next.run(() => called++).catch((error) => error.code)
    await clock.advance(10)
    expect(await again).toBe('CIRCUIT_OPEN')
    expect(called).toBe(0)
  })

  it('a replaced guard keeps the used units of users and limits', async () => {
    const options: GuardOptions = {
      userLimits: [{ per: 'user', limit: 2, windowMs: '1h' }],
      limits: [{ limit: 3, windowMs: '1m' }],
    }
    const { clock, quick, guard, spillway } = createGuardPod(options, { where })
    quick({ user: 'ann' })
    quick({ user: 'ann' })
    await clock.advance(10)
    const next = spillway.replaceGuard(guard.name, { ...options, concurrency: { limit: 3 } })
    void guard.close()
    const codes: string[] = []
    for (const user of ['ann', 'ben', 'cat']) {
      const end = next.run(() => 'fine', { user }).catch((error) => error.code)
      await clock.advance(10)
      codes.push(await end)
    }
    expect(codes).toEqual(['USER_LIMITED', 'fine', 'VENDOR_LIMITED'])
  })
})

describe('changed window with Redis', () => {
  let redis: RedisServer
  beforeAll(async () => {
    redis = await startRedis()
  })
  afterAll(() => redis?.stop())

  it('a changed window applies from the next call, and later pods use their own limits', async () => {
    const store = redisStore({ url: redis.url, commandTimeoutMs: 10_000 })
    const spillway = createSpillway({ store })
    const hour = { limits: [{ limit: 5, windowMs: 3_600_000 }] }
    const guard = spillway.guard('window', hour)
    const passed = async (each: Guard, calls: number) => {
      let count = 0
      for (let i = 0; i < calls; i++) {
        await each.run(() => count++).catch(() => {})
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      return count
    }
    expect(await passed(guard, 10)).toBe(5)
    const quick = spillway.replaceGuard('window', { limits: [{ limit: 5, windowMs: 100 }] })
    await guard.close()
    expect(await passed(quick, 40)).toBeGreaterThan(5)
    await spillway.close()
    const later = createSpillway({ store })
    later.guard('window', { limits: [{ limit: 8, windowMs: 100 }] })
    await passed(later.guard('window'), 3)
    const [figures] = (await later.fleet()).guards[0]?.limits ?? []
    expect(figures?.limit).toBe(8)
    await later.close()
    await store.close()
  })
})

describe('replaceGuard()', () => {
  it('replaceGuard() rejects an unknown name', async () => {
    const spillway = createSpillway()
    expect(() => spillway.replaceGuard('a', {})).toThrow('needs options the first time')
    await spillway.close()
  })

  it('job queues follow a replaced guard, and running jobs finish with the old one', async () => {
    const spillway = createSpillway()
    const old = spillway.guard('a', { concurrency: { limit: 2 } })
    const queue = spillway.jobQueue<number>('jobs', { guard: 'a' })
    let running = 0
    let most = 0
    const ends: (() => void)[] = []
    const worker = queue.work(
      async () => {
        most = Math.max(most, ++running)
        await new Promise<void>((resolve) => ends.push(resolve))
        running--
      },
      { concurrency: 10 },
    )
    await queue.addMany(Array.from({ length: 6 }, (_, data) => ({ data })))
    await vi.waitFor(() => expect(running).toBe(2))
    const young = spillway.replaceGuard('a', { concurrency: { limit: 3 } })
    await vi.waitFor(() => expect(running).toBe(5))
    expect([old.snapshot().active, young.snapshot().active]).toEqual([2, 3])
    while (queue.snapshot().done < 6) {
      for (const end of ends.splice(0)) end()
      await new Promise(setImmediate)
    }
    expect(most).toBe(5)
    await worker.close()
    expect(queue.snapshot()).toMatchObject({ done: 6, lost: 0, workers: 0 })
    await spillway.close()
  })
})

it('limits of guards that were replaced and closed do not stay in memory', async () => {
  const spillway = createSpillway({ pod: 'pod-1' })
  const limits = [{ limit: 10, windowMs: 1_000 }]
  spillway.guard('vendor', { limits, breaker: { failureRate: 0.5 } })
  const replace = async (limit: number) => {
    const old = spillway.guard('vendor') as SharedGuard
    spillway.replaceGuard('vendor', { limits, concurrency: { limit } })
    await old.close()
    return new WeakRef(old.parts.countedLimits as object)
  }
  const replaced: WeakRef<object>[] = []
  for (let limit = 1; limit <= 4; limit++) replaced.push(await replace(limit))
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  // The last one is kept until the next replacement. A finished timer or promise may keep another for a moment.
  await vi.waitFor(() => {
    collect()
    expect(replaced.slice(0, -1).filter((each) => each.deref() !== undefined)).toEqual([])
  })
  await spillway.close()
})
