/** How calls come out of the room, seen from outside: a pod with a guard, in virtual time. */
import { describe, expect, it } from 'vitest'
import {
  countFates,
  createGuardPod,
  createJob,
  EVERYWHERE,
  fateOf,
  vendorError,
} from '../../test/guard-pod.js'
import type { Store } from '../store/port.js'

const MINUTE = { windowMs: '1m' } as const

describe('a trip to the store', () => {
  it('carries everybody for whom this pod has something free', async () => {
    const { clock, quick, connection } = createGuardPod(
      { limits: [{ limit: 1_000, ...MINUTE }], concurrency: { limit: 100 }, queue: { size: 500 } },
      { where: 'remote' },
    )
    await clock.advance(10)
    const trips = countTrips(connection)
    const calls = Array.from({ length: 300 }, () => quick())
    await clock.advance(20)
    expect(countFates(calls)).toEqual({ resolved: 300 })
    expect(trips()).toEqual([100, 100, 100])
  })

  it('carries everybody whose slot has come free in the same moment, also where the store is here', async () => {
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
    const trips = countTrips(store)
    job.finish()
    await clock.advance(1)
    expect(next.running).toBe(20)
    expect(trips()).toEqual([20])
  })

  it('gathers the next one while it is under way', async () => {
    const { clock, quick, connection } = createGuardPod(
      { limits: [{ limit: 1_000, ...MINUTE }] },
      { where: 'remote' },
    )
    const trips = countTrips(connection)
    quick()
    await clock.advance(1)
    for (let i = 0; i < 7; i++) quick()
    await clock.advance(10)
    expect(trips()).toEqual([1, 7])
  })

  it('is made only for as many as can start: nothing is booked for who cannot', async () => {
    const { clock, run, used, guard } = createGuardPod(
      { limits: [{ limit: 100, ...MINUTE }], concurrency: { limit: 2 }, queue: { size: 50 } },
      { where: 'remote' },
    )
    const job = createJob()
    for (let i = 0; i < 10; i++) run(job.fn)
    await clock.advance(100)
    expect(await used()).toBe(2)
    expect(guard.snapshot().room.waiting).toBe(8)
    job.finish()
    await clock.advance(10)
    expect(await used()).toBe(4)
  })

  it('takes at most 256 along, and the others go with the next', async () => {
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
      // None of those that began has ended.
      expect(job.running).toBe(600)
      job.finish()
      await clock.advance(10)
      expect(countFates(calls)).toEqual({ resolved: 600 })
      expect(fateOf(quick())).toBe('pending')
    }
  })
})

describe('a permit', () => {
  const options = {
    limits: [{ limit: 2, ...MINUTE }],
    queue: { size: 10, timeoutMs: '50s' },
  } as const

  it('of a caller who left while the store was asked goes to the next', async () => {
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

  it('of a caller who left goes back if nobody wants it', async () => {
    const { clock, run, used } = createGuardPod(options, { where: 'remote' })
    const abort = new AbortController()
    run(() => 'never', { signal: abort.signal })
    await clock.advance(1)
    abort.abort()
    await clock.advance(10)
    expect(await used()).toBe(0)
  })

  it('that came too late to be used goes back, and its call asks again', async () => {
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

describe('a store that does not answer', () => {
  const options = {
    limits: [{ limit: 100, ...MINUTE }],
    concurrency: { limit: 3 },
    queue: { size: 9 },
  }

  it('is asked again, and what may have been granted counts as spent', async () => {
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

  it('is waited for once: then this pod decides by itself, for those who come as well', async () => {
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
    expect(guard.snapshot()).toMatchObject({ store: { status: 'away' }, room: { waiting: 0 } })
  })

  it('refuses at once where a limit is closed without it', async () => {
    const limits = [{ limit: 100, ...MINUTE, outage: 'closed' }] as const
    const { clock, quick, connection } = createGuardPod({ ...options, limits }, { where: 'remote' })
    await clock.advance(10)
    connection?.goDown()
    const call = quick()
    await clock.advance(1)
    expect(fateOf(call)).toBe('STORE_UNAVAILABLE')
  })

  it('is given a moment to connect, and no longer', async () => {
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

describe.each(EVERYWHERE)('vendor limits, on a store %s', (where) => {
  it('refuse now, not later, whom they would keep waiting for too long', async () => {
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

  it('let wait exactly as long as it takes', async () => {
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

  it('let a small call through that a big one would only have been in the way of', async () => {
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
    // Neither has been asked for yet: there is no slot.
    const big = quick({ cost: { tokens: 50 } })
    const small = quick({ cost: { tokens: 10 } })
    await clock.advance(10)
    job.finish()
    await clock.advance(10)
    expect(fateOf(big)).toBe('VENDOR_LIMITED')
    expect(fateOf(small)).toBe('resolved')
  })

  it('do not keep small calls out after the big one has left that had to wait', async () => {
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
    // First come, first served.
    expect([big.state, behind.state]).toEqual(['pending', 'pending'])
    abort.abort()
    await clock.advance(10)
    expect(behind.state).toBe('resolved')
    const after = quick({ cost: { tokens: 5 } })
    await clock.advance(10)
    expect(after.state).toBe('resolved')
  })

  it('believe the store rather than what it said of an earlier call', async () => {
    const { clock, quick, limiter } = createGuardPod(
      { limits: [{ limit: 2, ...MINUTE }], queue: { size: 10, timeoutMs: '5s' } },
      { where },
    )
    const permits = await limiter.takeUpTo(2)
    const before = quick()
    await clock.advance(10)
    expect(fateOf(before)).toBe('VENDOR_LIMITED')
    // Another pod did not need what it had booked.
    for (const permit of permits) permit.refund()
    await clock.advance(10)
    const after = quick()
    await clock.advance(10)
    expect(fateOf(after)).toBe('resolved')
  })

  it('wake who waits when something is given back', async () => {
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

  it('refuse a wrong cost to the one who named it, and to nobody else', async () => {
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

describe('lanes', () => {
  it('have the first free slot go to whose turn it is, in whatever lane', async () => {
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

  it('are not forgotten when all who waited in another are let go', async () => {
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
    // It stands: its oldest is let go, and its newest served.
    jobs[1]!.finish()
    await clock.advance(600)
    expect(crowded.map(fateOf)).toEqual(['resolved', 'SHED', 'pending', 'pending'])
    expect(jobs[4]!.running).toBe(1)
    // The last of them is let go now, and nobody else is left in that lane.
    jobs[4]!.finish()
    await clock.advance(1)
    expect(crowded.map(fateOf)).toEqual(['resolved', 'SHED', 'SHED', 'resolved'])
    expect(alone.running).toBe(1)
  })

  it('are let out of a pause all at once, and nobody is dropped for having waited for it', async () => {
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
      // They come when the lane is paused already.
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

/** How many wishes each trip for permits carried. */
function countTrips(store: Pick<Store, 'limits'> | undefined): () => number[] {
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
