import { describe, expect, it } from 'vitest'
import {
  type BreakerSpec,
  FAILURE,
  REPEATED_FAILURE,
  REPEATED_SUCCESS,
  SLOW,
  SUCCESS,
} from '../breaker-spec.js'
import {
  advance,
  count,
  emptyTally,
  keepTotals,
  setHung,
  setInFlight,
  type Tally,
  totals,
} from './tally.js'
import { isTripped } from './trip-conditions.js'

const START_US = 1_900_000_000_000_000
const SECOND = 1_000_000

function specOf(own: Partial<BreakerSpec>): BreakerSpec {
  return {
    consecutive: 0,
    failureRate: 0,
    slowRate: 0,
    windowUs: 30 * SECOND,
    windowCalls: 0,
    minimumCalls: 1,
    openUs: 10 * SECOND,
    openFactor: 1,
    maxOpenUs: 100 * SECOND,
    probes: 1,
    successes: 1,
    probeLeaseUs: 5 * SECOND,
    quorum: 1,
    ...own,
  }
}

/** Counts outcomes in a tally with its own time. */
function counting(spec: BreakerSpec, tally: Tally = emptyTally()) {
  let now = START_US
  return {
    tally,
    pass(us: number) {
      now += us
      advance(tally, spec, now)
    },
    see(kind: number, times: number, pod = 'p', as: BreakerSpec = spec) {
      advance(tally, as, now)
      count(tally, as, pod, [kind, times], now)
    },
    fly(calls: number, forUs = 60 * SECOND, pod = 'p') {
      setInFlight(tally, pod, calls, 0, forUs, now)
    },
    seeOld(kind: number, times: number, slicesAgo: number) {
      count(tally, spec, 'p', [kind, times, slicesAgo], now)
    },
    trips: (live = 1) => isTripped(tally, spec, live, now),
  }
}

describe('consecutive failures', () => {
  const tenInARow = specOf({ consecutive: 10 })

  it('breaker trips at the tenth consecutive failure, whichever pods report them', () => {
    const { see, trips } = counting(tenInARow)
    see(FAILURE, 5, 'a')
    see(FAILURE, 4, 'b')
    expect(trips()).toBe(false)
    see(FAILURE, 1, 'c')
    expect(trips()).toBe(true)
  })

  it('a success or a slow call resets the consecutive failures', () => {
    const { see, trips } = counting(tenInARow)
    see(FAILURE, 9)
    see(SUCCESS, 1)
    see(FAILURE, 9)
    see(SLOW, 1)
    see(FAILURE, 9)
    expect(trips()).toBe(false)
  })

  it.each([
    specOf({ consecutive: 10 }),
    specOf({ consecutive: 10, windowUs: 0, windowCalls: 100 }),
  ])('failures five minutes apart are not consecutive ($windowCalls)', (spec) => {
    const { see, pass, trips } = counting(spec)
    see(FAILURE, 9)
    pass(300 * SECOND)
    see(FAILURE, 1)
    expect(trips()).toBe(false)
  })
})

describe('failure rate and slow rate', () => {
  it('failure rate is ignored below minimumCalls', () => {
    const { see, trips } = counting(specOf({ failureRate: 0.5, minimumCalls: 10 }))
    see(FAILURE, 9)
    expect(trips()).toBe(false)
    see(SUCCESS, 1)
    expect(trips()).toBe(true)
  })

  it.each([0.07, 0.14, 0.28, 0.29, 0.55, 0.56, 0.57, 0.58])(
    'breaker trips at a failure rate of exactly %d',
    (failureRate) => {
      const { see, trips } = counting(specOf({ failureRate, minimumCalls: 100 }))
      const failures = Math.round(failureRate * 100)
      see(SUCCESS, 100 - failures)
      see(FAILURE, failures)
      expect(trips()).toBe(true)
    },
  )

  it('failed calls do not count as slow in the slow rate', () => {
    const { see, trips } = counting(specOf({ slowRate: 0.5 }))
    see(FAILURE, 6)
    see(SLOW, 4)
    expect(trips()).toBe(false)
    see(SLOW, 2)
    expect(trips()).toBe(true)
  })
})

