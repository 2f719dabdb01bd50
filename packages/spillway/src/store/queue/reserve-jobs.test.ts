import { describe, expect, it } from 'vitest'
import {
  createTestQueue,
  HOUR_US,
  LEASE_US,
  SECOND_US,
  START_US,
} from '../../../test/queue-transitions.js'
import { HALF_OPEN, OPEN } from '../breaker/breaker-state.js'
import type { BreakerSpec } from '../breaker-spec.js'
import type { LimitSpec } from '../limit-spec.js'

const LIMIT: LimitSpec = {
  ...{ id: 'requests', algorithm: 'fixed-window', limit: 10, windowUs: 60 * SECOND_US },
  ...{ slices: 1, burst: 0, span: 'lane' },
}
const TOKENS: LimitSpec = { ...LIMIT, id: 'tokens', limit: 100 }
const BREAKER: BreakerSpec = {
  ...{ consecutive: 2, failureRate: 0, slowRate: 0, windowUs: 60 * SECOND_US, windowCalls: 0 },
  ...{ minimumCalls: 1, openUs: SECOND_US, openFactor: 1, maxOpenUs: SECOND_US },
  ...{ probes: 3, successes: 1, probeLeaseUs: 5 * SECOND_US, quorum: 1 },
}
const many = (count: number) => Array.from({ length: count }, () => ({}))

describe('which job is reserved next', () => {
  it.each([
    ['at the same time', 0, 0],
    ['as long ago as one priority is worth', 1, 0],
    ['longer ago than that', 2, 1],
  ])(
    'the job with more worth comes first among two priorities, if the lower one was added %s',
    (_, secondsAgo, first) => {
      const { add, reserve, pass } = createTestQueue()
      const [low] = add([{ priority: 1 }]).reply.jobs
      pass(secondsAgo * SECOND_US)
      const [high] = add([{ priority: 0 }]).reply.jobs
      const [job] = reserve('w', { agingUs: SECOND_US }).reply.jobs
      expect(job?.id).toBe([high, low][first]?.id)
    },
  )

  it('job whose deadline is now is dead, one whose deadline is later is handed out', () => {
    const { add, reserve, pass, dead } = createTestQueue()
    const jobs = [{ deadlineUs: 5, tenant: 'a' }, { deadlineUs: 6 }, {}]
    const ids = add(jobs).reply.jobs.map(({ id }) => id)
    pass(5)
    const { reply } = reserve('w', { wanted: 9 })
    expect(reply.jobs.map(({ id, leftUs }) => [id, leftUs])).toEqual([
      [ids[1], 1],
      [ids[2], 0],
    ])
    expect(dead()).toMatchObject([{ id: ids[0], text: 'its deadline has passed', attempt: 0 }])
  })

  it('worker that only found jobs with a passed deadline is not told that the breaker is the reason', () => {
    const { add, reserve, pass } = createTestQueue()
    add(Array.from({ length: 100 }, () => ({ deadlineUs: 5 })))
    pass(5)
    expect(reserve('w').reply).toMatchObject({ jobs: [], blocked: 'no', waitUs: 0 })
    expect(reserve('w').reply.blocked).toBe('empty')
  })
})

