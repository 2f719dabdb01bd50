/** Bugs known from other libraries, applied to a guard. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { sleep } from '../src/core/time/sleep.js'
import type { GuardOptions } from '../src/guard/options.js'
import { createSpillway } from '../src/guard/spillway.js'
import { createVirtualClock } from '../src/testing/virtual-clock.js'
import {
  countFates,
  createFailure,
  createGuardPod,
  createJob,
  EVERYWHERE,
  fateOf,
  vendorError,
  watch,
} from './guard-pod.js'

describe('queue timeout', () => {
  it('a queue timeout removes only the call whose time is up', async () => {
    const { clock, run, guard } = createGuardPod({
      concurrency: { limit: 1 },
      queue: { size: 10, timeoutMs: 1_000, targetMs: '1h' },
    })
    const job = createJob()
    run(job.fn)
    const order: number[] = []
    const calls = []
    for (let i = 0; i < 5; i++) {
      calls.push(run(() => void order.push(i)))
      await clock.advance(200)
    }
    // The first two calls have left by now, and the third is next.
    await clock.advance(200)
    expect(calls.map(fateOf)).toEqual([
      'QUEUE_TIMEOUT',
      'QUEUE_TIMEOUT',
      'pending',
      'pending',
      'pending',
    ])
    expect(guard.snapshot().queue.waiting).toBe(3)
    job.finish()
    await clock.advance(10_000)
    expect(order).toEqual([2, 3, 4])
  })

  it('queue timeout does not limit the call once it has started', async () => {
    const { clock, run } = createGuardPod({
      concurrency: { limit: 1 },
      queue: { size: 10, timeoutMs: '5s' },
    })
    const calls = [0, 1].map(() => run(() => sleep(clock, 4_000)))
    const long = run(() => sleep(clock, 1))
    await clock.advance(4_000)
    expect(countFates(calls)).toEqual({ resolved: 1, pending: 1 })
    await clock.advance(4_000)
    expect(countFates(calls)).toEqual({ resolved: 2 })
    expect(fateOf(long)).toBe('QUEUE_TIMEOUT')
  })
})

describe('call timeout', () => {
  it('a timed-out call aborts its own signal and no other', async () => {
    const { clock, run } = createGuardPod({ timeout: { callMs: 1_000 } })
    const signals: AbortSignal[] = []
    const hang = ({ signal }: { signal: AbortSignal }) => {
      signals.push(signal)
      return new Promise(() => {})
    }
    const calls = []
    for (let i = 0; i < 3; i++) {
      calls.push(run(hang))
      await clock.advance(300)
    }
    await clock.advance(100)
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false, false])
    expect(calls.map(fateOf)).toEqual(['CALL_TIMEOUT', 'pending', 'pending'])
    await clock.advance(300)
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, false])
  })

  const STUBBORN_MS = 500
  const options: GuardOptions = {
    concurrency: { limit: 1, graceMs: '10s' },
    queue: { size: 10, timeoutMs: '1m', targetMs: '1m' },
  }

  /** Work that ignores its signal. */
  function stubborn(clock: ReturnType<typeof createVirtualClock>) {
    const work = {
      running: 0,
      most: 0,
      async fn() {
        work.most = Math.max(work.most, ++work.running)
        await sleep(clock, STUBBORN_MS)
        work.running--
      },
    }
    return work
  }

  it('a timed-out call keeps its slot while its work runs, so capacity 1 never runs two', async () => {
    const { clock, run, guard } = createGuardPod({ ...options, timeout: { callMs: 100 } })
    const work = stubborn(clock)
    const calls = Array.from({ length: 5 }, () => run(work.fn))
    await clock.advance(100)
    expect(fateOf(calls[0]!)).toBe('CALL_TIMEOUT')
    expect(guard.snapshot().active).toBe(1)
    await clock.advance(5 * STUBBORN_MS)
    expect(countFates(calls)).toEqual({ CALL_TIMEOUT: 5 })
    expect(work.most).toBe(1)
    expect(guard.snapshot().active).toBe(0)
  })

  it.each([
    ['an error', new Error('bye')],
    ['a text', 'bye'],
    ['nothing', undefined],
  ])('a call aborted with %s keeps its slot while its work runs', async (_, reason) => {
    const { clock, run, guard } = createGuardPod(options)
    const work = stubborn(clock)
    const abort = new AbortController()
    const left = run(work.fn, { signal: abort.signal })
    const next = run(work.fn)
    await clock.advance(100)
    abort.abort(reason)
    await clock.advance(10)
    expect(left.state).toBe('rejected')
    expect(guard.snapshot().active).toBe(1)
    await clock.advance(STUBBORN_MS - 110)
    expect(work.most).toBe(1)
    expect(next.state).toBe('pending')
    await clock.advance(STUBBORN_MS)
    expect(next.state).toBe('resolved')
  })

  it('calls aborted by the same signal release their slots independently', async () => {
    const { clock, run, guard } = createGuardPod({ concurrency: { limit: 2, graceMs: '1h' } })
    const abort = new AbortController()
    run(() => sleep(clock, 100), { signal: abort.signal })
    run(() => new Promise(() => {}), { signal: abort.signal })
    await clock.advance(50)
    abort.abort(new Error('the request was cancelled'))
    await clock.advance(10)
    expect(guard.snapshot().active).toBe(2)
    await clock.advance(50)
    expect(guard.snapshot().active).toBe(1)
  })

  it('a timed-out call loses its slot after graceMs', async () => {
    const { clock, run, guard } = createGuardPod({
      concurrency: { limit: 1, graceMs: 300 },
      timeout: { callMs: 100 },
    })
    run(() => new Promise(() => {}))
    await clock.advance(399)
    expect(guard.snapshot().active).toBe(1)
    await clock.advance(1)
    expect(guard.snapshot().active).toBe(0)
  })
})

