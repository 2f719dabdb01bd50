import { describe, expect, it, vi } from 'vitest'
import { onEvent, type SpillwayEvent } from '../../core/events.js'
import type { Clock } from '../../core/time/clock.js'
import { createDeadline, runWithDeadline } from '../../core/time/deadline.js'
import { sleep } from '../../core/time/sleep.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { createBulkhead } from '../bulkhead/bulkhead.js'
import { attemptsOf } from './attempts.js'
import { createRetry, type RetryOptions } from './retry.js'
import { createRetryBudget, type RetryBudget } from './retry-budget.js'
import type { RetryFunction, RetryRunOptions } from './retry-call.js'

function setup(options: RetryOptions = {}) {
  const clock = createVirtualClock()
  const retry = createRetry({ name: 'openai', jitter: 'none', clock, ...options })
  return { clock, retry }
}

/** A function that fails `failures` times and then succeeds. */
function flaky(failures: number, error: unknown = new Error('blip')) {
  return vi.fn(async ({ attempt }: { attempt: number }) => {
    if (attempt <= failures) throw error
    return `answer ${attempt}`
  })
}

describe('retry', () => {
  it('retry repeats a failed call after growing delays and returns the result', async () => {
    const { clock, retry } = setup()
    const fn = flaky(2)
    await expect(clock.until(retry.run(fn))).resolves.toBe('answer 3')
    expect(clock.now()).toBe(300)
    expect(clock.pending).toBe(0)
  })

  it('retry throws the original error object with all attempts attached', async () => {
    const { clock, retry } = setup()
    const errors = [new Error('one'), new Error('two'), new Error('three')]
    const fn = async ({ attempt }: { attempt: number }) => {
      await sleep(clock, 10)
      throw errors[attempt - 1]
    }
    const error = await clock.until(retry.run(fn)).catch((each) => each)
    expect(error).toBe(errors[2])
    expect(Object.keys(error)).toEqual([])
    expect(attemptsOf(error)).toEqual([
      { attempt: 1, delayMs: 0, durationMs: 10, outcome: 'failure', error: errors[0] },
      { attempt: 2, delayMs: 100, durationMs: 10, outcome: 'failure', error: errors[1] },
      { attempt: 3, delayMs: 200, durationMs: 10, outcome: 'failure', error: errors[2] },
    ])
    expect(error.attempts).toBe(attemptsOf(error))
  })

  it('retry leaves errors alone that are frozen, primitive or already have attempts', async () => {
    const { retry } = setup({ attempts: 1 })
    const thrown = [Object.freeze(new Error('frozen')), 'text', { attempts: 7 }]
    for (const error of thrown) {
      await expect(retry.run(() => Promise.reject(error))).rejects.toBe(error)
      expect(attemptsOf(error)).toEqual([])
    }
    expect(thrown[2]).toEqual({ attempts: 7 })
    expect(attemptsOf(undefined)).toEqual([])
  })

  it('tryRun() returns every attempt instead of throwing', async () => {
    const { clock, retry } = setup()
    await expect(clock.until(retry.tryRun(flaky(1)))).resolves.toMatchObject({
      ok: true,
      value: 'answer 2',
      attempts: [{ outcome: 'failure' }, { outcome: 'success', delayMs: 100 }],
    })
    const { attempts } = await clock.until(retry.tryRun(() => 'a large answer'))
    expect(attempts).toEqual([{ attempt: 1, delayMs: 0, durationMs: 0, outcome: 'success' }])
    const failed = await clock.until(retry.tryRun(flaky(9)))
    expect(failed).toMatchObject({ ok: false, attempts: [{}, {}, {}] })
  })

  it('retry repeats a function that throws synchronously and returns plain values as they are', async () => {
    const { clock, retry } = setup()
    let calls = 0
    const throwing = () => {
      if (++calls < 3) throw new Error('at once')
      return 'ok'
    }
    await expect(clock.until(retry.run(throwing))).resolves.toBe('ok')
    await expect(retry.run(() => 5)).resolves.toBe(5)
  })
})

