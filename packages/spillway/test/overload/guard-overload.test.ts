/** Shedding, adaptive limits and throttling as stages of a guard. */
import { describe, expect, it } from 'vitest'
import { createRandom } from '../../src/core/random.js'
import { sleep } from '../../src/core/time/sleep.js'
import { llmDefaults } from '../../src/guard/llm/llm-defaults.js'
import { createSpillway } from '../../src/guard/spillway.js'
import { createVendor } from '../../src/testing/vendor.js'
import {
  countFates,
  createGuardPod,
  createJob,
  EVERYWHERE,
  fateOf,
  vendorError,
} from '../guard-pod.js'

describe('shed stage of a guard', () => {
  it('guard sheds by tier as its queue fills', async () => {
    const { clock, run, guard } = createGuardPod({
      shed: { maxQueue: 10, tiers: { free: 0.7, pro: 0.9 } },
      queue: { size: 50 },
      concurrency: { limit: 1 },
    })
    const job = createJob()
    run(job.fn)
    const tiers = ['free', 'pro', 'premium'] as const
    const fates: Record<string, string[]> = {}
    for (let waiting = 0; waiting < 10; waiting++) {
      for (const tier of tiers) {
        const leave = new AbortController()
        const call = run(job.fn, { tier, signal: leave.signal })
        await clock.settle()
        fates[tier] = [...(fates[tier] ?? []), fateOf(call)]
        leave.abort()
      }
      run(job.fn, { tier: 'premium' })
    }
    // Above 0.7, above 0.9, and at 1 for all but critical calls.
    expect(fates.free?.indexOf('SHED')).toBe(8)
    expect(fates.pro?.includes('SHED')).toBe(false)
    expect(fates.premium?.includes('SHED')).toBe(false)
    expect(fateOf(await settled(run(job.fn, { tier: 'premium' }), clock))).toBe('SHED')
    expect(fateOf(await settled(run(job.fn, { priority: 'critical' }), clock))).toBe('pending')
    expect(guard.snapshot().shed).toMatchObject({ highest: 'queue' })
    job.finish()
  })

  it('guard sheds by sampled process signals that are not read for each call', async () => {
    let readings = 0
    const { clock, quick, guard } = createGuardPod({
      shed: {
        loopUtilization: 0.5,
        priorities: true,
        sensors: {
          loopUtilization: () => {
            readings++
            return 0.45
          },
        },
      },
    })
    quick()
    await clock.advance(100)
    const calls = [quick({ priority: 'low' }), quick({ priority: 'critical' })]
    await clock.settle()
    expect(calls.map(fateOf)).toEqual(['SHED', 'resolved'])
    expect(calls[0]?.error).toMatchObject({
      details: { reason: 'priority', signal: 'loopUtilization', pressure: 0.9 },
    })
    expect(readings).toBe(1)
    expect(guard.snapshot().shed).toMatchObject({ pressure: 0.9, highest: 'loopUtilization' })
  })

  it('guard sheds by latency when answers exceed slaMs', async () => {
    const { clock, run, quick } = createGuardPod({ shed: { slaMs: 100 } })
    for (let call = 0; call < 60; call++) {
      run(() => sleep(clock, 250))
      await clock.advance(20)
    }
    const low = Array.from({ length: 20 }, () => quick({ priority: 'low' }))
    await clock.settle()
    expect(countFates(low)).toEqual({ SHED: 20 })
  })

  it('guard sheds a call that cannot finish before its deadline', async () => {
    const { clock, run } = createGuardPod({ shed: { inTime: true } })
    for (let call = 0; call < 40; call++) {
      run(() => sleep(clock, 200))
      await clock.advance(20)
    }
    const hurried = run(() => sleep(clock, 200), { timeoutMs: 150 })
    const patient = run(() => sleep(clock, 200), { timeoutMs: 400 })
    await clock.settle()
    expect([hurried, patient].map(fateOf)).toEqual(['SHED', 'pending'])
    expect(hurried.error).toMatchObject({ details: { reason: 'deadline' } })
  })

  it('a closed guard samples no more load signals', async () => {
    let readings = 0
    const { clock, quick, guard } = createGuardPod({
      shed: { cpu: 0.5, sensors: { cpu: () => readings++ * 0 } },
    })
    quick()
    await clock.advance(150)
    expect(readings).toBe(1)
    await clock.until(guard.close())
    await clock.advance(10_000)
    expect(readings).toBe(1)
  })
})

