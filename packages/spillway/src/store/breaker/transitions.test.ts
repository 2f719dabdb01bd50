import { describe, expect, it } from 'vitest'
import {
  CLOSED,
  HALF_OPEN,
  OPEN,
  SECOND,
  START_US,
  createTestBreaker as setup,
} from '../../../test/breaker-transitions.js'
import { FAILURE, NOTHING, SLOW, SUCCESS } from '../breaker-spec.js'

describe('open breaker', () => {
  it('a breaker opens on a report without outcomes when the calls that kept it closed are no longer in flight', () => {
    const { report } = setup({ consecutive: 0, failureRate: 0.5, minimumCalls: 10 })
    const inFlight = (calls: number) => [calls, 5 * SECOND] as const
    expect(report({ outcomes: [[FAILURE, 10]], inFlight: inFlight(50) }).kind).toBe(CLOSED)
    expect(report({ inFlight: inFlight(40) }).kind).toBe(CLOSED)
    expect(report({ inFlight: inFlight(0) }).kind).toBe(OPEN)
  })

  it('a breaker that was reset opens for `openMs` again, however often it had opened before', () => {
    const { breakDown, probe, endProbe, command, fail, sync, pass } = setup({
      openFactor: 2,
      successes: 1,
    })
    breakDown()
    probe('a')
    endProbe('a', FAILURE)
    expect(sync().untilUs - sync().nowUs).toBe(20 * SECOND)
    expect(command({ kind: 'reset' }).openings).toBe(0)
    pass(SECOND)
    const { kind, untilUs, nowUs } = fail(2)
    expect(kind).toBe(OPEN)
    expect(untilUs - nowUs).toBe(10 * SECOND)
  })

  it('an open breaker becomes half-open exactly when its open time ends', () => {
    const { fail, pass, sync, ...rest } = setup()
    expect(fail(2)).toMatchObject({ kind: OPEN, untilUs: START_US + 10 * SECOND, consecutive: 2 })
    pass(10 * SECOND - 1)
    expect(sync().kind).toBe(OPEN)
    pass(1)
    expect(sync().kind).toBe(HALF_OPEN)
    expect(rest.probe('a').granted).toBe(1)
  })

  it('breaker publishes each transition once and nothing else', () => {
    const breaker = setup()
    breaker.fail(1)
    expect(breaker.publications).toBe(0)
    breaker.fail(1)
    expect(breaker.publications).toBe(1)
    breaker.sync()
    breaker.pass(10 * SECOND)
    breaker.probe('a')
    expect(breaker.publications).toBe(2)
    breaker.sync(['a'])
    breaker.endProbe('a', SUCCESS)
    expect(breaker.publications).toBe(2)
  })

  it('reports of an earlier generation do not change an open breaker', () => {
    const { report, fail, sync } = setup()
    const { generation } = sync()
    const before = fail(2)
    expect(report({ generation, outcomes: [[FAILURE, 9]] })).toEqual(before)
  })
})