describe('calls in flight', () => {
  const half = specOf({ failureRate: 0.5, minimumCalls: 10 })

  it('calls in flight are in the denominator of the failure rate', () => {
    const { see, fly, trips, tally } = counting(half)
    fly(90)
    see(FAILURE, 10)
    expect(totals(tally)).toMatchObject({ calls: 10, failures: 10, inFlight: 90 })
    expect(trips()).toBe(false)
    fly(0)
    expect(trips()).toBe(true)
  })

  it('calls in flight are in the denominator of the slow rate', () => {
    const { see, fly, trips } = counting(specOf({ slowRate: 0.5, minimumCalls: 10 }))
    fly(90)
    see(SLOW, 10)
    expect(trips()).toBe(false)
  })

  it('calls in flight are the sum over all pods of the last number each one reported', () => {
    const { fly, tally } = counting(half)
    fly(5, SECOND, 'a')
    fly(7, SECOND, 'b')
    fly(3, SECOND, 'a')
    expect(totals(tally).inFlight).toBe(10)
  })

  it('calls in flight do not count after the time their pod has reported', () => {
    const { fly, pass, tally } = counting(half)
    fly(5, SECOND)
    pass(SECOND - 1)
    expect(totals(tally).inFlight).toBe(5)
    pass(1)
    expect(totals(tally).inFlight).toBe(0)
  })

  it('calls in flight do not count towards minimumCalls', () => {
    const { see, fly, trips } = counting(half)
    fly(3)
    see(FAILURE, 9)
    expect(trips()).toBe(false)
  })

  it('fewer consecutive failures than calls in flight do not trip the breaker', () => {
    const { see, fly, trips } = counting(specOf({ consecutive: 10 }))
    fly(11)
    see(FAILURE, 10)
    expect(trips()).toBe(false)
    see(FAILURE, 1)
    expect(trips()).toBe(true)
  })

  it('calls in flight of a healthy pod count for the quorum', () => {
    const { see, fly, trips } = counting(specOf({ failureRate: 0.5, minimumCalls: 10, quorum: 2 }))
    see(FAILURE, 30, 'a')
    see(FAILURE, 20, 'b')
    fly(50, 60 * SECOND, 'c')
    expect(trips(5)).toBe(false)
    fly(0, 60 * SECOND, 'c')
    expect(trips(5)).toBe(true)
  })

  it('calls in flight never keep a failureRate of 1 from being reached', () => {
    const { see, fly, trips } = counting(specOf({ failureRate: 1, minimumCalls: 10 }))
    fly(5)
    see(FAILURE, 80)
    expect(trips()).toBe(false)
    see(FAILURE, 1)
    expect(trips()).toBe(true)
  })
})

describe('attempts after the first', () => {
  it('attempts after the first do not count in the rates, but extend or end a row of failures', () => {
    const { see, tally } = counting(specOf({ failureRate: 0.5, consecutive: 100 }))
    see(FAILURE, 1)
    see(REPEATED_FAILURE, 2)
    expect(totals(tally)).toMatchObject({ calls: 1, failures: 1, consecutive: 3 })
    see(REPEATED_SUCCESS, 1)
    expect(totals(tally)).toMatchObject({ calls: 1, failures: 1, consecutive: 0 })
  })
})

describe('tally window', () => {
  it('tally window counts a success at the start of its call, and none that began before the window', () => {
    const { seeOld, pass, tally } = counting(specOf({ failureRate: 0.5 }))
    pass(30 * SECOND)
    seeOld(SUCCESS, 5, 9)
    seeOld(SUCCESS, 3, 10)
    seeOld(FAILURE, 2, 0)
    expect(totals(tally).calls).toBe(7)
    pass(3 * SECOND)
    expect(totals(tally)).toMatchObject({ calls: 2, failures: 2 })
  })

  it('time window drops a tenth at a time and is empty after its length', () => {
    const { see, pass, tally } = counting(specOf({ failureRate: 0.5 }))
    for (let slice = 0; slice < 10; slice++) {
      see(SUCCESS, 1)
      pass(3 * SECOND)
    }
    expect(totals(tally).calls).toBe(9)
    pass(12 * SECOND)
    expect(totals(tally).calls).toBe(5)
    pass(15 * SECOND)
    expect(tally).toEqual(emptyTally())
  })

  it('count window keeps the newest calls, however many arrive in one report', () => {
    const { see, tally } = counting(specOf({ failureRate: 0.5, windowUs: 0, windowCalls: 10 }))
    see(FAILURE, 8)
    see(SUCCESS, 4)
    expect(totals(tally)).toMatchObject({ calls: 10, failures: 6, slow: 0, consecutive: 0 })
    see(SLOW, 25)
    expect(totals(tally)).toMatchObject({ calls: 10, failures: 0, slow: 10, consecutive: 0 })
    for (let call = 0; call < 1_000; call++) see(call % 2, 1)
    expect(totals(tally)).toMatchObject({ calls: 10, failures: 5, slow: 0, consecutive: 1 })
    expect(tally.recent).toHaveLength(10)
  })

  it("pods with different window lengths do not empty each other's tally during a rollout", () => {
    const spec = specOf({ failureRate: 0.5, minimumCalls: 20 })
    const { see, pass, trips, tally } = counting(spec)
    for (let round = 0; round < 10; round++) {
      see(FAILURE, 1, 'old')
      see(FAILURE, 1, 'new', { ...spec, windowUs: 20 * SECOND })
      pass(SECOND)
    }
    expect(trips()).toBe(true)
    expect(tally.slices.length).toBeLessThanOrEqual(20)
  })
})

