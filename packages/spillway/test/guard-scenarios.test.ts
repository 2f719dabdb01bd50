/** What a guard is for, as somebody would tell it who had the trouble. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createDeadline, runWithDeadline } from '../src/core/deadline.js'
import type { SpillwayError } from '../src/core/errors.js'
import { onEvent } from '../src/core/events.js'
import { createRandom } from '../src/core/random.js'
import { sleep } from '../src/core/sleep.js'
import type { GuardOptions } from '../src/guard/options.js'
import { createSpillway } from '../src/guard/spillway.js'
import { attemptsOf } from '../src/local/attempts.js'
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
  '500 requests of 3 seconds that hit one pod at once, store: %s',
  (where) => {
    const options: GuardOptions = {
      queue: { size: 450, timeoutMs: '5s' },
      pace: { limit: 80, windowMs: '1m' },
      concurrency: { limit: 50 },
      limits: [{ limit: 500, windowMs: '1m' }],
      breaker: { failureRate: 0.5 },
    }

    it('run as far as the pod can, and the others are told within 5 seconds', async () => {
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
      expect(guard.snapshot()).toMatchObject({ active: 50, room: { waiting: 450 } })
      await clock.advance(5_000)
      // Everybody knows by now: they run, have run, or were refused.
      expect(guard.snapshot().room.waiting).toBe(0)
      const later = starts.length - 50
      // A burst of 80, and what the pace adds in the 5 seconds.
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

    it('are refused at once beyond what may wait', async () => {
      const { clock, run } = createGuardPod({ ...options, queue: { size: 100 } }, { where })
      await clock.advance(10)
      const calls = Array.from({ length: 500 }, () => run(() => sleep(clock, 3_000)))
      await clock.advance(0)
      expect(countFates(calls)).toEqual({ pending: 150, QUEUE_FULL: 350 })
    })
  },
)

describe('a circuit that opens', () => {
  const options: GuardOptions = {
    breaker: { consecutiveFailures: 1, openMs: '30s' },
    concurrency: { limit: 2 },
    queue: { size: 100, timeoutMs: '60s' },
  }

  it('empties the room in the same tick, and nobody is let in by the slot that came free', async () => {
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
    expect(guard.snapshot()).toMatchObject({ active: 1, room: { waiting: 0 } })
    expect(running.running).toBe(1)
    expect(calls[0]?.error).toMatchObject({ stage: 'breaker', scope: 'shared', status: 503 })
  })

  it('empties it too when another pod has opened it, as soon as that is heard', async () => {
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

  it('empties only the lane it is the circuit of', async () => {
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

  it('empties all lanes where it spans them', async () => {
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

describe('a lane that a 429 has paused for 10 seconds', () => {
  const cases = EVERYWHERE.flatMap((where) => [
    { where, name: 'with shared limits', limits: [{ limit: 1_000, windowMs: '1m' }] as const },
    { where, name: 'without shared limits', limits: undefined },
  ])

  it.each(cases)(
    'costs calls of another lane not a millisecond, $name, store: $where',
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

  it('lets nobody in by the slot that came free', async () => {
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

  it('tells those at once who cannot wait so long', async () => {
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

  it('is paused for the longer of two pauses', async () => {
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

describe('three tiers that each try three times', () => {
  /** How many calls reach the vendor for a thousand of ours. */
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

  it('make at most 1.2 calls for one when the last one is down', async () => {
    expect(await callsForAThousand('throw')).toBeLessThanOrEqual(1_200)
  })

  it('make at most 1.2 calls for one when the last one answers with 503', async () => {
    expect(await callsForAThousand('response')).toBeLessThanOrEqual(1_200)
  })

  it('try again where only the last tier does, when it is a blip', async () => {
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

describe('a retry', () => {
  const options: GuardOptions = {
    userLimits: [{ per: 'user', limit: 10, windowMs: '1h' }],
    queue: { size: 10, timeoutMs: '5s' },
    breaker: { consecutiveFailures: 50, probes: 1 },
    limits: [{ limit: 100, windowMs: '1m' }],
    concurrency: { limit: 2 },
    retry: { attempts: 3, baseMs: 1_000, jitter: 'none', budget: 1 },
  }

  it('is decided only after everything has been released', async () => {
    for (const where of EVERYWHERE) {
      const { clock, run, guard } = createGuardPod(options, { where })
      const held: unknown[] = []
      const stop = onEvent((event) => {
        if (event.type !== 'retry.scheduled') return
        const { active, room } = guard.snapshot()
        held.push([active, room.waiting])
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

  it('holds nothing while it sleeps: others have its slot', async () => {
    const { clock, run, guard } = createGuardPod(options)
    const job = createJob()
    run(() => Promise.reject(vendorError(503)))
    await clock.advance(10)
    expect(guard.snapshot()).toMatchObject({ active: 0, room: { waiting: 0 } })
    run(job.fn)
    run(job.fn)
    await clock.advance(10)
    expect(job.running).toBe(2)
  })

  it('goes back to the room by when its call came, and is timed from its return', async () => {
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
    // The wait of a second is over: it comes back into a room with somebody who came later.
    await clock.advance(900)
    expect(order).toEqual(['first'])
    await clock.advance(3_900)
    expect(first.state).toBe('pending')
    jobs[0]!.finish()
    await clock.advance(1)
    // Five seconds after its call came, and four after its return.
    expect(clock.now()).toBeGreaterThan(5_000)
    expect(order.slice(0, 2)).toEqual(['first', 'first'])
    expect(first.state).toBe('resolved')
  })

  it('charges the user once, and the vendor for every attempt', async () => {
    const { clock, run, quick, used } = createGuardPod(options)
    const call = run(() => Promise.reject(vendorError(503)), { user: 'u' })
    await clock.until(call.promise)
    expect(await used()).toBe(3)
    expect(attemptsOf(call.error)).toHaveLength(3)
    const calls = Array.from({ length: 10 }, () => quick({ user: 'u' }))
    await clock.advance(10)
    expect(countFates(calls)).toEqual({ resolved: 9, USER_LIMITED: 1 })
  })

  it('is not made for a call that might do harm twice, unless it has a key', async () => {
    const { clock, run } = createGuardPod(options)
    const [plain, keyed] = [createFailure(vendorError(503)), createFailure(vendorError(503))]
    const calls = [
      run(plain.fn, { idempotent: false }),
      run(keyed.fn, { idempotent: false, idempotencyKey: 'k' }),
    ]
    await clock.until(Promise.all(calls.map(({ promise }) => promise)))
    expect([plain.started, keyed.started]).toEqual([1, 3])
  })

  // The budget asks whether any circuit is open, and one that nobody tries again stays half-open.
  it('is not kept from a lane by the circuit of another', async () => {
    const { clock, run, quick, breaker } = createGuardPod(options)
    await clock.until(quick({ lane: 'other' }).promise)
    await breaker.trip({ lane: 'other' })
    await clock.advance(60_000)
    const failure = createFailure(vendorError(503))
    await clock.until(run(failure.fn, { lane: 'healthy' }).promise)
    expect(failure.started).toBe(3)
  })

  it('is told of by tryRun, attempt by attempt', async () => {
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

describe('a deadline', () => {
  it('of the request ends the call, the wait and the retries', async () => {
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
    expect(waiting.error).toMatchObject({ code: 'DEADLINE_EXCEEDED', stage: 'room' })
    await clock.advance(300)
    expect(hanging.error).toMatchObject({ code: 'DEADLINE_EXCEEDED', stage: 'timeout' })
    expect(guard.snapshot().active).toBe(0)
    const failure = createFailure(vendorError(503))
    const failing = within(1_000, () => run(failure.fn))
    await clock.until(failing.promise)
    // After 400 ms it could, after 1,200 it could not.
    expect(failure.started).toBe(2)
    expect(clock.now()).toBe(1_400)
    expect(failing.error).toMatchObject({ status: 503 })
  })

  it('is heeded by a guard inside, and the earlier one always wins', async () => {
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
      stage: 'room',
      details: { name: 'inner' },
    })
    expect(seen).toEqual([300, 2_000])
    job.finish()
    await clock.until(spillway.close())
    expect(clock.pending).toBe(0)
  })

  it('that has passed already is told at once, and nothing is asked', async () => {
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

  it('and an abort do not wait for the store to answer about the user', async () => {
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
      // Both got back what they had been charged.
      connection?.setLatency(2)
      const calls = [quick({ user: 'u' }), quick({ user: 'u' }), quick({ user: 'u' })]
      await clock.advance(10)
      expect(countFates(calls)).toEqual({ resolved: 2, USER_LIMITED: 1 })
    }
  })
})

describe('what a guarded function sees and says', () => {
  it('comes out unchanged: its value, its error, and its async context', async () => {
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

  it('is its own caller’s async context, also where several who waited begin together', async () => {
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

  it('is its own caller’s async context, also where one reply of the store was for several', async () => {
    for (const where of EVERYWHERE) {
      const { clock, guard } = createGuardPod(
        { userLimits: [{ per: 'user', limit: 10, windowMs: '1m' }] },
        { where },
      )
      const caller = new AsyncLocalStorage<string>()
      const names = ['a', 'b', 'c']
      const seen: unknown[] = []
      const told: unknown[] = []
      const calls = names.map((user) =>
        caller.run(user, () =>
          guard.run(() => seen.push(caller.getStore()), {
            user,
            onUserLimit: ({ remaining }) => told.push([caller.getStore(), remaining]),
          }),
        ),
      )
      await clock.until(Promise.all(calls))
      expect(seen).toEqual(names)
      expect(told).toEqual(names.map((name) => [name, 9]))
    }
  })

  it('costs what it cost when it was called, whatever becomes of that object', async () => {
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

  it('is refused in one sentence, with the numbers behind it', async () => {
    const { clock, run, quick } = createGuardPod({
      concurrency: { limit: 1 },
      queue: { size: 1, timeoutMs: 1_500 },
    })
    run(createJob().fn)
    const waiting = quick()
    const full = quick()
    await clock.advance(1_500)
    expect(full.error).toMatchObject({
      message: 'openai: 1 of 1 places in the waiting room are taken',
      details: { name: 'openai', waiting: 1, size: 1 },
      status: 503,
    })
    expect(waiting.error).toMatchObject({
      message: 'openai: nothing came free within 1500 ms',
      details: { name: 'openai', waitedMs: 1_500 },
      status: 504,
    })
    expect(JSON.parse(JSON.stringify(waiting.error))).toMatchObject({
      code: 'QUEUE_TIMEOUT',
      stage: 'room',
      scope: 'local',
    })
  })

  it('is counted: calls, attempts, outcomes and refusals', async () => {
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

  it('never sees a call shed that is critical', async () => {
    const { clock, quick } = createGuardPod({ shed: { when: () => true } })
    const calls = [quick({ priority: 'critical' }), quick({ priority: 'high' })]
    await clock.settle()
    expect(calls.map(fateOf)).toEqual(['resolved', 'SHED'])
  })

  it('is shed by how many wait, or by your own rule, which sees who it is', async () => {
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
