import { describe, expect, it } from 'vitest'
import { tripCause } from './trip-cause.js'

const NONE = { calls: 0, failures: 0, slow: 0, consecutive: 0, openings: 0 }
const SPEC = { consecutive: 10, failureRate: 0.5, slowRate: 0.8, minimumCalls: 20 }

describe('tripCause', () => {
  it.each([
    ['10 failures in a row', { calls: 10, failures: 10, consecutive: 10 }],
    ['failure rate 62 % of 50 calls', { calls: 50, failures: 31, consecutive: 2 }],
    ['slow-call rate 80 % of 50 calls', { calls: 50, failures: 3, slow: 40, consecutive: 0 }],
    ['6 failed and 0 slow of 15 calls', { calls: 15, failures: 6, consecutive: 2 }],
    ['opened manually', { calls: 12 }],
    ['10 failures in a row, then failed probes once', { consecutive: 10, openings: 1 }],
    ['10 failures in a row, then failed probes 3 times', { consecutive: 10, openings: 3 }],
  ])('cause of an open circuit: %s', (cause, counts) => {
    expect(tripCause({ ...NONE, ...counts }, SPEC)).toBe(cause)
  })

  it('cause of a circuit that one call opened has a singular noun', () => {
    const counts = { ...NONE, calls: 1, failures: 1, consecutive: 1 }
    expect(tripCause(counts, { ...SPEC, minimumCalls: 1 })).toBe('failure rate 100 % of 1 call')
  })

  it('conditions that are not configured are no cause', () => {
    const spec = { consecutive: 0, failureRate: 0, slowRate: 0.5, minimumCalls: 1 }
    const counts = { ...NONE, calls: 10, failures: 4, slow: 6, consecutive: 4 }
    expect(tripCause(counts, spec)).toBe('slow-call rate 60 % of 10 calls')
  })
})