describe('quorum', () => {
  const spec = specOf({ failureRate: 0.5, minimumCalls: 10, quorum: 2 })

  it('with a quorum, one failing pod of eight cannot trip the fleet', () => {
    const { see, trips } = counting({ ...spec, consecutive: 20 })
    for (let pod = 1; pod < 8; pod++) see(SUCCESS, 10, `well ${pod}`)
    see(FAILURE, 1_000, 'sick')
    expect(trips(8)).toBe(false)
  })

  it('quorum leaves out the pod with the most failures, not the one with the most calls', () => {
    const { see, trips } = counting(spec)
    see(FAILURE, 60, 'busy')
    see(SUCCESS, 40, 'busy')
    see(FAILURE, 39, 'well')
    see(SUCCESS, 61, 'well')
    see(FAILURE, 50, 'sick')
    expect(trips(8)).toBe(false)
    see(FAILURE, 10, 'busy')
    expect(trips(8)).toBe(true)
  })

  it('breaker trips when a second pod fails and the healthy pods do not outweigh it', () => {
    const { see, trips } = counting(spec)
    see(SUCCESS, 10, 'well')
    see(FAILURE, 30, 'sick')
    expect(trips(8)).toBe(false)
    see(FAILURE, 10, 'sick too')
    expect(trips(8)).toBe(true)
  })

  it('breaker trips when half of the pods fail, although the others have many successes', () => {
    const { see, trips } = counting(spec)
    for (let pod = 1; pod <= 4; pod++) see(SUCCESS, 1_000, `well ${pod}`)
    for (let pod = 1; pod <= 3; pod++) see(FAILURE, 10, `sick ${pod}`)
    expect(trips(8)).toBe(false)
    see(FAILURE, 10, 'sick 4')
    expect(trips(8)).toBe(true)
  })

  it('quorum counts consecutive failures without the pod that has most of them', () => {
    const inARow = counting(specOf({ consecutive: 5, quorum: 2 }))
    inARow.see(FAILURE, 50, 'a')
    inARow.see(FAILURE, 4, 'b')
    expect(inARow.trips(8)).toBe(false)
    inARow.see(FAILURE, 1, 'c')
    expect(inARow.trips(8)).toBe(true)
  })

  it('quorum leaves out the pod with more calls if two have the same excess of failures', () => {
    const { see, trips } = counting(specOf({ failureRate: 0.5, minimumCalls: 15, quorum: 2 }))
    see(SUCCESS, 10, 'large')
    see(FAILURE, 10, 'large')
    see(SUCCESS, 5, 'small')
    see(FAILURE, 5, 'small')
    expect(trips(8)).toBe(false)
  })

  it('a success in any pod ends the row of consecutive failures of all pods', () => {
    const { see, trips } = counting(specOf({ consecutive: 5, quorum: 2 }))
    see(FAILURE, 4, 'a')
    see(FAILURE, 4, 'b')
    see(SUCCESS, 1, 'c')
    see(FAILURE, 1, 'd')
    expect(trips(8)).toBe(false)
    see(FAILURE, 5, 'a')
    expect(trips(8)).toBe(false)
    see(FAILURE, 4, 'd')
    expect(trips(8)).toBe(true)
  })

  it('quorum is at most the number of live pods', () => {
    const { see, trips } = counting({ ...spec, quorum: 3 })
    see(FAILURE, 10, 'the only one')
    expect(trips(2)).toBe(false)
    expect(trips(1)).toBe(true)
    // No pod has sent a heartbeat yet.
    expect(trips(0)).toBe(true)
  })

  it('pods that have stopped do not count towards the quorum', () => {
    const { see, trips } = counting({ ...spec, quorum: 3 })
    for (const pod of ['restarted 1', 'restarted 2', 'restarted 3']) see(SUCCESS, 100, pod)
    see(FAILURE, 30, 'one')
    expect(trips(0)).toBe(false)
    see(FAILURE, 30, 'other')
    see(SUCCESS, 30, 'well')
    expect(trips(3)).toBe(false)
    expect(trips(2)).toBe(true)
  })

  it('pod names such as __proto__ are counted like any other', () => {
    const { see, trips, tally } = counting(spec)
    for (const pod of ['constructor', '__proto__', '1']) see(FAILURE, 10, pod)
    expect(totals(tally)).toMatchObject({ calls: 30, failures: 30, slow: 0, consecutive: 30 })
    expect(trips(3)).toBe(true)
  })
})

