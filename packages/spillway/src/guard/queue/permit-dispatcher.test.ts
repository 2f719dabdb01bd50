/** How calls leave the queue: one pod with a guard, in virtual time. */
import { describe, expect, it } from 'vitest'
import {
  countFates,
  createGuardPod,
  createJob,
  EVERYWHERE,
  fateOf,
  LATENCY_MS,
  vendorError,
} from '../../../test/guard-pod.js'
import { sleep } from '../../core/time/sleep.js'
import type { Store } from '../../store/port.js'

const MINUTE = { windowMs: '1m' } as const

describe('permit round trips', () => {
  it('one round trip requests permits for every call that has a free slot', async () => {
    const { clock, quick, connection } = createGuardPod(
      { limits: [{ limit: 1_000, ...MINUTE }], concurrency: { limit: 100 }, queue: { size: 500 } },
      { where: 'remote' },
    )
    await clock.advance(10)
    const roundTrips = countRoundTrips(connection)
    const calls = Array.from({ length: 300 }, () => quick())
    await clock.advance(20)
    expect(countFates(calls)).toEqual({ resolved: 300 })
    expect(roundTrips()).toEqual([100, 100, 100])
  })

  it('slots freed in the same moment share one round trip, also with the memory store', async () => {
    const { clock, run, store } = createGuardPod({
      limits: [{ limit: 1_000, ...MINUTE }],
      concurrency: { limit: 20 },
      queue: { size: 100 },
    })
    const job = createJob()
    for (let i = 0; i < 20; i++) run(job.fn)
    const next = createJob()
    for (let i = 0; i < 50; i++) run(next.fn)
    await clock.advance(1)
    const roundTrips = countRoundTrips(store)
    job.finish()
    await clock.advance(1)
    expect(next.running).toBe(20)
    expect(roundTrips()).toEqual([20])
  })

  it('the next batch of calls collects during a round trip', async () => {
    const { clock, quick, connection } = createGuardPod(
      { limits: [{ limit: 1_000, ...MINUTE }] },
      { where: 'remote' },
    )
    const roundTrips = countRoundTrips(connection)
    quick()
    await clock.advance(1)
    for (let i = 0; i < 7; i++) quick()
    await clock.advance(10)
    expect(roundTrips()).toEqual([1, 7])
  })

  it('permits are requested only for calls that can start', async () => {
    const { clock, run, used, guard } = createGuardPod(
      { limits: [{ limit: 100, ...MINUTE }], concurrency: { limit: 2 }, queue: { size: 50 } },
      { where: 'remote' },
    )
    const job = createJob()
    for (let i = 0; i < 10; i++) run(job.fn)
    await clock.advance(100)
    expect(await used()).toBe(2)
    expect(guard.snapshot().queue.waiting).toBe(8)
    job.finish()
    await clock.advance(10)
    expect(await used()).toBe(4)
  })

  it('a round trip carries at most 256 calls, and the rest follow in the next', async () => {
    for (const where of EVERYWHERE) {
      const { clock, run, quick } = createGuardPod(
        { limits: [{ limit: 1_000, ...MINUTE }], queue: { size: 1_000 } },
        { where },
      )
      const throttled = run(() => Promise.reject(vendorError(429, { 'retry-after': '2' })))
      await clock.until(throttled.promise)
      const job = createJob()
      const calls = Array.from({ length: 600 }, () => run(job.fn))
      await clock.advance(2_050)
      // None of the started calls has ended.
      expect(job.running).toBe(600)
      job.finish()
      await clock.advance(10)
      expect(countFates(calls)).toEqual({ resolved: 600 })
      expect(fateOf(quick())).toBe('pending')
    }
  })
})