describe('shed stage of a guard whose store replies later', () => {
  const options = llmDefaults({ requestsPerMinute: 500, tokensPerMinute: 90_000 })
  const slots = options.concurrency.limit as number
  const { maxQueue } = options.shed as { maxQueue: number }
  /** From this length on, calls of normal priority are shed. */
  const shedFrom = Math.ceil(maxQueue * 0.85)

  it.each(EVERYWHERE)(
    'guard with a %s store starts a burst as large as its free slots and sheds nothing',
    async (where) => {
      const { clock, run, guard } = createGuardPod(options, { where })
      const job = createJob()
      const calls = Array.from({ length: slots }, () => run(job.fn))
      await clock.advance(10)
      expect(job.running).toBe(slots)
      expect(countFates(calls)).toEqual({ pending: slots })
      expect(guard.snapshot().shed?.pressure).toBe(0)
      job.finish()
    },
  )

  it.each(EVERYWHERE)(
    'guard with a %s store sheds calls that come to a standing queue',
    async (where) => {
      const { clock, run } = createGuardPod(options, { where })
      const job = createJob()
      const calls = Array.from({ length: slots + shedFrom + 20 }, () => run(job.fn))
      await clock.advance(10)
      expect(job.running).toBe(slots)
      expect(countFates(calls)).toEqual({ pending: slots + shedFrom, SHED: 20 })
      const late = run(job.fn)
      await clock.advance(10)
      expect(fateOf(late)).toBe('SHED')
      job.finish()
    },
  )

  it('guard sheds calls while its store replies too late, also when slots are free', async () => {
    const slow = { ...options, jitterMs: 20 }
    const { clock, quick, connection } = createGuardPod(slow, { where: 'remote' })
    connection?.setLatency(50)
    const first = Array.from({ length: shedFrom }, () => quick())
    // One round trip for the breaker, and one for the permits. Its reply came too late, so the calls are queued again.
    await clock.advance(110)
    const next = quick()
    await clock.settle()
    expect(countFates(first)).toEqual({ pending: shedFrom })
    expect(fateOf(next)).toBe('SHED')
  })
})

describe('adaptive concurrency of a guard', () => {
  it('guard finds an adaptive limit for each lane separately', async () => {
    const { clock, guard } = createGuardPod({
      queue: { size: 100, timeoutMs: '1s' },
      concurrency: { adaptive: 'gradient2', max: 100 },
    })
    const models = { small: 40, large: 10 }
    for (const [lane, capacity] of Object.entries(models)) {
      const vendor = createVendor({ clock, random: createRandom(1), capacity, serviceMs: 100 })
      const send = () => {
        if (clock.now() > 45_000) return
        guard.run(() => vendor.call(), { lane }).catch(() => {})
        clock.schedule(2, send)
      }
      send()
    }
    await clock.advance(45_000)
    const found = Object.fromEntries(
      guard.snapshot().laneLimits.map(({ lane, limit }) => [lane, limit]),
    )
    expect(Math.abs((found.small as number) - 40) / 40).toBeLessThanOrEqual(0.2)
    expect(Math.abs((found.large as number) - 10) / 10).toBeLessThanOrEqual(0.2)
  })

  it('an adaptive limit is never exceeded with the memory store or a remote one', async () => {
    for (const where of ['memory', 'remote'] as const) {
      const { clock, run, guard } = createGuardPod(
        {
          queue: { size: 100, timeoutMs: '1m' },
          concurrency: { adaptive: 'aimd', min: 3, max: 3 },
          limits: [{ limit: 1_000, windowMs: '1m' }],
        },
        { where },
      )
      const job = createJob()
      for (let call = 0; call < 20; call++) run(job.fn, { lane: call % 2 === 0 ? 'a' : 'b' })
      await clock.advance(100)
      expect(job.running).toBe(6)
      for (let round = 0; round < 10; round++) {
        job.finish()
        await clock.advance(100)
        expect(job.running).toBeLessThanOrEqual(6)
      }
      expect(job.started).toBe(20)
      expect(guard.snapshot()).toMatchObject({ active: 0, limit: 6 })
    }
  })

  it('concurrency.limit of the pod is the upper bound of all adaptive limits', async () => {
    const { clock, run } = createGuardPod({
      queue: { size: 100 },
      concurrency: { limit: 4, adaptive: 'aimd', min: 3, max: 3 },
    })
    const job = createJob()
    for (let call = 0; call < 20; call++) run(job.fn, { lane: call % 2 === 0 ? 'a' : 'b' })
    await clock.settle()
    expect(job.running).toBe(4)
  })

  it('an adaptive limit learns from the first byte of a stream and not from its length', async () => {
    const { clock, guard } = createGuardPod({ concurrency: { adaptive: 'gradient2' } })
    const stream = () =>
      new ReadableStream({
        async pull(controller) {
          await sleep(clock, 5_000)
          controller.close()
        },
      })
    for (let call = 0; call < 80; call++) {
      const answer = guard.run(async () => {
        await sleep(clock, 50)
        return new Response(stream())
      })
      const response = await clock.until(answer)
      void response.text()
      await clock.advance(400)
    }
    expect(guard.snapshot().laneLimits[0]?.baselineMs).toBeCloseTo(50)
  })

  it('an adaptive limit shrinks on 429 and 503 but not on 500 and 404', async () => {
    const limitAfter = async (status: number) => {
      const { clock, run, guard } = createGuardPod({
        concurrency: { adaptive: 'gradient2', initial: 20 },
        basePauseMs: 1,
      })
      for (let call = 0; call < 200; call++) {
        run(async () => {
          await sleep(clock, 10)
          throw vendorError(status)
        })
        await clock.advance(20)
      }
      return guard.snapshot().limit
    }
    expect(await limitAfter(503)).toBeLessThan(15)
    expect(await limitAfter(429)).toBeLessThan(15)
    expect(await limitAfter(500)).toBe(20)
    expect(await limitAfter(404)).toBe(20)
  })
})