describe('workers that wait for jobs', () => {
  it('worker that got all it wanted wakes the next one only if jobs are left', () => {
    const { add, reserve, state } = createTestQueue()
    state.parked.set('next', START_US + HOUR_US)
    add([{ delayUs: 1 }])
    state.parked.set('next', START_US + HOUR_US)
    state.blockedUs = START_US + 1
    add(many(3))
    state.blockedUs = 0
    expect(reserve('w', { wanted: 2 }).wakes).toEqual(['next'])
    state.parked.set('next', START_US + HOUR_US)
    expect(reserve('w', { wanted: 1 }).wakes).toEqual([])
    expect(reserve('w', { wanted: 1 }).wakes).toEqual([])
  })

  it('worker that got fewer jobs than it wanted is parked, unless it does not wait', () => {
    const { add, reserve, state } = createTestQueue()
    add([{}])
    expect(reserve('all').reply.jobs).toHaveLength(1)
    reserve('hasty', { parkUs: 0 })
    reserve('idle', { parkUs: SECOND_US })
    expect(state.parked.sorted()).toEqual(['idle'])
    expect(state.parked.score('idle')).toBe(START_US + SECOND_US)
    add([{}])
    state.parked.set('idle', START_US + HOUR_US)
    reserve('idle')
    expect(state.parked.size).toBe(0)
  })

  it('the reply names the time until the next delayed job is due, at least a microsecond', () => {
    const { add, reserve, pass, state } = createTestQueue()
    add([{ delayUs: 7 }])
    expect(reserve('w').reply).toMatchObject({ blocked: 'empty', waitUs: 7 })
    expect(state.alarmUs).toBe(START_US + 7)
    // One worker looks, so the others need not.
    expect(reserve('other').reply.waitUs).toBe(0)
    pass(6)
    expect(reserve('other').reply.waitUs).toBe(0)
    state.alarmUs = START_US + 6
    expect(reserve('other').reply.waitUs).toBe(1)
  })

  it('worker looks again after the lease that ends first, if another one looks at that time', () => {
    const { add, reserve, state } = createTestQueue()
    add(many(1))
    reserve('busy')
    add([{ delayUs: HOUR_US }])
    expect(reserve('one').reply.waitUs).toBe(LEASE_US)
    expect(reserve('two').reply.waitUs).toBe(LEASE_US + SECOND_US)
    state.alarmUs = START_US + LEASE_US + 1
    expect(reserve('three').reply.waitUs).toBe(LEASE_US)
  })

  it('more leases than come back at once end in the past, and are looked at in a microsecond', () => {
    const { add, reserve, pass } = createTestQueue()
    add(many(300))
    reserve('busy', { wanted: 300 })
    add(many(1))
    pass(LEASE_US + 5)
    expect(reserve('w', { wanted: 300 }).reply).toMatchObject({ blocked: 'empty', waitUs: 1 })
    expect(reserve('other').reply.jobs).toHaveLength(1)
  })

  it('queue without delayed and running jobs gives no time to look', () => {
    const { reserve, state } = createTestQueue()
    expect(reserve('w').reply).toMatchObject({
      blocked: 'empty',
      waitUs: 0,
      finished: [],
      probing: false,
    })
    expect([state.alarmUs, state.blockedUs]).toEqual([0, 0])
  })

  it('paused queue hands out nothing and is blocked until it is resumed', () => {
    const { add, reserve, command, state } = createTestQueue()
    add([{}])
    command({ kind: 'pause' })
    expect(reserve('w').reply).toMatchObject({ jobs: [], blocked: 'paused', waitUs: 0 })
    command({ kind: 'resume' })
    expect(reserve('w').reply.jobs).toHaveLength(1)
    expect(state.blockedUs).toBe(0)
  })

  it('jobs that a worker brings along are ended first', () => {
    const { add, reserve, counts } = createTestQueue()
    add(many(2))
    const { jobs } = reserve('w').reply
    const end = { kind: 'failed', text: '', delayUs: 0, generation: -1, probe: false } as const
    const times = { resultUs: HOUR_US, deadUs: HOUR_US, uncountedTurns: 1 }
    const ends = jobs.map(({ id, turn }) => ({ ...end, id, turn }))
    reserve('idle', {
      wanted: 5,
      take: { guard: 'g', lane: 'a', limits: [], version: 0, units: [] },
    })
    const { reply } = reserve('w', { finish: { ...times, ends } })
    expect(reply.finished).toEqual(['again'])
    expect(reply.jobs).toMatchObject([{ id: jobs[0]?.id, turn: 2 }])
    expect(counts()).toMatchObject({ active: 2, waiting: 0 })
  })

  it('job that a worker brings back wakes another worker', () => {
    const { add, reserve, state } = createTestQueue()
    add(many(1))
    const { jobs } = reserve('w').reply
    state.parked.set('idle', START_US + HOUR_US)
    const end = { kind: 'returned', text: '', delayUs: 0, generation: -1, probe: false } as const
    const ends = jobs.map(({ id, turn }) => ({ ...end, id, turn }))
    const finish = { resultUs: HOUR_US, deadUs: HOUR_US, uncountedTurns: 1, ends }
    expect(reserve('w', { finish }).wakes).toEqual(['idle'])
  })
})