describe('permits', () => {
  const options = {
    limits: [{ limit: 2, ...MINUTE }],
    queue: { size: 10, timeoutMs: '50s' },
  } as const

  it('the permit of a call aborted during the round trip goes to the next call', async () => {
    const { clock, run, quick, used } = createGuardPod(options, { where: 'remote' })
    await clock.until(quick().promise)
    const abort = new AbortController()
    const left = createJob()
    const leaving = run(left.fn, { signal: abort.signal })
    const next = quick()
    await clock.advance(1)
    abort.abort(new Error('bye'))
    await clock.advance(10)
    expect(fateOf(leaving)).toBe('Error: bye')
    expect(left.started).toBe(0)
    expect(fateOf(next)).toBe('resolved')
    expect(await used()).toBe(2)
  })

  it('the permit of an aborted call is returned if no other call needs it', async () => {
    const { clock, run, used } = createGuardPod(options, { where: 'remote' })
    const abort = new AbortController()
    run(() => 'never', { signal: abort.signal })
    await clock.advance(1)
    abort.abort()
    await clock.advance(10)
    expect(await used()).toBe(0)
  })

  it('a permit that arrives too late is returned and requested again', async () => {
    const { clock, quick, used, connection } = createGuardPod(
      { ...options, jitterMs: 20 },
      { where: 'remote' },
    )
    await clock.advance(5)
    connection?.setLatency(50)
    const call = quick()
    await clock.advance(40)
    connection?.setLatency(2)
    await clock.advance(80)
    expect(fateOf(call)).toBe('resolved')
    expect(await used()).toBe(1)
  })
})

describe('calls of one batch that start late', () => {
  it('a call that the start of another one delays beyond jitterMs returns its permit and requests one again', async () => {
    const { clock, run, used, connection } = createGuardPod(
      { limits: [{ limit: 3, ...MINUTE }], jitterMs: 20, queue: { size: 10 } },
      { where: 'remote' },
    )
    await clock.advance(5)
    const roundTrips = countRoundTrips(connection)
    let busyMs = 0
    const now = clock.now.bind(clock)
    clock.now = () => now() + busyMs
    const slow = run(() => {
      busyMs += 50
    })
    const startsMs: number[] = []
    const next = [1, 2].map(() => run(() => void startsMs.push(clock.now())))
    const sentMs = clock.now()
    await clock.advance(200)
    expect(countFates([slow, ...next])).toEqual({ resolved: 3 })
    expect(roundTrips()).toEqual([3, 2])
    // They did not start in the turn in which the first one returned.
    for (const startMs of startsMs) expect(startMs).toBeGreaterThan(sentMs + 2 * LATENCY_MS + 50)
    expect(await used()).toBe(3)
  })

  it('calls that return their permits are not refused, although they may not wait and the next batch is granted', async () => {
    const { clock, run, quick, used, connection } = createGuardPod(
      { limits: [{ limit: 100, ...MINUTE }], jitterMs: 100 },
      { where: 'remote' },
    )
    await clock.advance(5)
    connection?.setLatency(10)
    const roundTrips = countRoundTrips(connection)
    let busyMs = 0
    const now = clock.now.bind(clock)
    clock.now = () => now() + busyMs
    const first = run(() => {
      busyMs += 45
    })
    const late = [quick(), quick()]
    await clock.advance(9)
    const secondBatch = [quick(), quick(), quick()]
    connection?.setLatency(1)
    // Its permits arrive in time, and while the late calls wait for theirs to be returned.
    await clock.advance(3)
    expect(countFates([first, ...secondBatch])).toEqual({ resolved: 4 })
    expect(countFates(late)).toEqual({ pending: 2 })
    const newcomer = quick()
    await clock.advance(100)
    expect(countFates([...late, newcomer])).toEqual({ resolved: 3 })
    expect(roundTrips()).toEqual([3, 3, 3])
    expect(await used()).toBe(7)
  })

  it('a pause that the vendor demands refuses calls that wait for their permits to be returned', async () => {
    const { clock, run, quick, connection } = createGuardPod(
      { limits: [{ limit: 100, ...MINUTE }], jitterMs: 20 },
      { where: 'remote' },
    )
    const job = createJob()
    const throttled = run(job.fn)
    await clock.advance(10)
    connection?.setLatency(16)
    const late = quick()
    await clock.advance(17)
    expect(fateOf(late)).toBe('pending')
    job.fail(vendorError(429, { 'retry-after': '10' }))
    await clock.until(throttled.promise)
    const newcomer = quick()
    await clock.advance(1)
    expect([late, newcomer].map(fateOf)).toEqual(['VENDOR_LIMITED', 'VENDOR_LIMITED'])
  })

  it('a pause that begins before permits come too late refuses these calls and new ones', async () => {
    const { clock, run, quick, connection } = createGuardPod(
      { limits: [{ limit: 100, ...MINUTE }], jitterMs: 20 },
      { where: 'remote' },
    )
    const job = createJob()
    const throttled = run(job.fn)
    await clock.advance(10)
    connection?.setLatency(16)
    const late = quick()
    await clock.advance(5)
    job.fail(vendorError(429, { 'retry-after': '10' }))
    await clock.until(throttled.promise)
    await clock.advance(40)
    const newcomer = quick()
    await clock.advance(1)
    expect([late, newcomer].map(fateOf)).toEqual(['VENDOR_LIMITED', 'VENDOR_LIMITED'])
  })
})

