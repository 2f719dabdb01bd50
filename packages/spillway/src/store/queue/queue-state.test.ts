import { describe, expect, it } from 'vitest'
import {
  createTestQueue,
  HOUR_US,
  LEASE_US,
  SECOND_US,
  START_US,
} from '../../../test/queue-transitions.js'
import { nextId, present, timeOf } from './queue-state.js'

const idsOf = (reply: { jobs: readonly { id: string }[] }) => reply.jobs.map(({ id }) => id)

describe('time and ids of a job queue', () => {
  it('ids of jobs are times with 16 digits, and differ within one microsecond', () => {
    const { add, state } = createTestQueue()
    const ids = idsOf(add([{}, {}, {}]).reply)
    expect(ids).toEqual([START_US, START_US + 1, START_US + 2].map(String))
    state.last = 0
    expect(nextId(state, 12)).toBe('0000000000000012')
  })

  it('time of a queue never goes back, and continues after a large step of the clock', () => {
    const { state } = createTestQueue()
    expect(present(state, START_US)).toBe(START_US)
    // Slightly behind: the queue waits until the clock has caught up.
    expect(present(state, START_US - 5 * SECOND_US)).toBe(START_US)
    expect(timeOf(state, START_US + 1)).toBe(START_US + 1)
    // Set back by more: the queue stays ahead by the difference.
    expect(present(state, START_US - 5 * SECOND_US - 1)).toBe(START_US)
    expect(present(state, START_US - 1)).toBe(START_US + 5 * SECOND_US)
    expect(present(state, START_US)).toBe(START_US + 5 * SECOND_US + 1)
    // A second step is measured from the time of the queue.
    expect(present(state, START_US - HOUR_US)).toBe(START_US + 5 * SECOND_US + 1)
    expect(present(state, START_US - HOUR_US + 7)).toBe(START_US + 5 * SECOND_US + 8)
  })
})

describe('order of a job queue', () => {
  it('each job of a tenant waits behind the position that the queue has reached in its priority', () => {
    const { add, reserve } = createTestQueue()
    add(Array.from({ length: 6 }, () => ({ tenant: 'big' })))
    reserve('w', { wanted: 3 })
    const [small] = idsOf(add([{ tenant: 'small' }, { tenant: 'small' }]).reply)
    const names = reserve('w', { wanted: 3 }).reply.jobs.map(({ tenant }) => tenant)
    expect(names).toEqual(['big', 'small', 'big'])
    expect(reserve('w', { wanted: 0 }).reply.jobs).toEqual([])
    expect(small).toBeDefined()
  })

  it('tenants of one priority do not move the position of another priority', () => {
    const { add, reserve, state } = createTestQueue()
    add([{ tenant: 'a' }, { tenant: 'a' }, { tenant: 'a', priority: 2 }])
    expect([...state.tags]).toEqual([
      ['1:a', 2],
      ['2:a', 1],
    ])
    reserve('w', { wanted: 1 })
    expect(state.reached).toEqual([0, 1, 0, 0])
  })

  it('tenant whose jobs have all ended leaves no entry behind', () => {
    const { add, reserve, finish, state } = createTestQueue()
    const jobs = [{ tenant: 'a' }, { tenant: 'a', priority: 3 }, { tenant: '' }]
    add([...jobs, { tenant: 'a', priority: 0 }, { tenant: 'a' }])
    const reserved = reserve('w', { wanted: 5 }).reply.jobs
    expect(reserved).toHaveLength(5)
    expect([...state.open]).toEqual([['a', 4]])
    for (const [index, job] of reserved.entries()) {
      expect(state.open.get('a')).toBe(
        reserved.slice(index).filter(({ tenant }) => tenant !== '').length,
      )
      finish([job])
    }
    expect([...state.open.keys()]).toEqual([])
    expect([...state.tags.keys()].filter((key) => key.endsWith(':a'))).toEqual([])
    expect([...state.depths.keys()]).toEqual([])
  })

  it('tenant whose waiting jobs were all cancelled leaves no entry behind', () => {
    const { add, cancel, state } = createTestQueue()
    const jobs = [0, 1, 2, 3].map((priority) => ({ tenant: 'a', priority }))
    for (const id of idsOf(add(jobs).reply)) cancel(id)
    expect([state.open.size, state.tags.size, state.depths.size]).toEqual([0, 0, 0])
  })

  it('jobs without a tenant stay in order when one of them ends', () => {
    const { add, reserve, finish } = createTestQueue()
    const before = idsOf(add([{}, {}, {}]).reply)
    finish(reserve('w').reply.jobs)
    const after = idsOf(add([{}]).reply)
    const { jobs } = reserve('w', { wanted: 3 }).reply
    expect(idsOf({ jobs })).toEqual([...before.slice(1), ...after])
  })

  it('job that returns to its position does not set back the position of the queue', () => {
    const { add, reserve, finish, state } = createTestQueue()
    add([{}, {}, {}])
    const { jobs } = reserve('w', { wanted: 3 }).reply
    finish([{ ...jobs[0]!, kind: 'returned' }])
    reserve('w')
    expect(state.reached[1]).toBe(3)
  })

  it('last tag of a tenant is kept while one of its jobs waits', () => {
    const { add, reserve, state } = createTestQueue()
    add([{ tenant: 'a' }, { tenant: 'a' }])
    reserve('w')
    expect(state.tags.get('1:a')).toBe(2)
    reserve('w')
    expect(state.tags.has('1:a')).toBe(false)
  })
})

