import { describe, expect, it } from 'vitest'
import { fc } from '../../../test/fast-check.js'
import { onEvent, type SpillwayEvent } from '../../core/events.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { createRetryBudget, type RetryConditions, type RetryRefusal } from './retry-budget.js'

describe('retry budget of one call', () => {
  it.each<[RetryConditions, number]>([
    [{}, 3],
    [{ breakerOpen: true }, 0],
    [{ queueWaitMs: 2_000 }, 3],
    [{ queueWaitMs: 2_001 }, 0],
    [{ slotsInUse: 0.9 }, 3],
    [{ slotsInUse: 0.91 }, 0],
    [{ errorRate: 0.2 }, 3],
    [{ errorRate: 0.21 }, 2],
    [{ errorRate: 0.5 }, 2],
    [{ errorRate: 0.51 }, 1],
    [{ errorRate: 0.51, breakerOpen: true }, 0],
  ])('conditions %j allow %d retries', (known, allowed) => {
    const budget = createRetryBudget({ conditions: () => known, minimum: 100 })
    expect(budget.allowedRetries()).toBe(allowed)
    for (let retry = 1; retry <= 5; retry++) {
      expect(budget.tryRetry(retry)).toBe(retry <= allowed)
    }
  })

  it('every threshold of the retry budget can be set', () => {
    const budget = createRetryBudget({
      conditions: () => ({ errorRate: 0.9, slotsInUse: 0.95, queueWaitMs: 3_000 }),
      maxSlotsInUse: 1,
      maxQueueWaitMs: '5s',
      steps: [{ errorRate: 0.8, retries: 4 }],
      retries: 9,
    })
    expect(budget.allowedRetries()).toBe(4)
  })

  it('retry budget assumes normal conditions when `conditions` throws or returns a promise', () => {
    const conditions = () => {
      throw new Error('metrics are down')
    }
    expect(createRetryBudget({ conditions }).allowedRetries()).toBe(3)
    const late = (async () => ({ breakerOpen: true })) as unknown as () => RetryConditions
    const events: SpillwayEvent[] = []
    const stop = onEvent((event) => events.push(event))
    expect(createRetryBudget({ conditions: late }).allowedRetries()).toBe(3)
    stop()
    expect(events).toMatchObject([
      {
        type: 'callback.failed',
        name: 'retryBudget',
        callback: 'conditions',
        error: { message: 'conditions must not return a promise' },
      },
    ])
  })

  it.each<[RetryConditions, number, RetryRefusal]>([
    [{}, 3, 'attempts'],
    [{ errorRate: 0.3 }, 2, 'error-rate'],
    [{ breakerOpen: true }, 0, 'breaker'],
    [{ queueWaitMs: 2_001 }, 0, 'queue-wait'],
    [{ slotsInUse: 0.91 }, 0, 'pod-full'],
  ])(
    'a call with the conditions %j gets %d retries and then the reason %s',
    (ofCall, allowed, because) => {
      const budget = createRetryBudget({ minimum: 100 })
      for (let retry = 1; retry <= 5; retry++) {
        expect(budget.payRetry?.(retry, ofCall)).toBe(retry <= allowed ? undefined : because)
      }
    },
  )

  it('a ratio of 0 allows no retries unless a minimum is set', () => {
    expect(createRetryBudget({ ratio: 0 }).tryRetry(1)).toBe(false)
    expect(createRetryBudget({ ratio: 0, minimum: 1 }).tryRetry(1)).toBe(true)
  })

  it('retry budget without conditions refuses the fourth retry because of the attempts', () => {
    const events: SpillwayEvent[] = []
    const stop = onEvent((event) => events.push(event))
    expect(createRetryBudget({ minimum: 100 }).payRetry?.(4)).toBe('attempts')
    stop()
    expect(events).toEqual([])
  })

  it('a call without budget left gets the reason budget', () => {
    const budget = createRetryBudget({ minimum: 1 })
    expect([budget.payRetry?.(1), budget.payRetry?.(1)]).toEqual([undefined, 'budget'])
  })
})