describe('abort', () => {
  const options: GuardOptions = { retry: { attempts: 3, baseMs: 1_000, jitter: 'none', budget: 1 } }

  it('an abort during the retry delay ends the call at once without another attempt', async () => {
    for (const where of EVERYWHERE) {
      const { clock, run, guard } = createGuardPod(options, { where })
      const abort = new AbortController()
      const failure = createFailure(vendorError(503))
      const call = run(failure.fn, { signal: abort.signal })
      await clock.advance(500)
      abort.abort(new Error('bye'))
      await clock.settle()
      expect(call).toMatchObject({ state: 'rejected', atMs: 500, error: { message: 'bye' } })
      await clock.advance(10_000)
      expect(failure.started).toBe(1)
      expect(guard.snapshot().active).toBe(0)
    }
  })

  it('an abort at any moment of a call returns everything the call holds', async () => {
    for (const where of EVERYWHERE) {
      for (let atMs = 0; atMs <= 40; atMs++) {
        const { clock, run, guard, used, connection } = createGuardPod(
          {
            userLimits: [{ per: 'user', limit: 3, windowMs: '1h' }],
            queue: { size: 5 },
            breaker: { failureRate: 0.5 },
            limits: [{ limit: 10, windowMs: '1m' }],
            concurrency: { limit: 1 },
            retry: { attempts: 3, baseMs: 5, jitter: 'none', budget: 1 },
          },
          { where },
        )
        connection?.setLatency(5)
        const abort = new AbortController()
        let running = 0
        const fn = async ({ signal }: { signal: AbortSignal }) => {
          running++
          await sleep(clock, 5, signal).finally(() => running--)
          throw vendorError(503)
        }
        const call = run(fn, { user: 'u', signal: abort.signal })
        clock.schedule(atMs, () => abort.abort('bye'))
        await clock.until(call.promise)
        expect(call.error === 'bye' ? call.atMs : atMs).toBe(atMs)
        await clock.advance(100)
        expect(running).toBe(0)
        const { active, queue, attempts } = guard.snapshot()
        expect({ active, waiting: queue.waiting }).toEqual({ active: 0, waiting: 0 })
        expect(await used()).toBe(attempts)
      }
    }
  })
})

describe('retry', () => {
  it('a retry is delayed by at least 1 ms, whatever the random number', async () => {
    const clock = createVirtualClock()
    const spillway = createSpillway({ clock, random: () => 0 })
    const guard = spillway.guard('openai', { retry: { attempts: 3, baseMs: 1, budget: 1 } })
    const times: number[] = []
    const call = watch(
      clock,
      guard.run(() => {
        times.push(clock.now())
        throw vendorError(503)
      }),
    )
    await clock.until(call.promise)
    expect(times).toHaveLength(3)
    expect(times[1]! - times[0]!).toBeGreaterThanOrEqual(1)
    expect(times[2]! - times[1]!).toBeGreaterThanOrEqual(1)
  })

  it('nested guards do not multiply retries', async () => {
    const clock = createVirtualClock()
    const spillway = createSpillway({ clock })
    const guards = ['gateway', 'service', 'sdk'].map((name) =>
      spillway.guard(name, { retry: { attempts: 3, baseMs: 10, budget: 1 } }),
    )
    const vendor = createFailure(vendorError(503))
    const call = guards.reduceRight<() => Promise<unknown>>(
      (next, guard) => () => guard.run(next),
      vendor.fn,
    )
    await clock.until(watch(clock, call()).promise)
    expect(vendor.started).toBe(3)
  })

  it.each([
    { others: 17, attempts: 3 },
    { others: 19, attempts: 1 },
  ])(
    'a failed call makes $attempts attempts while $others of 20 slots are in use',
    async ({ others, attempts }) => {
      const { clock, run } = createGuardPod({
        concurrency: { limit: 20 },
        retry: { attempts: 3, baseMs: 10, budget: 1 },
      })
      for (let i = 0; i < others; i++) run(createJob().fn)
      const failure = createFailure(vendorError(503))
      const call = run(failure.fn)
      await clock.until(call.promise)
      expect(call.error).toMatchObject({ message: 'the vendor answered 503' })
      expect(failure.started).toBe(attempts)
    },
  )

  it('a call is not retried while the circuit is open', async () => {
    const { clock, run, guard } = createGuardPod({
      concurrency: { limit: 2 },
      queue: { size: 10 },
      breaker: { consecutiveFailures: 1 },
      retry: { attempts: 3, baseMs: 10, budget: 1 },
    })
    const failure = createFailure(vendorError(503))
    const call = run(failure.fn)
    await clock.until(call.promise)
    expect(guard.snapshot().breakers[0]?.state).toBe('open')
    // The refusal of the breaker would replace the error if the call were retried.
    expect(call.error).toMatchObject({ message: 'the vendor answered 503' })
    expect(failure.started).toBe(1)
  })
})

