/** Typical incidents and how a guard handles them. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { SpillwayError } from '../src/core/errors.js'
import { onEvent } from '../src/core/events.js'
import { createRandom } from '../src/core/random.js'
import { createDeadline, runWithDeadline } from '../src/core/time/deadline.js'
import { sleep } from '../src/core/time/sleep.js'
import type { GuardOptions } from '../src/guard/options.js'
import { createSpillway } from '../src/guard/spillway.js'
import { attemptsOf } from '../src/local/retry/attempts.js'
import { createVendor } from '../src/testing/vendor.js'
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

describe.each(EVERYWHERE)(
  '500 concurrent requests of 3 seconds each at one pod, store: %s',
  (where) => {
    const options: GuardOptions = {
      queue: { size: 450, timeoutMs: '5s' },
      pace: { limit: 80, windowMs: '1m' },
      concurrency: { limit: 50 },
      limits: [{ limit: 500, windowMs: '1m' }],
      breaker: { failureRate: 0.5 },
    }

    it('guard runs what the pod can handle and refuses the rest within 5 seconds', async () => {
      const { clock, run, guard } = createGuardPod(options, { where })
      const starts: number[] = []
      const ask = async ({ signal }: { signal: AbortSignal }) => {
        starts.push(clock.now())
        await sleep(clock, 3_000, signal)
      }
      await clock.advance(10)
      const beganMs = clock.now()
      const calls = Array.from({ length: 500 }, () => run(ask))
      await clock.advance(20)
      expect(starts).toHaveLength(50)
      expect(guard.snapshot()).toMatchObject({ active: 50, queue: { waiting: 450 } })
      await clock.advance(5_000)
      // Every call runs, has run or was refused by now.
      expect(guard.snapshot().queue.waiting).toBe(0)
      const later = starts.length - 50
      // A burst of 80, plus what the pace adds in 5 seconds.
      expect(later).toBeGreaterThanOrEqual(30)
      expect(later).toBeLessThanOrEqual(37)
      const refused = calls.filter(({ state }) => state === 'rejected')
      expect(refused).toHaveLength(450 - later)
      expect(countFates(refused)).toEqual({ QUEUE_TIMEOUT: refused.length })
      for (const { atMs = 0 } of refused) expect(atMs - beganMs).toBeLessThanOrEqual(5_000)
      await clock.advance(3_100)
      expect(countFates(calls)).toEqual({ resolved: 50 + later, QUEUE_TIMEOUT: 450 - later })
      expect(guard.snapshot().active).toBe(0)
    })

    it('guard refuses calls beyond slots and queue size at once', async () => {
      const { clock, run } = createGuardPod({ ...options, queue: { size: 100 } }, { where })
      await clock.advance(10)
      const calls = Array.from({ length: 500 }, () => run(() => sleep(clock, 3_000)))
      await clock.advance(0)
      expect(countFates(calls)).toEqual({ pending: 150, QUEUE_FULL: 350 })
    })
  },
)

describe('circuit that opens', () => {
  const options: GuardOptions = {
    breaker: { consecutiveFailures: 1, openMs: '30s' },
    concurrency: { limit: 2 },
    queue: { size: 100, timeoutMs: '60s' },
  }

  it('an opening circuit empties the queue in the same tick, and no call starts in the freed slot', async () => {
    const { clock, run, guard } = createGuardPod(options)
    const failing = createJob()
    const running = createJob()
    const waiting = createJob()
    run(failing.fn)
    run(running.fn)
    const calls = Array.from({ length: 50 }, () => run(waiting.fn))
    await clock.advance(100)
    failing.fail(new Error('down'))
    await clock.settle()
    expect(countFates(calls)).toEqual({ CIRCUIT_OPEN: 50 })
    expect(calls.every(({ atMs }) => atMs === 100)).toBe(true)
    expect(waiting.started).toBe(0)
    expect(guard.snapshot()).toMatchObject({ active: 1, queue: { waiting: 0 } })
    expect(running.running).toBe(1)
    expect(calls[0]?.error).toMatchObject({ stage: 'breaker', scope: 'shared', status: 503 })
  })

  it('a circuit opened by another pod empties the queue as soon as this pod knows', async () => {
    for (const where of EVERYWHERE) {
      const { clock, run, breaker } = createGuardPod(options, { where })
      const job = createJob()
      run(job.fn)
      run(job.fn)
      const calls = Array.from({ length: 9 }, () => run(job.fn))
      await clock.advance(100)
      await breaker.trip()
      await clock.advance(where === 'memory' ? 0 : 1)
      expect(countFates(calls)).toEqual({ CIRCUIT_OPEN: 9 })
    }
  })

  it('an opening circuit empties only the queue of its own lane', async () => {
    const { clock, run, breaker } = createGuardPod(options)
    const job = createJob()
    run(job.fn, { lane: 'a' })
    run(job.fn, { lane: 'b' })
    const a = run(job.fn, { lane: 'a' })
    const b = run(job.fn, { lane: 'b' })
    await breaker.trip({ lane: 'a' })
    await clock.settle()
    expect([fateOf(a), fateOf(b)]).toEqual(['CIRCUIT_OPEN', 'pending'])
  })

  it("a circuit with per: 'vendor' empties the queues of all lanes", async () => {
    const { clock, run, breaker } = createGuardPod({
      ...options,
      breaker: { ...options.breaker, per: 'vendor' },
    })
    const job = createJob()
    run(job.fn, { lane: 'a' })
    run(job.fn, { lane: 'b' })
    const calls = ['a', 'b', 'c'].map((lane) => run(job.fn, { lane }))
    await breaker.trip()
    await clock.settle()
    expect(countFates(calls)).toEqual({ CIRCUIT_OPEN: 3 })
  })
})

describe('lane paused by a 429 for 10 seconds', () => {
  const cases = EVERYWHERE.flatMap((where) => [
    { where, name: 'with shared limits', limits: [{ limit: 1_000, windowMs: '1m' }] as const },
    { where, name: 'without shared limits', limits: undefined },
  ])

  it.each(cases)(
    'a paused lane does not delay calls of another lane, $name, store: $where',
    async ({ where, limits }) => {
      const { clock, run, quick, guard } = createGuardPod(
        {
          ...(limits && { limits }),
          breaker: { failureRate: 0.5 },
          concurrency: { limit: 4 },
          queue: { size: 100, timeoutMs: '20s' },
        },
        { where },
      )
      const waits = async (lane: string) => {
        const beganMs = clock.now()
        const { promise } = quick({ lane })
        await clock.until(promise)
        return clock.now() - beganMs
      }
      await waits('slow')
      await waits('other')
      const usualMs = await waits('other')
      expect(usualMs).toBe(where === 'remote' && limits ? 2 : 0)

      const throttled = run(() => Promise.reject(vendorError(429, { 'retry-after': '10' })), {
        lane: 'slow',
      })
      await clock.until(throttled.promise)
      const pausedMs = clock.now()
      const slow = Array.from({ length: 50 }, () => quick({ lane: 'slow' }))
      for (let ms = 0; ms < 9_000; ms += 100) {
        expect(await waits('other')).toBe(usualMs)
        await clock.advance(100 - usualMs)
      }
      expect(countFates(slow)).toEqual({ pending: 50 })
      expect(guard.snapshot().active).toBe(0)
      await clock.advance(2_000)
      expect(countFates(slow)).toEqual({ resolved: 50 })
      for (const { atMs = 0 } of slow) expect(atMs - pausedMs).toBeGreaterThanOrEqual(10_000)
    },
  )

  it('no queued call starts in the slot of the 429 that paused the lane', async () => {
    for (const limits of [undefined, [{ limit: 100, windowMs: '1m' }] as const]) {
      const { clock, run } = createGuardPod({
        ...(limits && { limits }),
        concurrency: { limit: 1 },
        queue: { size: 10, timeoutMs: '20s' },
      })
      const throttled = createJob()
      const waiting = createJob()
      run(throttled.fn)
      run(waiting.fn)
      await clock.advance(10)
      throttled.fail(vendorError(429, { 'retry-after': '10' }))
      await clock.advance(9_990)
      expect(waiting.started).toBe(0)
      await clock.advance(20)
      expect(waiting.started).toBe(1)
    }
  })

  it('calls that cannot wait for the end of a pause are refused at once', async () => {
    for (const { where, limits } of cases) {
      const { clock, run, quick } = createGuardPod(
        {
          ...(limits && { limits }),
          queue: { size: 10, timeoutMs: '5s' },
          concurrency: { limit: 2 },
        },
        { where },
      )
      const throttled = createJob()
      const occupying = createJob()
      run(throttled.fn)
      run(occupying.fn)
      const waiting = quick()
      await clock.advance(10)
      throttled.fail(vendorError(429, { 'retry-after': '10' }))
      await clock.advance(5)
      const coming = quick()
      await clock.advance(5)
      for (const call of [waiting, coming]) {
        expect(call.error).toMatchObject({ code: 'VENDOR_LIMITED', details: { paused: true } })
        expect((call.error as SpillwayError).retryAfterMs).toBeGreaterThan(9_900)
      }
    }
  })

  it('the longer of two pauses applies to the lane', async () => {
    const { clock, run } = createGuardPod({ queue: { size: 10, timeoutMs: '1m' } })
    const [long, short, waiting] = [createJob(), createJob(), createJob()]
    run(long.fn)
    run(short.fn)
    await clock.settle()
    long.fail(vendorError(429, { 'retry-after': '10' }))
    short.fail(vendorError(429, { 'retry-after': '1' }))
    await clock.settle()
    run(waiting.fn)
    await clock.advance(9_900)
    expect(waiting.started).toBe(0)
    await clock.advance(200)
    expect(waiting.started).toBe(1)
  })
})

describe('three tiers with three attempts each', () => {
  /** Number of vendor calls for a thousand calls. */
  async function callsForAThousand(answers: 'throw' | 'response'): Promise<number> {
    const clock = createVirtualClock()
    const random = createRandom(7)
    const vendor = createVendor({ clock, random, serviceMs: 20, answers })
    vendor.failAll()
    const spillway = createSpillway({ clock, random })
    const tier = (name: string) => spillway.guard(name, { retry: { attempts: 3, baseMs: 10 } })
    const [first, second, third] = [tier('first'), tier('second'), tier('third')]
    const call = () => first.run(() => second.run(() => third.run(() => vendor.call())))
    const calls = []
    for (let i = 0; i < 1_000; i++) {
      calls.push(watch(clock, call()))
      await clock.advance(20)
    }
    await clock.advance(60_000)
    expect(calls.filter(({ state }) => state === 'pending')).toEqual([])
    await clock.until(spillway.close())
    expect(vendor.arrivalCount).toBeGreaterThan(1_100)
    return vendor.arrivalCount
  }

  it('three tiers make at most 1.2 vendor calls per call when the vendor throws', async () => {
    expect(await callsForAThousand('throw')).toBeLessThanOrEqual(1_200)
  })

  it('three tiers make at most 1.2 vendor calls per call when the vendor answers 503', async () => {
    expect(await callsForAThousand('response')).toBeLessThanOrEqual(1_200)
  })

  it('only the last tier retries a transient error', async () => {
    const clock = createVirtualClock()
    const spillway = createSpillway({ clock, random: createRandom(1) })
    const tier = (name: string) => spillway.guard(name, { retry: { attempts: 3, baseMs: 10 } })
    const [first, second] = [tier('first'), tier('second')]
    let calls = 0
    const answer = first.run(() =>
      second.run(() => {
        if (++calls < 3) throw vendorError(503)
        return 'answer'
      }),
    )
    expect(await clock.until(answer)).toBe('answer')
    expect(calls).toBe(3)
    expect(first.snapshot().attempts).toBe(1)
  })
})

