/** What a watch over the store goes by, without a store and without time. */
import { describe, expect, it } from 'vitest'
import { StoreFailure } from '../../store/store-failure.js'
import { Doubts } from './doubts.js'
import { PodShares } from './pod-shares.js'
import { StoreEpoch } from './store-epoch.js'

const lost = new StoreFailure('ambiguous', 'no answer')
const refused = new StoreFailure('not-sent', 'no connection')

describe('doubts about a store', () => {
  it('are none after one answer that did not come, if others did', () => {
    const doubts = new Doubts()
    doubts.heard(1_000)
    expect(doubts.failed(lost, 1_050)).toBe(false)
    expect(doubts.failed(lost, 1_060)).toBe(false)
    expect(doubts.failed(lost, 1_070)).toBe(true)
  })

  it('begin anew with every answer, but not with silence', () => {
    const doubts = new Doubts()
    doubts.heard(1_000)
    doubts.failed(lost, 1_010)
    doubts.failed(lost, 1_020)
    doubts.heard(1_030)
    expect(doubts.failed(lost, 1_040)).toBe(false)
    expect(doubts.failed(lost, 1_130)).toBe(true)
  })

  it('are certain where nothing could be sent', () => {
    const doubts = new Doubts()
    doubts.heard(1_000)
    expect(doubts.failed(refused, 1_000)).toBe(true)
  })

  it('grow with permits that come too late to be used: ten in a row, and for half a second', () => {
    const doubts = new Doubts()
    const late = (from: number, count: number) =>
      Array.from({ length: count }, (_, index) => doubts.permitted(true, from + index * 60))
    expect(late(0, 9)).not.toContain(true)
    expect(doubts.permitted(false, 600)).toBe(false)
    const again = late(1_000, 10)
    expect(again.slice(0, -1)).not.toContain(true)
    expect(again.at(-1)).toBe(true)
  })
})

describe('the epoch of a store', () => {
  const reply = { epoch: 'a', count: 1, lostUs: 0, nowUs: 0, pods: 1, joined: 1, rank: 0 }

  it('is another one only after one was known', () => {
    const epoch = new StoreEpoch()
    expect(epoch.isOther(reply)).toBe(false)
    expect(epoch.isOther(reply)).toBe(false)
    expect(epoch.isOther({ ...reply, epoch: 'b' })).toBe(true)
  })

  it('that has lost something is not trusted until a window is over since then', () => {
    const epoch = new StoreEpoch()
    expect(epoch.distrustMs(0)).toBeLessThanOrEqual(0)
    const loss = { ...reply, lostUs: 10_000_000, nowUs: 13_000_000 }
    expect(epoch.hasLost(loss, 60_000, 500)).toBe(true)
    expect(epoch.distrustMs(500)).toBe(57_000)
    expect(epoch.hasLost({ ...loss, nowUs: 80_000_000 }, 60_000, 900)).toBe(false)
  })
})

describe('shares among pods', () => {
  const reply = { epoch: '', count: 0, lostUs: 0, nowUs: 0, pods: 2, joined: 1, rank: 1 }

  it('are kept for those who are not heard of yet after a return, and only for a while', () => {
    const shares = new PodShares(1)
    shares.count({ ...reply, pods: 5, joined: 5 }, 0)
    shares.lost(true)
    shares.returned(1_000)
    shares.count(reply, 2_000)
    expect(shares).toMatchObject({ fleet: { pods: 5, rank: 1 }, missing: 4 })
    shares.count(reply, 6_001)
    expect(shares).toMatchObject({ fleet: { pods: 2 }, missing: 1 })
  })

  it('are not larger without a store than what was expected allows', () => {
    const shares = new PodShares(4)
    shares.count(reply, 0)
    shares.lost(true)
    expect(shares.fleet).toEqual({ pods: 4, rank: 1 })
  })
})
