import { describe, expect, it } from 'vitest'
import { RecentDecisions } from '../../src/feed/recent-decisions.js'
import type { Decision } from '../../src/wire/decisions.js'

const decision = (id: number, pod = 'peer') => ({ id, pod, at: id, tookMs: 0 }) as Decision
const idsOf = (records: readonly Decision[]) => records.map(({ id }) => id)

describe('decisions of other processes', () => {
  it('a reader that comes later gets the last 100, and one that returns only the new ones', () => {
    const recent = new RecentDecisions()
    recent.add(
      Array.from({ length: 150 }, (_, index) => decision(index + 1)),
      10,
    )
    recent.add([decision(151)], 20)
    expect(idsOf(recent.since(0))).toEqual(Array.from({ length: 100 }, (_, index) => index + 52))
    expect(idsOf(recent.since(10))).toEqual([151])
  })

  it('a decision that arrives twice, from a worker and through the store, is kept once', () => {
    const recent = new RecentDecisions()
    expect(idsOf(recent.add([decision(1), decision(2)], 1))).toEqual([1, 2])
    expect(recent.add([decision(2), decision(2, 'other'), decision(3)], 2)).toEqual([
      decision(2, 'other'),
      decision(3),
    ])
    expect(recent.since(0)).toHaveLength(4)
  })
})
