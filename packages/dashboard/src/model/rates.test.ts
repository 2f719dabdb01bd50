import { describe, expect, it } from 'vitest'
import { gatesOf } from '../view/gates'
import type { GuardTick } from '../wire'
import { pairKey, RateBook } from './rates'

function tick(name: string, calls: number, refused: GuardTick['flow']['refused']): GuardTick {
  const outcomes = { success: 0, failure: 0, slow: 0, throttled: 0, ignored: 0 }
  return {
    name,
    flow: { calls, attempts: calls, outcomes, refused },
    room: { waiting: 0, size: 0, oldestMs: 0, byPriority: [0, 0, 0, 0], codel: false },
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

describe('rates', () => {
  it('never show more refused than began', () => {
    const [first] = gatesOf(['shed', 'room'], {
      calls: 2,
      attempts: 0,
      outcomes: {},
      refused: { 'shed SHED': 3, 'room QUEUE_FULL': 1 },
      fallbacks: {},
    })
    expect(first).toMatchObject({ entering: 4, leaving: 1 })
  })

  it('are a second’s, whatever time a tick took', () => {
    const book = new RateBook()
    const refused = [{ stage: 'shed', code: 'SHED', count: 4 } as const]
    book.see({ at: 0, sinceMs: 2_000, guards: [tick('openai', 20, refused)] })
    expect(book.of('openai')).toMatchObject({ calls: 10, refused: { 'shed SHED': 2 } })
    expect(book.of(pairKey('openai', 'a b'))?.calls).toBe(10)
  })

  it('come down to nothing when nothing comes', () => {
    const book = new RateBook()
    book.see({ at: 0, sinceMs: 1_000, guards: [tick('openai', 1_000, [])] })
    for (let i = 0; i < 60; i++) {
      book.see({ at: 0, sinceMs: 1_000, guards: [tick('openai', 0, [])] })
    }
    expect(book.of('openai')?.calls).toBe(0)
  })

  it('forget a guard that is no longer told of', () => {
    const book = new RateBook()
    book.see({ at: 0, sinceMs: 1_000, guards: [tick('one', 5, []), tick('two', 5, [])] })
    book.see({ at: 0, sinceMs: 1_000, guards: [tick('two', 5, [])] })
    expect(book.of('one')).toBeUndefined()
  })
})

describe('the flow through the stages', () => {
  it('loses at each stage what is refused there, and nothing else', () => {
    const gates = gatesOf(['shed', 'user-limit', 'room'], {
      calls: 100,
      attempts: 0,
      outcomes: {},
      fallbacks: {},
      refused: { 'shed SHED': 10, 'room QUEUE_FULL': 5, 'room QUEUE_TIMEOUT': 20 },
    })
    expect(gates.map(({ entering, leaving }) => [entering, leaving])).toEqual([
      [100, 90],
      [90, 90],
      [90, 65],
    ])
    expect(gates[2]?.refused[0]).toEqual({ code: 'QUEUE_TIMEOUT', rate: 20 })
  })

  it('never runs backwards, when more were refused than came in that second', () => {
    const rates = {
      calls: 1,
      attempts: 0,
      outcomes: {},
      fallbacks: {},
      refused: { 'room SHED': 9 },
    }
    const [, room, call] = gatesOf(['shed', 'room', 'call'], rates)
    expect(room?.leaving).toBe(0)
    expect(call?.entering).toBe(0)
  })
})