describe('ended jobs of a job queue', () => {
  it('job without a time for its result is forgotten at once, with its key', () => {
    const { add, reserve, finish, read, state } = createTestQueue()
    const [id = ''] = idsOf(add([{ key: 'k' }]).reply)
    reserve('w')
    finish([{ id, turn: 1, text: '1' }], { resultUs: 0 })
    expect(read(id)).toBeUndefined()
    expect([state.data.size, state.texts.size, state.keys.size, state.ends.size]).toEqual([
      0, 0, 0, 0,
    ])
  })

  it('forgotten job leaves nothing behind, neither its result nor its dead letter', () => {
    const { add, reserve, finish, pass, state } = createTestQueue()
    const [one = '', two = ''] = idsOf(add([{ key: 'k' }, {}]).reply)
    reserve('w', { wanted: 2 })
    finish([
      { id: one, turn: 1, text: 'fine' },
      { id: two, turn: 1, kind: 'dead', text: 'broken' },
    ])
    expect(state.texts.size).toBe(2)
    pass(HOUR_US - 1)
    reserve('w')
    expect(state.jobs.size).toBe(2)
    pass(1)
    reserve('w')
    for (const map of [state.jobs, state.data, state.texts, state.keys, state.ends, state.dead]) {
      expect(map.size).toBe(0)
    }
  })

  it('job that ends without a text loses the text of an earlier attempt', () => {
    const { add, reserve, finish, read, state } = createTestQueue()
    const [id = ''] = idsOf(add([{}]).reply)
    reserve('w')
    finish([{ id, turn: 1, kind: 'failed', text: 'boom' }])
    expect(read(id)?.text).toBe('boom')
    reserve('w')
    finish([{ id, turn: 2 }])
    expect(read(id)?.text).toBe('')
    expect(state.texts.has(id)).toBe(false)
  })

  it.each([
    ['adding 2 jobs', 16 + 4],
    ['reserving 2 jobs', 16 + 4],
    ['finishing 2 jobs', 4],
  ])('%s forgets at most %d ended jobs', (what, most) => {
    const { add, reserve, finish, pass, state } = createTestQueue()
    add(Array.from({ length: 50 }, () => ({})))
    const { jobs } = reserve('w', { wanted: 50 }).reply
    finish(jobs)
    pass(HOUR_US)
    const unknown = { id: 'unknown', turn: 1 }
    if (what.startsWith('adding')) add([{}, {}])
    else if (what.startsWith('reserving')) reserve('w', { wanted: 2 })
    else finish([unknown, unknown])
    expect(state.ends.size).toBe(50 - most)
  })
})

