import { describe, expect, it } from 'vitest'
import type { BreakerSpec } from '../breaker-spec.js'
import { emptyTally, type HungCalls } from './tally.js'
import { isTripped } from './trip-conditions.js'

const SECOND = 1_000_000
const NOW = 1_900_000_000 * SECOND
const SPEC: BreakerSpec = {
  ...{ consecutive: 0, failureRate: 0.5, slowRate: 0, windowUs: 30 * SECOND, windowCalls: 0 },
  ...{ minimumCalls: 10, openUs: SECOND, openFactor: 1, maxOpenUs: SECOND },
  ...{ probes: 1, successes: 1, probeLeaseUs: SECOND, quorum: 1 },
}

interface Pod {
  calls?: number
  failures?: number
  slow?: number
  running?: number
  /** Calls that were in flight together. Default: as many as `running`. */
  lately?: number
  fleet?: number
  own?: number
  hung?: Partial<HungCalls>
}

/** Whether pods with these counts trip the breaker, in this order. */
function trips(
  pods: Record<string, Pod>,
  spec: Partial<BreakerSpec> = {},
  live = 1,
  answeredUs = NOW - 11 * SECOND,
) {
  const tally = emptyTally()
  tally.answeredUs = answeredUs
  for (const [name, pod] of Object.entries(pods)) {
    const {
      calls = 0,
      failures = 0,
      slow = 0,
      running = 0,
      lately = 0,
      fleet = 0,
      own = 0,
      hung,
    } = pod
    if (calls > 0) tally.sums.set(name, { calls, failures, slow })
    if (running + lately > 0)
      tally.inFlight.set(name, { calls: running, lately, untilUs: NOW + SECOND })
    if (fleet + own > 0) tally.runs.set(name, { fleet, own, atUs: NOW })
    if (hung === undefined) continue
    const usual = { answeredUs, usualUs: 2 * SECOND, failed: [], overdue: 0, reportedUs: NOW }
    tally.hung.set(name, { ...usual, ...hung })
  }
  return isTripped(tally, { ...SPEC, ...spec }, live, NOW)
}

/** Both orders of two pods. */
function bothOrders(one: Pod, other: Pod, ...rest: [spec: Partial<BreakerSpec>, live: number]) {
  return [trips({ one, other }, ...rest), trips({ other, one }, ...rest)]
}

describe('share of failures of calls that run side by side', () => {
  it.each([
    // 0.3 of 20 calls, and three standard deviations, are 12.1.
    [20, 12, false],
    [20, 13, true],
    // 7.3
    [10, 7, false],
    [10, 8, true],
    // More than all: then all have to fail.
    [3, 2, false],
    [3, 3, true],
  ])(
    'among %d calls side by side, %d failures trip the breaker: %s',
    (calls, failures, tripped) => {
      const spec = { minimumCalls: 3 }
      expect(trips({ a: { calls, failures, lately: 2 } }, spec)).toBe(tripped)
      expect(trips({ a: { calls, failures, lately: 1 }, b: { lately: 1 } }, spec)).toBe(tripped)
    },
  )

  it('the configured share of calls one after the other trips the breaker', () => {
    expect(trips({ a: { calls: 20, failures: 10, lately: 1 } })).toBe(true)
    expect(trips({ a: { calls: 20, failures: 9, lately: 1 } })).toBe(false)
  })

  it('no call at all does not trip a breaker', () => {
    expect(trips({}, { minimumCalls: 0 })).toBe(false)
  })
})

