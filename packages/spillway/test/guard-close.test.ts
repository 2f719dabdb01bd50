/**
 * Closing a guard: no new calls, running calls may finish, everything held is returned and
 * reported.
 */
import { describe, expect, it } from 'vitest'
import { SpillwayError } from '../src/core/errors.js'
import { onEvent } from '../src/core/events.js'
import type { GuardOptions } from '../src/guard/options.js'
import { createSpillway } from '../src/guard/spillway.js'
import { attemptsOf } from '../src/local/retry/attempts.js'
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

const OPTIONS: GuardOptions = {
  userLimits: [{ per: 'user', limit: 2, windowMs: '1h' }],
  queue: { size: 10, timeoutMs: '60s' },
  breaker: { consecutiveFailures: 5, openMs: '10s', probes: 1, successes: 1, rampMs: 0 },
  limits: [{ limit: 100, windowMs: '1m' }],
  concurrency: { limit: 2 },
  retry: { attempts: 3, baseMs: 10_000, jitter: 'none', budget: 1 },
}

describe.each(EVERYWHERE)('closed guard, store: %s', (where) => {
  const setup = (options: GuardOptions = OPTIONS) => createGuardPod(options, { where })

  it('close() refuses queued and later calls and takes nothing for them', async () => {
    const { clock, run, quick, guard, used } = setup()
    const job = createJob()
    run(job.fn)
    run(job.fn)
    const waiting = [quick({ user: 'u' }), quick({ user: 'u' })]
    await clock.advance(10)
    const closing = watch(clock, guard.close())
    await clock.settle()
    const later = quick({ user: 'u' })
    await clock.settle()
    expect(countFates([...waiting, later])).toEqual({ SHUTTING_DOWN: 3 })
    for (const { error } of [...waiting, later]) {
      expect(error).toMatchObject({ stage: 'queue', scope: 'local', status: 503 })
      expect((error as Error).message).toBe(
        'openai: its close() was called, so it starts no more calls',
      )
    }
    expect(closing.state).toBe('pending')
    job.finish()
    await clock.advance(10)
    expect(closing.state).toBe('resolved')
    expect(await used()).toBe(2)
    expect(guard.snapshot()).toMatchObject({ closed: true, active: 0, queue: { waiting: 0 } })
  })

  it('close() lets running calls finish and resolves as soon as they have', async () => {
    const { clock, run, guard } = setup()
    const job = createJob()
    const call = run(job.fn)
    await clock.advance(100)
    const closing = watch(clock, guard.close({ graceMs: '10s' }))
    await clock.advance(5_000)
    expect(call.state).toBe('pending')
    job.finish('late but fine')
    await clock.advance(10)
    expect(call).toMatchObject({ state: 'resolved', value: 'late but fine' })
    expect(closing.state).toBe('resolved')
    expect(closing.atMs).toBeLessThan(5_110)
  })

  it('close() aborts calls that still run after graceMs', async () => {
    const { clock, run, guard } = setup()
    const job = createJob()
    const stubborn = run(() => new Promise(() => {}))
    const call = run(job.fn)
    await clock.advance(100)
    const closing = watch(clock, guard.close({ graceMs: 2_000 }))
    await clock.advance(1_999)
    expect(job.running).toBe(1)
    await clock.advance(20)
    expect(job.running).toBe(0)
    expect(call.error).toMatchObject({ code: 'SHUTTING_DOWN', stage: 'call' })
    expect(fateOf(stubborn)).toBe('SHUTTING_DOWN')
    expect(call.atMs).toBe(2_100)
    expect(closing.state).toBe('resolved')
    expect(guard.snapshot().active).toBe(0)
  })

  it('close() ends a retry during its delay at once with its last error', async () => {
    const { clock, run, guard } = setup()
    const error = vendorError(503)
    const failure = createFailure(error)
    const call = run(failure.fn)
    await clock.advance(100)
    expect(call.state).toBe('pending')
    const closing = watch(clock, guard.close())
    await clock.settle()
    expect(call).toMatchObject({ state: 'rejected', atMs: 100 })
    expect(call.error).toBe(error)
    expect(attemptsOf(call.error)).toHaveLength(1)
    await clock.advance(20_000)
    expect(failure.started).toBe(1)
    expect(closing.state).toBe('resolved')
  })

  it('close() ends a retry of a response with SHUTTING_DOWN, because its body was cancelled for the wait', async () => {
    const { clock, run, guard } = setup()
    const reasons: string[] = []
    const stop = onEvent((event) => {
      if (event.type === 'retry.stopped') reasons.push(event.because)
    })
    const call = run(() => new Response('try again', { status: 503 }))
    await clock.advance(100)
    expect(call.state).toBe('pending')
    await clock.until(guard.close())
    stop()
    expect(call.error).toMatchObject({ code: 'SHUTTING_DOWN', stage: 'retry', status: 503 })
    expect(attemptsOf(call.error)).toHaveLength(1)
    expect(reasons).toEqual(['closed'])
  })

  it('close() ends a retry of a response without a body, or of another value, with that value', async () => {
    for (const value of [new Response(null, { status: 503 }), { failed: true }]) {
      const { clock, run, guard } = setup({ ...OPTIONS, classify: () => 'failure' })
      const call = run(() => value)
      await clock.advance(100)
      expect(call.state).toBe('pending')
      await clock.until(guard.close())
      expect(call.error).toBeUndefined()
      if (call.value instanceof Response) expect(await call.value.text()).toBe('')
      else expect(call.value).toBe(value)
    }
  })

  it('a call that fails while the guard closes is not retried', async () => {
    const { clock, run, guard } = setup()
    const job = createJob()
    const call = run(job.fn)
    await clock.advance(10)
    const closing = watch(clock, guard.close())
    await clock.advance(10)
    job.fail(vendorError(503))
    await clock.advance(20)
    expect(call.error).toMatchObject({ status: 503 })
    expect(job.started).toBe(1)
    expect(closing.state).toBe('resolved')
  })

  it('close() returns the probe permit of an aborted call', async () => {
    const { clock, run, quick, guard, breaker } = setup()
    await clock.until(quick().promise)
    await breaker.trip()
    await clock.advance(10_010)
    const job = createJob()
    run(job.fn)
    await clock.advance(10)
    expect(job.running).toBe(1)
    await clock.advance(1_010)
    expect(breaker.snapshot().probes).toBe(1)
    await clock.until(guard.close({ graceMs: 0 }))
    await clock.advance(1_010)
    expect(breaker.snapshot()).toMatchObject({ probes: 0, state: 'half-open' })
  })

  it('close() reports the last outcomes before it resolves', async () => {
    const { clock, run, quick, guard, breaker, store } = setup()
    await clock.until(quick().promise)
    await clock.advance(1_000)
    const { breakers } = store
    const report = breakers.report.bind(breakers)
    let reported = 0
    breakers.report = async (request) => {
      const view = await report(request)
      for (const [, times] of request.outcomes) reported += times
      return view
    }
    const job = createJob()
    run(job.fn)
    run(job.fn)
    await clock.advance(10)
    const closing = guard.close()
    job.fail(vendorError(503))
    await clock.until(closing)
    expect(reported).toBe(2)
    await clock.advance(1_100)
    expect(breaker.snapshot()).toMatchObject({ calls: 3, failures: 2, consecutiveFailures: 2 })
  })

  it('the shorter graceMs of two concurrent close() calls applies', async () => {
    const { clock, run, guard } = setup()
    run(() => new Promise(() => {}))
    await clock.advance(10)
    const closings = [guard.close({ graceMs: 500 }), guard.close({ graceMs: 100 })]
    await clock.until(Promise.all(closings))
    expect(clock.now()).toBeGreaterThanOrEqual(110)
    expect(clock.now()).toBeLessThan(200)
    await expect(guard.close({ graceMs: 'soon' as '1s' })).rejects.toThrow('graceMs')
  })

  it('close() leaves no timer', async () => {
    const { clock, run, quick, spillway, guard, limiter, breaker } = setup({
      ...OPTIONS,
      pace: { limit: 4, windowMs: '1h' },
    })
    const job = createJob()
    run(job.fn)
    run(() => Promise.reject(vendorError(503)))
    run(() => Promise.reject(vendorError(429, { 'retry-after': '30' })), { lane: 'b' })
    run(() => new Promise(() => {}), { timeoutMs: 200 })
    await clock.advance(300)
    quick()
    quick({ lane: 'b' })
    await clock.advance(10)
    expect(guard.snapshot().queue.waiting).toBeGreaterThan(0)
    await clock.until(spillway.close({ graceMs: 100 }))
    await Promise.all([limiter.close(), breaker.close()])
    expect(clock.pending).toBe(0)
  })
})

