import { describe, expect, it } from 'vitest'
import { createTestQueue, HOUR_US, SECOND_US } from '../../../test/queue-transitions.js'

const idsOf = (made: { reply: { jobs: readonly { id: string }[] } }) =>
  made.reply.jobs.map(({ id }) => id)

describe('commands to a job queue', () => {
  it('pause and resume report whether they changed something, and resume wakes a worker', () => {
    const { command, reserve, state, counts } = createTestQueue()
    reserve('idle')
    expect(command({ kind: 'resume' })).toEqual({ reply: false, wakes: [] })
    expect(command({ kind: 'pause' })).toEqual({ reply: true, wakes: [] })
    expect(command({ kind: 'pause' })).toEqual({ reply: false, wakes: [] })
    expect(counts().paused).toBe(true)
    state.blockedUs = state.t + 5
    expect(command({ kind: 'resume' })).toEqual({ reply: true, wakes: ['idle'] })
    expect([counts().paused, state.blockedUs]).toEqual([false, 0])
  })

  it('command about an unknown job changes nothing', () => {
    const { command, add } = createTestQueue()
    add([{}])
    for (const kind of ['cancel', 'replay', 'drop'] as const) {
      const given = { kind, id: 'unknown', keepUs: 1 }
      expect(command(given)).toEqual({ reply: false, wakes: [] })
    }
  })

  it('cancelled job that waits or is delayed ends at once and is kept for its time', () => {
    const { add, cancel, command, counts, read, pass, reserve } = createTestQueue()
    const [waiting = '', delayed = ''] = idsOf(add([{ tenant: 'a' }, { delayUs: SECOND_US }]))
    expect([cancel(waiting, 5), cancel(delayed, 5)]).toEqual([true, true])
    expect(counts(5)).toMatchObject({
      waiting: 0,
      delayed: 0,
      done: 2,
      dead: 0,
      tenants: { top: [] },
    })
    expect(read(waiting)).toMatchObject({ state: 'cancelled', text: '' })
    expect(cancel(waiting)).toBe(false)
    const [other = ''] = idsOf(add([{}]))
    expect(command({ kind: 'cancel', id: other, keepUs: 5 })).toEqual({ reply: true, wakes: [] })
    pass(5)
    reserve('w')
    expect(read(waiting)).toBeUndefined()
  })

  it('cancelled job that runs continues until its worker reports', () => {
    const { add, reserve, cancel, read, finish } = createTestQueue()
    const [id = ''] = idsOf(add([{}]))
    reserve('w')
    expect(cancel(id)).toBe(true)
    expect(read(id)?.state).toBe('active')
    expect(finish([{ id, turn: 1, kind: 'failed' }]).reply).toEqual(['cancelled'])
  })

  it('only dead letters can be dropped or replayed', () => {
    const { add, reserve, command, finish, counts } = createTestQueue()
    const [dead = '', done = '', waiting = ''] = idsOf(add([{}, {}, {}]))
    reserve('w', { wanted: 2 })
    finish([
      { id: dead, turn: 1, kind: 'dead' },
      { id: done, turn: 1 },
    ])
    for (const kind of ['drop', 'replay'] as const) {
      expect(command({ kind, id: done })).toEqual({ reply: false, wakes: [] })
      expect(command({ kind, id: waiting })).toEqual({ reply: false, wakes: [] })
    }
    expect(command({ kind: 'drop', id: dead })).toEqual({ reply: true, wakes: [] })
    expect(counts()).toMatchObject({ dead: 0, done: 1, waiting: 1 })
  })

  it('replayed dead letter waits behind the others, is counted for its tenant and starts anew', () => {
    const { add, reserve, finish, command, state, read } = createTestQueue()
    const [id = ''] = idsOf(add([{ tenant: 'a', deadlineUs: HOUR_US }]))
    reserve('w')
    finish([{ id, turn: 1, kind: 'dead', text: 'boom' }])
    expect(state.open.has('a')).toBe(false)
    const [other] = idsOf(add([{ tenant: 'a' }]))
    state.parked.set('idle', state.t + 1)
    expect(command({ kind: 'replay', id })).toEqual({ reply: true, wakes: ['idle'] })
    expect(state.open.get('a')).toBe(2)
    expect([state.dead.size, state.ends.size]).toEqual([0, 0])
    expect(read(id)).toMatchObject({ state: 'waiting', text: '', attempt: 0 })
    const { jobs } = reserve('w', { wanted: 2 }).reply
    expect(jobs.map((each) => each.id)).toEqual([other, id])
    expect(jobs[1]).toMatchObject({ attempt: 1, uncounted: 0, leftUs: 0 })
  })

  it('replayed dead letter wakes no worker while nothing can be handed out', () => {
    const { add, reserve, finish, command, state } = createTestQueue()
    const [id = ''] = idsOf(add([{}]))
    reserve('w')
    finish([{ id, turn: 1, kind: 'dead' }])
    reserve('idle')
    state.blockedUs = state.t + 1
    expect(command({ kind: 'replay', id })).toEqual({ reply: true, wakes: [] })
    const [again] = reserve('w').reply.jobs
    finish([{ ...again!, kind: 'dead' }])
    reserve('idle')
    state.blockedUs = state.t
    expect(command({ kind: 'replay', id })).toEqual({ reply: true, wakes: ['idle'] })
  })
})

