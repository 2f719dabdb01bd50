import { describe, expect, it } from 'vitest'
import { Durations } from '../../../spillway/src/core/collections/histogram.js'
import { HistoryOf } from '../../src/feed/history.js'
import { RecentPercentiles } from '../../src/feed/percentiles.js'

const COLUMNS = { calls: 'mean', waiting: 'max' } as const
const START = 1_900_000_000_000

function fill(seconds: number, from = START, history = new HistoryOf(COLUMNS)) {
  for (let second = 0; second < seconds; second++) {
    history.add(from + second * 1_000, { calls: second % 10, waiting: second })
  }
  return history
}

describe('dashboard history', () => {
  it('history keeps five minutes by the second and sixty minutes in steps of ten seconds', () => {
    const [coarse, fine] = fill(4_000).since(0, 'openai')
    expect(fine).toMatchObject({ guard: 'openai', stepMs: 1_000, fromAt: START + 3_700_000 })
    expect(fine?.columns.waiting).toEqual(Array.from({ length: 300 }, (_, index) => 3_700 + index))
    expect(coarse).toMatchObject({ stepMs: 10_000, fromAt: START + 400_000 })
    expect(coarse?.columns.waiting?.slice(0, 2)).toEqual([409, 419])
    expect(new Set(coarse?.columns.calls)).toEqual(new Set([4.5]))
  })

  it('history returns null for seconds without data', () => {
    const history = fill(3)
    history.add(START + 5_000, { calls: 7 })
    const [, fine] = history.since(0)
    expect(fine?.columns).toEqual({
      calls: [0, 1, 2, null, null, 7],
      waiting: [0, 1, 2, null, null, null],
    })
  })

  it('history can be read from a given time on', () => {
    const [coarse, fine] = fill(100).since(START + 95_500)
    expect(fine).toMatchObject({
      fromAt: START + 95_000,
      columns: { waiting: [95, 96, 97, 98, 99] },
    })
    expect(coarse).toMatchObject({ fromAt: START + 90_000, columns: { waiting: [99] } })
    expect(fill(10).since(START + 60_000)).toEqual([])
  })

  it('history survives a clock that is set back or far ahead', () => {
    const history = fill(20)
    fill(5, START - 3_600_000, history)
    expect(history.since(0).at(-1)?.columns.waiting).toEqual([0, 1, 2, 3, 4])
    fill(2, START + 864_000_000, history)
    const [, fine] = history.since(0)
    expect(fine?.columns.waiting?.slice(-3)).toEqual([null, 0, 1])
  })
})

describe('recent percentiles', () => {
  it('percentiles cover the last ten seconds, exact to the width of a bucket', () => {
    const durations = new Durations()
    const recent = new RecentPercentiles()
    expect(recent.sample([durations])).toBeUndefined()
    for (let each = 0; each < 99; each++) durations.add(0.03)
    durations.add(4)
    const found = recent.sample([durations])
    expect(found).toMatchObject({ count: 100 })
    expect(found?.p50Ms).toBeGreaterThan(25)
    expect(found?.p99Ms).toBeLessThanOrEqual(50)
    for (let second = 0; second < 9; second++) recent.sample([durations])
    expect(recent.sample([durations])).toBeUndefined()
    durations.add(4)
    expect(recent.sample([durations])?.p50Ms).toBeGreaterThan(2_500)
  })
})
