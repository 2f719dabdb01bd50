import { describe, expect, it } from 'vitest'
import { createTestQueue, SECOND_US, START_US } from '../../../test/queue-transitions.js'

describe('jobs that are added', () => {
  it('added job has everything that its producer set, and no attempts yet', () => {
    const { add, state } = createTestQueue()
    const given = { priority: 3, tenant: 'acme', key: 'k', attempts: 4, cost: { tokens: 9 } }
    const made = add([{ ...given, data: '{"a":1}', deadlineUs: SECOND_US, delayUs: 5 }, {}])
    const [id = '', plain = ''] = made.reply.jobs.map((each) => each.id)
    const none = { attempt: 0, turn: 0, uncounted: 0, progress: '', cancel: false }
    expect(state.jobs.get(id)).toEqual({
      ...{ ...given, ...none, state: 1, tag: 0, readyUs: 0, deadlineUs: START_US + SECOND_US },
    })
    expect(state.delayed.score(id)).toBe(START_US + 5)
    expect([state.data.get(id), [...state.keys]]).toEqual(['{"a":1}', [['k', id]]])
    expect(state.jobs.get(plain)).toMatchObject({
      state: 0,
      tag: 1,
      readyUs: START_US,
      deadlineUs: 0,
    })
    expect(made.reply).toEqual({
      jobs: [
        { id, fresh: true },
        { id: plain, fresh: true },
      ],
      size: 2,
    })
  })

  it('job with a known key is not added again, and the ones after it are', () => {
    const { add, counts } = createTestQueue()
    const [first] = add([{ key: 'k' }]).reply.jobs
    const { reply } = add([{ key: 'k' }, { key: 'other' }])
    expect(reply.jobs).toMatchObject([{ id: first?.id, fresh: false }, { fresh: true }])
    expect([reply.size, counts().waiting]).toEqual([2, 2])
  })

  it('jobs beyond the size of the queue are not added; running and delayed ones count', () => {
    const { add, reserve } = createTestQueue()
    add([{}, { delayUs: SECOND_US }, {}])
    reserve('w')
    expect(add([{}, {}], { maxSize: 4 }).reply).toMatchObject({ jobs: [{ fresh: true }], size: 4 })
    expect(add([{}], { maxSize: 4 }).reply).toEqual({ jobs: [], size: 4 })
  })

  it('jobs beyond the cap of a tenant are not added, and the reply has the size of that tenant', () => {
    const { add } = createTestQueue()
    const { reply } = add([{ tenant: 'a' }, { tenant: 'a' }, { tenant: 'a' }], { maxPerTenant: 2 })
    expect(reply).toMatchObject({ tenantSize: 2, size: 2 })
    expect(reply.jobs).toHaveLength(2)
    // Jobs without a tenant have no cap.
    expect(add([{}, {}, {}], { maxPerTenant: 2 }).reply.jobs).toHaveLength(3)
  })
})

describe('workers that an added job wakes', () => {
  it('each job wakes the worker that is parked longest, once', () => {
    const { add, reserve } = createTestQueue()
    reserve('first', { parkUs: SECOND_US })
    reserve('second', { parkUs: 2 * SECOND_US })
    expect(add([{}, {}, {}]).wakes).toEqual(['first', 'second'])
    expect(add([{}]).wakes).toEqual([])
  })

  it('worker whose parking time is over is not woken', () => {
    const { add, reserve, pass, state } = createTestQueue()
    reserve('gone', { parkUs: SECOND_US })
    reserve('here', { parkUs: SECOND_US + 1 })
    pass(SECOND_US)
    expect(add([{}]).wakes).toEqual(['here'])
    expect(state.parked.size).toBe(0)
  })

  it('no worker is woken while nothing can be handed out', () => {
    const { add, reserve, state } = createTestQueue()
    reserve('idle')
    state.blockedUs = state.t + 1
    expect(add([{}]).wakes).toEqual([])
    state.blockedUs = state.t
    expect(add([{}]).wakes).toEqual(['idle'])
  })

  it.each([
    ['before it is due', 9, []],
    ['when it is due', 10, []],
    ['only later', 11, ['idle']],
    ['never, because its time is now', 0, ['idle']],
    ['in one microsecond', 1, []],
  ])(
    'delayed job wakes a worker unless one looks in time; here one looks %s',
    (_, alarmUs, wakes) => {
      const { add, reserve, state } = createTestQueue()
      reserve('idle')
      state.alarmUs = state.t + alarmUs
      expect(add([{ delayUs: 10 }]).wakes).toEqual(wakes)
    },
  )
})
