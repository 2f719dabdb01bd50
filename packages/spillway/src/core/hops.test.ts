import { describe, expect, it } from 'vitest'
import { createVirtualClock } from '../testing/virtual-clock.js'
import { currentHop, hasRetried, hopHeadersFor, hopNames, noteRetried, runHop } from './hops.js'
import { createDeadline, currentDeadline } from './time/deadline.js'

const NAMES = hopNames()

describe('hop headers of an incoming request', () => {
  it('runHop reads attempt and deadline from plain headers and from Headers', () => {
    const clock = createVirtualClock()
    const plain = { 'spillway-attempt': '2', 'spillway-deadline-ms': '750' }
    for (const headers of [plain, new Headers(plain)]) {
      const seen = runHop(
        headers,
        NAMES,
        () => [currentHop()?.attempt, currentDeadline()?.remainingMs()],
        { clock },
      )
      expect(seen).toEqual([2, 750])
    }
    expect(currentHop()).toBeUndefined()
  })

  it('a request without hop headers has no hop and no deadline', () => {
    expect(runHop({}, NAMES, () => currentHop())).toBeUndefined()
    expect(runHop({}, NAMES, () => currentDeadline())).toBeUndefined()
  })

  it.each(['', ' ', 'abc', '1e400', 'Infinity', 'NaN', '0x10', '1, 2', '9'.repeat(400)])(
    'runHop ignores the invalid header value %j',
    (value) => {
      const headers = { 'spillway-attempt': value, 'spillway-deadline-ms': value }
      const seen = runHop(headers, NAMES, () => [currentHop(), currentDeadline()])
      expect(seen).toEqual([undefined, undefined])
    },
  )

  it('a negative spillway-deadline-ms makes the deadline expired', () => {
    const headers = { 'spillway-deadline-ms': '-5' }
    expect(runHop(headers, NAMES, () => currentDeadline()?.expired)).toBe(true)
  })

  it('a hop header cannot postpone an existing deadline', () => {
    const clock = createVirtualClock()
    const within = (ms: string, fn: () => unknown) =>
      runHop({ 'spillway-deadline-ms': ms }, NAMES, fn, { clock })
    expect(within('100', () => within('900', () => currentDeadline()?.remainingMs()))).toBe(100)
  })
})

describe('hop headers of an outgoing request', () => {
  it('outgoing headers carry the remaining time without the reserve, and the attempt', () => {
    const clock = createVirtualClock()
    const deadline = createDeadline(1_500.7, clock)
    expect(hopHeadersFor(NAMES, 1, deadline)).toEqual({
      'spillway-attempt': '1',
      'spillway-deadline-ms': '1350',
    })
    expect(hopHeadersFor(NAMES, 3, undefined)).toEqual({ 'spillway-attempt': '3' })
  })

  it.each([
    [101, 1],
    [500, 400],
    [10_000, 9_000],
    [60_000, 58_000],
  ])('a service with %i ms left passes %i ms on', (leftMs, passedMs) => {
    const deadline = createDeadline(leftMs, createVirtualClock())
    expect(hopHeadersFor(NAMES, 1, deadline)['spillway-deadline-ms']).toBe(String(passedMs))
  })

  it('a call with 100 ms or less left is refused with DEADLINE_EXCEEDED', () => {
    const deadline = createDeadline(100, createVirtualClock())
    expect(() => hopHeadersFor(NAMES, 1, deadline)).toThrow(
      expect.objectContaining({ code: 'DEADLINE_EXCEEDED' }),
    )
    const names = hopNames({ reserveMs: 10 })
    expect(hopHeadersFor(names, 1, deadline)['spillway-deadline-ms']).toBe('90')
  })

  it('the first attempt within a retried request is sent as a retry', () => {
    const sent = runHop({ 'spillway-attempt': '2' }, NAMES, () => hopHeadersFor(NAMES, 1))
    expect(sent['spillway-attempt']).toBe('2')
  })

  it('hop header names can be configured in any case', () => {
    const names = hopNames({ attempt: 'X-Attempt' })
    expect(hopHeadersFor(names, 2)).toEqual({ 'x-attempt': '2' })
    expect(runHop({ 'x-attempt': '2' }, names, () => currentHop()?.attempt)).toBe(2)
  })
})

describe('retry notice to the caller', () => {
  it('onRetried is called once, even if several calls were retried', () => {
    let notices = 0
    const onRetried = () => void notices++
    const seen = runHop(
      {},
      NAMES,
      () => {
        const before = hasRetried()
        noteRetried()
        noteRetried()
        return [before, hasRetried()]
      },
      { onRetried },
    )
    expect(seen).toEqual([false, true])
    expect(notices).toBe(1)
    expect(() => noteRetried()).not.toThrow()
    expect(hasRetried()).toBe(false)
  })
})