describe('guard retry', () => {
  const options: GuardOptions = {
    userLimits: [{ per: 'user', limit: 10, windowMs: '1h' }],
    queue: { size: 10, timeoutMs: '5s' },
    breaker: { consecutiveFailures: 50, probes: 1 },
    limits: [{ limit: 100, windowMs: '1m' }],
    concurrency: { limit: 2 },
    retry: { attempts: 3, baseMs: 1_000, jitter: 'none', budget: 1 },
  }

  it('a retry is decided after slots and permits were released', async () => {
    for (const where of EVERYWHERE) {
      const { clock, run, guard } = createGuardPod(options, { where })
      const held: unknown[] = []
      const stop = onEvent((event) => {
        if (event.type !== 'retry.scheduled') return
        const { active, queue } = guard.snapshot()
        held.push([active, queue.waiting])
      })
      onTestFinished(stop)
      const call = run(() => Promise.reject(vendorError(503)))
      await clock.until(call.promise)
      stop()
      expect(held).toEqual([
        [0, 0],
        [0, 0],
      ])
    }
  })

  it('a call holds no slot during its retry delay', async () => {
    const { clock, run, guard } = createGuardPod(options)
    const job = createJob()
    run(() => Promise.reject(vendorError(503)))
    await clock.advance(10)
    expect(guard.snapshot()).toMatchObject({ active: 0, queue: { waiting: 0 } })
    run(job.fn)
    run(job.fn)
    await clock.advance(10)
    expect(job.running).toBe(2)
  })

  it('a retry is queued by the arrival of its call and timed from its return', async () => {
    const { clock, run } = createGuardPod({ ...options, concurrency: { limit: 11 } })
    const order: string[] = []
    const jobs = Array.from({ length: 11 }, createJob)
    let tries = 0
    const first = run(() => {
      order.push('first')
      if (++tries === 1) throw vendorError(503)
    })
    await clock.advance(100)
    for (const { fn } of jobs) run(fn)
    await clock.advance(100)
    run(() => void order.push('second'))
    // After its delay of 1 s it returns to a queue with a later call.
    await clock.advance(900)
    expect(order).toEqual(['first'])
    await clock.advance(3_900)
    expect(first.state).toBe('pending')
    jobs[0]!.finish()
    await clock.advance(1)
    // Five seconds after its call arrived, and four after its return.
    expect(clock.now()).toBeGreaterThan(5_000)
    expect(order.slice(0, 2)).toEqual(['first', 'first'])
    expect(first.state).toBe('resolved')
  })

  it('a retried call charges the user once and the vendor for every attempt', async () => {
    const { clock, run, quick, used } = createGuardPod(options)
    const call = run(() => Promise.reject(vendorError(503)), { user: 'u' })
    await clock.until(call.promise)
    expect(await used()).toBe(3)
    expect(attemptsOf(call.error)).toHaveLength(3)
    const calls = Array.from({ length: 10 }, () => quick({ user: 'u' }))
    await clock.advance(10)
    expect(countFates(calls)).toEqual({ resolved: 9, USER_LIMITED: 1 })
  })

  it('a call that is not idempotent is retried only with an idempotency key', async () => {
    const { clock, run } = createGuardPod(options)
    const [plain, keyed] = [createFailure(vendorError(503)), createFailure(vendorError(503))]
    const calls = [
      run(plain.fn, { idempotent: false }),
      run(keyed.fn, { idempotent: false, idempotencyKey: 'k' }),
    ]
    await clock.until(Promise.all(calls.map(({ promise }) => promise)))
    expect([plain.started, keyed.started]).toEqual([1, 3])
  })

  // The budget checks whether any circuit is open, and one without calls stays half-open.
  it('an open circuit of another lane does not prevent retries', async () => {
    const { clock, run, quick, breaker } = createGuardPod(options)
    await clock.until(quick({ lane: 'other' }).promise)
    await breaker.trip({ lane: 'other' })
    await clock.advance(60_000)
    const failure = createFailure(vendorError(503))
    await clock.until(run(failure.fn, { lane: 'healthy' }).promise)
    expect(failure.started).toBe(3)
  })

  it('tryRun() returns every attempt', async () => {
    const { clock, guard } = createGuardPod(options)
    let tries = 0
    const result = await clock.until(
      guard.tryRun(() => {
        if (++tries < 3) throw vendorError(503)
        return tries
      }),
    )
    expect(result).toMatchObject({ ok: true, value: 3 })
    expect(result.attempts.map(({ outcome, delayMs }) => [outcome, delayMs])).toEqual([
      ['failure', 0],
      ['failure', 1_000],
      ['success', 2_000],
    ])
    const plain = createGuardPod({})
    const refused = await plain.clock.until(
      plain.guard.tryRun(() => Promise.reject(new Error('no'))),
    )
    expect(refused).toMatchObject({ ok: false, attempts: [{ outcome: 'failure' }] })
  })
})

