/** Bugs that were here once, each with the claim it broke. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, it } from 'vitest'
import { createDeadline, currentDeadline, runWithDeadline } from '../src/core/deadline.js'
import { hopNames, runHop } from '../src/core/hops.js'
import type { CallContext } from '../src/guard/context.js'
import { createSpillway } from '../src/guard/spillway.js'
import { createCircuitBreaker } from '../src/shared/circuit-breaker/circuit-breaker.js'
import { memoryStore } from '../src/store/memory/memory-store.js'
import { sleep } from '../src/testing/index.js'
import { createVirtualClock } from '../src/testing/virtual-clock.js'
import { createGuardPod } from './guard-pod.js'

const BUCKET = { unit: 'tokens', limit: 100, windowMs: '50s', algorithm: 'token-bucket' } as const

describe('a lane that waits for its limits', () => {
  it('wakes earlier when something is given back', async () => {
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
    // At first 20 s; with the 30 that come back after one, about 5.
    const waiting = run(() => clock.now(), { cost: { tokens: 40 } })
    await clock.advance(6_000)
    expect(waiting.value).toBeLessThan(5_500)
  })

  it('wakes earlier when the next in turn leaves, and the one behind it wants less', async () => {
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

describe('a lane that turns out to be used up when its turn comes', () => {
  it('leaves the slot to the next lane at once', async () => {
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

describe('a cost that is not all its own', () => {
  it('is the cost of one call, not of those behind it', async () => {
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

describe('a lane whose limits refused a large call', () => {
  it('takes a small one that fits, without a room too', async () => {
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
  it('learns what it requested, of which unit, and what was left of the limit', async () => {
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
    expect((large.error as Error).message).toContain('requests 75 tokens, and 40 of 100 are left')
  })
})

describe('slots and pace, which belong to all lanes', () => {
  it('go to whoever waits, before a newcomer of another lane', async () => {
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

  it('are not counted as wanted by a lane that waits for its vendor', async () => {
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
    expect(guard.snapshot().room.waiting).toBeGreaterThanOrEqual(3)
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

describe('the name of a lane', () => {
  it('is a non-empty string', async () => {
    const { guard } = createGuardPod({})
    await expect(guard.run(() => 1, { lane: '' })).rejects.toThrow('lane: must be')
    await expect(guard.run(() => 1, { lane: 42 as never })).rejects.toThrow('lane: must be')
  })
})

describe('a store in this process that throws', () => {
  it('fails the calls it was asked for, and nobody else', async () => {
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

describe('a pod that missed the news', () => {
  it('refuses whoever still waits when it hears that the circuit is half-open', async () => {
    const clock = createVirtualClock()
    const store = memoryStore({ clock })
    let deaf = false
    const { watch } = store.breakers
    store.breakers.watch = (watcher) =>
      watch({
        onView: (...news) => {
          if (!deaf) watcher.onView(...news)
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
    deaf = true
    await other.trip()
    await clock.advance(2_000)
    expect(await waiting).toMatch(/^CIRCUIT_OPEN at [12]\d{3}$/)
    await other.close()
  })
})

describe('a guard that was closed by itself', () => {
  it('makes room for another of its name', async () => {
    const spillway = createSpillway()
    await spillway.guard('openai', {}).close()
    expect(await spillway.guard('openai', {}).run(() => 'again')).toBe('again')
    await spillway.close()
  })

  it('leaves no timer, not even one that would not keep the process alive', async () => {
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

describe('your own word on how an attempt ended', () => {
  it('is asked for once', async () => {
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

describe('a guard made again under its name', () => {
  it('has its settlements heard', async () => {
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

describe('a pod that isolates itself', () => {
  it('empties its room at once, and charges nobody it then refuses', async () => {
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

describe('a retry', () => {
  it('is not begun when an attempt as long as good ones have been would miss the deadline', async () => {
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

describe('a guard with options that do not go together', () => {
  it('is not made, says where the mistake is, and leaves nothing running', async () => {
    const clock = createVirtualClock()
    const spillway = createSpillway({ clock })
    const limits = [{ limit: 1, windowMs: '1m', burst: 3 } as const]
    expect(() => spillway.guard('openai', { breaker: {}, limits })).toThrow(
      "guard(openai).limits[0].burst: only has a meaning with algorithm 'token-bucket'",
    )
    const adaptive = { adaptive: {}, idleMs: 5 }
    expect(() => spillway.guard('openai', { breaker: {}, timeout: adaptive })).toThrow('callMs')
    await clock.until(spillway.close())
    const { fired } = clock
    await clock.advance(60_000)
    expect(clock.fired).toBe(fired)
  })
})

describe('a retry after a timeout', () => {
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
    'of a request that is attempt %s of its caller is made as after an error',
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

  it("runs in its caller's async context, as the first attempt did", async () => {
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