describe('retry decision', () => {
  it.each([
    ['a permanent error', { status: 404 }],
    ['a bug', new TypeError('x is not a function')],
    ['an error marked as not retryable', Object.assign(new Error(), { retryable: false })],
  ])('%s is not retried', async (_, error) => {
    const { retry } = setup()
    const fn = flaky(1, error)
    await expect(retry.run(fn)).rejects.toBe(error)
    expect(fn).toHaveBeenCalledOnce()
  })

  it('a call that is not idempotent is retried only with an idempotency key', async () => {
    const { clock, retry } = setup()
    const fn = flaky(1)
    await expect(retry.run(fn, { idempotent: false })).rejects.toThrow('blip')
    expect(fn).toHaveBeenCalledOnce()
    const keyed = retry.run(flaky(1), { idempotent: false, idempotencyKey: 'order-17' })
    await expect(clock.until(keyed)).resolves.toBe('answer 2')
  })

  it('a call is not retried when another attempt of usual latency would miss the deadline', async () => {
    const { clock, retry } = setup()
    const within = <T>(ms: number, fn: () => Promise<T>) =>
      clock.until(runWithDeadline(createDeadline(ms, clock), fn))
    for (let i = 0; i < 5; i++) await within(10_000, () => retry.run(() => sleep(clock, 300)))
    const fn = flaky(1)
    await expect(within(390, () => retry.run(fn))).rejects.toThrow('blip')
    expect(fn).toHaveBeenCalledOnce()
    await expect(within(410, () => retry.run(flaky(1)))).resolves.toBe('answer 2')
  })

  it('calls are not retried once the retry budget is spent', async () => {
    const { clock, retry } = setup({ budget: 0.2 })
    let calls = 0
    const failing = () => {
      calls++
      return Promise.reject(new Error('down'))
    }
    for (let i = 0; i < 1_000; i++) {
      await clock.until(retry.run(failing)).catch(() => {})
    }
    expect(calls).toBeLessThanOrEqual(1_200)
    expect(calls).toBeGreaterThan(1_100)
  })

  it('a budget of 0 allows no retry and a budget of 1 allows all attempts', async () => {
    const { clock, retry } = setup({ budget: 0 })
    const fn = flaky(1)
    await expect(clock.until(retry.run(fn))).rejects.toThrow('blip')
    expect(fn).toHaveBeenCalledOnce()
    const rich = setup({ budget: 1, attempts: 8 })
    for (let i = 0; i < 50; i++) await rich.retry.run(() => 'ok')
    await expect(rich.clock.until(rich.retry.run(flaky(7)))).resolves.toBe('answer 8')
  })

  it('a call is not retried while the retry conditions forbid it', async () => {
    const { clock, retry } = setup({
      budget: createRetryBudget({ conditions: () => ({ breakerOpen: true }) }),
    })
    const fn = flaky(1)
    await expect(clock.until(retry.run(fn))).rejects.toThrow('blip')
    expect(fn).toHaveBeenCalledOnce()
  })

  it('a refusal by Spillway itself is not retried', async () => {
    const { clock, retry } = setup()
    const bulkhead = createBulkhead({ limit: 1, clock })
    void bulkhead.run(() => sleep(clock, 10))
    const fn = vi.fn(() => bulkhead.run(() => 1))
    await expect(retry.run(fn)).rejects.toMatchObject({ code: 'QUEUE_FULL' })
    expect(fn).toHaveBeenCalledOnce()
    await clock.drain()
  })

  it('classify can make a result retryable', async () => {
    const { clock, retry } = setup({
      classify: (end) => ('value' in end && end.value === 'busy' ? 'failure' : undefined),
    })
    const fn = vi.fn(async ({ attempt }) => (attempt === 1 ? 'busy' : 'ready'))
    await expect(clock.until(retry.run(fn))).resolves.toBe('ready')
  })
})