describe('guard deadline', () => {
  it('the deadline of the request ends calls, waits and retries', async () => {
    const options: GuardOptions = {
      concurrency: { limit: 1 },
      queue: { size: 10, timeoutMs: '5s' },
      retry: { attempts: 5, baseMs: 400, jitter: 'none', budget: 1 },
    }
    const { clock, run, guard } = createGuardPod(options)
    const within = <T>(ms: number, start: () => T) =>
      runWithDeadline(createDeadline(ms, clock), start)
    const job = createJob()
    const hanging = within(1_000, () => run(job.fn))
    const waiting = within(700, () => run(job.fn))
    await clock.advance(699)
    expect(waiting.state).toBe('pending')
    await clock.advance(1)
    expect(waiting.error).toMatchObject({ code: 'DEADLINE_EXCEEDED', stage: 'queue' })
    await clock.advance(300)
    expect(hanging.error).toMatchObject({ code: 'DEADLINE_EXCEEDED', stage: 'timeout' })
    expect(guard.snapshot().active).toBe(0)
    const failure = createFailure(vendorError(503))
    const failing = within(1_000, () => run(failure.fn))
    await clock.until(failing.promise)
    // A retry fits after 400 ms and not after 1,200 ms.
    expect(failure.started).toBe(2)
    expect(clock.now()).toBe(1_400)
    expect(failing.error).toMatchObject({ status: 503 })
  })

  it('a nested guard obeys the earlier of two deadlines', async () => {
    const clock = createVirtualClock()
    const spillway = createSpillway({ clock })
    const outer = spillway.guard('outer', {})
    const inner = spillway.guard('inner', { concurrency: { limit: 1 }, queue: { size: 10 } })
    const job = createJob()
    void inner.run(job.fn)
    const seen: unknown[] = []
    const call = (timeoutMs: number, innerMs: number) =>
      watch(
        clock,
        outer.run(
          async ({ deadline, signal }) => {
            seen.push(deadline?.remainingMs())
            await inner.run(() => 'never', { timeoutMs: innerMs, signal })
          },
          { timeoutMs },
        ),
      )
    const early = call(300, 2_000)
    const late = call(2_000, 400)
    await clock.advance(300)
    expect(early.error).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    await clock.advance(100)
    expect(late.error).toMatchObject({
      code: 'DEADLINE_EXCEEDED',
      stage: 'queue',
      details: { name: 'inner' },
    })
    expect(seen).toEqual([300, 2_000])
    job.finish()
    await clock.until(spillway.close())
    expect(clock.pending).toBe(0)
  })

  it('an expired deadline refuses the call at once without a round trip', async () => {
    const { clock, run, connection } = createGuardPod(
      {
        limits: [{ limit: 1, windowMs: '1m' }],
        userLimits: [{ per: 'user', limit: 1, windowMs: '1h' }],
      },
      { where: 'remote' },
    )
    await clock.advance(500)
    const sent = connection?.counts.sent
    const job = createJob()
    const call = runWithDeadline(createDeadline(-1, clock), () => run(job.fn, { user: 'u' }))
    const zero = run(job.fn, { user: 'u', timeoutMs: 0 })
    await clock.settle()
    expect([fateOf(call), fateOf(zero)]).toEqual(['DEADLINE_EXCEEDED', 'DEADLINE_EXCEEDED'])
    expect(job.started).toBe(0)
    expect(connection?.counts.sent).toBe(sent)
  })

  it('a deadline or an abort does not wait for the user-limit reply', async () => {
    for (const retry of [undefined, { attempts: 3 }]) {
      const { clock, run, quick, connection } = createGuardPod(
        { userLimits: [{ per: 'user', limit: 2, windowMs: '1h' }], ...(retry && { retry }) },
        { where: 'remote' },
      )
      await clock.advance(10)
      connection?.setLatency(80)
      const abort = new AbortController()
      const job = createJob()
      const late = run(job.fn, { user: 'u', timeoutMs: 30 })
      const aborted = run(job.fn, { user: 'u', signal: abort.signal })
      await clock.advance(20)
      abort.abort(new Error('bye'))
      await clock.advance(10)
      expect(late).toMatchObject({
        error: { code: 'DEADLINE_EXCEEDED', stage: 'user-limit' },
        atMs: 40,
      })
      expect(aborted).toMatchObject({ error: { message: 'bye' }, atMs: 30 })
      await clock.advance(200)
      expect(job.started).toBe(0)
      // Both calls were refunded.
      connection?.setLatency(2)
      const calls = [quick({ user: 'u' }), quick({ user: 'u' }), quick({ user: 'u' })]
      await clock.advance(10)
      expect(countFates(calls)).toEqual({ resolved: 2, USER_LIMITED: 1 })
    }
  })
})