describe('limits of reserved jobs', () => {
  it('job takes one request, and of other units only its cost, at most the whole limit', () => {
    const { add, reserve, lane } = createTestQueue([LIMIT, TOKENS])
    add([{}, { cost: { tokens: 30 } }, { cost: { requests: 3, tokens: 9_000 } }])
    const { jobs, take } = reserve('w', { wanted: 2 }).reply
    expect(jobs.map(({ costs }) => costs)).toEqual([
      [1, 0],
      [1, 30],
    ])
    expect(take).toMatchObject({
      granted: 2,
      waitUs: 0,
      paused: false,
      nowUs: START_US,
      capacities: [10, 100],
    })
    expect(take.left).toBeUndefined()
    expect(take.stamps).toEqual([START_US / LIMIT.windowUs, START_US / LIMIT.windowUs])
    expect([lane.counts.requests?.units, lane.counts.tokens?.units]).toEqual([2, 30])
  })

  it('job that does not fit blocks the queue until it does, and charges nothing', () => {
    const { add, reserve, pass, state } = createTestQueue([LIMIT, TOKENS])
    const takeThree = () => reserve('w', { wanted: 3, leaseUs: HOUR_US })
    add([{ cost: { requests: 8 } }, { cost: { tokens: 200, requests: 3 } }, {}])
    const { jobs, blocked, waitUs, take } = takeThree().reply
    expect([jobs.length, blocked]).toEqual([1, 'limited'])
    expect(take).toMatchObject({ granted: 1, waitUs, left: [2, 100] })
    expect(waitUs).toBeGreaterThan(1)
    expect(state.blockedUs).toBe(START_US + waitUs)
    pass(waitUs - 1)
    expect(takeThree().reply).toMatchObject({
      jobs: [],
      blocked: 'limited',
      take: { waitUs: 1 },
    })
    pass(1)
    const last = takeThree().reply
    expect(last.jobs.map(({ costs }) => costs)).toEqual([
      [3, 100],
      [1, 0],
    ])
    expect(state.blockedUs).toBe(0)
  })

  it('lane that the vendor paused hands out nothing until its pause ends', () => {
    const { add, reserve, lane, pass, state } = createTestQueue([LIMIT])
    add([{}])
    lane.pausedUntilUs = START_US + 7
    const { reply, limits } = reserve('w')
    expect(reply).toMatchObject({ jobs: [], blocked: 'vendor', waitUs: 7 })
    expect(reply.take).toMatchObject({ granted: 0, paused: true, waitUs: 7, left: [10] })
    expect(limits.laneLifeUs).toBeUndefined()
    expect(state.blockedUs).toBe(START_US + 7)
    pass(7)
    expect(reserve('w').reply).toMatchObject({ blocked: 'no', take: { paused: false } })
  })

  it('queue without limits stores no lane, and a pause of its lane does not matter', () => {
    const { add, reserve, lane } = createTestQueue()
    add([{}])
    lane.pausedUntilUs = START_US + 7
    const before = structuredClone(lane)
    const { reply, limits } = reserve('w')
    expect(lane).toEqual(before)
    expect(reply.take).toMatchObject({
      granted: 1,
      paused: false,
      waitUs: 0,
      nowUs: START_US,
      stamps: [],
    })
    expect(reply.jobs).toHaveLength(1)
    expect([limits.laneLifeUs, limits.guardLifeUs]).toEqual([undefined, undefined])
  })

  it('lane is stored if a job was handed out', () => {
    const { add, reserve } = createTestQueue([LIMIT])
    expect(reserve('w').limits.laneLifeUs).toBeUndefined()
    add([{}])
    expect(reserve('w').limits.laneLifeUs).toBeGreaterThan(0)
  })

  it('limit that was lowered remembers once that a job waits for it', () => {
    const { add, reserve, lane } = createTestQueue([{ ...LIMIT, learn: true }])
    add(many(2).map(() => ({ cost: { requests: 10 } })))
    reserve('w')
    const since = { loweredUs: START_US, steppedUs: START_US, fullUs: 0, version: 0 }
    const learned = { limit: 10, accepted: 10, before: 0, from: 20, steps: 0, missing: 0, ...since }
    Object.assign(lane.counts.requests as object, { learned })
    expect(reserve('w').limits.laneLifeUs).toBeGreaterThan(0)
    expect(lane.counts.requests?.learned).toMatchObject({ missing: 10, fullUs: START_US })
    expect(reserve('w').limits.laneLifeUs).toBeUndefined()
  })

  it('worker with older limits gets the newer ones', () => {
    const { reserve, guard } = createTestQueue([LIMIT])
    expect(reserve('w').reply.take.newer).toBeUndefined()
    guard.version = START_US
    expect(reserve('w').reply.take.newer).toMatchObject({ version: START_US })
  })
})

