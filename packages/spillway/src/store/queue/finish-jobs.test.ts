import { describe, expect, it } from 'vitest'
import { createTestQueue, HOUR_US, LEASE_US, SECOND_US } from '../../../test/queue-transitions.js'
import type { BreakerSpec } from '../breaker-spec.js'

const BREAKER: BreakerSpec = {
  ...{ consecutive: 2, failureRate: 0, slowRate: 0, windowUs: 60 * SECOND_US, windowCalls: 0 },
  ...{ minimumCalls: 1, openUs: SECOND_US, openFactor: 1, maxOpenUs: SECOND_US },
  ...{ probes: 1, successes: 1, probeLeaseUs: SECOND_US, quorum: 1 },
}

function setup(attempts = 2) {
  const queue = createTestQueue([], BREAKER)
  queue.add([{ attempts }])
  const take = () => {
    const [job] = queue.reserve('w').reply.jobs
    if (job === undefined) throw new Error('no job was handed out')
    return job
  }
  return { ...queue, take, id: take().id }
}

describe('ends of a job', () => {
  it('report of an earlier turn, or about an unknown job, is stale and changes nothing', () => {
    const { finish, take, pass, id, counts } = setup()
    pass(LEASE_US)
    expect(take().turn).toBe(2)
    expect(finish([{ id, turn: 1 }]).reply).toEqual(['stale'])
    expect(finish([{ id: 'unknown', turn: 1 }]).reply).toEqual(['stale'])
    expect(counts()).toMatchObject({ active: 1, done: 0 })
  })

  it('report about a job that waits again is stale', () => {
    const { finish, id } = setup()
    expect(finish([{ id, turn: 1, kind: 'failed' }]).reply).toEqual(['again'])
    expect(finish([{ id, turn: 1 }]).reply).toEqual(['stale'])
  })

  it.each([
    ['done', 'done'],
    ['dead', 'dead'],
    ['failed', 'cancelled'],
  ] as const)(
    'repeated report of a job that ended by %s gets the reply %s again',
    (kind, reply) => {
      const { finish, cancel, id, read } = setup()
      if (reply === 'cancelled') cancel(id)
      expect(finish([{ id, turn: 1, kind, text: 'x' }]).reply).toEqual([reply])
      expect(finish([{ id, turn: 1, kind: 'failed', text: 'y' }]).reply).toEqual([reply])
      expect(read(id)).toMatchObject({ state: reply, text: 'x' })
    },
  )

  it('result is kept for its own time and a dead letter for its own', () => {
    const times = { resultUs: 3 * SECOND_US, deadUs: 5 * SECOND_US }
    for (const [kind, keptUs] of [
      ['done', times.resultUs],
      ['dead', times.deadUs],
    ] as const) {
      const { finish, id, pass, reserve, read } = setup()
      finish([{ id, turn: 1, kind }], times)
      pass(keptUs - 1)
      reserve('w')
      expect(read(id)).toBeDefined()
      pass(1)
      reserve('w')
      expect(read(id)).toBeUndefined()
    }
  })

  it('failed job waits again with its text, at once or after its delay, until its attempts are used up', () => {
    const { finish, take, id, read, pass, reserve } = setup()
    expect(
      finish([{ id, turn: 1, kind: 'failed', text: 'one', delayUs: SECOND_US }]).reply,
    ).toEqual(['again'])
    expect(read(id)).toMatchObject({ state: 'delayed', text: 'one', attempt: 1 })
    pass(SECOND_US - 1)
    expect(reserve('w').reply.jobs).toEqual([])
    pass(1)
    expect(take()).toMatchObject({ turn: 2, attempt: 2 })
    expect(finish([{ id, turn: 2, kind: 'failed' }]).reply).toEqual(['dead'])
  })

  it('text of an earlier attempt stays if a later one has none', () => {
    const { finish, take, id, read } = setup(3)
    finish([{ id, turn: 1, kind: 'failed', text: 'one' }])
    take()
    finish([{ id, turn: 2, kind: 'failed' }])
    expect(read(id)?.text).toBe('one')
  })

  it('dead job makes no further attempt, although some are left', () => {
    const { finish, id } = setup(9)
    expect(finish([{ id, turn: 1, kind: 'dead' }]).reply).toEqual(['dead'])
  })

  it('returned job gets its attempt back without limit and keeps its position', () => {
    const { finish, take, add, id } = setup(1)
    add([{}])
    for (let turn = 1; turn < 6; turn++) {
      expect(finish([{ id, turn, kind: 'returned' }]).reply).toEqual(['again'])
      expect(take()).toMatchObject({ id, attempt: 1, turn: turn + 1, uncounted: 0 })
    }
  })

  it('returned probe keeps its position', () => {
    const { finish, take, add, id } = setup()
    add([{}])
    finish([{ id, turn: 1, kind: 'returned', probe: true }])
    expect(take().id).toBe(id)
  })

  it('released job gets its attempt back as often as allowed, and waits behind the others', () => {
    const { finish, take, add, id } = setup(1)
    const other = add([{}]).reply.jobs[0]?.id
    expect(finish([{ id, turn: 1, kind: 'released' }]).reply).toEqual(['again'])
    expect(take().id).toBe(other)
    expect(take()).toMatchObject({ id, attempt: 1, uncounted: 1 })
    expect(finish([{ id, turn: 2, kind: 'released' }]).reply).toEqual(['dead'])
  })
})