describe('Retry-After', () => {
  it('retry waits for Retry-After when it exceeds the backoff', async () => {
    const { clock, retry } = setup()
    const error = { status: 429, headers: { 'retry-after': '7' } }
    await clock.until(retry.run(flaky(1, error)))
    expect(clock.now()).toBe(7_000)
  })

  it('retry reads retryAfterMs from the error', async () => {
    const { clock, retry } = setup()
    const error = Object.assign(new Error('busy'), { retryAfterMs: 1_234 })
    await clock.until(retry.run(flaky(1, error)))
    expect(clock.now()).toBe(1_234)
  })

  it('retry accepts a date in Retry-After', async () => {
    const { clock, retry } = setup()
    const date = new Date(clock.wallMs() + 5_000).toUTCString()
    await clock.until(retry.run(flaky(1, { status: 503, headers: { 'retry-after': date } })))
    expect(clock.now()).toBe(5_000)
  })

  it('retry adds jitter to Retry-After, so callers do not return at the same moment', async () => {
    const { clock, retry } = setup({ jitter: 'full', random: () => 0.5 })
    await clock.until(retry.run(flaky(1, { status: 429, headers: { 'retry-after': '7' } })))
    expect(clock.now()).toBe(7_050)
  })

  it('retry stops when Retry-After exceeds the deadline or maxRetryAfterMs', async () => {
    const { clock, retry } = setup({ maxRetryAfterMs: '1m' })
    const inTwoMinutes = { status: 429, headers: { 'retry-after': '120' } }
    await expect(retry.run(flaky(1, inTwoMinutes))).rejects.toBe(inTwoMinutes)
    const inAMinute = { status: 429, headers: { 'retry-after': '60' } }
    const hurried = runWithDeadline(createDeadline(5_000, clock), () =>
      retry.run(flaky(1, inAMinute)),
    )
    await expect(clock.until(hurried)).rejects.toBe(inAMinute)
    expect(clock.now()).toBe(0)
  })
})

describe('retry of responses', () => {
  it('retry repeats a response with a retryable status and cancels its body', async () => {
    const { clock, retry } = setup()
    const cancelled: number[] = []
    const respond = (status: number) =>
      new Response(new ReadableStream({ cancel: () => void cancelled.push(status) }), { status })
    const statuses = [503, 429, 200]
    const response = await clock.until(
      retry.run(({ attempt }) => Promise.resolve(respond(statuses[attempt - 1] as number))),
    )
    expect(response.status).toBe(200)
    expect(cancelled).toEqual([503, 429])
  })

  it('the last failed response is returned unread', async () => {
    const { clock, retry } = setup()
    const response = await clock.until(retry.run(() => new Response('sorry', { status: 503 })))
    await expect(response.text()).resolves.toBe('sorry')
  })
})

describe('retry and abort', () => {
  it('an abort during the delay ends the call at once without another attempt', async () => {
    const { clock, retry } = setup({ baseMs: '10s' })
    const abort = new AbortController()
    const fn = flaky(1)
    let ended: unknown
    retry.run(fn, { signal: abort.signal }).catch((error) => {
      ended = error
    })
    await clock.advance(1)
    const reason = new Error('hung up')
    abort.abort(reason)
    await clock.settle()
    expect(ended).toBe(reason)
    expect(clock.pending).toBe(0)
    await clock.advance(60_000)
    expect(fn).toHaveBeenCalledOnce()
  })

  it('an abort between the end of the delay and the next attempt prevents the attempt', async () => {
    const virtual = createVirtualClock()
    const abort = new AbortController()
    const reason = new Error('hung up')
    const clock: Clock = {
      now: () => virtual.now(),
      wallMs: () => virtual.wallMs(),
      pollTurn: (run) => virtual.pollTurn(run),
      schedule: (delayMs, run) =>
        virtual.schedule(delayMs, () => {
          run()
          abort.abort(reason)
        }),
    }
    const { retry } = setup({ clock })
    const fn = flaky(1)
    await expect(virtual.until(retry.run(fn, { signal: abort.signal }))).rejects.toBe(reason)
    expect(fn).toHaveBeenCalledOnce()
  })

  it('an abort during the delay emits retry.stopped', async () => {
    const { clock, retry } = setup()
    const events: SpillwayEvent[] = []
    const stop = onEvent((event) => events.push(event))
    const abort = new AbortController()
    const call = retry.tryRun(flaky(1), { signal: abort.signal })
    await clock.settle()
    abort.abort()
    await expect(clock.until(call)).resolves.toMatchObject({
      ok: false,
      attempts: [{ outcome: 'failure' }],
    })
    stop()
    expect(events.at(-1)).toMatchObject({ type: 'retry.stopped', because: 'aborted' })
  })

  it('an abort during an attempt is not retried', async () => {
    const { clock, retry } = setup()
    const abort = new AbortController()
    const fn = vi.fn(({ signal }: { signal: AbortSignal | undefined }) => sleep(clock, 100, signal))
    const call = retry.run(fn, { signal: abort.signal })
    abort.abort()
    await expect(call).rejects.toMatchObject({ name: 'AbortError' })
    expect(fn).toHaveBeenCalledOnce()
  })

  it('a failed response after an abort is returned unread and spends no budget', async () => {
    const budget = createRetryBudget({ ratio: 1 })
    const { clock, retry } = setup({ budget })
    const abort = new AbortController()
    const fn = vi.fn(() => {
      abort.abort()
      return new Response('sorry', { status: 503 })
    })
    const response = await clock.until(retry.run(fn, { signal: abort.signal }))
    await expect(response.text()).resolves.toBe('sorry')
    expect(fn).toHaveBeenCalledOnce()
    expect(budget.snapshot().retries).toBe(0)
  })

  it('an abort before the call prevents every attempt', async () => {
    const { retry } = setup()
    const fn = flaky(0)
    await expect(retry.run(fn, { signal: AbortSignal.abort() })).rejects.toThrow()
    expect(fn).not.toHaveBeenCalled()
  })
})