describe('dispatcher while the store does not answer', () => {
  const options = {
    limits: [{ limit: 100, ...MINUTE }],
    concurrency: { limit: 3 },
    queue: { size: 9 },
  }

  it('a permit request without a reply is repeated, and the first counts as spent', async () => {
    const { clock, quick, used, connection } = createGuardPod(options, { where: 'remote' })
    await clock.advance(10)
    connection?.loseReplies(1)
    const call = quick()
    await clock.advance(30)
    connection?.loseReplies(0)
    await clock.advance(120)
    expect(fateOf(call)).toBe('resolved')
    expect(await used()).toBe(2)
  })

  it('calls wait for one command timeout, after which this pod decides by itself', async () => {
    const { clock, quick, connection, guard } = createGuardPod(options, { where: 'remote' })
    await clock.advance(10)
    connection?.loseRequests(1)
    const calls = [quick(), quick(), quick()]
    await clock.advance(99)
    expect(countFates(calls)).toEqual({ pending: 3 })
    await clock.advance(5)
    expect(countFates(calls)).toEqual({ resolved: 3 })
    const next = quick()
    await clock.advance(0)
    expect(fateOf(next)).toBe('resolved')
    expect(guard.snapshot()).toMatchObject({
      store: { status: 'unreachable' },
      queue: { waiting: 0 },
    })
  })

  it('a call whose permits come too late ten times waits for one in time if the store serves other lanes', async () => {
    const { clock, quick, store, guard } = createGuardPod(
      { ...options, queue: { size: 100, timeoutMs: '10s' } },
      { where: 'remote' },
    )
    await clock.advance(10)
    let late = 10
    const take = store.limits.take.bind(store.limits)
    store.limits.take = async (request) => {
      const reply = await take(request)
      if (request.lane === 'slow' && late-- > 0) await sleep(clock, 60)
      return reply
    }
    const call = quick({ lane: 'slow' })
    for (let i = 0; i < 200; i++) {
      quick({ lane: 'fast' })
      await clock.advance(10)
    }
    expect(fateOf(call)).toBe('resolved')
    expect(guard.snapshot().store?.status).toBe('shared')
  })

  it('a limit whose outage rule refuses calls does so at once while the store is unreachable', async () => {
    const limits = [{ limit: 100, ...MINUTE, outage: 'refuse' }] as const
    const { clock, quick, connection } = createGuardPod({ ...options, limits }, { where: 'remote' })
    await clock.advance(10)
    connection?.goDown()
    const call = quick()
    await clock.advance(1)
    expect(fateOf(call)).toBe('STORE_UNAVAILABLE')
  })

  it('calls wait a limited time for the first connection to the store', async () => {
    const { clock, quick, connection, guard } = createGuardPod(options, { where: 'remote' })
    connection?.goDown()
    const call = quick()
    await clock.advance(60)
    expect(fateOf(call)).toBe('pending')
    connection?.comeBack()
    await clock.advance(30)
    expect(fateOf(call)).toBe('resolved')
    expect(guard.snapshot().store?.status).toBe('shared')
    const other = createGuardPod(options, { where: 'remote' })
    other.connection?.goDown()
    const later = other.quick()
    await other.clock.advance(900)
    expect(fateOf(later)).toBe('pending')
    await other.clock.advance(200)
    expect(fateOf(later)).toBe('resolved')
  })
})

