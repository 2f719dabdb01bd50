import { describe, expect, it } from 'vitest'
import { type BreakerSpec, FAILURE, NOTHING, SLOW, SUCCESS } from '../breaker-spec.js'
import type { BreakerCommand, BreakerReport } from '../port.js'
import { type BreakerState, emptyBreaker } from './breaker-state.js'
import {
  type BreakerKept,
  commandBreaker,
  reportOutcomes,
  syncBreaker,
  takeProbes,
} from './transitions.js'

const START_US = 1_900_000_000_000_000
const SECOND = 1_000_000
const CLOSED = 0
const OPEN = 1
const HALF_OPEN = 2

/** One breaker that trips at the second failure in a row, and its time. */
function setup(own: Partial<BreakerSpec> = {}) {
  const spec: BreakerSpec = {
    consecutive: 2,
    failureRate: 0,
    slowRate: 0,
    windowUs: 30 * SECOND,
    windowCalls: 0,
    minimumCalls: 1,
    openUs: 10 * SECOND,
    openFactor: 1,
    maxOpenUs: 100 * SECOND,
    probes: 3,
    successes: 2,
    probeLeaseUs: 5 * SECOND,
    quorum: 1,
    ...own,
  }
  const ref = { guard: 'g', lane: 'l', spec }
  let state = emptyBreaker()
  let nowUs = START_US
  let life: number | undefined
  let told = 0

  function run<R, T>(
    transition: (state: BreakerState, request: R, now: number) => BreakerKept<T>,
    request: R,
  ): T {
    const { reply, lifeUs, published } = transition(state, request, nowUs)
    life = lifeUs
    if (published !== undefined) told++
    return reply
  }
  const sync = (renew: string[] = []) => run(syncBreaker, { ...ref, renew })
  const report = (request: Partial<BreakerReport>) =>
    run((each, full: BreakerReport, now) => reportOutcomes(each, full, now, 1), {
      ...ref,
      pod: 'p',
      sequence: 1,
      generation: sync().generation,
      outcomes: [],
      probes: [],
      ...request,
    })
  const fixture = {
    sync,
    report,
    fail: (times: number) => report({ outcomes: [[FAILURE, times]] }),
    probe: (...probes: string[]) => run(takeProbes, { ...ref, probes }),
    endProbe: (probe: string, kind: number) => report({ probes: [[probe, kind]] }),
    command: (command: BreakerCommand['command']) => run(commandBreaker, { ...ref, command }),
    pass(us: number) {
      nowUs += us
    },
    lose() {
      state = emptyBreaker()
    },
    get lifeUs() {
      return life
    },
    /** How often others were told something. */
    get told() {
      return told
    },
    /** Until it is half-open. */
    breakDown() {
      fixture.fail(2)
      nowUs = sync().untilUs
      return sync()
    },
  }
  return fixture
}

describe('an open breaker', () => {
  it('is half-open when its time is over, not a microsecond earlier, and tells others', () => {
    const { fail, pass, sync, ...rest } = setup()
    expect(fail(2)).toMatchObject({ kind: OPEN, untilUs: START_US + 10 * SECOND, consecutive: 2 })
    pass(10 * SECOND - 1)
    expect(sync().kind).toBe(OPEN)
    pass(1)
    expect(sync().kind).toBe(HALF_OPEN)
    expect(rest.probe('a').granted).toBe(1)
  })

  it('tells others of each transition once, and of nothing else', () => {
    const breaker = setup()
    breaker.fail(1)
    expect(breaker.told).toBe(0)
    breaker.fail(1)
    expect(breaker.told).toBe(1)
    breaker.sync()
    breaker.pass(10 * SECOND)
    breaker.probe('a')
    expect(breaker.told).toBe(2)
    breaker.sync(['a'])
    breaker.endProbe('a', SUCCESS)
    expect(breaker.told).toBe(2)
  })

  it('hears nothing of calls that ended late', () => {
    const { report, fail, sync } = setup()
    const { generation } = sync()
    const before = fail(2)
    expect(report({ generation, outcomes: [[FAILURE, 9]] })).toEqual(before)
  })
})