describe('breaker of reserved jobs', () => {
  it('open breaker hands out nothing until it ends, and at least for a microsecond', () => {
    const { add, reserve, breaker, state } = createTestQueue([], BREAKER)
    add([{}])
    Object.assign(breaker!, { kind: OPEN, openUntilUs: START_US + 9, timeUs: START_US })
    const { reply, breaker: kept } = reserve('w')
    expect(reply).toMatchObject({ jobs: [], blocked: 'breaker', waitUs: 9, view: { kind: OPEN } })
    expect(kept?.lifeUs).toBeUndefined()
    expect(state.blockedUs).toBe(START_US + 9)
  })

  it('limits have nothing to do with the wait for a breaker', () => {
    const { add, reserve, breaker } = createTestQueue([LIMIT], BREAKER)
    add([{}])
    breaker!.isolations.set('me', START_US + HOUR_US)
    expect(reserve('w').reply.take).toMatchObject({ granted: 0, waitUs: 0, paused: false })
  })

  it('breaker without probes comes before the pause of a vendor', () => {
    const { add, reserve, breaker, lane } = createTestQueue([LIMIT], BREAKER)
    add([{}])
    lane.pausedUntilUs = START_US + 7
    Object.assign(breaker!, { kind: HALF_OPEN, timeUs: START_US })
    expect(reserve('w').reply).toMatchObject({ blocked: 'breaker' })
  })

  it('breaker that becomes half-open is stored, although no probe starts', () => {
    const { reserve, breaker } = createTestQueue([], BREAKER)
    Object.assign(breaker!, { kind: OPEN, openUntilUs: START_US, timeUs: START_US })
    const made = reserve('w')
    expect(made.reply.view?.kind).toBe(HALF_OPEN)
    expect(made.breaker?.lifeUs).toBeGreaterThan(0)
  })

  it('breaker is left out if the worker or the store has none', () => {
    const store = createTestQueue([], BREAKER)
    store.add([{}])
    Object.assign(store.breaker!, { kind: OPEN, openUntilUs: START_US + 9, timeUs: START_US })
    const made = store.reserve('w', { breaker: undefined })
    expect([made.reply.jobs.length, made.breaker]).toEqual([1, undefined])
    const worker = createTestQueue()
    worker.add([{}])
    const own = { breaker: { guard: 'g', lane: 'a', spec: BREAKER } }
    expect(worker.reserve('w', own).reply.jobs).toHaveLength(1)
  })

  it('isolated breaker hands out nothing for a second', () => {
    const { add, reserve, breaker } = createTestQueue([], BREAKER)
    add([{}])
    breaker!.isolations.set('me', START_US + HOUR_US)
    expect(reserve('w').reply).toMatchObject({ jobs: [], blocked: 'breaker', waitUs: SECOND_US })
  })

  it('half-open breaker hands out as many jobs as it has probes and the worker has names', () => {
    const { add, reserve, breaker, pass, state } = createTestQueue([], BREAKER)
    add(many(9))
    Object.assign(breaker!, { kind: HALF_OPEN, timeUs: START_US })
    const first = reserve('w', { wanted: 5, probes: ['a', 'b'] })
    expect(first.reply).toMatchObject({ probing: true, blocked: 'breaker', waitUs: 250_000 })
    expect(first.reply.jobs).toHaveLength(2)
    expect([...breaker!.probes]).toEqual([
      ['a', START_US + 5 * SECOND_US],
      ['b', START_US + 5 * SECOND_US],
    ])
    expect(first.breaker?.lifeUs).toBeGreaterThan(0)
    const second = reserve('w', { wanted: 1, probes: ['c', 'd'] })
    expect(second.reply).toMatchObject({ probing: true, blocked: 'no', view: { probes: 3 } })
    expect([...breaker!.probes.keys()]).toEqual(['a', 'b', 'c'])
    state.alarmUs = 0
    const third = reserve('w', { wanted: 1, probes: ['e'] })
    expect(third.reply).toMatchObject({ jobs: [], blocked: 'breaker', waitUs: 250_000 })
    expect(third.breaker?.lifeUs).toBeUndefined()
    expect(reserve('w', { wanted: 0, probes: ['f'] }).reply).toMatchObject({ blocked: 'no' })
    pass(5 * SECOND_US)
    expect(reserve('w', { wanted: 1, probes: ['g'] }).reply.jobs).toHaveLength(1)
  })

  it('paused queue is paused, whatever its breaker does', () => {
    const { reserve, breaker, command } = createTestQueue([], BREAKER)
    breaker!.isolations.set('me', START_US + HOUR_US)
    command({ kind: 'pause' })
    expect(reserve('w').reply).toMatchObject({ blocked: 'paused', waitUs: 0 })
  })

  it('worker of a paused queue is parked, even if it wants nothing and the vendor paused as well', () => {
    const { reserve, lane, command, state } = createTestQueue([LIMIT])
    lane.pausedUntilUs = START_US + 7
    command({ kind: 'pause' })
    expect(reserve('w', { wanted: 0 }).reply).toMatchObject({ blocked: 'paused', waitUs: 0 })
    expect(state.parked.size).toBe(1)
  })

  it('closed breaker hands out everything, and is not stored again', () => {
    const { add, reserve, breaker: state } = createTestQueue([], BREAKER)
    add(many(3))
    const { reply, breaker } = reserve('w', { wanted: 3, probes: ['a', 'b', 'c'] })
    expect([reply.jobs.length, state?.probes.size]).toEqual([3, 0])
    expect(breaker).toMatchObject({ reply: { kind: 0 } })
    expect(breaker?.lifeUs).toBeUndefined()
    const without = createTestQueue()
    expect(without.reserve('w').breaker).toBeUndefined()
  })
})
