import { describe, expect, it } from 'vitest'
import { type BreakerSpec, FAILURE, SUCCESS } from '../breaker-spec.js'
import { advance, count, emptyTally, setHung } from './tally.js'
import { isTripped } from './trip-conditions.js'

const SECOND = 1_000_000
const NOW = 1_900_000_000 * SECOND
const SPEC: BreakerSpec = {
  consecutive: 0,
  failureRate: 0.5,
  slowRate: 0,
  windowUs: 30 * SECOND,
  windowCalls: 0,
  minimumCalls: 10,
  openUs: 10 * SECOND,
  openFactor: 1,
  maxOpenUs: 100 * SECOND,
  probes: 1,
  successes: 1,
  probeLeaseUs: 5 * SECOND,
  quorum: 1,
}

interface Hang {
  successes: number
  failures: number
  /** Calls that hung, by pod. */
  hung: Record<string, number>
  overdue: number
  answeredAgoUs: number
  /** When the calls that hung began. */
  beganAgoUs: number
  usualUs: number
}

/** A window full of successes, then 20 calls that timed out after 10 s. */
const HANG: Hang = {
  successes: 1_000,
  failures: 20,
  hung: { a: 20 },
  overdue: 0,
  answeredAgoUs: 11 * SECOND,
  beganAgoUs: 10 * SECOND,
  usualUs: 2 * SECOND,
}

function trips(change: Partial<Hang>, spec: Partial<BreakerSpec> = {}, pods = 1): boolean {
  const hang = { ...HANG, ...change }
  const own = { ...SPEC, ...spec }
  const tally = emptyTally()
  count(tally, own, 'a', [SUCCESS, hang.successes], NOW)
  count(tally, own, 'a', [FAILURE, hang.failures], NOW)
  for (const [pod, times] of Object.entries(hang.hung)) {
    const { answeredAgoUs, beganAgoUs, overdue } = hang
    setHung(
      tally,
      pod,
      { answeredAgoUs, failed: [[beganAgoUs, times]], overdue },
      hang.usualUs,
      NOW,
    )
  }
  return isTripped(tally, own, pods, NOW)
}

describe('a downstream that hangs', () => {
  it('hanging calls open the breaker although the window is full of successes', () => {
    expect(trips({})).toBe(true)
    expect(trips({ hung: {} })).toBe(false)
  })

  it('hanging calls do not open the breaker below minimumCalls', () => {
    expect(trips({ hung: { a: 9 } })).toBe(false)
    expect(trips({ hung: { a: 10 } })).toBe(true)
  })

  it('hanging calls of a pod that stopped reporting are forgotten after one window', () => {
    const tally = emptyTally()
    const report = { answeredAgoUs: 11 * SECOND, failed: [[10 * SECOND, 20]], overdue: 0 } as const
    setHung(tally, 'stopped', report, 2 * SECOND, NOW)
    advance(tally, SPEC, NOW + SPEC.windowUs - 1)
    expect(tally.hung.has('stopped')).toBe(true)
    advance(tally, SPEC, NOW + SPEC.windowUs)
    expect(tally.hung.has('stopped')).toBe(false)
  })

  it('hanging calls of several pods are added', () => {
    expect(trips({ hung: { a: 5, b: 5 } })).toBe(true)
  })

  it('hanging calls do not open the breaker once a call that began later was answered', () => {
    expect(trips({ answeredAgoUs: 10 * SECOND })).toBe(false)
  })

  it('hanging calls open the breaker only after the usual duration and one more second without an answer', () => {
    const recent = { answeredAgoUs: 3 * SECOND - 1, beganAgoUs: 2 * SECOND }
    expect(trips(recent)).toBe(false)
    expect(trips({ ...recent, answeredAgoUs: 3 * SECOND })).toBe(true)
  })

  it('overdue calls in flight count as calls that may still be answered', () => {
    expect(trips({ overdue: 20 })).toBe(true)
    expect(trips({ overdue: 21 })).toBe(false)
  })

  it('hanging calls have to be more than the failure rate before explains', () => {
    // At three failures of ten, ten in a row are a matter of time.
    const failing = { successes: 700, failures: 300 }
    expect(trips({ ...failing, hung: { a: 10 } })).toBe(false)
    expect(trips({ ...failing, hung: { a: 12 } })).toBe(true)
  })

  it('hanging calls of one pod do not open the breaker of a fleet with a quorum', () => {
    expect(trips({ hung: { a: 20 } }, { quorum: 2 }, 4)).toBe(false)
    expect(trips({ hung: { a: 20, b: 10 } }, { quorum: 2 }, 4)).toBe(true)
  })

  it('hanging calls open no breaker without a failureRate', () => {
    expect(trips({}, { failureRate: 0, slowRate: 0.5 })).toBe(false)
  })
})