describe('a half-open breaker', () => {
  it('gives out as many places as there are probes, whoever asks', () => {
    const breaker = setup()
    breaker.breakDown()
    expect(breaker.probe('a', 'b').granted).toBe(2)
    expect(breaker.probe('c', 'd').granted).toBe(1)
    expect(breaker.probe('e').granted).toBe(0)
    expect(breaker.sync().probes).toBe(3)
  })

  it('closes after so many successes, and begins to count from nothing', () => {
    const breaker = setup()
    breaker.breakDown()
    breaker.probe('a', 'b')
    expect(breaker.endProbe('a', SUCCESS)).toMatchObject({ kind: HALF_OPEN, successes: 1 })
    expect(breaker.endProbe('b', SUCCESS)).toMatchObject({ kind: CLOSED, calls: 0, consecutive: 0 })
    expect(breaker.fail(1).kind).toBe(CLOSED)
  })

  it('with one success required opens again at one failure, and later probes change nothing', () => {
    const breaker = setup({ successes: 1 })
    breaker.breakDown()
    breaker.probe('a', 'b')
    const opened = breaker.endProbe('a', FAILURE)
    expect(opened).toMatchObject({ kind: OPEN, openings: 1, probes: 1 })
    // It is still under way, until it ends.
    expect(breaker.endProbe('b', SUCCESS)).toEqual({ ...opened, probes: 0 })
  })

  it('opens again at the second failure if it requires two successes', () => {
    const breaker = setup({ failureRate: 0.5, successes: 2 })
    breaker.breakDown()
    breaker.probe('a', 'b', 'c')
    expect(breaker.endProbe('a', FAILURE)).toMatchObject({ kind: HALF_OPEN, failedProbes: 1 })
    expect(breaker.endProbe('b', SUCCESS)).toMatchObject({ kind: HALF_OPEN, successes: 1 })
    expect(breaker.endProbe('c', FAILURE)).toMatchObject({ kind: OPEN, openings: 1 })
  })

  it('closes in spite of one failed probe if enough others succeed', () => {
    const breaker = setup({ failureRate: 0.5, successes: 2 })
    breaker.breakDown()
    breaker.probe('a', 'b', 'c')
    breaker.endProbe('a', FAILURE)
    breaker.endProbe('b', SUCCESS)
    expect(breaker.endProbe('c', SUCCESS).kind).toBe(CLOSED)
  })

  it.each([1, 0])(
    'opens again after a success if all later probes fail (failureRate %d)',
    (rate) => {
      const breaker = setup({ failureRate: rate, successes: 5 })
      breaker.breakDown()
      breaker.probe('a', 'b', 'c')
      breaker.endProbe('a', SUCCESS)
      breaker.endProbe('b', FAILURE)
      expect(breaker.endProbe('c', FAILURE).kind).toBe(OPEN)
    },
  )

  it('counts those too that outlived a round in which it closed, and broke again', () => {
    const breaker = setup({ successes: 1, openUs: SECOND })
    breaker.breakDown()
    breaker.probe('slow', 'quick')
    expect(breaker.endProbe('quick', SUCCESS)).toMatchObject({ kind: CLOSED, probes: 1 })
    breaker.breakDown()
    expect(breaker.probe('a', 'b', 'c').granted).toBe(2)
    breaker.endProbe('slow', SUCCESS)
    expect(breaker.probe('c').granted).toBe(1)
  })

  it('counts the places of probes that outlived their round, until they end or their pod is gone', () => {
    const breaker = setup({ probes: 2, successes: 1, openUs: SECOND })
    breaker.breakDown()
    breaker.probe('slow', 'quick')
    breaker.endProbe('quick', FAILURE)
    breaker.pass(SECOND)
    expect(breaker.probe('a', 'b').granted).toBe(1)
    // What it says is of the last round.
    expect(breaker.endProbe('slow', FAILURE)).toMatchObject({ kind: HALF_OPEN, probes: 1 })
    expect(breaker.probe('c').granted).toBe(1)
    breaker.endProbe('a', FAILURE)
    breaker.pass(SECOND)
    expect(breaker.sync(['c']).probes).toBe(1)
    breaker.pass(5 * SECOND)
    expect(breaker.probe('d', 'e').granted).toBe(2)
  })

  it('takes a slow probe for a failure only where slowness counts', () => {
    for (const [slowRate, kind] of [
      [0.5, OPEN],
      [0, CLOSED],
    ] as const) {
      const breaker = setup({ slowRate, successes: 1 })
      breaker.breakDown()
      breaker.probe('a')
      expect(breaker.endProbe('a', SLOW).kind).toBe(kind)
    }
  })

  it('gets the place back from a probe that says nothing, and counts nothing', () => {
    const breaker = setup({ probes: 1, successes: 1 })
    breaker.breakDown()
    breaker.probe('a')
    expect(breaker.endProbe('a', NOTHING)).toMatchObject({
      kind: HALF_OPEN,
      probes: 0,
      successes: 0,
    })
    expect(breaker.probe('b').granted).toBe(1)
    expect(breaker.endProbe('a', FAILURE).kind).toBe(HALF_OPEN)
  })

  it('gets the place back from a pod that died with it, and does not hear of it again', () => {
    const breaker = setup({ probes: 1 })
    breaker.breakDown()
    breaker.probe('a')
    breaker.pass(4 * SECOND)
    expect(breaker.sync(['a']).probes).toBe(1)
    breaker.pass(5 * SECOND - 1)
    expect(breaker.probe('b').granted).toBe(0)
    breaker.pass(1)
    expect(breaker.probe('b').granted).toBe(1)
    expect(breaker.endProbe('a', FAILURE).kind).toBe(HALF_OPEN)
  })

  it('cannot be renewed a place that is not there', () => {
    const breaker = setup()
    breaker.breakDown()
    expect(breaker.sync(['never given']).probes).toBe(0)
  })
})