describe('retry events', () => {
  it('retry emits an event for every delay and for the reason it stopped', async () => {
    const { clock, retry } = setup({ attempts: 2 })
    const events: SpillwayEvent[] = []
    const stop = onEvent((event) => events.push(event))
    const error = new Error('down')
    await clock.until(retry.run(() => Promise.reject(error))).catch(() => {})
    stop()
    expect(events).toEqual([
      { type: 'retry.scheduled', name: 'openai', attempt: 1, delayMs: 100, error },
      { type: 'retry.stopped', name: 'openai', attempt: 2, because: 'attempts', error },
    ])
  })
})

/** A budget of an application, which allows nothing and gives no reasons. */
function budgetOf(change: Partial<RetryBudget>): RetryBudget {
  const { allowedRetries, snapshot } = createRetryBudget()
  return { recordRequest() {}, tryRetry: () => false, allowedRetries, snapshot, ...change }
}

/** The last `retry.stopped` event of a call. */
async function stopOf(
  { retry, clock }: ReturnType<typeof setup>,
  fn: RetryFunction<unknown>,
  options: RetryRunOptions = {},
) {
  const events: SpillwayEvent[] = []
  const stop = onEvent((event) => events.push(event))
  await clock.until(retry.tryRun(fn, options))
  stop()
  return events.findLast(({ type }) => type === 'retry.stopped')
}