describe('retry budget of all calls', () => {
  it('retries stay below a fifth of the requests, with a small minimum for idle services', () => {
    const clock = createVirtualClock()
    const budget = createRetryBudget({ clock })
    let retries = 0
    for (let i = 0; i < 1_000; i++) {
      budget.recordRequest()
      for (let retry = 1; retry <= 3; retry++) if (budget.tryRetry(retry)) retries++
    }
    expect(retries).toBe(200)
    expect(budget.snapshot()).toEqual({ requests: 1_000, retries: 200, allowedRetries: 3 })

    const idle = createRetryBudget({ clock })
    idle.recordRequest()
    expect([1, 2, 3, 1].map((retry) => idle.tryRetry(retry))).toEqual([true, true, true, false])
  })

  it('retries leave the budget together with the requests of their window', async () => {
    const clock = createVirtualClock()
    const budget = createRetryBudget({ clock, windowMs: 1_000 })
    for (let i = 0; i < 3; i++) budget.tryRetry(1)
    expect(budget.tryRetry(1)).toBe(false)
    await clock.advance(1_100)
    expect(budget.tryRetry(1)).toBe(true)
  })

  it.each([
    ['0, the start of the clock', 0, 0],
    ['-1, which is no time', -1, 1],
    ['500, the present', 500, 1],
    ['501, in the future', 501, 1],
  ])('a request at the time %s, counts from then or from now', async (_, atMs, after600Ms) => {
    const clock = createVirtualClock()
    const budget = createRetryBudget({ clock, windowMs: 1_000 })
    await clock.advance(500)
    budget.recordRequest(atMs)
    expect(budget.snapshot().requests).toBe(1)
    await clock.advance(600)
    expect(budget.snapshot().requests).toBe(after600Ms)
    await clock.advance(500)
    expect(budget.snapshot().requests).toBe(0)
  })

  it('retries never exceed the ratio or the minimum in a window under random traffic', async () => {
    const step = fc.record({ pauseMs: fc.nat(200), requests: fc.nat(20), retries: fc.nat(20) })
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 60 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        async (steps, ratio) => {
          const clock = createVirtualClock()
          const budget = createRetryBudget({ clock, ratio, minimum: 2, windowMs: 1_000 })
          for (const { pauseMs, requests, retries } of steps) {
            await clock.advance(pauseMs)
            for (let i = 0; i < requests; i++) budget.recordRequest()
            for (let i = 0; i < retries; i++) {
              if (!budget.tryRetry(1)) continue
              const seen = budget.snapshot()
              expect(seen.retries).toBeLessThanOrEqual(Math.max(2, ratio * seen.requests))
            }
          }
        },
      ),
      { numRuns: 50 },
    )
  })

  it('createRetryBudget names the invalid option', () => {
    expect(() => createRetryBudget({ ratio: 20 })).toThrow(
      'retryBudget.ratio: must be a number from 0 to 1',
    )
    expect(() => createRetryBudget({ steps: [{ errorRate: 2, retries: 1 }] })).toThrow(
      'retryBudget.steps[0].errorRate',
    )
  })
})

describe('a retry budget that is given a time or number that makes no sense', () => {
  it.each([Number.NaN, Infinity, -Infinity, 1e15])(
    'retry budget counts a request at the invalid time %d as now',
    async (at) => {
      const clock = createVirtualClock()
      const budget = createRetryBudget({ clock, windowMs: 1_000 })
      await clock.advance(10_000)
      budget.recordRequest(at)
      expect(budget.snapshot().requests).toBe(1)
      await clock.advance(2_000)
      expect(budget.snapshot().requests).toBe(0)
      budget.recordRequest()
      expect(budget.snapshot().requests).toBe(1)
    },
  )

  it('retry budget does not allow a retry whose number is NaN', () => {
    const budget = createRetryBudget({ clock: createVirtualClock() })
    expect(budget.tryRetry(Number.NaN)).toBe(false)
    expect(budget.tryRetry(1)).toBe(true)
  })
})