describe('calls that hang', () => {
  const failed = (times: number): HungCalls['failed'] => [[NOW - 10 * SECOND, times]]
  const well = { calls: 1_020, failures: 20 }

  it('calls hang only if some call was answered before', () => {
    expect(trips({ a: { ...well, hung: { failed: failed(20) } } })).toBe(true)
    expect(trips({ a: { ...well, hung: { failed: failed(20) } } }, {}, 1, 0)).toBe(false)
  })

  it('overdue calls lower the share of calls that hung', () => {
    const pod = (overdue: number) => ({ a: { ...well, hung: { failed: failed(20), overdue } } })
    expect(trips(pod(13), { failureRate: 0.6 })).toBe(true)
    expect(trips(pod(14), { failureRate: 0.6 })).toBe(false)
  })

  it.each([
    [15 * SECOND, 0.5 * SECOND],
    [30 * SECOND, SECOND],
    [300 * SECOND, SECOND],
    // A window of calls.
    [0, SECOND],
  ])(
    'with a window of %d us, calls hang after the usual duration and %d us without an answer',
    (windowUs, silenceUs) => {
      const recent: HungCalls['failed'] = [[NOW - SECOND, 20]]
      const at = (agoUs: number) =>
        trips({ a: { ...well, hung: { failed: recent } } }, { windowUs }, 1, NOW - agoUs)
      expect(at(2 * SECOND + silenceUs - 1)).toBe(false)
      expect(at(2 * SECOND + silenceUs)).toBe(true)
    },
  )

  it.each([
    // At one failure of four by chance, ten in a row are as rare as one in a million; at one of three they are not.
    [12, 5, true],
    [11, 5, false],
  ])(
    'among %d calls with %d failures, ten that hung trip the breaker: %s',
    (calls, failures, tripped) => {
      expect(trips({ a: { calls, failures, hung: { failed: failed(10) } } })).toBe(tripped)
    },
  )

  it('with a quorum, the pod with the most calls that hung is left out, in any order', () => {
    const many = { ...well, hung: { failed: failed(20) } }
    const few = { ...well, hung: { failed: failed(10) } }
    expect(bothOrders(many, few, { quorum: 2, minimumCalls: 15 }, 8)).toEqual([false, false])
    expect(bothOrders(many, few, { quorum: 2, minimumCalls: 10 }, 8)).toEqual([true, true])
  })

  it('the pod with more overdue calls is left out among pods with equally many calls that hung', () => {
    const one = { ...well, hung: { failed: failed(20), overdue: 20 } }
    const other = { ...well, hung: { failed: failed(20) } }
    expect(bothOrders(one, other, { quorum: 2, failureRate: 0.6 }, 8)).toEqual([true, true])
  })

  it('half of the pods whose own calls hang trip the breaker, although another pod gets answers', () => {
    const hung = { failed: failed(20), answeredUs: NOW - 11 * SECOND }
    const pods = { a: { ...well, hung }, b: { ...well, hung }, c: { calls: 1_000 } }
    expect(trips(pods, { quorum: 2 }, 4, NOW - SECOND)).toBe(true)
    expect(trips(pods, { quorum: 2 }, 5, NOW - SECOND)).toBe(false)
  })
})

describe('breaker conditions with a quorum', () => {
  const quorum = { quorum: 2 }

  it('without a known number of live pods, the pods that reported count', () => {
    const pods = { a: { calls: 100, failures: 100 }, b: { calls: 10 } }
    expect(trips(pods, quorum, 0)).toBe(false)
    expect(trips(pods, quorum, 1)).toBe(true)
  })

  it('longest row of failures is left out, in any order of the pods', () => {
    const spec = { quorum: 2, failureRate: 0, consecutive: 5 }
    expect(bothOrders({ fleet: 50 }, { fleet: 4 }, spec, 8)).toEqual([false, false])
    expect(bothOrders({ fleet: 50 }, { fleet: 5 }, spec, 8)).toEqual([true, true])
  })

  it('half of the pods with rows of failures of their own trip the breaker', () => {
    const pods = { a: { calls: 5, own: 5 }, b: { calls: 5, own: 5 }, c: { calls: 5 } }
    const spec = { quorum: 2, failureRate: 0, consecutive: 5 }
    expect(trips(pods, spec, 4)).toBe(true)
    expect(trips(pods, spec, 5)).toBe(false)
  })

  it.each(['failures', 'slow'] as const)(
    'calls in flight of the pod that is left out are left out too (%s)',
    (bad) => {
      const spec = bad === 'slow' ? { quorum: 2, failureRate: 0, slowRate: 0.5 } : quorum
      const worst = { calls: 100, [bad]: 100, running: 50 }
      expect(trips({ worst, other: { calls: 20, [bad]: 20 } }, spec, 8)).toBe(true)
    },
  )

  it('one slow pod does not trip the breaker, two do', () => {
    const spec = { quorum: 2, failureRate: 0, slowRate: 0.5 }
    const sick = { calls: 100, slow: 100 }
    expect(trips({ sick, well: { calls: 50 } }, spec, 8)).toBe(false)
    expect(trips({ sick, other: { calls: 20, slow: 20 } }, spec, 8)).toBe(true)
  })

  it('calls in flight count in favour of a pod when the worst pod is chosen', () => {
    const busy = { calls: 60, failures: 60, running: 60 }
    const worst = { calls: 40, failures: 40 }
    expect(trips({ busy, worst, well: { calls: 30 } }, quorum, 8)).toBe(false)
  })

  it('the pod with more calls is left out among pods with the same excess, in any order', () => {
    const large = { calls: 20, failures: 10 }
    const small = { calls: 10, failures: 5 }
    expect(bothOrders(large, small, { quorum: 2, minimumCalls: 15 }, 8)).toEqual([false, false])
  })

  it('the pod with more finished calls is left out among pods with the same excess and number of calls', () => {
    const finished = { calls: 20, failures: 10 }
    const running = { calls: 10, failures: 10, running: 10 }
    const spec = { quorum: 2, minimumCalls: 15 }
    expect(bothOrders(finished, running, spec, 8)).toEqual([false, false])
  })
})