describe.each(EVERYWHERE)('vendor limits on a %s store', (where) => {
  it('a call that would wait longer than its queue timeout is refused at once', async () => {
    const { clock, quick } = createGuardPod(
      { limits: [{ limit: 1, ...MINUTE }], queue: { size: 10, timeoutMs: '5s' } },
      { where },
    )
    await clock.until(quick().promise)
    const calls = [quick(), quick(), quick()]
    await clock.advance(10)
    expect(countFates(calls)).toEqual({ VENDOR_LIMITED: 3 })
    expect(calls[0]?.error).toMatchObject({
      stage: 'vendor-limit',
      scope: 'shared',
      status: 429,
      details: { lane: 'default', paused: false },
    })
    const { retryAfterMs } = (calls[0] as { error?: unknown }).error as { retryAfterMs: number }
    expect(retryAfterMs).toBeGreaterThan(55_000)
  })

  it('a waiting call starts exactly when the limit allows it', async () => {
    const { clock, quick } = createGuardPod(
      { limits: [{ limit: 5, windowMs: 1_000 }], jitterMs: 10, queue: { size: 100 } },
      { where },
    )
    const calls = Array.from({ length: 20 }, () => quick())
    await clock.advance(5_000)
    expect(countFates(calls)).toEqual({ resolved: 20 })
    const times = calls.map(({ atMs = 0 }) => atMs)
    expect(Math.max(...times)).toBeLessThan(3_300)
    for (let i = 5; i < 20; i++) expect(times[i]! - times[i - 5]!).toBeGreaterThanOrEqual(1_000)
  })

  it('a small call is granted when a big call before it is refused', async () => {
    const { clock, run, quick } = createGuardPod(
      {
        limits: [{ unit: 'tokens', limit: 100, ...MINUTE }],
        concurrency: { limit: 1 },
        queue: { size: 10, timeoutMs: '5s' },
      },
      { where },
    )
    const job = createJob()
    run(job.fn, { cost: { tokens: 60 } })
    await clock.advance(10)
    // Without a free slot, neither call has requested a permit yet.
    const big = quick({ cost: { tokens: 50 } })
    const small = quick({ cost: { tokens: 10 } })
    await clock.advance(10)
    job.finish()
    await clock.advance(10)
    expect(fateOf(big)).toBe('VENDOR_LIMITED')
    expect(fateOf(small)).toBe('resolved')
  })

  it('small calls are granted once the big call before them has aborted', async () => {
    const { clock, run, quick } = createGuardPod(
      {
        limits: [{ unit: 'tokens', limit: 100, ...MINUTE }],
        queue: { size: 10, timeoutMs: '2m', targetMs: '1m' },
      },
      { where },
    )
    await clock.until(quick({ cost: { tokens: 60 } }).promise)
    const abort = new AbortController()
    const big = run(() => 'big', { cost: { tokens: 50 }, signal: abort.signal })
    const behind = quick({ cost: { tokens: 5 } })
    await clock.advance(1_000)
    // Calls are granted in order of arrival.
    expect([big.state, behind.state]).toEqual(['pending', 'pending'])
    abort.abort()
    await clock.advance(10)
    expect(behind.state).toBe('resolved')
    const after = quick({ cost: { tokens: 5 } })
    await clock.advance(10)
    expect(after.state).toBe('resolved')
  })

  it('the reply of the store overrides the wait it stated for an earlier call', async () => {
    const { clock, quick, limiter } = createGuardPod(
      { limits: [{ limit: 2, ...MINUTE }], queue: { size: 10, timeoutMs: '5s' } },
      { where },
    )
    const permits = await limiter.takeUpTo(2)
    const before = quick()
    await clock.advance(10)
    expect(fateOf(before)).toBe('VENDOR_LIMITED')
    // Another pod returns its unused permits.
    for (const permit of permits) permit.refund()
    await clock.advance(10)
    const after = quick()
    await clock.advance(10)
    expect(fateOf(after)).toBe('resolved')
  })

  it('a waiting call starts when another call settles below its estimate', async () => {
    const { clock, run, quick } = createGuardPod(
      {
        limits: [{ unit: 'tokens', limit: 100, ...MINUTE }],
        queue: { size: 10, timeoutMs: '2m', targetMs: '1m' },
      },
      { where },
    )
    const job = createJob()
    run(
      async (context) => {
        await job.fn(context)
        context.settle({ tokens: 10 })
      },
      { cost: { tokens: 100 } },
    )
    await clock.advance(10)
    const waiting = quick({ cost: { tokens: 50 } })
    await clock.advance(1_000)
    expect(waiting.state).toBe('pending')
    job.finish()
    await clock.advance(10)
    expect(waiting.state).toBe('resolved')
  })

  it('an invalid cost rejects only the call that named it', async () => {
    const { clock, run, quick } = createGuardPod(
      {
        limits: [{ unit: 'tokens', limit: 100, ...MINUTE }],
        concurrency: { limit: 1 },
        queue: { size: 10 },
      },
      { where },
    )
    const job = createJob()
    run(job.fn, { cost: { tokens: 1 } })
    await clock.advance(10)
    const calls = [
      quick({ cost: { tokens: 1 } }),
      quick({ cost: { tokens: -1 } }),
      quick({ cost: { tokens: Number.NaN } }),
      quick({ cost: { toknes: 1 } }),
    ]
    await clock.advance(10)
    job.finish()
    await clock.advance(10)
    expect(fateOf(calls[0]!)).toBe('resolved')
    expect(fateOf(calls[1]!)).toMatch(/OptionsError.*cost\.tokens/)
    expect(fateOf(calls[2]!)).toMatch(/OptionsError.*cost\.tokens/)
    expect(fateOf(calls[3]!)).toMatch(/OptionsError.*did you mean .*tokens/i)
  })
})

