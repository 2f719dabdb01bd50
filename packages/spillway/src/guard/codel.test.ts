import { describe, expect, it } from 'vitest'
import { CoDel } from './codel.js'

/** Looks every 10 ms at a queue whose oldest entry has waited so long, and notes when one was let go. */
function dropsBetween(codel: CoDel, fromMs: number, toMs: number, waitMs: number): number[] {
  const drops: number[] = []
  for (let nowMs = fromMs; nowMs < toMs; nowMs += 10) {
    codel.look(nowMs, waitMs)
    while (codel.drop(nowMs)) drops.push(nowMs)
  }
  return drops
}

describe('controlled delay', () => {
  it('does not mistake a burst for a standing queue', () => {
    const codel = new CoDel(100)
    expect(dropsBetween(codel, 0, 100, 5_000)).toEqual([])
    codel.look(100, 99)
    expect(codel.standing).toBe(false)
    // Over the target again, the interval begins anew.
    expect(dropsBetween(codel, 110, 210, 5_000)).toEqual([])
    codel.look(210, 5_000)
    expect(codel.standing).toBe(true)
  })

  it('lets nobody go while the wait is under the target, for however long', () => {
    expect(dropsBetween(new CoDel(100), 0, 60_000, 99)).toEqual([])
  })

  it('lets go faster and faster while the queue stands', () => {
    const codel = new CoDel(100)
    const drops = dropsBetween(codel, 0, 1_100, 100)
    expect(drops[0]).toBe(100)
    // One interval, then an interval divided by the root of how many went already.
    expect(drops.slice(0, 4)).toEqual([100, 200, 280, 330])
    const gaps = drops.slice(1).map((atMs, index) => atMs - drops[index]!)
    expect(gaps.at(-1)).toBeLessThan(gaps[0]! / 2)
  })

  it('stops at once when the wait is back under the target, and begins slowly the next time', () => {
    const codel = new CoDel(100)
    dropsBetween(codel, 0, 2_000, 500)
    codel.look(2_000, 50)
    expect(codel.standing).toBe(false)
    expect(codel.drop(2_000)).toBe(false)
    expect(dropsBetween(codel, 2_010, 2_300, 500)).toEqual([2_110, 2_210, 2_290])
  })

  it('has nothing to say about an empty queue', () => {
    const codel = new CoDel(100)
    dropsBetween(codel, 0, 500, 500)
    codel.look(500, Number.NEGATIVE_INFINITY)
    expect(codel.standing).toBe(false)
  })
})
