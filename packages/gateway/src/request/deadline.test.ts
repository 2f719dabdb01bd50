import { SpillwayError } from 'spillway'
import { describe, expect, it } from 'vitest'
import { ClientSignal, classifyClientFailure, deadlineMs } from './deadline.js'

const late = new SpillwayError({
  code: 'DEADLINE_EXCEEDED',
  stage: 'call',
  scope: 'local',
  explain: () => 'late',
})

describe("the client's deadline", () => {
  it('a deadline below zero has passed, and a missing one is none', () => {
    expect(deadlineMs('1500')).toBe(1_500)
    expect(deadlineMs('-5')).toBe(0)
    expect(deadlineMs(undefined)).toBeNaN()
    expect(deadlineMs('')).toBeNaN()
  })

  it('a deadline that is not a number is refused', () => {
    expect(() => deadlineMs('soon')).toThrow('must be a number of milliseconds')
  })
})

describe('outcomes caused by the client', () => {
  it('an error while the client still sends its body is ignored', () => {
    const signal = new ClientSignal()
    signal.cause = 'upload'
    expect(classifyClientFailure({ error: new Error('reset'), signal })).toBe('ignored')
    expect(classifyClientFailure({ value: 'fine', signal })).toBeUndefined()
    signal.cause = undefined
    expect(classifyClientFailure({ error: new Error('reset'), signal })).toBeUndefined()
  })

  it('a deadline that the client set is ignored when it passes, other errors are not', () => {
    const signal = new ClientSignal()
    signal.cause = 'deadline'
    expect(classifyClientFailure({ error: late, signal })).toBe('ignored')
    expect(classifyClientFailure({ error: new Error('reset'), signal })).toBeUndefined()
  })

  it('errors of other requests keep their outcome', () => {
    const { signal } = new AbortController()
    expect(classifyClientFailure({ error: late, signal: new ClientSignal() })).toBeUndefined()
    expect(classifyClientFailure({ error: late, signal })).toBeUndefined()
    expect(classifyClientFailure({ error: late })).toBeUndefined()
  })
})
