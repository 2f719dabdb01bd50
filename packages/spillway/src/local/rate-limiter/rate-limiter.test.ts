import { describe, expect, it } from 'vitest'
import { onEvent, type SpillwayEvent } from '../../core/events.js'
import type { Clock } from '../../core/time/clock.js'
import { createDeadline, runWithDeadline } from '../../core/time/deadline.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { fixedWindow } from './fixed-window.js'
import { leakyBucket } from './leaky-bucket.js'
import { createRateLimiter, type RateLimiterOptions } from './rate-limiter.js'
import { slidingWindow } from './sliding-window.js'

function setup(options: Partial<RateLimiterOptions> = {}) {
  const clock = createVirtualClock()
  const limiter = createRateLimiter({ limit: 10, windowMs: 1_000, clock, ...options })
  const take = (times: number) =>
    Array.from({ length: times }, () => limiter.tryAcquire()).filter(Boolean).length
  return { clock, limiter, take }
}

const ALGORITHMS = ['token-bucket', 'leaky-bucket', 'fixed-window', 'sliding-window'] as const

describe('token bucket', () => {
  it('token bucket grants a burst and then a steady rate, exact to a fraction of a token', async () => {
    const { clock, limiter, take } = setup({ limit: 3, windowMs: 1_000 })
    expect(take(5)).toBe(3)
    // Refused requests must cost nothing and must not lose fractions of a refill.
    for (let i = 0; i < 333; i++) {
      await clock.advance(1)
      expect(limiter.tryAcquire()).toBe(false)
    }
    await clock.advance(0.34)
    expect(limiter.tryAcquire()).toBe(true)
    expect(limiter.tryAcquire()).toBe(false)
  })

  it('token bucket uses the burst option instead of the limit', async () => {
    const { clock, take } = setup({ limit: 10, burst: 2 })
    expect(take(5)).toBe(2)
    await clock.advance(10_000)
    expect(take(5)).toBe(2)
  })
})

describe('leaky bucket', () => {
  it('leaky bucket never grants two at once, even after a long idle time', async () => {
    const { clock, take } = setup({ algorithm: 'leaky-bucket' })
    await clock.advance(60_000)
    expect(take(5)).toBe(1)
    await clock.advance(99)
    expect(take(5)).toBe(0)
    await clock.advance(1)
    expect(take(5)).toBe(1)
  })

  it('leaky bucket starts waiting calls one interval apart', async () => {
    const { clock, limiter } = setup({ algorithm: 'leaky-bucket' })
    const atMs: number[] = []
    const all = Array.from({ length: 4 }, () =>
      limiter.acquireWithin(1_000).then(() => atMs.push(clock.now())),
    )
    await clock.until(Promise.all(all))
    expect(atMs).toEqual([0, 100, 200, 300])
  })

  it('leaky bucket makes up for at most 10 ms by which a waiting call was woken late', () => {
    const bucket = leakyBucket(10, 1_000)
    expect(bucket.tryTake(0, 1)).toBe(true)
    // It waited since 50 ms and could have started at 100 ms.
    expect(bucket.tryTake(500, 1, 50)).toBe(true)
    expect(bucket.tryTake(500, 1, 60)).toBe(false)
    expect(bucket.waitMs(500, 1, 0)).toBe(90)
  })

  it('leaky bucket keeps its rate although timers fire late', async () => {
    const clock = createVirtualClock()
    const late: Clock = {
      now: () => clock.now(),
      wallMs: () => clock.wallMs(),
      schedule: (ms, run) => clock.schedule(ms + 0.9, run),
      pollTurn: (run) => clock.pollTurn(run),
    }
    const limiter = createRateLimiter({
      algorithm: 'leaky-bucket',
      limit: 1_000,
      windowMs: 1_000,
      clock: late,
    })
    const all = Promise.all(Array.from({ length: 500 }, () => limiter.acquireWithin('1s')))
    await clock.until(all)
    expect(clock.now()).toBeLessThan(510)
  })
})

