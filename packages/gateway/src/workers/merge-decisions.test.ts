import type { Decision, DecisionPage } from '@spillway/dashboard'
import { describe, expect, it } from 'vitest'
import { mergeDecisions } from './merge-decisions.js'

const decision = (pod: string, id: number, at: number, tookMs = 0) =>
  ({ pod, id, at, tookMs }) as Decision

/** A worker that answers with this page, and the cursors it received. */
function worker(slot: number, page: DecisionPage | Error) {
  const calls: unknown[] = []
  const call = async (name: string, argument: object) => {
    calls.push([name, argument])
    if (page instanceof Error) throw page
    return page
  }
  return { slot, calls, channel: { call } as never }
}

describe('decisions of all workers', () => {
  it('decisions of several workers are merged by the time they ended, the newest first', async () => {
    const one = worker(1, {
      cursor: 'a.3.3',
      seen: 2,
      records: [decision('a', 1, 10), decision('a', 2, 5, 100)],
    })
    const two = worker(2, {
      cursor: 'b.9.40',
      seen: 33,
      records: [decision('b', 7, 20), decision('b', 8, 30)],
    })
    const { cursors, seen, records } = await mergeDecisions([one, two], { 2: 'b.7.7' })
    expect(records.map(({ pod, id }) => `${pod}${id}`)).toEqual(['a2', 'b8', 'b7', 'a1'])
    expect(seen).toBe(35)
    expect(cursors).toEqual({ 1: 'a.3.3', 2: 'b.9.40' })
    expect(one.calls).toEqual([['decisions', { cursor: undefined }]])
    expect(two.calls).toEqual([['decisions', { cursor: 'b.7.7' }]])
  })

  it('a worker that does not answer keeps its cursor and does not hold back the others', async () => {
    const silent = worker(1, new Error('no answer'))
    const two = worker(2, { cursor: 'b.2.2', seen: 1, records: [decision('b', 1, 1)] })
    const merged = await mergeDecisions([silent, two], { 1: 'a.5.5', 3: 'gone.1.1' })
    expect(merged.records).toHaveLength(1)
    expect(merged.cursors).toEqual({ 1: 'a.5.5', 2: 'b.2.2' })
  })

  it('at most the 200 newest decisions are returned at once', async () => {
    const many = (pod: string, from: number) =>
      Array.from({ length: 150 }, (_, index) => decision(pod, index, from + index))
    const pages = ['a', 'b'].map((pod, index) => ({
      cursor: `${pod}.1.1`,
      seen: 150,
      records: many(pod, index * 1_000),
    }))
    const workers = pages.map((page, index) => worker(index + 1, page))
    const { records } = await mergeDecisions(workers, {})
    expect(records).toHaveLength(200)
    expect(records[0]).toMatchObject({ pod: 'b', id: 149 })
    expect(records.at(-1)).toMatchObject({ pod: 'a', id: 100 })
  })
})