describe('closing a guard during a round trip', () => {
  it('close() waits for the reply of the store and returns its permits', async () => {
    const { clock, quick, guard, used, connection } = createGuardPod(OPTIONS, { where: 'remote' })
    await clock.until(quick().promise)
    await clock.advance(10)
    connection?.setLatency(40)
    const calls = [quick(), quick()]
    await clock.advance(10)
    const closing = watch(clock, guard.close())
    await clock.settle()
    expect(countFates(calls)).toEqual({ SHUTTING_DOWN: 2 })
    expect(closing.state).toBe('pending')
    await clock.until(closing.promise)
    expect(await used()).toBe(1)
  })

  it('close() returns a probe that is granted after the call was refused', async () => {
    const { clock, quick, guard, breaker, connection } = createGuardPod(OPTIONS, {
      where: 'remote',
    })
    await clock.until(quick().promise)
    await breaker.trip()
    await clock.advance(10_010)
    connection?.setLatency(40)
    const call = quick()
    await clock.advance(10)
    await clock.until(guard.close())
    expect(fateOf(call)).toBe('SHUTTING_DOWN')
    await clock.advance(1_010)
    expect(breaker.snapshot()).toMatchObject({ state: 'half-open', probes: 0 })
  })

  it('close() starts no call that was admitted but has not begun', async () => {
    const { clock, run, guard } = createGuardPod({ concurrency: { limit: 2 }, queue: { size: 9 } })
    const jobs = [createJob(), createJob()]
    for (const { fn } of jobs) run(fn)
    const closing = run(() => void guard.close())
    const next = createJob()
    const unlucky = run(next.fn)
    await clock.settle()
    // Both slots are released at once, and the first call that gets one closes the guard.
    for (const job of jobs) job.finish()
    await clock.advance(10)
    expect(closing.state).toBe('resolved')
    expect(fateOf(unlucky)).toBe('SHUTTING_DOWN')
    expect(next.started).toBe(0)
    expect(guard.snapshot().active).toBe(0)
  })

  it('close() refuses a call during its user-limit check and refunds it', async () => {
    const { clock, run, quick, guard, store } = createGuardPod(OPTIONS, { where: 'remote' })
    await clock.until(quick().promise)
    const job = createJob()
    const calls = [run(job.fn, { user: 'u' }), run(job.fn, { user: 'u' })]
    await clock.advance(1)
    await clock.until(guard.close())
    await clock.advance(10)
    expect(countFates(calls)).toEqual({ SHUTTING_DOWN: 2 })
    expect(job.started).toBe(0)
    // The next pod counts the same users.
    const next = createSpillway({ store, clock }).guard('openai', OPTIONS)
    const later = [1, 2, 3].map(() =>
      watch(
        clock,
        next.run(() => 'done', { user: 'u' }),
      ),
    )
    await clock.advance(10)
    expect(countFates(later)).toEqual({ resolved: 2, USER_LIMITED: 1 })
  })
})

describe('closed spillway', () => {
  it('spillway.close() closes all guards, leaves the fleet and creates no new guards', async () => {
    const { clock, spillway, guard, quick, store } = createGuardPod(OPTIONS)
    const other = spillway.guard('other', {})
    await clock.advance(10)
    expect(await spillway.pods()).toHaveLength(1)
    await clock.until(spillway.close())
    expect([guard, other].map((each) => each.snapshot().closed)).toEqual([true, true])
    expect(await store.pods.list({ group: 'pods:fleet' })).toEqual([])
    expect(() => spillway.guard('third', {})).toThrow(SpillwayError)
    const late = quick()
    await clock.settle()
    expect(fateOf(late)).toBe('SHUTTING_DOWN')
    expect(clock.pending).toBe(0)
  })

  it('spillway.close() leaves the store open, which belongs to the application', async () => {
    const { clock, spillway, connection } = createGuardPod(OPTIONS, { where: 'remote' })
    await clock.until(spillway.close())
    expect(connection?.connected).toBe(true)
  })
})
