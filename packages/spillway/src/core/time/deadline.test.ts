import { describe, expect, it } from 'vitest'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import {
  createDeadline,
  currentDeadline,
  deadlineError,
  earlierOf,
  runWithDeadline,
} from './deadline.js'
import { sleep } from './sleep.js'
import { createTimeBudget, type TimeBudgetOptions } from './time-budget.js'

describe('deadline', () => {
  it('deadline counts down to zero and stays there', async () => {
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

  it('withReserve() shortens a deadline', () => {
    const clock = createVirtualClock()
    expect(createDeadline(100, clock).withReserve(30).remainingMs()).toBe(70)
    expect(createDeadline(100, clock).withReserve(0).remainingMs()).toBe(100)
    expect(createDeadline(100, clock).withReserve(300).expired).toBe(true)
  })

  it('earlierOf() returns the earlier deadline', () => {
    const clock = createVirtualClock()
    const soon = createDeadline(10, clock)
    const late = createDeadline(20, clock)
    expect(earlierOf(soon, late)).toBe(soon)
    expect(earlierOf(late, soon)).toBe(soon)
    expect(earlierOf(undefined, late)).toBe(late)
    expect(earlierOf(late, undefined)).toBe(late)
    expect(earlierOf(undefined, undefined)).toBeUndefined()
  })

  it('runWithDeadline() keeps the current one of two equal deadlines', () => {
    const clock = createVirtualClock()
    const current = createDeadline(10, clock)
    runWithDeadline(current, () => {
      const inner = () => currentDeadline()
      expect(runWithDeadline(createDeadline(10, clock), inner)).toBe(current)
    })
  })

  it('error of a passed deadline names the guard, the stage and the reason', () => {
    const error = deadlineError('queue', 'openai')
    expect(error).toMatchObject({
      ...{ code: 'DEADLINE_EXCEEDED', stage: 'queue', scope: 'local' },
      ...{ details: { name: 'openai' } },
    })
    expect(error.message).toBe('openai: timed out, the deadline of this request has passed')
  })

  it('createDeadline rejects a timeout that is not a duration', () => {
    expect(() => createDeadline(Number.NaN)).toThrow('timeoutMs: must be a duration')
    expect(() => createDeadline(100).withReserve(-1)).toThrow('reserveMs: must be')
  })

  it("deadline may already have passed, and may be written as '5s'", () => {
    const clock = createVirtualClock()
    expect(createDeadline(-20, clock).expired).toBe(true)
    expect(createDeadline('5s', clock).withReserve('1s').remainingMs()).toBe(4_000)
  })
})

describe('current deadline', () => {
  it('current deadline is visible to everything its request starts, and to no other request', async () => {
    const clock = createVirtualClock()
    const seen: Record<string, number | undefined> = {}
    const request = (name: string, timeoutMs: number, pauseMs: number) =>
      runWithDeadline(createDeadline(timeoutMs, clock), async () => {
        await sleep(clock, pauseMs)
        seen[name] = currentDeadline()?.atMs
      })
    // The two requests overlap and end in reverse order.
    const both = Promise.all([request('a', 1_000, 50), request('b', 500, 20)])
    expect(currentDeadline()).toBeUndefined()
    await clock.until(both)
    expect(seen).toEqual({ a: 1_000, b: 500 })
  })

  it('an inner deadline cannot postpone the outer one', () => {
    const clock = createVirtualClock()
    const atMs = () => currentDeadline()?.atMs
    const seen = runWithDeadline(createDeadline(100, clock), () => [
      runWithDeadline(createDeadline(5_000, clock), atMs),
      runWithDeadline(createDeadline(10, clock), atMs),
      runWithDeadline(undefined, atMs),
    ])
    expect(seen).toEqual([100, 10, 100])
  })
})

describe('time budget', () => {
  it('time budget divides the remaining time by weight, so early steps leave time for later ones', async () => {
    const clock = createVirtualClock()
    const budget = createTimeBudget({
      totalMs: 1_000,
      steps: { auth: 1, search: 3, answer: 6 },
      clock,
    })
    expect(budget.step('auth').remainingMs()).toBe(100)
    await clock.advance(10)
    // The 90 ms that auth did not use are divided 3 to 6.
    expect(budget.step('search').remainingMs()).toBe(330)
    await clock.advance(330)
    expect(budget.step('answer').remainingMs()).toBe(660)
  })

  it('time budget stays within the deadline of the request', () => {
    const clock = createVirtualClock()
    const budget = runWithDeadline(createDeadline(100, clock), () =>
      createTimeBudget({ totalMs: '10s', steps: { only: 1 }, clock }),
    )
    expect(budget.remainingMs()).toBe(100)
    expect(budget.step('only').remainingMs()).toBe(100)
  })

  it('time budget runs a step under its own deadline', () => {
    const clock = createVirtualClock()
    const budget = createTimeBudget({ totalMs: 1_000, steps: { one: 1, two: 1 }, clock })
    expect(budget.run('one', () => currentDeadline()?.remainingMs())).toBe(500)
  })

  it('time budget rejects unknown steps and steps started twice', () => {
    const budget = createTimeBudget({ totalMs: 1_000, steps: { one: 1, two: 1 } })
    const error = (message: string) => expect.objectContaining({ message })
    expect(() => budget.step('onee')).toThrow(
      error("timeBudget.onee: unknown step; did you mean 'one'?"),
    )
    expect(() => budget.step('search')).toThrow(
      error('timeBudget.search: unknown step; known: one, two'),
    )
    budget.step('one')
    expect(() => budget.step('one')).toThrow(error('timeBudget.one: was started before'))
  })

  it.each([
    [{ one: 0 }, 'timeBudget.steps.one'],
    [{}, 'timeBudget.steps: must be an object of step names and weights'],
    [null, 'timeBudget.steps: must be an object of step names and weights'],
    ['one', 'timeBudget.steps: must be an object of step names and weights'],
  ])('time budget rejects %j as its steps', (steps, message) => {
    const options = { totalMs: 1, steps } as unknown as TimeBudgetOptions
    expect(() => createTimeBudget(options)).toThrow(message)
  })
})