describe('fixed window', () => {
  it('fixed window reports the next window for calls that fill exactly one, and a further window for one more', () => {
    const window = fixedWindow(10, 1_000, 0)
    expect(window.tryTake(0, 10)).toBe(true)
    expect(window.waitMs(0, 10, 0)).toBe(1_000)
    expect(window.waitMs(0, 4, 6)).toBe(1_000)
    expect(window.waitMs(0, 4, 7)).toBe(2_000)
  })

  it('fixed window restarts at zero, so twice the limit can pass around its edge', async () => {
    const { clock, take } = setup({ algorithm: 'fixed-window' })
    await clock.advance(999)
    expect(take(15)).toBe(10)
    await clock.advance(1)
    expect(take(15)).toBe(10)
  })
})

describe('sliding window', () => {
  it('sliding window reports no wait for calls that fill an unused window, and one window for one more', () => {
    const window = slidingWindow(10, 1_000, 10)
    expect(window.waitMs(0, 10, 0)).toBe(0)
    expect(window.waitMs(0, 4, 6)).toBe(0)
    expect(window.waitMs(0, 4, 7)).toBe(1_000)
  })

  it('sliding window never grants twice the limit around an edge', async () => {
    const { clock, take } = setup({ algorithm: 'sliding-window' })
    await clock.advance(999)
    expect(take(15)).toBe(10)
    await clock.advance(999)
    expect(take(15)).toBe(0)
    await clock.advance(40)
    expect(take(15)).toBe(10)
  })

  it('sliding window counts two calls in the same instant as two', () => {
    const { limiter } = setup({ algorithm: 'sliding-window', limit: 2 })
    expect([limiter.tryAcquire(), limiter.tryAcquire(), limiter.tryAcquire()]).toEqual([
      true,
      true,
      false,
    ])
  })
})

