/** A guard passes policies to `RetryCall` that `createRetry` does not have. */
import { describe, expect, it } from 'vitest'
import { onEvent, type SpillwayEvent } from '../../core/events.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { createRetryBudget } from './retry-budget.js'
import { type JudgedRunOptions, learnUsual, RetryCall, type RetryPolicy } from './retry-call.js'

function setup(change: Partial<RetryPolicy> = {}) {
  const clock = createVirtualClock()
  const events: SpillwayEvent[] = []
  const stop = onEvent((event) => events.push(event))
  const policy: RetryPolicy = {
    ...{ name: 'vendor', attempts: 3, budget: undefined, maxRetryAfterMs: 1_000, usualMs: 0 },
    ...{ backoff: 'constant', baseMs: 10, maxMs: 10, jitter: 'none', classify: undefined },
    ...{ clock, random: () => 0.5, ...change },
  }
  let attempts = 0
  /** Ends with the result or error, the number of attempts, and the events. */
  const run = async (fn: () => unknown, options: JudgedRunOptions = {}) => {
    const counted = () => {
      attempts++
      return fn()
    }
    const call = new RetryCall(policy, counted, options, undefined, undefined)
    const end = await clock.until(call.start().catch((error: unknown) => ({ error })))
    stop()
    return { end, attempts, events }
  }
  return { clock, run }
}

const failing = () => Promise.reject(new Error('down'))
const stopped = (because: string) => [{ type: 'retry.stopped', name: 'vendor', because }]

describe('one retried call of a guard', () => {
  it('a response that was retried below is returned without another attempt', async () => {
    const response = new Response('', { status: 503 })
    const { run } = setup({ retriedBelow: (value) => value === response })
    const { end, attempts, events } = await run(async () => response)
    expect(end).toBe(response)
    expect(attempts).toBe(1)
    expect(events).toMatchObject(stopped('retried-below'))
  })

  it('a response that was not retried below is retried', async () => {
    const { run } = setup({ retriedBelow: () => false })
    const { attempts } = await run(async () => new Response('', { status: 503 }))
    expect(attempts).toBe(3)
  })

  it('a guard that closes during an attempt makes no other one', async () => {
    const closing = { closed: false, sleep: async () => {} }
    const { run } = setup({ closing })
    const { attempts, events } = await run(() => {
      closing.closed = true
      return failing()
    })
    expect(attempts).toBe(1)
    expect(events).toMatchObject(stopped('closed'))
  })

  it('a caller that leaves during a wait is named in the event', async () => {
    const abort = new AbortController()
    const reason = new Error('left')
    const { clock, run } = setup()
    clock.schedule(5, () => abort.abort(reason))
    const { end, events } = await run(failing, { signal: abort.signal })
    expect(end).toEqual({ error: reason })
    expect(events.at(-1)).toMatchObject({
      type: 'retry.stopped',
      because: 'aborted',
      error: reason,
    })
  })

  it('the event contains the reason of the budget, with the conditions of the call', async () => {
    const clock = createVirtualClock()
    const { run } = setup({ budget: createRetryBudget({ clock }) })
    const { attempts, events } = await run(failing, { conditions: () => ({ queueWaitMs: 9_000 }) })
    expect(attempts).toBe(1)
    expect(events).toMatchObject(stopped('queue-wait'))
  })

  it('a budget that throws allows no retry and is named in an event', async () => {
    const budget = createRetryBudget()
    budget.payRetry = () => {
      throw new Error('broken')
    }
    const { run } = setup({ budget })
    const { attempts, events } = await run(failing)
    expect(attempts).toBe(1)
    expect(events).toMatchObject([
      { type: 'callback.failed', name: 'vendor', callback: 'budget' },
      ...stopped('budget'),
    ])
  })

  it('a judged success after a failure is final', async () => {
    let failures = 1
    const { run } = setup()
    const { end, attempts } = await run(() => (failures-- > 0 ? failing() : 'fine'))
    expect([end, attempts]).toEqual(['fine', 2])
  })
})

describe('usual duration of an attempt', () => {
  it('the usual duration is the first one, and then moves by an eighth of the difference', () => {
    const policy = { usualMs: 0 } as RetryPolicy
    learnUsual(policy, 800)
    expect(policy.usualMs).toBe(800)
    learnUsual(policy, 1_600)
    expect(policy.usualMs).toBe(900)
    learnUsual(policy, 100)
    expect(policy.usualMs).toBe(800)
  })
})
