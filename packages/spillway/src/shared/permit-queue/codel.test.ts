import { describe, expect, it } from 'vitest'
import { CoDel } from './codel.js'

/** Checks every 10 ms a queue whose oldest call has waited `waitMs`; returns the times of drops. */
function dropsBetween(codel: CoDel, fromMs: number, toMs: number, waitMs: number): number[] {
  const drops: number[] = []
  for (let nowMs = fromMs; nowMs < toMs; nowMs += 10) {
    codel.observe(nowMs, waitMs)
    while (codel.drop(nowMs)) drops.push(nowMs)
  }
  return drops
}

describe('CoDel', () => {
  it('CoDel does not take a burst for a standing queue', () => {
    const codel = new CoDel(100)
    expect(dropsBetween(codel, 0, 100, 5_000)).toEqual([])
    codel.observe(100, 99)
    expect(codel.standing).toBe(false)
    // Above the target again, a new interval begins.
    expect(dropsBetween(codel, 110, 210, 5_000)).toEqual([])
    codel.observe(210, 5_000)
    expect(codel.standing).toBe(true)
  })

  it('CoDel drops nothing while the wait is below the target', () => {
    expect(dropsBetween(new CoDel(100), 0, 60_000, 99)).toEqual([])
  })

  it('CoDel drops faster and faster while the queue stands', () => {
    const codel = new CoDel(100)
    const drops = dropsBetween(codel, 0, 1_100, 100)
    expect(drops[0]).toBe(100)
    // One interval, then the interval divided by the square root of the number of drops.
    expect(drops.slice(0, 4)).toEqual([100, 200, 280, 330])
    const gaps = drops.slice(1).map((atMs, index) => atMs - drops[index]!)
    expect(gaps.at(-1)).toBeLessThan(gaps[0]! / 2)
  })

  it('CoDel stops as soon as the wait is below the target and restarts slowly', () => {
    const codel = new CoDel(100)
    dropsBetween(codel, 0, 2_000, 500)
    codel.observe(2_000, 50)
    expect(codel.standing).toBe(false)
    expect(codel.drop(2_000)).toBe(false)
    expect(dropsBetween(codel, 2_010, 2_300, 500)).toEqual([2_110, 2_210, 2_290])
  })

  it('an empty queue is not standing', () => {
    const codel = new CoDel(100)
    dropsBetween(codel, 0, 500, 500)
    codel.observe(500, Number.NEGATIVE_INFINITY)
    expect(codel.standing).toBe(false)
  })

  it('CoDel measures a standing queue over its own interval, if it has one', () => {
    const codel = new CoDel(100, 300)
    codel.observe(0, 100)
    codel.observe(299, 100)
    expect(codel.standing).toBe(false)
    codel.observe(300, 100)
    expect(codel.standing).toBe(true)
    expect([codel.drop(300), codel.drop(599), codel.drop(600)]).toEqual([true, false, true])
  })

  it('CoDel drops nothing before the first observation', () => {
    expect(new CoDel(100).drop(1_000)).toBe(false)
  })
})