describe('failures of a job that the breaker explains', () => {
  const failed = { turn: 1, kind: 'failed' } as const

  it('failure of the current generation of a closed breaker counts as an attempt', () => {
    const { finish, read, id } = setup()
    finish([{ ...failed, id, generation: 0 }])
    expect(read(id)?.attempt).toBe(1)
  })

  it.each([
    ['breaker has opened since', 2, 0],
    ['breaker has opened and closed since', 0, 7],
    ['breaker is open', 1, 0],
  ] as const)('failure does not count as an attempt if the %s', (_, kind, generation) => {
    const { finish, read, breaker, id } = setup()
    Object.assign(breaker!, { kind, generation })
    finish([{ ...failed, id, generation: 0 }])
    expect(read(id)?.attempt).toBe(0)
  })

  it('failure counts as an attempt without a known generation, without a breaker, and for a dead job', () => {
    const open = { kind: 1 } as const
    const unknown = setup()
    Object.assign(unknown.breaker!, open)
    unknown.finish([{ ...failed, id: unknown.id, generation: -1 }])
    expect(unknown.read(unknown.id)?.attempt).toBe(1)
    const dead = setup()
    Object.assign(dead.breaker!, open)
    expect(dead.finish([{ ...failed, kind: 'dead', id: dead.id, generation: 0 }]).reply).toEqual([
      'dead',
    ])
    const without = createTestQueue()
    const [id = ''] = without.add([{}]).reply.jobs.map((each) => each.id)
    without.reserve('w')
    without.finish([{ ...failed, id, generation: 5 }])
    expect(without.read(id)?.attempt).toBe(1)
  })

  it('failed probe waits behind the others and counts, unless it was the last attempt', () => {
    for (const [attempts, attempt] of [
      [2, 1],
      [1, 0],
    ] as const) {
      const { finish, read, take, add, id } = setup(attempts)
      const other = add([{}]).reply.jobs[0]?.id
      expect(finish([{ ...failed, id, probe: true, generation: 0 }]).reply).toEqual(['again'])
      expect(read(id)?.attempt).toBe(attempt)
      expect(take().id).toBe(other)
    }
  })

  it('failed probe of an open breaker is not also excused as a known failure', () => {
    const { finish, read, breaker, id } = setup()
    Object.assign(breaker!, { kind: 1 })
    finish([{ ...failed, id, probe: true, generation: 0 }])
    expect(read(id)?.attempt).toBe(1)
  })
})

describe('workers that a finished job wakes', () => {
  it('job that waits again wakes a parked worker, a job that is done or delayed by a blocked queue does not', () => {
    const { finish, reserve, add, id, state, pass } = setup()
    reserve('idle')
    expect(finish([{ id, turn: 1 }]).wakes).toEqual([])
    const [next = ''] = add([{}, {}]).reply.jobs.map((each) => each.id)
    reserve('w', { wanted: 2 })
    reserve('idle')
    reserve('more')
    state.blockedUs = state.t + 1
    expect(finish([{ id: next, turn: 1, kind: 'returned' }]).wakes).toEqual([])
    pass(1)
    const [job] = reserve('w').reply.jobs
    state.blockedUs = state.t
    expect(finish([{ id: next, turn: job!.turn, kind: 'returned' }]).wakes).toEqual(['idle'])
  })
})

describe('leases of a job', () => {
  it('extension is refused for unknown jobs, earlier turns and jobs that are not running', () => {
    const { extend, finish, id } = setup()
    expect(extend('unknown', 1)).toBe('lost')
    expect(extend(id, 2)).toBe('lost')
    expect(extend(id, 1)).toBe('kept')
    finish([{ id, turn: 1, kind: 'failed' }])
    expect(extend(id, 1)).toBe('lost')
  })

  it('extension stores progress if it has some, and tells that the job was cancelled', () => {
    const { extend, cancel, status, id } = setup()
    extend(id, 1, '50')
    extend(id, 1)
    expect(status(id)?.progress).toBe('50')
    extend(id, 1, '')
    expect(status(id)?.progress).toBe('')
    expect(cancel(id, HOUR_US)).toBe(true)
    expect(extend(id, 1)).toBe('cancelled')
  })
})