describe('throttle stage of a guard', () => {
  it('guard throttles a share of the calls in the lane that the vendor rejects', async () => {
    const { clock, run, guard, quick } = createGuardPod({ throttle: { windowMs: '10s' } })
    let sent = 0
    for (let call = 0; call < 500; call++) {
      run(
        () => {
          sent++
          return Promise.reject(vendorError(503))
        },
        { lane: 'down' },
      )
      await clock.advance(10)
    }
    expect(sent).toBeLessThan(100)
    expect(guard.snapshot().refused).toEqual([
      { stage: 'throttle', code: 'THROTTLED', count: 500 - sent },
    ])
    expect(guard.snapshot().throttles).toMatchObject([{ lane: 'down', requests: 500, accepts: 0 }])
    const other = quick({ lane: 'up' })
    await clock.settle()
    expect(fateOf(other)).toBe('resolved')
  })

  const throttle = { k: 1, minimumCalls: 1, windowMs: '1h' } as const
  const retry = { attempts: 3, baseMs: 10, jitter: 'none', budget: 1 } as const

  it('throttle draws one random number for each attempt that it may refuse', async () => {
    let draws = 0
    const random = () => {
      draws++
      return 0.99
    }
    const { clock, run } = createGuardPod({ throttle, retry }, { random })
    // The pod's heartbeat has drawn one.
    draws = 0
    const call = run(() => Promise.reject(vendorError(503)))
    await clock.until(call.promise)
    // Nothing was rejected before the first attempt.
    expect(draws).toBe(2)
  })

  it('throttle refuses a retry as it refuses a first attempt', async () => {
    const { clock, run, guard } = createGuardPod({ throttle, retry }, { random: () => 0 })
    const call = run(() => Promise.reject(vendorError(503)))
    await clock.until(call.promise)
    expect(call.error).toMatchObject({ code: 'THROTTLED', stage: 'throttle' })
    expect(guard.snapshot().attempts).toBe(1)
  })

  it('throttle in shadow mode lets calls pass, reports refusals and counts each call once', async () => {
    const { clock, run, quick, guard } = createGuardPod(
      { throttle, shadow: ['throttle'] },
      { random: () => 0 },
    )
    const failed = run(() => Promise.reject(vendorError(503)))
    await clock.until(failed.promise)
    const calls = [quick(), quick()]
    await clock.settle()
    expect(calls.map(fateOf)).toEqual(['resolved', 'resolved'])
    const { wouldHaveRefused, throttles } = guard.snapshot()
    expect(wouldHaveRefused).toEqual([{ stage: 'throttle', code: 'THROTTLED', count: 2 }])
    expect(throttles).toMatchObject([{ requests: 3, accepts: 2 }])
  })
})

it('guard names invalid options with their path', () => {
  const spillway = createSpillway()
  const wrong = (options: object) => () => spillway.guard('g', options as never)
  expect(wrong({ concurrency: {} })).toThrow(
    'guard(g).concurrency.limit: must be a positive integer, unless adaptive is set',
  )
  expect(wrong({ concurrency: { adaptive: 'aimd', min: 5, max: 2 } })).toThrow(
    'guard(g).concurrency.min: must not be above max, which is 2',
  )
  expect(wrong({ shed: { tier: { free: 1 } } })).toThrow(
    "guard(g).shed.tier: unknown option; did you mean 'tiers'?",
  )
  expect(wrong({ hedge: { dealyMs: 5 } })).toThrow(
    "guard(g).hedge.dealyMs: unknown option; did you mean 'delayMs'?",
  )
  expect(wrong({ throttle: { k: 0 } })).toThrow(
    'guard(g).throttle.k: must be a number of at least 1',
  )
})

async function settled<T>(call: T, clock: { settle(): Promise<void> }): Promise<T> {
  await clock.settle()
  return call
}
