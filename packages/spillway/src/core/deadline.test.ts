import { describe, expect, it } from 'vitest'
import { createVirtualClock } from '../testing/virtual-clock.js'
import { createDeadline, currentDeadline, earlierOf, runWithDeadline } from './deadline.js'
import { sleep } from './sleep.js'
import { createTimeBudget } from './time-budget.js'

describe('a deadline', () => {
  it('counts down to zero and no further', async () => {
    const clock = createVirtualClock()
    const deadline = createDeadline(100, clock)
    await clock.advance(40)
    expect(deadline.remainingMs()).toBe(60)
    expect(deadline.expired).toBe(false)
    await clock.advance(60)
    expect(deadline.expired).toBe(true)
    await clock.advance(1_000)
    expect(deadline.remainingMs()).toBe(0)
  })

  it('can keep time back for work done here', () => {
    const clock = createVirtualClock()
    expect(createDeadline(100, clock).withReserve(30).remainingMs()).toBe(70)
    expect(createDeadline(100, clock).withReserve(300).expired).toBe(true)
  })

  it('gives way to an earlier one', () => {
    const clock = createVirtualClock()
    const soon = createDeadline(10, clock)
    const late = createDeadline(20, clock)
    expect(earlierOf(soon, late)).toBe(soon)
    expect(earlierOf(late, soon)).toBe(soon)
    expect(earlierOf(undefined, late)).toBe(late)
    expect(earlierOf(undefined, undefined)).toBeUndefined()
  })

  it('refuses a timeout that is none', () => {
    expect(() => createDeadline(Number.NaN)).toThrow('timeoutMs: must be a duration')
    expect(() => createDeadline(100).withReserve(-1)).toThrow('reserveMs: must be')
  })

  it('may have passed on its way here, and may be written as a person would', () => {
    const clock = createVirtualClock()
    expect(createDeadline(-20, clock).expired).toBe(true)
    expect(createDeadline('5s', clock).withReserve('1s').remainingMs()).toBe(4_000)
  })
})

describe('the current deadline', () => {
  it('is there for everything the request starts, and for nobody else', async () => {
    const clock = createVirtualClock()
    const seen: Record<string, number | undefined> = {}
    const request = (name: string, timeoutMs: number, pauseMs: number) =>
      runWithDeadline(createDeadline(timeoutMs, clock), async () => {
        await sleep(clock, pauseMs)
        seen[name] = currentDeadline()?.atMs
      })
    // They overlap, and end in the opposite order they began in.
    const both = Promise.all([request('a', 1_000, 50), request('b', 500, 20)])
    expect(currentDeadline()).toBeUndefined()
    await clock.until(both)
    expect(seen).toEqual({ a: 1_000, b: 500 })
  })

  it('is never put off by an inner one', () => {
    const clock = createVirtualClock()
    runWithDeadline(createDeadline(100, clock), () => {
      runWithDeadline(createDeadline(5_000, clock), () => {
        expect(currentDeadline()?.atMs).toBe(100)
      })
      runWithDeadline(createDeadline(10, clock), () => {
        expect(currentDeadline()?.atMs).toBe(10)
      })
    })
  })
})

describe('a time budget', () => {
  it('divides what is left by weight, so that early steps leave room for later ones', async () => {
    const clock = createVirtualClock()
    const budget = createTimeBudget({
      totalMs: 1_000,
      steps: { auth: 1, search: 3, answer: 6 },
      clock,
    })
    expect(budget.step('auth').remainingMs()).toBe(100)
    await clock.advance(10)
    // 90 ms of auth's share were left over: they are divided 3 to 6.
    expect(budget.step('search').remainingMs()).toBe(330)
    await clock.advance(330)
    expect(budget.step('answer').remainingMs()).toBe(660)
  })

  it('stays within the deadline of the request', () => {
    const clock = createVirtualClock()
    runWithDeadline(createDeadline(100, clock), () => {
      const budget = createTimeBudget({ totalMs: '10s', steps: { only: 1 }, clock })
      expect(budget.remainingMs()).toBe(100)
      expect(budget.step('only').remainingMs()).toBe(100)
    })
  })

  it('runs a step under its deadline', () => {
    const clock = createVirtualClock()
    const budget = createTimeBudget({ totalMs: 1_000, steps: { one: 1, two: 1 }, clock })
    expect(budget.run('one', () => currentDeadline()?.remainingMs())).toBe(500)
  })

  it('refuses unknown steps, steps started twice and weights that are none', () => {
    const budget = createTimeBudget({ totalMs: 1_000, steps: { one: 1 } })
    expect(() => budget.step('onee')).toThrow("timeBudget.onee: unknown step; did you mean 'one'?")
    budget.step('one')
    expect(() => budget.step('one')).toThrow('timeBudget.one: was started before')
    expect(() => createTimeBudget({ totalMs: 1, steps: { one: 0 } })).toThrow(
      'timeBudget.steps.one',
    )
    expect(() => createTimeBudget({ totalMs: 1, steps: {} })).toThrow('timeBudget.steps: must be')
  })
})