describe('background work', () => {
  it('no background failure of a guard causes an unhandled rejection', async () => {
    const unhandled: unknown[] = []
    const note = (error: unknown) => unhandled.push(error)
    process.on('unhandledRejection', note)
    onTestFinished(() => {
      process.off('unhandledRejection', note)
    })
    const { clock, run, quick, spillway, connection, guard } = createGuardPod(
      {
        userLimits: [{ per: 'user', limit: 50, windowMs: '1h' }],
        queue: { size: 20, timeoutMs: 500 },
        breaker: { failureRate: 0.9, quorum: 2 },
        limits: [{ limit: 20, windowMs: 1_000 }],
        concurrency: { limit: 5 },
        timeout: { callMs: 200 },
        retry: { attempts: 2, baseMs: 10 },
      },
      { where: 'remote' },
    )
    const round = () => {
      quick({ user: 'u' })
      run(({ settle }) => settle({ requests: 0 }))
      run(() => Promise.reject(vendorError(503)))
      run(() => Promise.reject(vendorError(429)))
      run(() => sleep(clock, 400).then(() => Promise.reject(new Error('too late'))))
      run(() => new Promise(() => {}), { signal: AbortSignal.abort() })
    }
    for (const fault of [
      () => {},
      () => connection?.loseReplies(0.5),
      () => connection?.loseRequests(1),
      () => connection?.goDown(),
      () => connection?.comeBack(),
    ]) {
      fault()
      for (let i = 0; i < 5; i++) {
        round()
        await clock.advance(150)
      }
    }
    connection?.loseRequests(0)
    connection?.loseReplies(0)
    round()
    await clock.until(spillway.close({ graceMs: 50 }))
    await clock.advance(5_000)
    expect(guard.snapshot().calls).toBeGreaterThan(100)
    expect(unhandled).toEqual([])
    expect(connection?.counts.errors).toBe(0)
  })
})

describe('timers', () => {
  it('a pause, limit or pace without waiting calls keeps no process alive', async () => {
    for (const where of EVERYWHERE) {
      const { clock, run, quick } = createGuardPod(
        {
          limits: [{ limit: 3, windowMs: '1h' }],
          pace: { limit: 4, windowMs: '1h' },
          queue: { size: 10, timeoutMs: '2h' },
        },
        { where },
      )
      const abort = new AbortController()
      const { signal } = abort
      const throttled = run(() => Promise.reject(vendorError(429, { 'retry-after': '50' })), {
        lane: 'paused',
      })
      await clock.until(throttled.promise)
      for (const lane of ['limited', 'limited', 'limited']) quick({ lane })
      await clock.advance(20)
      const calls = ['paused', 'limited', 'paced'].map((lane) => quick({ lane, signal }))
      await clock.advance(100)
      expect(countFates(calls)).toEqual({ pending: 3 })
      expect(clock.pending).toBeGreaterThan(0)
      abort.abort()
      await clock.settle()
      expect(clock.pending).toBe(0)
    }
  })

  it('all timers are cancelled when calls end early', async () => {
    const { clock, run } = createGuardPod({
      timeout: { callMs: '1h', firstByteMs: '1h', idleMs: '1h' },
      concurrency: { limit: 1, graceMs: '1h' },
      queue: { size: 10, timeoutMs: '1h' },
    })
    const calls = [1, 2, 3].map(() => run(() => sleep(clock, 5), { timeoutMs: '1h' }))
    await clock.advance(20)
    expect(countFates(calls)).toEqual({ resolved: 3 })
    expect(clock.pending).toBe(0)
  })
})