describe('dispatcher lanes', () => {
  it('the first free slot goes to the oldest call of highest priority in any lane', async () => {
    const { clock, run } = createGuardPod({ concurrency: { limit: 1 }, queue: { size: 10 } })
    const job = createJob()
    const order: string[] = []
    run(job.fn, { lane: 'a' })
    const wait = (name: string, lane: string, priority: 'high' | 'normal' = 'normal') =>
      run(() => void order.push(name), { lane, priority })
    wait('a1', 'a')
    await clock.advance(1)
    wait('b1', 'b')
    await clock.advance(1)
    wait('a2', 'a')
    wait('c1', 'c', 'high')
    job.finish()
    await clock.advance(1)
    expect(order).toEqual(['c1', 'a1', 'b1', 'a2'])
  })

  it('a lane is still served after all calls of another lane were dropped', async () => {
    const { clock, run } = createGuardPod({
      concurrency: { limit: 1 },
      queue: { size: 10, timeoutMs: '5s', targetMs: 500 },
    })
    const jobs = Array.from({ length: 5 }, createJob)
    run(jobs[0]!.fn)
    const crowded = [1, 2, 3, 4].map((i) => run(jobs[i]!.fn, { lane: 'crowded' }))
    await clock.advance(1)
    const alone = createJob()
    run(alone.fn, { lane: 'alone' })
    await clock.advance(599)
    jobs[0]!.finish()
    await clock.advance(600)
    // CoDel drops the oldest call of the standing queue and serves the newest.
    jobs[1]!.finish()
    await clock.advance(600)
    expect(crowded.map(fateOf)).toEqual(['resolved', 'SHED', 'pending', 'pending'])
    expect(jobs[4]!.running).toBe(1)
    // The last call of the lane is dropped now.
    jobs[4]!.finish()
    await clock.advance(1)
    expect(crowded.map(fateOf)).toEqual(['resolved', 'SHED', 'SHED', 'resolved'])
    expect(alone.running).toBe(1)
  })

  it('after a pause all calls of a lane start and none is dropped for having waited', async () => {
    for (const where of EVERYWHERE) {
      const { clock, run, guard } = createGuardPod(
        {
          limits: [{ limit: 100, ...MINUTE }],
          concurrency: { limit: 2 },
          queue: { size: 100, timeoutMs: '20s', targetMs: 500 },
        },
        { where },
      )
      const throttled = run(() => Promise.reject(vendorError(429, { 'retry-after': '4' })))
      await clock.until(throttled.promise)
      await clock.advance(100)
      // The calls arrive while the lane is paused.
      const job = createJob()
      const calls = Array.from({ length: 6 }, () => run(job.fn))
      await clock.advance(4_000)
      expect(job.running).toBe(2)
      await clock.advance(400)
      job.finish()
      await clock.advance(400)
      job.finish()
      await clock.advance(50)
      job.finish()
      await clock.advance(50)
      expect(countFates(calls)).toEqual({ resolved: 6 })
      expect(guard.snapshot().refused).toEqual([])
    }
  })
})

/** Number of permits requested in each round trip. */
function countRoundTrips(store: Pick<Store, 'limits'> | undefined): () => number[] {
  const sizes: number[] = []
  const limits = store?.limits
  if (limits !== undefined) {
    const { take } = limits
    limits.take = (request) => {
      sizes.push(request.costs.length)
      return take(request)
    }
  }
  return () => sizes
}
