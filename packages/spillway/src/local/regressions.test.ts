/** Fixed bugs. Each test failed before its fix. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, it, vi } from 'vitest'
import { onEvent } from '../core/events.js'
import { judge } from '../core/outcome.js'
import { createDeadline, currentDeadline, runWithDeadline } from '../core/time/deadline.js'
import { sleep } from '../core/time/sleep.js'
import { createVirtualClock } from '../testing/virtual-clock.js'
import { createBulkhead } from './bulkhead/bulkhead.js'
import { createPodMetrics } from './pod-metrics/pod-metrics.js'
import { createRateLimiter } from './rate-limiter/rate-limiter.js'
import { createRetry } from './retry/retry.js'
import { createTimeout } from './timeout/timeout.js'

const never = () => new Promise<never>(() => {})

describe('timeouts that share a timer', () => {
  it('a timeout fires on time although another one starts a call while it fires', async () => {
    const clock = createVirtualClock()
    const timeout = createTimeout({ callMs: 100, clock })
    const firedAt: number[] = []
    const watch = (call: Promise<unknown>) => call.catch(() => firedAt.push(clock.now()))
    void watch(
      timeout.run(({ signal }) => {
        signal.addEventListener('abort', () => void watch(timeout.run(never)))
        return never()
      }),
    )
    await clock.advance(1)
    void watch(timeout.run(never))
    await clock.advance(500)
    expect(firedAt).toEqual([100, 101, 200])
  })

  it('a timeout aborts in the async context of its own call', async () => {
    const clock = createVirtualClock()
    const timeout = createTimeout({ callMs: 100, clock })
    const seen: (number | undefined)[] = []
    const request = (timeoutMs: number) =>
      runWithDeadline(createDeadline(timeoutMs, clock), () =>
        timeout
          .run(({ signal }) => {
            signal.addEventListener('abort', () => seen.push(currentDeadline()?.atMs))
            return never()
          })
          .catch(() => {}),
      )
    await clock.until(Promise.all([request(1_000), request(50_000)]))
    expect(seen).toEqual([1_000, 50_000])
  })

  it('a shared timer does not retain the async context of a finished request', async () => {
    const clock = createVirtualClock()
    const schedule = vi.spyOn(clock, 'schedule')
    const storage = new AsyncLocalStorage<string>()
    const stores: (string | undefined)[] = []
    schedule.mockImplementation(() => {
      stores.push(storage.getStore())
      return { cancel() {}, ref() {}, unref() {} }
    })
    const timeout = createTimeout({ callMs: 100, clock })
    storage.run('a request', () => void timeout.run(never))
    expect(stores).toEqual([undefined])
  })
})

describe('bulkhead slot', () => {
  const setup = () => {
    const clock = createVirtualClock()
    let running = 0
    let most = 0
    const deaf = async () => {
      most = Math.max(most, ++running)
      await sleep(clock, 1_000)
      running--
    }
    return { clock, deaf, most: () => most, bulkhead: createBulkhead({ limit: 1, clock }) }
  }

  it('a slot stays taken when the timeout error is caught and another value returned', async () => {
    const { clock, deaf, bulkhead, most } = setup()
    const timeout = createTimeout({ callMs: 10, clock })
    const call = () =>
      bulkhead.run(async () => {
        try {
          return await timeout.run(deaf)
        } catch {
          return 'fallback'
        }
      })
    await expect(clock.until(call())).resolves.toBe('fallback')
    for (let i = 0; i < 5; i++) await expect(call()).rejects.toMatchObject({ code: 'QUEUE_FULL' })
    await clock.advance(1_000)
    expect(bulkhead.active).toBe(0)
    expect(most()).toBe(1)
  })

  it('a slot stays taken under nested timeouts', async () => {
    const { clock, deaf, bulkhead } = setup()
    const outer = createTimeout({ callMs: 10, clock })
    const inner = createTimeout({ callMs: 50, clock })
    const call = bulkhead.run(() => outer.run(() => inner.run(deaf)))
    await expect(clock.until(call)).rejects.toMatchObject({ code: 'CALL_TIMEOUT' })
    await clock.advance(100)
    expect(bulkhead.active).toBe(1)
    await clock.advance(1_000)
    expect(bulkhead.active).toBe(0)
  })

  it('a slot stays taken when the caller aborts with a reason that is not an object', async () => {
    const { clock, deaf, bulkhead } = setup()
    const abort = new AbortController()
    const timeout = createTimeout({ callMs: 10_000, clock })
    const call = bulkhead.run(() => timeout.run(deaf, { signal: abort.signal }))
    abort.abort('bye')
    await expect(call).rejects.toBe('bye')
    expect(bulkhead.active).toBe(1)
    await clock.advance(1_000)
    expect(bulkhead.active).toBe(0)
  })

  it('a slot is released although a getter on the result throws', async () => {
    const bulkhead = createBulkhead({ limit: 1 })
    const trap = (property: string) =>
      Object.defineProperty({}, property, {
        get() {
          throw new Error('trap')
        },
      })
    await expect(bulkhead.run(() => trap('then') as never)).rejects.toThrow('trap')
    await expect(bulkhead.run(() => Promise.reject(trap('cause')))).rejects.toBeDefined()
    expect(bulkhead.active).toBe(0)
  })

  it('a slot is not given to a request whose deadline passed while the event loop was blocked', async () => {
    const clock = createVirtualClock()
    const bulkhead = createBulkhead({ limit: 1, queue: { size: 1 }, clock })
    const first = sleep(clock, 500)
    void bulkhead.run(() => first)
    // Its timers never fire because the event loop is blocked until the slot is released.
    const deaf = { ...createDeadline(100, clock), expired: false, remainingMs: () => 10_000 }
    let started = false
    const waiting = runWithDeadline(deaf as never, () =>
      bulkhead.run(() => {
        started = true
      }),
    ).catch((error) => error.code)
    deaf.expired = true
    await clock.advance(500)
    await expect(waiting).resolves.toBe('DEADLINE_EXCEEDED')
    expect(started).toBe(false)
    expect(bulkhead.active).toBe(0)
  })
})

describe('callbacks that fail', () => {
  it('an async listener or classify that rejects does not end the process', async () => {
    const stop = onEvent(async () => {
      throw new Error('listener')
    })
    const classify = (async () => {
      throw new Error('classify')
    }) as never
    expect(judge({ error: { status: 503 } }, { classify }).outcome).toBe('failure')
    stop()
  })

  it('a circular cause or a throwing getter does not replace the original error', () => {
    const circle = new TypeError('circle')
    circle.cause = circle
    expect(judge({ error: circle }).outcome).toBe('failure')
    const trap = Object.defineProperty({}, 'status', {
      get() {
        throw new Error('trap')
      },
    })
    expect(judge({ error: trap }).outcome).toBe('failure')
  })

  it('a retry budget that throws allows no retry', async () => {
    const fail = () => {
      throw new Error('budget is down')
    }
    const budget = { recordRequest: fail, tryRetry: fail } as never
    const retry = createRetry({ budget })
    const boom = new Error('boom')
    const fn = vi.fn(() => Promise.reject(boom))
    await expect(retry.run(fn)).rejects.toBe(boom)
    expect(fn).toHaveBeenCalledOnce()
    await expect(retry.run(() => 'ok')).resolves.toBe('ok')
  })
})

describe('abort signal of the caller', () => {
  it('a thousand concurrent calls add one listener to the signal and remove it afterwards', async () => {
    const clock = createVirtualClock()
    const abort = new AbortController()
    const { signal } = abort
    const add = vi.spyOn(signal, 'addEventListener')
    const remove = vi.spyOn(signal, 'removeEventListener')
    const timeout = createTimeout({ callMs: 100, clock })
    const calls = Array.from({ length: 1_000 }, () =>
      timeout.run(() => sleep(clock, 10), { signal }),
    )
    await clock.until(Promise.all(calls))
    expect(add).toHaveBeenCalledOnce()
    expect(remove).toHaveBeenCalledOnce()
  })

  it('any error after the caller aborted counts as ignored', async () => {
    const abort = new AbortController()
    const retry = createRetry({ attempts: 3, budget: 1 })
    const fn = vi.fn(async () => {
      abort.abort()
      throw Object.assign(new Error('canceled'), { name: 'CanceledError' })
    })
    const result = await retry.tryRun(fn, { signal: abort.signal })
    expect(result).toMatchObject({ ok: false, attempts: [{ outcome: 'ignored' }] })
    expect(fn).toHaveBeenCalledOnce()
  })
})

describe('retry', () => {
  it('retry makes no attempt once the deadline has passed', async () => {
    const clock = createVirtualClock()
    const fn = vi.fn()
    const call = runWithDeadline(createDeadline(0, clock), () => createRetry({ clock }).run(fn))
    await expect(call).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(fn).not.toHaveBeenCalled()
  })

  it('retry treats an empty idempotency key as none', async () => {
    const fn = vi.fn(() => Promise.reject(new Error('blip')))
    const options = { idempotent: false, idempotencyKey: '' }
    await expect(createRetry().run(fn, options)).rejects.toThrow('blip')
    expect(fn).toHaveBeenCalledOnce()
  })
})

describe('adaptive timeout', () => {
  it('adaptive timeout does not learn from calls that the deadline cut off', async () => {
    const clock = createVirtualClock()
    const timeout = createTimeout({ callMs: 5_000, adaptive: { minimumCalls: 10 }, clock })
    for (let i = 0; i < 50; i++) {
      const call = runWithDeadline(createDeadline(50, clock), () => timeout.run(never))
      await clock.until(call).catch(() => {})
    }
    await clock.advance(1_000)
    expect(timeout.callMs).toBe(5_000)
  })
})

describe('pod metrics', () => {
  it('refusals do not lower the latency percentiles of pod metrics', async () => {
    const clock = createVirtualClock()
    const metrics = createPodMetrics({ clock })
    for (let i = 0; i < 2_015; i++) {
      metrics.record(i % 10 === 0 ? 400 : 0, i % 10 === 0 ? 'success' : 'ignored')
      await clock.advance(10)
    }
    expect(metrics.percentile(0.5)).toBeCloseTo(400, -1)
    expect(metrics.snapshot().rps).toBeCloseTo(100, 0)
  })
})

describe('rate limiter', () => {
  it.each(['token-bucket', 'leaky-bucket', 'fixed-window', 'sliding-window'] as const)(
    'limiter lets no call overtake a waiting one, even if its cost would fit (%s)',
    async (algorithm) => {
      const clock = createVirtualClock()
      const limiter = createRateLimiter({ limit: 10, windowMs: 1_000, algorithm, clock })
      limiter.tryAcquire(algorithm === 'leaky-bucket' ? 1 : 8)
      const large = limiter.acquireWithin('1m', { cost: 9 })
      expect(limiter.tryAcquire(1)).toBe(false)
      expect(limiter.remaining).toBe(0)
      const behind = limiter.retryAfterMs(1)
      await clock.until(large)
      expect(behind).toBeGreaterThanOrEqual(clock.now())
    },
  )

  it('fixed windows are aligned with the wall clock', async () => {
    const clock = createVirtualClock({ wallMs: 59_000 })
    const limiter = createRateLimiter({
      algorithm: 'fixed-window',
      limit: 1,
      windowMs: '1m',
      clock,
    })
    expect(limiter.tryAcquire()).toBe(true)
    expect(limiter.retryAfterMs()).toBe(1_000)
  })
})
