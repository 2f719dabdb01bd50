/** Bugs that were here once. Each claim failed before its fix. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, it, vi } from 'vitest'
import { createDeadline, currentDeadline, runWithDeadline } from '../core/deadline.js'
import { onEvent } from '../core/events.js'
import { judge } from '../core/outcome.js'
import { sleep } from '../core/sleep.js'
import { createVirtualClock } from '../testing/virtual-clock.js'
import { createBulkhead } from './bulkhead.js'
import { createPodMetrics } from './pod-metrics.js'
import { createRateLimiter } from './rate-limiter/rate-limiter.js'
import { createRetry } from './retry.js'
import { createTimeout } from './timeout.js'

const never = () => new Promise<never>(() => {})

describe('timeouts that share a timer', () => {
  it('fire in time although one of them starts another call while it fires', async () => {
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

  it('abort in the async context of the call, not of whoever came first', async () => {
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

  it('do not keep the context of a request that is long over', async () => {
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

describe('a slot', () => {
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

  it('stays taken when the timeout is caught and something else is returned', async () => {
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

  it('stays taken under timeouts inside of timeouts', async () => {
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

  it('stays taken when the caller aborts with something that is no object', async () => {
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

  it('is given back although a getter on what came back throws', async () => {
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

  it('is not used for a request whose deadline passed while the event loop was blocked', async () => {
    const clock = createVirtualClock()
    const bulkhead = createBulkhead({ limit: 1, queue: { size: 1 }, clock })
    const first = sleep(clock, 500)
    void bulkhead.run(() => first)
    // Its timers never fire: the loop is blocked until the slot comes free.
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

describe('callbacks that misbehave', () => {
  it('may be async and reject without ending the process', async () => {
    const stop = onEvent(async () => {
      throw new Error('listener')
    })
    const classify = (async () => {
      throw new Error('classify')
    }) as never
    expect(judge({ error: { status: 503 } }, { classify }).outcome).toBe('failure')
    stop()
  })

  it('do not take the place of the error: a circle of causes, a getter that throws', () => {
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

  it('do not break a retry: a budget that throws allows none', async () => {
    const fail = () => {
      throw new Error('budget is down')
    }
    const budget = { recordRequest: fail, tryRetry: fail } as never
    const retry = createRetry({ budget })
    const boom = new Error('boom')
    await expect(retry.run(() => Promise.reject(boom))).rejects.toBe(boom)
    await expect(retry.run(() => 'ok')).resolves.toBe('ok')
  })
})

describe('a caller’s signal', () => {
  it('carries a thousand calls at once with one listener, and none afterwards', async () => {
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

  it('that is aborted makes any error a hang-up, whatever the client calls it', async () => {
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

describe('a retry', () => {
  it('does not call at all once the deadline has passed', async () => {
    const clock = createVirtualClock()
    const fn = vi.fn()
    const call = runWithDeadline(createDeadline(0, clock), () => createRetry({ clock }).run(fn))
    await expect(call).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(fn).not.toHaveBeenCalled()
  })

  it('takes an empty idempotency key for none', async () => {
    const fn = vi.fn(() => Promise.reject(new Error('blip')))
    const options = { idempotent: false, idempotencyKey: '' }
    await expect(createRetry().run(fn, options)).rejects.toThrow('blip')
    expect(fn).toHaveBeenCalledOnce()
  })
})

describe('an adaptive timeout', () => {
  it('does not learn from cut-offs that are not its own', async () => {
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
  it('are not flattered by refusals, and count what they cover', async () => {
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

describe('a limiter', () => {
  it.each(['token-bucket', 'leaky-bucket', 'fixed-window', 'sliding-window'] as const)(
    'lets nobody overtake who waits, even if the cost would fit (%s)',
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

  it('starts fixed windows with the wall clock', async () => {
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
