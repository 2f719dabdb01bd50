import { describe, expect, it } from 'vitest'
import { stageFlows } from '../view/stage-flows'
import type { GuardTick } from '../wire'
import { pairKey, RateTracker } from './rates'

function tick(
  name: string,
  calls: number,
  refused: GuardTick['flow']['refused'],
  waiting = 0,
): GuardTick {
  const outcomes = { success: 0, failure: 0, slow: 0, throttled: 0, ignored: 0 }
  return {
    name,
    flow: { calls, attempts: calls, outcomes, refused },
    queue: { waiting, size: 0, oldestMs: 0, byPriority: [0, 0, 0, 0], codel: false },
    slots: { active: 0 },
    fallbacks: [],
    lanes: [
      {
        lane: 'a b',
        flow: { calls, refused: [] },
        waiting: 0,
        limits: [],
      },
    ],
    store: 'memory',
    closed: false,
  }
}

describe('RateTracker', () => {
  it('a queued call counts in the rates as decided when it starts or is refused, not when it arrives', () => {
    const book = new RateTracker()
    const see = (calls: number, refused: number, waiting: number) => {
      const refusals = [{ stage: 'queue', code: 'QUEUE_TIMEOUT', count: refused } as const]
      book.see({ at: 0, sinceMs: 1_000, guards: [tick('openai', calls, refusals, waiting)] })
      const { calls: came = 0, decided = 0, refused: all = {} } = book.of('openai') ?? {}
      return [came, decided, all['queue QUEUE_TIMEOUT'] ?? 0].map((rate) => Math.round(rate))
    }
    expect(see(100, 0, 0)).toEqual([100, 100, 0])
    // A hundred calls arrive and wait; then ten time out while ninety start and none arrives.
    expect(see(100, 0, 100)).toEqual([100, 65, 0])
    expect(see(0, 10, 0)).toEqual([65, 77, 4])
  })

  it('the rate of refused calls never exceeds that of decided ones, even with retries', () => {
    const book = new RateTracker()
    const refused = [{ stage: 'breaker', code: 'CIRCUIT_OPEN', count: 5 } as const]
    book.see({ at: 0, sinceMs: 1_000, guards: [tick('openai', 2, refused)] })
    expect(book.of('openai')).toMatchObject({ calls: 2, decided: 5 })
  })

  it('rates are per second, however long a tick took', () => {
    const book = new RateTracker()
    const refused = [{ stage: 'shed', code: 'SHED', count: 4 } as const]
    book.see({ at: 0, sinceMs: 2_000, guards: [tick('openai', 20, refused)] })
    expect(book.of('openai')).toMatchObject({ calls: 10, refused: { 'shed SHED': 2 } })
    expect(book.of(pairKey('openai', 'a b'))?.calls).toBe(10)
  })

  it('rates fall to zero when no calls arrive', () => {
    const book = new RateTracker()
    book.see({ at: 0, sinceMs: 1_000, guards: [tick('openai', 1_000, [])] })
    for (let i = 0; i < 60; i++) {
      book.see({ at: 0, sinceMs: 1_000, guards: [tick('openai', 0, [])] })
    }
    expect(book.of('openai')?.calls).toBe(0)
  })

  it('rates of a guard without data are dropped', () => {
    const book = new RateTracker()
    book.see({ at: 0, sinceMs: 1_000, guards: [tick('one', 5, []), tick('two', 5, [])] })
    book.see({ at: 0, sinceMs: 1_000, guards: [tick('two', 5, [])] })
    expect(book.of('one')).toBeUndefined()
  })
})

describe('flow through the stages', () => {
  it('each stage loses exactly the calls it refuses', () => {
    const flows = stageFlows(['shed', 'user-limit', 'queue'], {
      calls: 100,
      decided: 100,
      attempts: 0,
      outcomes: {},
      fallbacks: {},
      refused: { 'shed SHED': 10, 'queue QUEUE_FULL': 5, 'queue QUEUE_TIMEOUT': 20 },
    })
    expect(flows.map(({ entering, leaving }) => [entering, leaving])).toEqual([
      [100, 90],
      [90, 90],
      [90, 65],
    ])
    expect(flows[2]?.refused[0]).toEqual({ code: 'QUEUE_TIMEOUT', rate: 20 })
  })

  it('queued calls leave the queue stage later than they arrive', () => {
    const none = { attempts: 0, outcomes: {}, fallbacks: {} }
    const flowOf = (calls: number, decided: number, refused: Record<string, number>) =>
      stageFlows(['shed', 'queue', 'call'], { ...none, calls, decided, refused }).map((flow) => [
        flow.entering,
        flow.refusedRate,
        flow.leaving,
      ])
    expect(flowOf(100, 30, {})).toEqual([
      [100, 0, 100],
      [100, 0, 30],
      [30, 0, 30],
    ])
    expect(flowOf(10, 80, { 'queue QUEUE_TIMEOUT': 20 })).toEqual([
      [10, 0, 10],
      [10, 20, 60],
      [60, 0, 60],
    ])
  })

  it('the flow is never negative when more calls were refused than arrived', () => {
    const rates = {
      calls: 1,
      decided: 5,
      attempts: 0,
      outcomes: {},
      fallbacks: {},
      refused: { 'queue SHED': 9 },
    }
    const [, queue, call] = stageFlows(['shed', 'queue', 'call'], rates)
    expect(queue?.leaving).toBe(0)
    expect(call?.entering).toBe(0)
  })
})