describe.each(ALGORITHMS)('rate limiter (%s)', (algorithm) => {
  const exhaust = (limiter: ReturnType<typeof setup>['limiter']) => {
    while (limiter.tryAcquire());
  }

  it('a refusal costs the limiter nothing', async () => {
    const { clock, limiter } = setup({ algorithm })
    exhaust(limiter)
    const waitMs = limiter.retryAfterMs()
    for (let i = 0; i < 1_000; i++) limiter.tryAcquire()
    expect(limiter.retryAfterMs()).toBe(waitMs)
    await clock.advance(waitMs)
    expect(limiter.tryAcquire()).toBe(true)
  })

  it('retryAfterMs() is the exact time until the next grant', async () => {
    const { clock, limiter } = setup({ algorithm })
    expect(limiter.retryAfterMs()).toBe(0)
    exhaust(limiter)
    expect(limiter.remaining).toBe(0)
    const waitMs = limiter.retryAfterMs()
    await clock.advance(waitMs - 0.01)
    expect(limiter.tryAcquire()).toBe(false)
    await clock.advance(0.01)
    expect(limiter.remaining).toBeGreaterThanOrEqual(1)
    expect(limiter.tryAcquire()).toBe(true)
  })

  it('a call whose waitMs equals the wait is granted exactly in time', async () => {
    const { clock, limiter } = setup({ algorithm })
    exhaust(limiter)
    const waitMs = limiter.retryAfterMs()
    await expect(clock.until(limiter.acquireWithin(waitMs))).resolves.toBe(true)
    expect(clock.now()).toBeCloseTo(waitMs)
    expect(clock.pending).toBe(0)
  })

  it('acquireWithin() refuses at once if the wait would exceed waitMs', async () => {
    const { clock, limiter } = setup({ algorithm })
    exhaust(limiter)
    await expect(limiter.acquireWithin(limiter.retryAfterMs() - 0.5)).resolves.toBe(false)
    expect(clock.now()).toBe(0)
    expect(clock.pending).toBe(0)
  })

  it('acquireWithin() does not wait past the deadline of the request', async () => {
    const { clock, limiter } = setup({ algorithm })
    exhaust(limiter)
    const hurried = runWithDeadline(createDeadline(10, clock), () => limiter.acquireWithin('1h'))
    await expect(hurried).resolves.toBe(false)
  })

  it('a call whose deadline has passed takes nothing from the limiter', async () => {
    const { clock, limiter } = setup({ algorithm })
    const { remaining } = limiter
    const late = runWithDeadline(createDeadline(0, clock), () => limiter.acquireWithin('1h'))
    await expect(late).resolves.toBe(false)
    expect(limiter.remaining).toBe(remaining)
  })

  it('limiter grants in order, so a small cost does not overtake a large one', async () => {
    const { clock, limiter } = setup({ algorithm, limit: 10 })
    exhaust(limiter)
    const order: string[] = []
    const large = limiter.acquireWithin('1m', { cost: 8 }).then(() => order.push('large'))
    const small = limiter.acquireWithin('1m').then(() => order.push('small'))
    expect(limiter.tryAcquire()).toBe(false)
    expect(limiter.waiting).toBe(2)
    await clock.until(Promise.all([large, small]))
    expect(order).toEqual(['large', 'small'])
  })

  it('limiter uses one timer for all waiting calls', async () => {
    const { clock, limiter } = setup({ algorithm })
    exhaust(limiter)
    const fired = clock.fired
    const line = Promise.all(Array.from({ length: 30 }, () => limiter.acquireWithin('1h')))
    await clock.until(line)
    expect(clock.fired - fired).toBeLessThanOrEqual(30)
  })

  it('limiter removes an aborted call and grants the next one', async () => {
    const { clock, limiter } = setup({ algorithm })
    exhaust(limiter)
    const abort = new AbortController()
    const reason = new Error('left')
    const leaving = limiter.acquireWithin('1m', { cost: 8, signal: abort.signal })
    const outcome = leaving.catch((error) => error)
    const next = limiter.acquireWithin('1m')
    abort.abort(reason)
    await expect(outcome).resolves.toBe(reason)
    const waitMs = limiter.retryAfterMs()
    await expect(clock.until(next)).resolves.toBe(true)
    expect(clock.now()).toBeLessThanOrEqual(waitMs)
    await expect(limiter.acquireWithin(1, { signal: AbortSignal.abort(reason) })).rejects.toBe(
      reason,
    )
  })

  it('close() rejects waiting calls and leaves no timer', async () => {
    const { clock, limiter } = setup({ algorithm })
    exhaust(limiter)
    const waiting = limiter.acquireWithin('1m')
    limiter.close()
    await expect(waiting).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
    await expect(limiter.acquireWithin(1)).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
    expect(() => limiter.tryAcquire()).toThrow(
      'limiter: its close() was called, so it starts no more calls',
    )
    expect(clock.pending).toBe(0)
  })

  it('limiter rejects a cost above its limit instead of waiting for ever', async () => {
    const { limiter } = setup({ algorithm })
    expect(() => limiter.tryAcquire(11)).toThrow('cost: must be an integer from 1 to 10, got 11')
    expect(() => limiter.tryAcquire(0)).toThrow('got 0')
    await expect(limiter.acquireWithin(-1)).rejects.toThrow('waitMs: must be')
  })
})

describe('rate limiter options', () => {
  it('createRateLimiter names the invalid option', () => {
    const wrong = (options: object) => () =>
      createRateLimiter({ limit: 1, windowMs: 1, ...options } as RateLimiterOptions)
    expect(wrong({ limit: -1 })).toThrow('rateLimiter.limit: must be a positive integer, got -1')
    expect(wrong({ windowMs: 'soon' })).toThrow('rateLimiter.windowMs')
    expect(wrong({ algorithm: 'sliding' })).toThrow("did you mean 'sliding-window'?")
    expect(wrong({ algorithm: 'leaky-bucket', burst: 2 })).toThrow(
      'rateLimiter.burst: has an effect only',
    )
    expect(wrong({ slices: 2 })).toThrow("has an effect only with algorithm 'sliding-window'")
  })
})

describe('rate limiter events', () => {
  it('limiter emits limiter.refused with retryAfterMs', () => {
    const { limiter, take } = setup({ limit: 2 })
    const events: SpillwayEvent[] = []
    const stop = onEvent((event) => events.push(event))
    take(3)
    stop()
    expect(events).toEqual([
      { type: 'limiter.refused', name: 'limiter', cost: 1, retryAfterMs: limiter.retryAfterMs() },
    ])
  })
})