describe('reason why a retry stops', () => {
  const error = new Error('down')
  const fail = () => Promise.reject(error)

  it('mayRetry that returns false prevents the retry, and one that returns true allows it', async () => {
    const fn = vi.fn(fail)
    const prevented = await stopOf(setup(), fn, { mayRetry: () => false })
    expect(prevented).toMatchObject({ because: 'prevented', attempt: 1, error })
    expect(await stopOf(setup(), fn, { mayRetry: () => true })).toMatchObject({
      because: 'attempts',
      attempt: 3,
    })
    expect(fn).toHaveBeenCalledTimes(4)
  })

  it('mayRetry that throws causes an event and prevents the retry', async () => {
    const events: SpillwayEvent[] = []
    const stop = onEvent((event) => events.push(event))
    const mayRetry = () => {
      throw new Error('mayRetry')
    }
    expect(await stopOf(setup(), fail, { mayRetry })).toMatchObject({ because: 'prevented' })
    stop()
    expect(events[0]).toMatchObject({ type: 'callback.failed', callback: 'mayRetry' })
  })

  it("a custom budget that refuses without a reason, or throws, stops retries with the reason 'budget'", async () => {
    const own = (tryRetry: () => boolean) => setup({ budget: budgetOf({ tryRetry }) })
    expect(
      await stopOf(
        own(() => false),
        fail,
      ),
    ).toMatchObject({ because: 'budget', attempt: 1 })
    const throwing = () => {
      throw new Error('budget')
    }
    expect(await stopOf(own(throwing), fail)).toMatchObject({ because: 'budget', attempt: 1 })
    expect(
      await stopOf(
        own(() => true),
        fail,
      ),
    ).toMatchObject({ because: 'attempts' })
  })

  it('a budget that throws while it counts requests causes an event, and the call continues', async () => {
    const events: SpillwayEvent[] = []
    const stop = onEvent((event) => events.push(event))
    const recordRequest = () => {
      throw new Error('budget')
    }
    const { clock, retry } = setup({ budget: budgetOf({ recordRequest }) })
    await expect(clock.until(retry.run(flaky(0)))).resolves.toBe('answer 1')
    stop()
    expect(events).toMatchObject([{ type: 'callback.failed', callback: 'budget' }])
  })

  it('an abort during an attempt is the reason of its end', async () => {
    const abort = new AbortController()
    const aborting = () => {
      abort.abort()
      return fail()
    }
    const stopped = await stopOf(setup(), aborting, { signal: abort.signal })
    expect(stopped).toMatchObject({ because: 'aborted', attempt: 1, error })
  })

  it.each([
    ['an error', new Error('down')],
    ['a function', () => 'down'],
    ['null', null],
    ['undefined', undefined],
    ['a string', 'down'],
  ])('%s that an inner retry gave up on is not retried by the outer one', async (_, thrown) => {
    const outer = setup()
    const inner = setup({ clock: outer.clock }).retry
    let calls = 0
    const call = () =>
      inner.run(() => {
        calls++
        return Promise.reject(thrown)
      })
    expect(await stopOf(outer, call)).toMatchObject({ because: 'retried-below', attempt: 1 })
    expect(calls).toBe(3)
  })

  it('the outer retry repeats a call whose inner retry allows only one attempt', async () => {
    const single = setup({ attempts: 1 })
    const fn = vi.fn(fail)
    const stopped = await stopOf(setup(), () => single.retry.run(fn))
    expect(stopped).toMatchObject({ because: 'attempts', attempt: 3 })
    expect(fn).toHaveBeenCalledTimes(3)
  })

  it('the outer retry repeats an error other than the one that the inner retry gave up on', async () => {
    const outer = setup()
    const inner = setup({ clock: outer.clock }).retry
    const other = new Error('other')
    const call = async () => {
      await inner.run(fail).catch(() => {})
      throw other
    }
    const stopped = await stopOf(outer, call)
    expect(stopped).toMatchObject({ because: 'attempts', attempt: 3, error: other })
  })

  it('a deadline that passes during a retry delay is the reason of the stop and the error of the call', async () => {
    const virtual = createVirtualClock()
    // Its timers are late.
    const clock: Clock = {
      now: () => virtual.now(),
      wallMs: () => virtual.wallMs(),
      pollTurn: (run) => virtual.pollTurn(run),
      schedule: (delayMs, run) => virtual.schedule(delayMs + 1_000, run),
    }
    const { retry } = setup({ clock })
    const fn = flaky(1)
    const events: SpillwayEvent[] = []
    const stop = onEvent((event) => events.push(event))
    const call = runWithDeadline(createDeadline(900, virtual), () => retry.run(fn))
    await expect(virtual.until(call)).rejects.toThrow('blip')
    stop()
    expect(fn).toHaveBeenCalledOnce()
    expect(events.at(-1)).toMatchObject({
      ...{ type: 'retry.stopped', because: 'deadline', attempt: 1 },
      error: { code: 'DEADLINE_EXCEEDED', stage: 'retry' },
    })
  })

  it('a call whose deadline has passed makes no attempt', async () => {
    const { clock, retry } = setup()
    const deadline = createDeadline(10, clock)
    await clock.advance(10)
    const fn = flaky(0)
    const call = runWithDeadline(deadline, () => retry.run(fn))
    await expect(call).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED', stage: 'retry' })
    expect(fn).not.toHaveBeenCalled()
  })
})

describe('retry options', () => {
  it('createRetry names the invalid option', () => {
    expect(() => createRetry({ attempts: 0 })).toThrow('retry.attempts: must be a positive integer')
    expect(() => createRetry({ baseMs: 0 })).toThrow('retry.baseMs')
    expect(() => createRetry({ jitter: 2 })).toThrow('retry.jitter')
    expect(() => createRetry({ budget: 20 })).toThrow('or a number from 0 to 1, got 20')
    const typo = { attemps: 3 } as RetryOptions
    expect(() => createRetry(typo)).toThrow("did you mean 'attempts'?")
  })
})
