import { describe, expect, it } from 'vitest'
import { InFlight, InFlightCall } from './in-flight.js'

const TIMEOUT_MS = 60_000

function setup(windowMs = Number.POSITIVE_INFINITY) {
  const calls = new InFlight(TIMEOUT_MS, windowMs)
  const begin = (startMs: number, times = 1) =>
    Array.from({ length: times }, () => {
      const call = new InFlightCall()
      calls.begin(call, startMs)
      return call
    })
  return { calls, begin }
}

describe('calls in flight', () => {
  it('calls in flight count until the timeout while no success is known', () => {
    const { calls, begin } = setup()
    begin(0, 3)
    expect(calls.count(0)).toBe(3)
    expect(calls.count(TIMEOUT_MS - 1)).toBe(3)
    expect(calls.count(TIMEOUT_MS)).toBe(0)
  })

  it('calls in flight count until they are older than successes usually take', () => {
    const { calls, begin } = setup()
    for (const call of begin(0, 20)) calls.end(call, 'success', 1_000)
    begin(1_000, 5)
    expect(calls.count(2_000)).toBe(5)
    expect(calls.nextChangeMs).toBeLessThan(2_100)
    expect(calls.count(2_100)).toBe(0)
  })

  it('calls in flight count from the age at which failures usually end', () => {
    const { calls, begin } = setup()
    for (const call of begin(0, 10)) calls.end(call, 'failure', 5)
    begin(5, 2)
    expect(calls.count(9)).toBe(0)
    expect(calls.count(10)).toBe(2)
  })

  it('calls in flight do not count once they are older than the window', () => {
    const { calls, begin } = setup(10_000)
    begin(0, 4)
    expect(calls.count(9_999)).toBe(4)
    expect(calls.count(10_000)).toBe(0)
  })

  it('a call in flight is counted down once, however often its end is reported', () => {
    const { calls, begin } = setup()
    const [call] = begin(0, 2)
    calls.end(call!, 'success', 1)
    calls.end(call!, 'success', 1)
    expect(calls.count(1)).toBe(1)
  })

  it('calls that are overdue when a generation ends do not keep old durations known', () => {
    const { calls, begin } = setup()
    for (const call of begin(0, 20)) calls.end(call, 'success', 1_000)
    begin(1_000, 5)
    expect(calls.count(5_000)).toBe(0)
    calls.clear(5_000)
    begin(66_000, 3)
    expect(calls.count(70_000)).toBe(3)
  })

  it('calls that begin in the same millisecond are all counted', () => {
    const { calls, begin } = setup()
    const [first] = begin(0, 2)
    expect(calls.count(0)).toBe(2)
    const [second] = begin(0.5, 3)
    expect(calls.count(0.5)).toBe(5)
    for (const call of [first!, second!]) calls.end(call, 'success', 1)
    expect(calls.count(1)).toBe(3)
  })

  it('calls in flight of an earlier generation do not count', () => {
    const { calls, begin } = setup()
    const [call] = begin(0, 4)
    calls.clear(1)
    expect(calls.count(1)).toBe(0)
    calls.end(call!, 'success', 2)
    expect(calls.count(2)).toBe(0)
  })
})

describe('overdue calls', () => {
  it('calls are overdue from the usual duration of successes until the timeout', () => {
    const { calls, begin } = setup()
    for (const call of begin(0, 20)) calls.end(call, 'success', 1_000)
    const [ended] = begin(1_000, 5)
    expect(calls.overdue(2_000)).toBe(0)
    expect(calls.overdue(2_100)).toBe(5)
    calls.end(ended!, 'failure', 2_200)
    expect(calls.overdue(2_200)).toBe(4)
    expect(calls.overdue(1_000 + TIMEOUT_MS)).toBe(0)
  })

  it('a call in flight can be counted in the place of another', () => {
    const { calls, begin } = setup()
    const [first] = begin(0)
    const second = new InFlightCall()
    calls.transfer(first!, second)
    calls.end(first!, 'failure', 10)
    expect(calls.count(10)).toBe(1)
    calls.end(second, 'success', 20)
    expect(calls.count(20)).toBe(0)
  })
})

describe('the usual duration of calls', () => {
  it('the usual duration of calls is not that of the fast ones, which end first after a cold start', () => {
    const { calls, begin } = setup()
    const all = begin(0, 100)
    for (const call of all.slice(0, 15)) calls.end(call, 'success', 100)
    expect(calls.count(5_000)).toBe(85)
  })

  it('the usual duration of calls stays known while all calls hang', () => {
    const { calls, begin } = setup()
    for (const call of begin(0, 100)) calls.end(call, 'success', 1_000)
    begin(1_000, 100)
    expect(calls.count(30_000)).toBe(0)
    begin(30_000, 100)
    expect(calls.count(30_900)).toBe(100)
    expect(calls.count(31_100)).toBe(0)
  })

  it('the usual duration of calls is unknown again after an idle time', () => {
    const { calls, begin } = setup()
    for (const call of begin(0, 20)) calls.end(call, 'success', 1_000)
    begin(61_000, 3)
    expect(calls.count(70_000)).toBe(3)
  })
})