describe('counts of a job queue', () => {
  it('counts show every state, the jobs by priority and the age of the oldest job that waits', () => {
    const { add, reserve, finish, pass, counts } = createTestQueue()
    add([{ priority: 0 }, { priority: 0 }, { priority: 0 }])
    const { jobs } = reserve('w', { wanted: 3 }).reply
    finish([jobs[0]!, { ...jobs[1]!, kind: 'dead' }])
    pass(7)
    add([{ priority: 2 }, { delayUs: SECOND_US }])
    pass(5)
    add([{ priority: 3 }, { priority: 3 }])
    pass(1)
    expect(counts()).toEqual({
      ...{ waiting: 3, byPriority: [0, 0, 1, 2], delayed: 1, active: 1, done: 1, dead: 1 },
      ...{ paused: false, oldestUs: 6, expiredLeases: 0 },
    })
  })

  it('counts by tenant show the tenants with the most waiting jobs and the number of others', () => {
    const { add, counts } = createTestQueue()
    const jobs = (tenant: string, count: number) =>
      Array.from({ length: count }, () => ({ tenant }))
    add([...jobs('a', 1), ...jobs('b', 3), ...jobs('c', 2)])
    expect(counts().tenants).toBeUndefined()
    expect(counts(2).tenants).toEqual({
      exact: true,
      others: 1,
      top: [
        { tenant: 'b', byPriority: [0, 3, 0, 0] },
        { tenant: 'c', byPriority: [0, 2, 0, 0] },
      ],
    })
  })

  it('dead letters are listed oldest first, from a position on', () => {
    const { add, reserve, finish, pass, dead } = createTestQueue()
    add([{}, {}, {}, {}])
    const { jobs } = reserve('w', { wanted: 4 }).reply
    for (const job of jobs.toReversed()) {
      pass(1)
      finish([{ ...job, kind: 'dead' }])
    }
    const ids = jobs.map(({ id }) => id).toReversed()
    expect(dead(0, 10).map(({ id }) => id)).toEqual(ids)
    expect(dead(1, 2).map(({ id }) => id)).toEqual(ids.slice(1, 3))
  })

  it('status of a job has its text unless it is a result', () => {
    const { add, reserve, finish, status } = createTestQueue()
    const [id = '', other = ''] = idsOf(add([{}, {}]))
    reserve('w', { wanted: 2 })
    expect(status(id)).toEqual({ state: 'active', attempt: 1, progress: '', text: '' })
    finish([
      { id, turn: 1, text: '42' },
      { id: other, turn: 1, kind: 'dead', text: 'boom' },
    ])
    expect(status(id)).toMatchObject({ state: 'done', text: '' })
    expect(status(other)).toMatchObject({ state: 'dead', text: 'boom' })
    expect(status('unknown')).toBeUndefined()
  })
})