describe('a generation', () => {
  it('makes a late failure from before the outage mean nothing after it', () => {
    const breaker = setup({ successes: 1 })
    const { generation } = breaker.sync()
    breaker.breakDown()
    breaker.probe('a')
    const closed = breaker.endProbe('a', SUCCESS)
    expect(breaker.report({ generation, outcomes: [[FAILURE, 9]] })).toEqual(closed)
  })

  it('ends with the outcome that trips: what comes after it in a report belongs to the past', () => {
    const view = setup().report({
      outcomes: [
        [FAILURE, 2],
        [SUCCESS, 5],
      ],
    })
    expect(view).toMatchObject({ kind: OPEN, calls: 2 })
  })

  it('that pods know is taken up by a state that was lost', () => {
    const breaker = setup({ successes: 1 })
    breaker.breakDown()
    breaker.probe('a')
    const { generation } = breaker.endProbe('a', SUCCESS)
    breaker.lose()
    breaker.report({ generation, outcomes: [[FAILURE, 1]] })
    expect(breaker.sync()).toMatchObject({ generation, calls: 1 })
    // And not given up for an earlier one.
    breaker.report({ generation: generation - 1, outcomes: [[FAILURE, 1]] })
    expect(breaker.sync()).toMatchObject({ generation, calls: 1 })
  })

  it('is still known when calls end that began before the outage, however short the window', () => {
    const breaker = setup({ windowUs: SECOND, successes: 1 })
    breaker.breakDown()
    breaker.probe('a')
    breaker.endProbe('a', SUCCESS)
    expect(breaker.lifeUs).toBeGreaterThan(300 * SECOND)
  })

  it('and the version grow even if the clock is set back', () => {
    const breaker = setup()
    const opened = breaker.fail(2)
    breaker.pass(-3_600 * SECOND)
    const again = breaker.command({ kind: 'reset' })
    expect(again.generation).toBeGreaterThan(opened.generation)
    expect(again.version).toBeGreaterThan(opened.version)
  })
})

describe('open time', () => {
  it('grows each time probes fail, up to the longest, and is short again after closing', () => {
    const breaker = setup({ openFactor: 1.5, maxOpenUs: 30 * SECOND, successes: 1 })
    const opened = []
    let view = breaker.fail(2)
    for (let round = 0; round < 6; round++) {
      opened.push((view.untilUs - view.nowUs) / SECOND)
      breaker.pass(view.untilUs - view.nowUs)
      breaker.probe(`p${round}`)
      view = breaker.endProbe(`p${round}`, FAILURE)
    }
    expect(opened).toEqual([10, 15, 22.5, 30, 30, 30])
    breaker.pass(30 * SECOND)
    breaker.probe('well')
    expect(breaker.endProbe('well', SUCCESS)).toMatchObject({ kind: CLOSED, openings: 0 })
    view = breaker.fail(2)
    expect(view.untilUs - view.nowUs).toBe(10 * SECOND)
  })

  it('is not made shorter by whoever trips an open breaker by hand', () => {
    const breaker = setup({ openFactor: 3, successes: 1 })
    breaker.breakDown()
    breaker.probe('a')
    const { untilUs } = breaker.endProbe('a', FAILURE)
    breaker.pass(SECOND)
    expect(breaker.command({ kind: 'trip' })).toMatchObject({
      kind: OPEN,
      openings: 1,
      untilUs: untilUs + SECOND,
    })
  })

  it('stays as long as it was when the clock is set back, and so do leases and isolations', () => {
    const breaker = setup()
    breaker.fail(2)
    breaker.command({ kind: 'isolate', holder: 'me', forUs: 20 * SECOND })
    breaker.pass(4 * SECOND - 3_600 * SECOND)
    const { nowUs, untilUs, isolatedUntilUs, closedAtUs } = breaker.sync()
    // The four seconds were lost with the clock.
    expect(untilUs - nowUs).toBe(10 * SECOND)
    expect(isolatedUntilUs - nowUs).toBe(20 * SECOND)
    expect(closedAtUs).toBe(0)
  })

  it('passes while the clock is a little off, as soon as it has caught up', () => {
    const breaker = setup()
    const { nowUs } = breaker.fail(2)
    breaker.pass(-4 * SECOND)
    expect(breaker.sync()).toMatchObject({ kind: OPEN, nowUs })
    breaker.pass(14 * SECOND)
    expect(breaker.sync().kind).toBe(HALF_OPEN)
  })
})

