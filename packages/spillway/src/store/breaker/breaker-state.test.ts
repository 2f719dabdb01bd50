import { describe, expect, it } from 'vitest'
import {
  CLOSED,
  createTestBreaker,
  HALF_OPEN,
  OPEN,
  SECOND,
  START_US,
} from '../../../test/breaker-transitions.js'
import { FAILURE, REPEATED_SUCCESS, SUCCESS } from '../breaker-spec.js'

describe('state of a breaker', () => {
  it('generation and version of a breaker are the time of its change', () => {
    const { fail } = createTestBreaker()
    expect(fail(2)).toMatchObject({ version: START_US, generation: START_US })
  })

  it('breaker keeps its time while the clock is five seconds behind, and follows it when it is further behind', () => {
    const { fail, pass, sync } = createTestBreaker()
    fail(2)
    pass(-5 * SECOND)
    expect(sync().nowUs).toBe(START_US)
    pass(-1)
    expect(sync().nowUs).toBe(START_US - 5 * SECOND - 1)
  })

  it('open breaker keeps its counts longer than the window, a closed one does not', () => {
    const { fail, pass, sync } = createTestBreaker({ windowUs: SECOND })
    fail(1)
    pass(2 * SECOND)
    expect(sync().calls).toBe(0)
    fail(2)
    pass(5 * SECOND)
    expect(sync()).toMatchObject({ kind: OPEN, calls: 2 })
  })

  it('only an open breaker shows when it ends', () => {
    const { fail, pass, sync } = createTestBreaker()
    expect(fail(2).untilUs).toBe(START_US + 10 * SECOND)
    pass(10 * SECOND)
    expect(sync()).toMatchObject({ kind: HALF_OPEN, untilUs: 0 })
  })

  it.each([
    ['a window of 30 s', { windowUs: 30 * SECOND }, 30],
    ['a window of 400 s', { windowUs: 400 * SECOND }, 400],
    ['a window of calls', { windowUs: 0, windowCalls: 10 }, 300],
  ])('breaker that never opened is kept as long as it matters: %s', (_, spec, seconds) => {
    const breaker = createTestBreaker(spec)
    breaker.fail(1)
    expect(breaker.lifeUs).toBe((seconds + 1) * SECOND)
  })

  it('breaker that has opened is kept for five minutes when closed, and for its probes when open', () => {
    const breaker = createTestBreaker({ openUs: SECOND })
    breaker.fail(2)
    expect(breaker.lifeUs).toBe(62 * SECOND)
    breaker.command({ kind: 'reset' })
    expect(breaker.lifeUs).toBe(301 * SECOND)
  })
})

describe('reports to a breaker', () => {
  it('report of a later generation does not change that of an open breaker', () => {
    const { fail, report } = createTestBreaker()
    const { generation } = fail(2)
    expect(report({ generation: generation + 5 })).toMatchObject({ kind: OPEN, generation })
  })

  it('calls further on in a report were in flight when the earlier ones ended', () => {
    const spec = { consecutive: 0, failureRate: 0.5, minimumCalls: 5 }
    const inFlight = [0, 5 * SECOND] as const
    const before = (kind: number) =>
      createTestBreaker(spec).report({
        outcomes: [
          [FAILURE, 5],
          [kind, 20],
        ],
        inFlight,
      })
    expect(before(SUCCESS)).toMatchObject({ kind: CLOSED, calls: 25, inFlight: 0 })
    // Attempts after the first do not count in the rates.
    expect(before(REPEATED_SUCCESS).kind).toBe(OPEN)
  })

  it('no call of a report is in flight after the report, whatever attempts it has', () => {
    const view = createTestBreaker({ consecutive: 9 }).report({
      outcomes: [
        [FAILURE, 1],
        [REPEATED_SUCCESS, 3],
        [SUCCESS, 4],
      ],
      inFlight: [0, 5 * SECOND],
    })
    expect(view).toMatchObject({ kind: CLOSED, calls: 5, inFlight: 0 })
  })

  it('report of an earlier generation changes no calls in flight', () => {
    const { command, report } = createTestBreaker()
    command({ kind: 'reset' })
    expect(report({ generation: 0, inFlight: [7, 5 * SECOND] }).inFlight).toBe(0)
  })
})

describe('probes of a breaker', () => {
  it.each([
    [0.1, OPEN],
    [0.5, HALF_OPEN],
    [0, HALF_OPEN],
    [1, HALF_OPEN],
  ])(
    'two failed probes after ten successes, with a failureRate of %d, lead to state %d',
    (failureRate, kind) => {
      const { breakDown, probe, endProbe, sync } = createTestBreaker({ failureRate, successes: 20 })
      breakDown()
      for (let index = 0; index < 12; index++) {
        probe(`p${index}`)
        endProbe(`p${index}`, index < 10 ? SUCCESS : FAILURE)
      }
      expect(sync().kind).toBe(kind)
    },
  )

  it('breaker opens again when exactly half of its probes failed', () => {
    const { breakDown, probe, endProbe } = createTestBreaker({ failureRate: 1, successes: 9 })
    breakDown()
    for (const [name, outcome] of [
      ['a', SUCCESS],
      ['b', SUCCESS],
      ['c', FAILURE],
    ] as const) {
      probe(name)
      expect(endProbe(name, outcome).kind).toBe(HALF_OPEN)
    }
    probe('d')
    expect(endProbe('d', FAILURE).kind).toBe(OPEN)
  })

  it('successful probe closes a breaker that has a slowRate', () => {
    const { breakDown, probe, endProbe } = createTestBreaker({ slowRate: 0.5, successes: 1 })
    breakDown()
    probe('a')
    expect(endProbe('a', SUCCESS).kind).toBe(CLOSED)
  })

  it('closed and open breakers grant no probe', () => {
    const { probe, fail } = createTestBreaker()
    expect(probe('a').granted).toBe(0)
    fail(2)
    expect(probe('b').granted).toBe(0)
  })

  it('two reads of a closed breaker in one microsecond do not keep it in the store', () => {
    const breaker = createTestBreaker()
    breaker.sync()
    breaker.sync()
    expect(breaker.lifeUs).toBeUndefined()
  })
})

describe('reasons that calls find', () => {
  it('call that knows a later generation than a lost state opens the breaker', () => {
    const { command } = createTestBreaker()
    expect(command({ kind: 'trip', generation: 500, forUs: SECOND }).kind).toBe(OPEN)
  })

  it('call that knows a later generation does not change an open breaker', () => {
    const { fail, command } = createTestBreaker()
    const { generation, untilUs } = fail(2)
    const later = { kind: 'trip', generation: generation + 5, forUs: 3_600 * SECOND } as const
    expect(command(later)).toMatchObject({ generation, untilUs })
  })
})
