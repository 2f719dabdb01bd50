/** Fixed bugs, each with the claim that it broke. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, it } from 'vitest'
import { hopNames, runHop } from '../src/core/hops.js'
import { createDeadline, currentDeadline, runWithDeadline } from '../src/core/time/deadline.js'
import type { CallContext } from '../src/guard/pipeline/context.js'
import { createSpillway } from '../src/guard/spillway.js'
import { createCircuitBreaker } from '../src/shared/circuit-breaker/circuit-breaker.js'
import { memoryStore } from '../src/store/memory/memory-store.js'
import { sleep } from '../src/testing/index.js'
import { createVirtualClock } from '../src/testing/virtual-clock.js'
import { createGuardPod, EVERYWHERE, watch } from './guard-pod.js'

const BUCKET = { unit: 'tokens', limit: 100, windowMs: '50s', algorithm: 'token-bucket' } as const

describe('lane waiting for its limits', () => {
  it('a waiting lane wakes earlier when another call settles below its estimate', async () => {
    const { clock, run } = createGuardPod({
      queue: { size: 10, timeoutMs: '60s' },
      limits: [BUCKET],
    })
    run(
      async ({ settle }) => {
        await sleep(clock, 1_000)
        settle({ tokens: 70 })
      },
      { cost: { tokens: 100 } },
    )
    // At first 20 s; with the 30 tokens returned after 1 s, about 5 s.
    const waiting = run(() => clock.now(), { cost: { tokens: 40 } })
    await clock.advance(6_000)
    expect(waiting.value).toBeLessThan(5_500)
  })

  it('a waiting lane wakes earlier when its first call aborts and the next needs less', async () => {
    const { clock, run } = createGuardPod({
      queue: { size: 10, timeoutMs: '60s' },
      limits: [BUCKET],
    })
    run(() => 'all of it', { cost: { tokens: 100 } })
    const leaving = new AbortController()
    run(() => 'much', { cost: { tokens: 100 }, signal: leaving.signal })
    const small = run(() => clock.now(), { cost: { tokens: 1 } })
    await clock.advance(10)
    leaving.abort()
    await clock.advance(2_000)
    expect(small.value).toBeLessThan(1_500)
  })
})

describe('lane that is used up', () => {
  it('a lane without permits leaves the slot to the next lane at once', async () => {
    const { clock, run } = createGuardPod({
      concurrency: { limit: 1 },
      queue: { size: 10, timeoutMs: '1h' },
      limits: [{ unit: 'requests', limit: 1, windowMs: '10m' }],
    })
    run(() => sleep(clock, 1_000), { lane: 'a' })
    const next = run(() => 'again', { lane: 'a' })
    const other = run(() => clock.now(), { lane: 'b' })
    await clock.advance(1_001)
    expect(other.value).toBe(1_000)
    expect(next.state).toBe('pending')
  })
})

describe('cost with inherited properties', () => {
  it('an inherited cost counts for its own call and not for those behind it', async () => {
    const { clock, run } = createGuardPod({ limits: [{ ...BUCKET, windowMs: '1h' }] })
    run(() => 'dear', { cost: Object.create({ tokens: 90 }) })
    const free = Array.from({ length: 5 }, () => run(() => 'free', { cost: {} }))
    await clock.advance(1)
    expect(free.map((call) => call.value)).toEqual(Array(5).fill('free'))
    const rest = run(() => 'the rest', { cost: { tokens: 10 } })
    await clock.advance(1)
    expect(rest.value).toBe('the rest')
  })
})

describe('limits that refused a large call', () => {
  it('a small call is granted after a large one was refused, also without a queue', async () => {
    const { clock, run } = createGuardPod({
      concurrency: { limit: 10 },
      limits: [{ unit: 'tokens', limit: 100, windowMs: '1h' }],
    })
    run(() => 'most of it', { cost: { tokens: 60 } })
    const large = run(() => 'too much', { cost: { tokens: 100 } })
    const small = run(() => 'fits', { cost: { tokens: 30 } })
    await clock.advance(1)
    expect(large.error).toMatchObject({ code: 'VENDOR_LIMITED' })
    expect(small.value).toBe('fits')
  })
})

describe('a call that the vendor limits refuse', () => {
  it('a call that the vendor limits refuse gets the requested amount, its unit and what was left', async () => {
    const { clock, run } = createGuardPod({
      limits: [
        { unit: 'requests', limit: 500, windowMs: '1h' },
        { unit: 'tokens', limit: 100, windowMs: '1h' },
      ],
    })
    run(() => 'most of it', { cost: { tokens: 60 } })
    const large = run(() => 'too much', { cost: { tokens: 75 } })
    await clock.advance(1)
    expect(large.error).toMatchObject({
      code: 'VENDOR_LIMITED',
      details: { unit: 'tokens', limit: 100, requested: 75, left: 40 },
    })
    expect((large.error as Error).message).toContain(
      'needs 75 tokens (estimated), and 40 of 100 are left',
    )
  })
})

describe('slots and pace shared by lanes', () => {
  it('slots and pace go to waiting calls before a new call of another lane', async () => {
    const { clock, run, quick } = createGuardPod({
      queue: { size: 200, timeoutMs: '60s' },
      pace: { limit: 10, windowMs: '1s', burst: 1 },
    })
    const order: string[] = []
    for (let call = 0; call < 5; call++) {
      run(() => order.push('waiting'), { lane: 'a', priority: 'critical' })
    }
    for (let step = 0; step < 40; step++) {
      await clock.advance(10)
      run(() => order.push('newcomer'), { lane: `b${step}`, priority: 'low' })
    }
    expect(order.slice(0, 5)).toEqual(Array(5).fill('waiting'))
    quick()
  })

  it('a paused lane does not count as demand for slots in shedding and retries', async () => {
    const { clock, run, guard } = createGuardPod({
      shed: { maxQueue: 3 },
      queue: { size: 10, timeoutMs: '60s' },
      retry: { attempts: 2, baseMs: 10, budget: 1 },
    })
    const throttled = Object.assign(new Error('429'), {
      status: 429,
      headers: { 'retry-after': '20' },
    })
    run(() => Promise.reject(throttled), { lane: 'a', idempotent: false })
    await clock.advance(10)
    for (let call = 0; call < 4; call++) run(() => 1, { lane: 'a' })
    await clock.advance(5_000)
    expect(guard.snapshot().queue.waiting).toBeGreaterThanOrEqual(3)
    let tries = 0
    const other = run(
      () => {
        if (++tries === 1) throw Object.assign(new Error('503'), { status: 503 })
        return 'served'
      },
      { lane: 'b' },
    )
    await clock.advance(100)
    expect(other.value).toBe('served')
  })
})

describe('lane names', () => {
  it('guard rejects a lane name that is empty or not a string', async () => {
    const { guard } = createGuardPod({})
    await expect(guard.run(() => 1, { lane: '' })).rejects.toThrow('lane: must be')
    await expect(guard.run(() => 1, { lane: 42 as never })).rejects.toThrow('lane: must be')
  })
})

describe('in-process store that throws', () => {
  it('a memory store that throws fails only the calls of that round trip', async () => {
    const clock = createVirtualClock()
    const store = memoryStore({ clock })
    const { take } = store.limits
    let broken = false
    store.limits.take = (request) => {
      if (broken) throw new Error('boom')
      return take(request)
    }
    const guard = createSpillway({ clock, store }).guard('openai', {
      queue: { size: 10, timeoutMs: '5s' },
      concurrency: { limit: 1 },
      limits: [{ limit: 100, windowMs: '1m' }],
    })
    const holding = guard.run(() => sleep(clock, 100).then(() => 'held'))
    const wait = () => guard.run(() => 'never').catch((error) => error.code)
    const waiting = [wait(), wait()]
    broken = true
    await clock.advance(150)
    const answers = await Promise.all([holding, ...waiting])
    expect(answers).toEqual(['held', 'STORE_UNAVAILABLE', 'STORE_UNAVAILABLE'])
    broken = false
    expect(await guard.run(() => 'fine')).toBe('fine')
  })
})

describe('pod that missed a push message', () => {
  it('a pod that learns late of an open circuit refuses its queued calls', async () => {
    const clock = createVirtualClock()
    const store = memoryStore({ clock })
    let losesMessages = false
    const { watch } = store.breakers
    store.breakers.watch = (watcher) =>
      watch({
        onView: (...news) => {
          if (!losesMessages) watcher.onView(...news)
        },
        onGap: () => watcher.onGap(),
      })
    const policy = { consecutiveFailures: 1, openMs: 500 }
    const guard = createSpillway({ clock, store }).guard('openai', {
      queue: { size: 5, timeoutMs: '20s' },
      concurrency: { limit: 1 },
      breaker: policy,
    })
    const other = createCircuitBreaker({ name: 'openai', store, clock, ...policy })
    void guard.run(() => sleep(clock, 15_000)).catch(() => {})
    await clock.advance(1_100)
    const waiting = guard.run(() => 1).catch((error) => `${error.code} at ${clock.now()}`)
    losesMessages = true
    await other.trip()
    await clock.advance(2_000)
    expect(await waiting).toMatch(/^CIRCUIT_OPEN at [12]\d{3}$/)
    await other.close()
  })
})

describe('guard closed by itself', () => {
  it('a closed guard frees its name for a new one', async () => {
    const spillway = createSpillway()
    await spillway.guard('openai', {}).close()
    expect(await spillway.guard('openai', {}).run(() => 'again')).toBe('again')
    await spillway.close()
  })

  it('a closed guard leaves no timer, not even an unreferenced one', async () => {
    const clock = createVirtualClock()
    const spillway = createSpillway({ clock })
    const guard = spillway.guard('openai', {
      queue: { size: 5, timeoutMs: '20s' },
      breaker: {},
      concurrency: { limit: 1 },
      timeout: { callMs: 10 },
    })
    void guard.run(() => new Promise(() => {})).catch(() => {})
    void guard.run(() => 1).catch(() => {})
    await clock.advance(50)
    await clock.until(spillway.close({ graceMs: 0 }))
    const { fired } = clock
    await clock.advance(120_000)
    expect(clock.fired - fired).toBe(0)
  })
})

describe('classify', () => {
  it('classify is called once per attempt', async () => {
    let asked = 0
    const classify = () => {
      asked++
      return undefined
    }
    const { clock, run } = createGuardPod({
      retry: { attempts: 3, baseMs: 10 },
      breaker: {},
      classify,
    })
    run(() => Promise.reject(Object.assign(new Error('503'), { status: 503 })))
    await clock.advance(1_000)
    expect(asked).toBe(3)
    run(() => 'fine')
    await clock.advance(10)
    expect(asked).toBe(4)
  })
})

describe('guard recreated under its name', () => {
  it('settlements of a recreated guard are counted', async () => {
    const clock = createVirtualClock()
    const spillway = createSpillway({ clock })
    const options = { limits: [{ unit: 'tokens', limit: 1_000, windowMs: '1m' } as const] }
    for (let round = 0; round < 3; round++) {
      const guard = spillway.guard('openai', options)
      await guard.run(({ settle }) => settle({ tokens: 2 }), { cost: { tokens: 400 } })
      await clock.until(guard.close())
    }
    const last = spillway.guard('openai', options)
    expect(await last.run(() => 'fits', { cost: { tokens: 900 } })).toBe('fits')
    await clock.until(spillway.close())
  })
})

describe('self-isolated pod', () => {
  it('a self-isolated pod empties its queue at once and charges no user it refuses', async () => {
    const { clock, run, quick, guard } = createGuardPod({
      queue: { size: 10, timeoutMs: '20s' },
      concurrency: { limit: 1 },
      userLimits: [{ per: 'user', limit: 5, windowMs: '1h' }],
      breaker: { consecutiveFailures: 2, quorum: 2, openMs: 30_000 },
    })
    const fail = () => sleep(clock, 10).then(() => Promise.reject(new Error('broken network')))
    const calls = [run(fail), run(fail), quick(), quick()]
    await clock.advance(25)
    expect(calls.slice(2).map(({ error }) => (error as { code: string }).code)).toEqual([
      'CIRCUIT_OPEN',
      'CIRCUIT_OPEN',
    ])
    for (let call = 0; call < 10; call++) quick({ user: 'ann' })
    await clock.advance(10)
    const refused = guard.snapshot().refused.map(({ code }) => code)
    expect(refused).toEqual(['CIRCUIT_OPEN'])
  })
})

describe('retry and deadline', () => {
  it('guard does not retry when an attempt of usual latency would miss the deadline', async () => {
    const { clock, run } = createGuardPod({ retry: { attempts: 2, baseMs: 1, jitter: 'none' } })
    for (let call = 0; call < 5; call++) {
      await clock.until(run(() => sleep(clock, 300), { timeoutMs: 10_000 }).promise)
    }
    const attemptsWithin = async (timeoutMs: number) => {
      let attempts = 0
      const fail = () => {
        attempts++
        return Promise.reject(new Error('blip'))
      }
      await clock.until(run(fail, { timeoutMs }).promise).catch(() => {})
      return attempts
    }
    expect(await attemptsWithin(290)).toBe(1)
    expect(await attemptsWithin(310)).toBe(2)
  })
})

describe('invalid option combinations', () => {
  it('guard() with contradictory options throws with the path and leaves nothing running', async () => {
    const clock = createVirtualClock()
    const spillway = createSpillway({ clock })
    const limits = [{ limit: 1, windowMs: '1m', burst: 3 } as const]
    expect(() => spillway.guard('openai', { breaker: {}, limits })).toThrow(
      "guard(openai).limits[0].burst: has an effect only with algorithm 'token-bucket'",
    )
    const adaptive = { adaptive: {}, idleMs: 5 }
    expect(() => spillway.guard('openai', { breaker: {}, timeout: adaptive })).toThrow('callMs')
    await clock.until(spillway.close())
    const { fired } = clock
    await clock.advance(60_000)
    expect(clock.fired).toBe(fired)
  })
})

describe('retry after a timeout', () => {
  const options = {
    timeout: { callMs: 100 },
    retry: { attempts: 3, budget: 1, baseMs: 1, maxMs: 2 },
    concurrency: { limit: 20 },
  } as const
  const hang = (context: CallContext) =>
    new Promise<never>((_, reject) => {
      context.onAbort(reject)
    })

  it.each([
    ['1', 3],
    ['2', 1],
  ])(
    'a timeout in a request that is attempt %s of its caller is retried like an error',
    async (hop, made) => {
      const { clock, run, quick } = createGuardPod(options)
      for (let each = 0; each < 30; each++) quick()
      await clock.advance(10)
      const attempts = { timeout: 0, error: 0 }
      const headers = { 'spillway-attempt': hop }
      runHop(headers, hopNames(), () => {
        run((context) => {
          attempts.timeout++
          return hang(context)
        })
        run(async () => {
          attempts.error++
          throw new Error('down')
        })
      })
      await clock.advance(20_000)
      expect(attempts).toEqual({ timeout: made, error: made })
    },
  )

  it.each([
    [1, 3],
    [2, 1],
  ])('a call for attempt %i of its caller is tried %i times', async (callerAttempt, made) => {
    const { clock, run, quick } = createGuardPod(options)
    for (let each = 0; each < 30; each++) quick()
    await clock.advance(10)
    let attempts = 0
    const fail = async () => {
      attempts++
      throw new Error('down')
    }
    run(fail, { callerAttempt })
    await clock.advance(20_000)
    expect(attempts).toBe(made)
    const call = run(fail, { callerAttempt: 0 })
    await clock.settle()
    expect(call.error).toMatchObject({ code: 'INVALID_OPTIONS' })
  })

  it('a retry after a timeout runs in the async context of its caller', async () => {
    const { clock, run, quick } = createGuardPod(options)
    for (let each = 0; each < 30; each++) quick()
    await clock.advance(10)
    const users = new AsyncLocalStorage<string>()
    const deadline = createDeadline(50_000, clock)
    const seen: unknown[] = []
    const fn = (context: CallContext) => {
      seen.push([users.getStore(), currentDeadline()])
      return hang(context)
    }
    const call = users.run('ann', () => runWithDeadline(deadline, () => run(fn)))
    await clock.advance(20_000)
    expect(call.error).toMatchObject({ code: 'CALL_TIMEOUT' })
    expect(seen).toEqual(Array(3).fill(['ann', deadline]))
  })
})

describe.each(EVERYWHERE)('call with too little time left, store: %s', (where) => {
  const limits = [{ limit: 10, windowMs: '1m' }] as const
  const late = { state: 'rejected', error: { code: 'DEADLINE_EXCEEDED', stage: 'queue' } }

  it.each([
    [true, 100],
    [{ reserveMs: 300 }, 300],
  ])('a fetch with hops: %j that has %i ms left takes no permit', async (hops, timeoutMs) => {
    let sent = 0
    const fetch = async () => {
      sent++
      return new Response('fine')
    }
    const options = { limits: [...limits], fetch: { hops, fetch } }
    const { clock, guard, used } = createGuardPod(options, { where })
    const refused = watch(clock, guard.fetchFor({ timeoutMs })('http://vendor/'))
    await clock.advance(50)
    expect(refused).toMatchObject(late)
    expect([sent, await used()]).toEqual([0, 0])
    const fine = watch(clock, guard.fetchFor({ timeoutMs: timeoutMs + 50 })('http://vendor/'))
    await clock.advance(40)
    expect(fine.state).toBe('resolved')
    expect([sent, await used()]).toEqual([1, 1])
  })

  it('a retry with less than needsMs left takes no permit', async () => {
    const retry = { attempts: 2, budget: 1, baseMs: 10, jitter: 'none' } as const
    const { clock, run, guard, used } = createGuardPod({ limits: [...limits], retry }, { where })
    const fails = async () => {
      await sleep(clock, 600)
      throw Object.assign(new Error('down'), { status: 503 })
    }
    const call = run(fails, { timeoutMs: 1_000, needsMs: 500 })
    await clock.advance(700)
    expect(call).toMatchObject(late)
    expect(guard.snapshot().attempts).toBe(1)
    expect(await used()).toBe(1)
  })

  it('a waiting call leaves the queue when less than needsMs is left', async () => {
    const options = { limits: [...limits], concurrency: { limit: 1 }, queue: { size: 5 } }
    const { clock, run, quick, used } = createGuardPod(options, { where })
    run(() => sleep(clock, 800))
    await clock.advance(10)
    const call = quick({ timeoutMs: 1_000, needsMs: 500 })
    await clock.advance(1_000)
    expect(call).toMatchObject({ ...late, atMs: 510 })
    expect(await used()).toBe(1)
  })
})