describe('guarded function', () => {
  it('guard passes values, errors and async context through unchanged', async () => {
    const { clock, guard, run } = createGuardPod({ concurrency: { limit: 1 }, queue: { size: 5 } })
    const error = new Error('mine')
    const thrown = run(() => {
      throw error
    })
    await clock.until(thrown.promise)
    expect(thrown.error).toBe(error)
    const job = createJob()
    run(job.fn)
    const deadline = createDeadline(60_000, clock)
    const waited = runWithDeadline(deadline, () => guard.run((context) => context.deadline))
    job.finish()
    expect(await clock.until(waited)).toBe(deadline)
  })

  it('queued calls that start together run in the async context of their own caller', async () => {
    for (const where of EVERYWHERE) {
      const { clock, guard, run } = createGuardPod(
        { concurrency: { limit: 2 }, queue: { size: 9 }, limits: [{ limit: 99, windowMs: '1m' }] },
        { where },
      )
      const caller = new AsyncLocalStorage<string>()
      const seen: unknown[] = []
      const job = createJob()
      caller.run('first', () => [run(job.fn), run(job.fn)])
      const waited = ['a', 'b', 'c'].map((name) =>
        caller.run(name, () => guard.run(() => seen.push([name, caller.getStore()]))),
      )
      await clock.advance(10)
      job.finish()
      await clock.until(Promise.all(waited))
      expect(seen).toEqual(['a', 'b', 'c'].map((name) => [name, name]))
    }
  })

  it('calls that share a store reply run in the async context of their own caller', async () => {
    for (const where of EVERYWHERE) {
      const { clock, guard } = createGuardPod(
        { userLimits: [{ per: 'user', limit: 10, windowMs: '1m' }] },
        { where },
      )
      const caller = new AsyncLocalStorage<string>()
      const names = ['a', 'b', 'c']
      const seen: unknown[] = []
      const received: unknown[] = []
      const calls = names.map((user) =>
        caller.run(user, () =>
          guard.run(() => seen.push(caller.getStore()), {
            user,
            onUserLimit: ({ remaining }) => received.push([caller.getStore(), remaining]),
          }),
        ),
      )
      await clock.until(Promise.all(calls))
      expect(seen).toEqual(names)
      expect(received).toEqual(names.map((name) => [name, 9]))
    }
  })

  it('cost is copied when the call is made, so later changes have no effect', async () => {
    const { clock, run, used } = createGuardPod({
      concurrency: { limit: 1 },
      queue: { size: 9 },
      limits: [{ limit: 99, windowMs: '1m' }],
    })
    const job = createJob()
    run(job.fn)
    const cost = { requests: 5 }
    const waiting = run(() => 'done', { cost })
    cost.requests = 50
    job.finish()
    await clock.until(waiting.promise)
    expect(await used()).toBe(6)
  })

  it('a refusal has a one-sentence message and the numbers behind it', async () => {
    const { clock, run, quick } = createGuardPod({
      concurrency: { limit: 1 },
      queue: { size: 1, timeoutMs: 1_500 },
    })
    run(createJob().fn)
    const waiting = quick()
    const full = quick()
    await clock.advance(1_500)
    expect(full.error).toMatchObject({
      message: 'openai: queue length 1 reached queue.size (1); raise it or add pods',
      details: { name: 'openai', waiting: 1, size: 1 },
      status: 503,
    })
    expect(waiting.error).toMatchObject({
      message: 'openai: not started within 1.5 s in the queue (queue.timeoutMs)',
      details: { name: 'openai', waitedMs: 1_500 },
      status: 504,
    })
    expect(JSON.parse(JSON.stringify(waiting.error))).toMatchObject({
      code: 'QUEUE_TIMEOUT',
      stage: 'queue',
      scope: 'local',
    })
  })

  it('guard counts calls, attempts, outcomes and refusals', async () => {
    const { clock, run, quick, guard } = createGuardPod({
      concurrency: { limit: 1 },
      retry: { attempts: 2, baseMs: 10, budget: 1 },
    })
    const failing = run(() => Promise.reject(vendorError(503)))
    await clock.until(failing.promise)
    const job = createJob()
    run(job.fn)
    quick()
    await clock.settle()
    job.finish()
    await clock.settle()
    expect(guard.snapshot()).toMatchObject({
      calls: 3,
      attempts: 3,
      outcomes: { success: 1, failure: 2, slow: 0, throttled: 0, ignored: 0 },
      refused: [{ stage: 'concurrency', code: 'QUEUE_FULL', count: 1 }],
    })
  })

  it('guard never sheds a critical call', async () => {
    const { clock, quick } = createGuardPod({ shed: { when: () => true } })
    const calls = [quick({ priority: 'critical' }), quick({ priority: 'high' })]
    await clock.settle()
    expect(calls.map(fateOf)).toEqual(['resolved', 'SHED'])
  })

  it('guard sheds by maxQueue or by `when`, which receives user and tier', async () => {
    const questions: unknown[] = []
    const { clock, run, quick } = createGuardPod({
      shed: {
        maxQueue: 2,
        when: (question) => {
          questions.push(question)
          return question.tier === 'free'
        },
      },
      concurrency: { limit: 1 },
      queue: { size: 10 },
    })
    run(createJob().fn)
    const calls = [quick({ tier: 'free', user: 'u' }), quick(), quick(), quick()]
    await clock.settle()
    expect(calls.map(fateOf)).toEqual(['SHED', 'pending', 'pending', 'SHED'])
    expect(questions[1]).toEqual({ priority: 'normal', user: 'u', tier: 'free', waiting: 0 })
    expect(calls[3]?.error).toMatchObject({ details: { waiting: 2, maxQueue: 2 } })
  })
})