describe('what a tally keeps', () => {
  const spec = specOf({ failureRate: 0.5 })

  it('last number of calls in flight above 0 is kept, with its end', () => {
    const tally = emptyTally()
    const set = (reported: number, later: number, atUs: number, forUs = 10 * SECOND) =>
      setInFlight(tally, 'p', reported, later, forUs, START_US + atUs)
    const untilUs = START_US + 10 * SECOND
    set(0, 0, 0)
    expect(tally.inFlight.size).toBe(0)
    set(0, 2, 0)
    expect(tally.inFlight.get('p')).toEqual({ calls: 2, lately: 0, untilUs })
    set(5, 1, 1)
    expect(tally.inFlight.get('p')).toEqual({ calls: 6, lately: 5, untilUs: untilUs + 1 })
    set(0, 3, 7)
    expect(tally.inFlight.get('p')).toEqual({ calls: 3, lately: 5, untilUs: untilUs + 1 })
    set(0, 0, 9)
    expect(tally.inFlight.get('p')).toEqual({ calls: 0, lately: 5, untilUs: untilUs + 1 })
    set(4, 0, 9, 0)
    expect(tally.inFlight.size).toBe(0)
  })

  it('pod whose calls do not hang any more is removed from those that hang', () => {
    const tally = emptyTally()
    const report = { answeredAgoUs: 5, failed: [[3, 2]], overdue: 1 } as const
    const set = (given: typeof report | object | undefined, usualUs = SECOND) => {
      setHung(tally, 'p', report, SECOND, START_US)
      setHung(tally, 'p', given && { ...report, ...given }, usualUs, START_US)
      return tally.hung.has('p')
    }
    expect(set({})).toBe(true)
    expect(tally.hung.get('p')).toEqual({
      ...{ answeredUs: START_US - 5, usualUs: SECOND, failed: [[START_US - 3, 2]], overdue: 1 },
      reportedUs: START_US,
    })
    expect([set({ failed: [] }), set({ overdue: 0 })]).toEqual([true, true])
    expect([set({ failed: [], overdue: 0 }), set(undefined), set({}, 0)]).toEqual([
      ...[false, false, false],
    ])
  })

  it('pods are counted together without a quorum, and each on its own with one', () => {
    for (const [quorum, names] of [
      [1, ['*']],
      [2, ['a', 'b']],
    ] as const) {
      const { see, tally } = counting({ ...spec, quorum })
      see(FAILURE, 1, 'a')
      see(FAILURE, 1, 'b')
      expect([...tally.sums.keys()]).toEqual(names)
      expect([...tally.runs.keys()]).toEqual(names)
    }
  })

  it('rows of failures are kept since the last success of the fleet and of the pod', () => {
    const { see, tally } = counting({ ...spec, quorum: 2 })
    see(FAILURE, 2, 'a')
    see(SUCCESS, 1, 'b')
    see(FAILURE, 3, 'a')
    expect(tally.runs.get('a')).toEqual({ fleet: 3, own: 5, atUs: START_US })
  })

  it('window of calls keeps one entry for reports of the same kind', () => {
    const { see, tally } = counting(specOf({ windowUs: 0, windowCalls: 10 }))
    see(SUCCESS, 2)
    see(SUCCESS, 3)
    see(FAILURE, 1)
    expect(tally.recent).toEqual([
      { pod: '*', kind: SUCCESS, times: 5 },
      { pod: '*', kind: FAILURE, times: 1 },
    ])
  })

  it('slices of a window of time are kept in order, one for each tenth', () => {
    const { seeOld, tally } = counting(spec)
    for (const slicesAgo of [0, 4, 2, 4, 0, 3, 2]) seeOld(SUCCESS, 1, slicesAgo)
    const newestUs = tally.slices.at(-1)?.startUs ?? 0
    const slices = tally.slices.map(({ startUs, counts }) => [
      (newestUs - startUs) / (3 * SECOND),
      counts.get('*')?.calls,
    ])
    expect(slices).toEqual([
      [4, 2],
      [3, 1],
      [2, 2],
      [0, 2],
    ])
  })

  it('totals of an open breaker are kept as those of all pods', () => {
    const tally = emptyTally()
    keepTotals(tally, { calls: 9, failures: 4, slow: 2, consecutive: 3 }, START_US)
    expect(totals(tally)).toEqual({
      ...{ calls: 9, failures: 4, slow: 2, inFlight: 0, lately: 0, consecutive: 3 },
    })
    expect(tally.runs.get('*')).toEqual({ fleet: 3, own: 3, atUs: START_US })
  })
})