describe('jobs that come back to a job queue', () => {
  it('at most 256 delayed jobs and 256 expired leases come back at once', () => {
    const { add, reserve, pass, counts } = createTestQueue()
    add(Array.from({ length: 300 }, () => ({})))
    reserve('w', { wanted: 300 })
    add(Array.from({ length: 300 }, () => ({ delayUs: SECOND_US })))
    pass(LEASE_US)
    reserve('w', { wanted: 0 })
    expect(counts()).toMatchObject({ waiting: 512, delayed: 44, active: 44, expiredLeases: 256 })
  })

  it('delayed job waits from the exact microsecond of its time, a lease ends in that of its end', () => {
    const { add, reserve, pass, counts } = createTestQueue()
    add([{ attempts: 3 }])
    reserve('w')
    add([{ delayUs: LEASE_US }])
    pass(LEASE_US - 1)
    reserve('w', { wanted: 0 })
    expect(counts()).toMatchObject({ waiting: 0, delayed: 1, active: 1 })
    pass(1)
    reserve('w', { wanted: 0 })
    expect(counts()).toMatchObject({ waiting: 2, delayed: 0, active: 0 })
  })

  it('cancelled job whose lease expires has no text', () => {
    const { add, reserve, cancel, pass, read } = createTestQueue()
    const [id = ''] = idsOf(add([{}]).reply)
    reserve('w')
    cancel(id)
    pass(LEASE_US)
    reserve('w')
    expect(read(id)).toMatchObject({ state: 'cancelled', text: '' })
  })

  it('lease of the last attempt that expires makes a dead letter with its reason', () => {
    const { add, reserve, pass, dead, counts } = createTestQueue()
    add([{ attempts: 1 }])
    reserve('w')
    pass(LEASE_US)
    reserve('w')
    expect(dead()).toMatchObject([
      { text: 'the lease expired before the worker reported a result' },
    ])
    expect(counts()).toMatchObject({ active: 0, dead: 1, done: 0, expiredLeases: 1 })
  })
})

describe('views of a job', () => {
  it('view of a job has everything that its producer set, and its age', () => {
    const { add, pass, read } = createTestQueue()
    const given = { data: '{"a":1}', priority: 3, tenant: 'acme', key: 'k', attempts: 4 }
    const [id = ''] = idsOf(add([given]).reply)
    pass(7)
    expect(read(id)).toEqual({
      ...{ ...given, id, state: 'waiting', attempt: 0, ageUs: 7, progress: '', text: '' },
    })
    expect(read('unknown')).toBeUndefined()
  })

  it('reserved job has its turn, what is left of its deadline and its age', () => {
    const { add, pass, reserve } = createTestQueue()
    const given = { data: '{"a":1}', priority: 3, tenant: 'acme', key: 'k', attempts: 4 }
    const [id = ''] = idsOf(add([{ ...given, deadlineUs: SECOND_US }]).reply)
    pass(7)
    expect(reserve('w').reply.jobs).toEqual([
      {
        ...given,
        id,
        turn: 1,
        attempt: 1,
        uncounted: 0,
        ageUs: 7,
        leftUs: SECOND_US - 7,
        costs: [],
      },
    ])
    const [endless = ''] = idsOf(add([{}]).reply)
    expect(reserve('w').reply.jobs).toMatchObject([{ id: endless, leftUs: 0 }])
  })

  it.each([
    ['waiting', 0],
    ['delayed', 1],
    ['active', 2],
    ['done', 3],
    ['dead', 4],
    ['cancelled', 5],
  ])('job in state %s is shown as such', (name, number) => {
    const { add, reserve, finish, cancel, read, state } = createTestQueue()
    const [id = ''] = idsOf(add([{ delayUs: name === 'delayed' ? 5 : 0 }]).reply)
    if (['active', 'done', 'dead'].includes(name)) reserve('w')
    if (name === 'done' || name === 'dead') finish([{ id, turn: 1, kind: name }])
    if (name === 'cancelled') cancel(id)
    expect(read(id)?.state).toBe(name)
    expect(state.jobs.get(id)?.state).toBe(number)
  })
})