describe('by hand', () => {
  it('isolation lasts until the last holder has gone, and lets no probe through', () => {
    const breaker = setup()
    breaker.breakDown()
    breaker.command({ kind: 'isolate', holder: 'constructor', forUs: 20 * SECOND })
    breaker.command({ kind: 'isolate', holder: 'b', forUs: 5 * SECOND })
    expect(breaker.command({ kind: 'release', holder: 'constructor' }).isolatedUntilUs).toBe(
      breaker.sync().nowUs + 5 * SECOND,
    )
    expect(breaker.probe('p').granted).toBe(0)
    const { told } = breaker
    breaker.pass(5 * SECOND)
    expect(breaker.sync().isolatedUntilUs).toBe(0)
    expect(breaker.told).toBe(told + 1)
    expect(breaker.probe('p').granted).toBe(1)
  })

  it('releasing without a name releases all', () => {
    const breaker = setup()
    breaker.command({ kind: 'isolate', holder: 'a', forUs: SECOND })
    breaker.command({ kind: 'isolate', holder: 'b', forUs: SECOND })
    expect(breaker.command({ kind: 'release' }).isolatedUntilUs).toBe(0)
  })

  it('a reset closes at once, without having to be let in by and by', () => {
    const breaker = setup({ successes: 1 })
    breaker.breakDown()
    breaker.probe('a')
    breaker.endProbe('a', SUCCESS)
    breaker.fail(2)
    expect(breaker.command({ kind: 'reset' })).toMatchObject({
      kind: CLOSED,
      closedAtUs: 0,
      openings: 0,
      calls: 0,
    })
  })

  it('an isolated breaker is kept until it is not', () => {
    const breaker = setup()
    breaker.command({ kind: 'isolate', holder: 'a', forUs: 3_600 * SECOND })
    expect(breaker.lifeUs).toBeGreaterThan(3_600 * SECOND)
  })
})

describe('a look', () => {
  it('keeps no closed breaker: neither one that nobody knows, nor one that closed', () => {
    const breaker = setup({ successes: 1 })
    breaker.sync()
    expect(breaker.lifeUs).toBeUndefined()
    breaker.breakDown()
    breaker.probe('a')
    breaker.endProbe('a', SUCCESS)
    breaker.pass(SECOND)
    expect(breaker.sync()).toMatchObject({ kind: CLOSED })
    expect(breaker.lifeUs).toBeUndefined()
  })

  it('keeps an open one, and a half-open one that waits for somebody who probes', () => {
    const breaker = setup()
    breaker.fail(2)
    breaker.sync()
    expect(breaker.lifeUs).toBeGreaterThan(60 * SECOND)
    breaker.breakDown()
    for (let minute = 0; minute < 10; minute++) {
      breaker.pass(60 * SECOND)
      expect(breaker.sync()).toMatchObject({ kind: HALF_OPEN })
      expect(breaker.lifeUs).toBeGreaterThan(60 * SECOND)
    }
  })

  it('keeps what it changes: an isolation that ends, and ends that are others by a clock set back', () => {
    const breaker = setup()
    breaker.command({ kind: 'isolate', holder: 'a', forUs: 60 * SECOND })
    breaker.pass(SECOND)
    breaker.sync()
    expect(breaker.lifeUs).toBeUndefined()
    breaker.pass(-10 * SECOND)
    breaker.sync()
    expect(breaker.lifeUs).toBeGreaterThan(59 * SECOND)
    breaker.pass(60 * SECOND)
    expect(breaker.sync()).toMatchObject({ isolatedUntilUs: 0 })
    expect(breaker.lifeUs).toBeGreaterThan(0)
  })
})

describe('if all pods vanish', () => {
  it('a breaker is forgotten within five minutes, or twice its open time', () => {
    for (const openUs of [SECOND, 60 * SECOND, 200 * SECOND, 1_000 * SECOND]) {
      const breaker = setup({ openUs, maxOpenUs: openUs })
      const most = Math.max(300 * SECOND, 2 * openUs) + SECOND
      breaker.fail(2)
      expect(breaker.lifeUs).toBeLessThanOrEqual(most)
      // But not before anybody could have probed it.
      expect(breaker.lifeUs).toBeGreaterThan(openUs + 30 * SECOND)
      breaker.pass(openUs)
      breaker.sync()
      expect(breaker.lifeUs).toBeLessThanOrEqual(most)
    }
  })
})
