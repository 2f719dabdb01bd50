import { describe, expect, it } from 'vitest'
import type { Decision } from '../wire'
import { DecisionLog, MOST_DECISIONS, NO_FILTER } from './decision-log'

function decision(id: number, changes: Partial<Decision> = {}): Decision {
  return {
    id,
    pod: 'alpha',
    at: id,
    guard: 'openai',
    lane: '',
    priority: 'normal',
    code: 'OK',
    stage: 'call',
    scope: 'local',
    tookMs: 1,
    attempts: 1,
    why: '',
    numbers: {},
    path: [],
    traced: true,
    ...changes,
  }
}

const ids = (list: readonly Decision[]) => list.map(({ id }) => id)

describe('DecisionLog of the page', () => {
  it('decision log shows the newest first', () => {
    const log = new DecisionLog()
    log.add([decision(1), decision(2)])
    log.add([decision(3)])
    expect(ids(log.newest(NO_FILTER))).toEqual([3, 2, 1])
  })

  it('decision log orders decisions of several pods by the time they ended', () => {
    const log = new DecisionLog()
    log.add([decision(10), decision(30), decision(5, { tookMs: 100 })])
    log.add([decision(20, { pod: 'beta' }), decision(40, { pod: 'beta' })])
    expect(ids(log.newest(NO_FILTER))).toEqual([5, 40, 30, 20, 10])
  })

  it('decision log never holds more than its maximum', () => {
    const log = new DecisionLog()
    for (let id = 0; id < MOST_DECISIONS + 500; id++) log.add([decision(id)])
    const list = log.newest(NO_FILTER)
    expect(list).toHaveLength(MOST_DECISIONS)
    expect(list[0]?.id).toBe(MOST_DECISIONS + 499)
    expect(list.at(-1)?.id).toBe(500)
  })

  it('decision log filters by user, vendor, stage and code at once', () => {
    const log = new DecisionLog()
    log.add([
      decision(1, { user: 'Ann', code: 'SHED', stage: 'shed' }),
      decision(2, { user: 'ann', code: 'CIRCUIT_OPEN', stage: 'breaker' }),
      decision(3, { user: 'bob', code: 'CIRCUIT_OPEN', stage: 'breaker' }),
      decision(4, { user: 'ann', code: 'CIRCUIT_OPEN', stage: 'breaker', guard: 'other' }),
      decision(5, { code: 'FAILED' }),
      decision(6, { code: 'DEGRADED', stage: 'fallback' }),
    ])
    expect(ids(log.newest({ ...NO_FILTER, code: 'DEGRADED' }))).toEqual([6])
    expect(ids(log.newest({ ...NO_FILTER, code: 'failed' }))).toEqual([5])
    expect(ids(log.newest({ ...NO_FILTER, user: 'AN' }))).toEqual([4, 2, 1])
    expect(ids(log.newest({ ...NO_FILTER, code: 'refused' }))).toEqual([4, 3, 2, 1])
    expect(
      ids(
        log.newest({
          ...NO_FILTER,
          user: 'ann',
          guard: 'openai',
          stage: 'breaker',
          code: 'CIRCUIT_OPEN',
        }),
      ),
    ).toEqual([2])
  })

  it('decision log finds decisions by a part of their request id', () => {
    const log = new DecisionLog()
    log.add([decision(1, { requestId: 'abc-1' }), decision(2), decision(3, { requestId: 'abd-1' })])
    expect(ids(log.newest({ ...NO_FILTER, request: 'abc' }))).toEqual([1])
    expect(ids(log.newest({ ...NO_FILTER, request: 'ab' }))).toEqual([3, 1])
    expect(ids(log.ofRequest('abd-1'))).toEqual([3])
    expect(log.ofRequest(undefined)).toEqual([])
  })
})