describe('half-open breaker', () => {
  it('half-open breaker grants at most `probes` probes across all pods', () => {
    const breaker = setup()
    breaker.breakDown()
    expect(breaker.probe('a', 'b').granted).toBe(2)
    expect(breaker.probe('c', 'd').granted).toBe(1)
    expect(breaker.probe('e').granted).toBe(0)
    expect(breaker.sync().probes).toBe(3)
  })

  it('half-open breaker closes after `successes` successes and starts counting at zero', () => {
    const breaker = setup()
    breaker.breakDown()
    breaker.probe('a', 'b')
    expect(breaker.endProbe('a', SUCCESS)).toMatchObject({ kind: HALF_OPEN, successes: 1 })
    expect(breaker.endProbe('b', SUCCESS)).toMatchObject({ kind: CLOSED, calls: 0, consecutive: 0 })
    expect(breaker.fail(1).kind).toBe(CLOSED)
  })

  it('half-open breaker that needs one success opens again at one failure and ignores later probes', () => {
    const breaker = setup({ successes: 1 })
    breaker.breakDown()
    breaker.probe('a', 'b')
    const opened = breaker.endProbe('a', FAILURE)
    expect(opened).toMatchObject({ kind: OPEN, openings: 1, probes: 1 })
    // The probe counts as in flight until it ends.
    expect(breaker.endProbe('b', SUCCESS)).toEqual({ ...opened, probes: 0 })
  })

  it('half-open breaker opens again at the second failure if it requires two successes', () => {
    const breaker = setup({ failureRate: 0.5, successes: 2 })
    breaker.breakDown()
    breaker.probe('a', 'b', 'c')
    expect(breaker.endProbe('a', FAILURE)).toMatchObject({ kind: HALF_OPEN, failedProbes: 1 })
    expect(breaker.endProbe('b', SUCCESS)).toMatchObject({ kind: HALF_OPEN, successes: 1 })
    expect(breaker.endProbe('c', FAILURE)).toMatchObject({ kind: OPEN, openings: 1 })
  })

  it('half-open breaker closes in spite of one failed probe if enough others succeed', () => {
    const breaker = setup({ failureRate: 0.5, successes: 2 })
    breaker.breakDown()
    breaker.probe('a', 'b', 'c')
    breaker.endProbe('a', FAILURE)
    breaker.endProbe('b', SUCCESS)
    expect(breaker.endProbe('c', SUCCESS).kind).toBe(CLOSED)
  })

  it.each([1, 0])(
    'half-open breaker opens again after a success if all later probes fail (failureRate %d)',
    (rate) => {
      const breaker = setup({ failureRate: rate, successes: 5 })
      breaker.breakDown()
      breaker.probe('a', 'b', 'c')
      breaker.endProbe('a', SUCCESS)
      breaker.endProbe('b', FAILURE)
      expect(breaker.endProbe('c', FAILURE).kind).toBe(OPEN)
    },
  )

  it('probes that outlived a closed period count when the breaker is half-open again', () => {
    const breaker = setup({ successes: 1, openUs: SECOND })
    breaker.breakDown()
    breaker.probe('slow', 'quick')
    expect(breaker.endProbe('quick', SUCCESS)).toMatchObject({ kind: CLOSED, probes: 1 })
    breaker.breakDown()
    expect(breaker.probe('a', 'b', 'c').granted).toBe(2)
    breaker.endProbe('slow', SUCCESS)
    expect(breaker.probe('c').granted).toBe(1)
  })

  it('probes of an earlier round count until they end or their lease expires', () => {
    const breaker = setup({ probes: 2, successes: 1, openUs: SECOND })
    breaker.breakDown()
    breaker.probe('slow', 'quick')
    breaker.endProbe('quick', FAILURE)
    breaker.pass(SECOND)
    expect(breaker.probe('a', 'b').granted).toBe(1)
    // The result belongs to the previous round.
    expect(breaker.endProbe('slow', FAILURE)).toMatchObject({ kind: HALF_OPEN, probes: 1 })
    expect(breaker.probe('c').granted).toBe(1)
    breaker.endProbe('a', FAILURE)
    breaker.pass(SECOND)
    expect(breaker.sync(['c']).probes).toBe(1)
    breaker.pass(5 * SECOND)
    expect(breaker.probe('d', 'e').granted).toBe(2)
  })

  it('a slow probe counts as a failure only if slowRate is set', () => {
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

  it('a probe without an outcome returns its permit and counts nothing', () => {
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

  it('the probe of a dead pod expires, and its late result is ignored', () => {
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

  it('an unknown probe cannot be renewed', () => {
    const breaker = setup()
    breaker.breakDown()
    expect(breaker.sync(['never given']).probes).toBe(0)
  })
})

describe('breaker generation', () => {
  it('a late failure from before the outage is ignored after the breaker has closed', () => {
    const breaker = setup({ successes: 1 })
    const { generation } = breaker.sync()
    breaker.breakDown()
    breaker.probe('a')
    const closed = breaker.endProbe('a', SUCCESS)
    expect(breaker.report({ generation, outcomes: [[FAILURE, 9]] })).toEqual(closed)
  })

  it('outcomes after the one that trips the breaker belong to the old generation', () => {
    const view = setup().report({
      outcomes: [
        [FAILURE, 2],
        [SUCCESS, 5],
      ],
    })
    expect(view).toMatchObject({ kind: OPEN, calls: 2 })
  })

  it('a breaker whose state was lost adopts the generation that pods report', () => {
    const breaker = setup({ successes: 1 })
    breaker.breakDown()
    breaker.probe('a')
    const { generation } = breaker.endProbe('a', SUCCESS)
    breaker.lose()
    breaker.report({ generation, outcomes: [[FAILURE, 1]] })
    expect(breaker.sync()).toMatchObject({ generation, calls: 1 })
    // It does not return to an earlier generation.
    breaker.report({ generation: generation - 1, outcomes: [[FAILURE, 1]] })
    expect(breaker.sync()).toMatchObject({ generation, calls: 1 })
  })

  it('the generation outlives calls that began before the outage, however short the window', () => {
    const breaker = setup({ windowUs: SECOND, successes: 1 })
    breaker.breakDown()
    breaker.probe('a')
    breaker.endProbe('a', SUCCESS)
    expect(breaker.lifeUs).toBeGreaterThan(300 * SECOND)
  })

  it('generation and version grow even if the clock is set back', () => {
    const breaker = setup()
    const opened = breaker.fail(2)
    breaker.pass(-3_600 * SECOND)
    const again = breaker.command({ kind: 'reset' })
    expect(again.generation).toBeGreaterThan(opened.generation)
    expect(again.version).toBeGreaterThan(opened.version)
  })
})

describe('breaker open time', () => {
  it('open time grows with each failed probe round up to maxOpenUs and resets after closing', () => {
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

  it('tripping an open breaker manually does not shorten its open time', () => {
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

  it('a reason that a call found opens the breaker for exactly the time that it brings', () => {
    const breaker = setup()
    const { generation, nowUs } = breaker.sync()
    const view = breaker.command({ kind: 'trip', forUs: 3_600 * SECOND, generation })
    expect(view).toMatchObject({ kind: OPEN, untilUs: nowUs + 3_600 * SECOND })
  })

  it('a reason found by a call of an earlier generation changes nothing', () => {
    const breaker = setup({ successes: 1 })
    const { generation } = breaker.sync()
    const opened = breaker.command({ kind: 'trip', forUs: 60 * SECOND, generation })
    // The shorter of two times does not replace the longer.
    const again = breaker.command({ kind: 'trip', forUs: SECOND, generation })
    expect(again).toMatchObject({ version: opened.version, untilUs: opened.untilUs })
    breaker.pass(60 * SECOND)
    breaker.probe('a')
    breaker.endProbe('a', SUCCESS)
    expect(breaker.command({ kind: 'trip', generation })).toMatchObject({ kind: CLOSED })
  })

  it('a reason found again by a probe keeps the breaker open for the longer of two times', () => {
    const breaker = setup({ successes: 1, openFactor: 2 })
    const trip = (forUs: number) => {
      const { generation } = breaker.sync()
      const { untilUs, nowUs } = breaker.command({ kind: 'trip', forUs, generation })
      breaker.pass(untilUs - nowUs)
      breaker.probe(`p${nowUs}`)
      return (untilUs - nowUs) / SECOND
    }
    expect([1, 1, 1, 300].map((each) => trip(each * SECOND))).toEqual([1, 20, 40, 300])
  })

  it('open time and isolations keep their length when the clock is set back', () => {
    const breaker = setup()
    breaker.fail(2)
    breaker.command({ kind: 'isolate', holder: 'me', forUs: 20 * SECOND })
    breaker.pass(4 * SECOND - 3_600 * SECOND)
    const { nowUs, untilUs, isolatedUntilUs, closedAtUs } = breaker.sync()
    // The clock jump loses these four seconds.
    expect(untilUs - nowUs).toBe(10 * SECOND)
    expect(isolatedUntilUs - nowUs).toBe(20 * SECOND)
    expect(closedAtUs).toBe(0)
  })

  it('open time continues once a clock that was slightly behind has caught up', () => {
    const breaker = setup()
    const { nowUs } = breaker.fail(2)
    breaker.pass(-4 * SECOND)
    expect(breaker.sync()).toMatchObject({ kind: OPEN, nowUs })
    breaker.pass(14 * SECOND)
    expect(breaker.sync().kind).toBe(HALF_OPEN)
  })
})

describe('manual breaker commands', () => {
  it('isolation lasts until its last holder releases it, and grants no probe', () => {
    const breaker = setup()
    breaker.breakDown()
    breaker.command({ kind: 'isolate', holder: 'constructor', forUs: 20 * SECOND })
    breaker.command({ kind: 'isolate', holder: 'b', forUs: 5 * SECOND })
    expect(breaker.command({ kind: 'release', holder: 'constructor' }).isolatedUntilUs).toBe(
      breaker.sync().nowUs + 5 * SECOND,
    )
    expect(breaker.probe('p').granted).toBe(0)
    const { publications } = breaker
    breaker.pass(5 * SECOND)
    expect(breaker.sync().isolatedUntilUs).toBe(0)
    expect(breaker.publications).toBe(publications + 1)
    expect(breaker.probe('p').granted).toBe(1)
  })

  it('release without a holder ends all isolations', () => {
    const breaker = setup()
    breaker.command({ kind: 'isolate', holder: 'a', forUs: SECOND })
    breaker.command({ kind: 'isolate', holder: 'b', forUs: SECOND })
    expect(breaker.command({ kind: 'release' }).isolatedUntilUs).toBe(0)
  })

  it('reset closes the breaker at once and without a ramp', () => {
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

  it('an isolated breaker is kept in the store until the isolation ends', () => {
    const breaker = setup()
    breaker.command({ kind: 'isolate', holder: 'a', forUs: 3_600 * SECOND })
    expect(breaker.lifeUs).toBeGreaterThan(3_600 * SECOND)
  })
})

describe('breaker sync', () => {
  it('sync does not keep closed breakers in the store', () => {
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

  it('sync keeps open and half-open breakers in the store', () => {
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

  it('sync stores an isolation that ended and end times that a clock jump has moved', () => {
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

describe('breaker expiry', () => {
  it('without pods a breaker expires within five minutes or twice its open time', () => {
    for (const openUs of [SECOND, 60 * SECOND, 200 * SECOND, 1_000 * SECOND]) {
      const breaker = setup({ openUs, maxOpenUs: openUs })
      const most = Math.max(300 * SECOND, 2 * openUs) + SECOND
      breaker.fail(2)
      expect(breaker.lifeUs).toBeLessThanOrEqual(most)
      // The breaker lives long enough to be probed.
      expect(breaker.lifeUs).toBeGreaterThan(openUs + 30 * SECOND)
      breaker.pass(openUs)
      breaker.sync()
      expect(breaker.lifeUs).toBeLessThanOrEqual(most)
    }
  })
})
