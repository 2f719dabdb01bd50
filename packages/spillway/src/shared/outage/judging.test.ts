/** Rules by which the store is judged unreachable, without a store and without time. */
import { describe, expect, it } from 'vitest'
import { StoreFailure } from '../../store/store-failure.js'
import { Distrust } from './distrust.js'
import { PodShares } from './pod-shares.js'
import { StoreEpoch } from './store-epoch.js'

const lost = new StoreFailure('ambiguous', 'no answer')
const refused = new StoreFailure('not-sent', 'no connection')

describe('store failure detection', () => {
  it('one missing reply among others does not make the store unreachable', () => {
    const distrust = new Distrust()
    distrust.heard(1_000)
    expect(distrust.failed(lost, 1_050)).toBe(false)
    expect(distrust.failed(lost, 1_060)).toBe(false)
    expect(distrust.failed(lost, 1_070)).toBe(true)
  })

  it('every reply resets the failure count', () => {
    const distrust = new Distrust()
    distrust.heard(1_000)
    distrust.failed(lost, 1_010)
    distrust.failed(lost, 1_020)
    distrust.heard(1_030)
    expect(distrust.failed(lost, 1_040)).toBe(false)
    expect(distrust.failed(lost, 1_130)).toBe(true)
  })

  it('a command that could not be sent makes the store unreachable at once', () => {
    const distrust = new Distrust()
    distrust.heard(1_000)
    expect(distrust.failed(refused, 1_000)).toBe(true)
  })

  it('ten late permits in a row over half a second make the store unreachable', () => {
    const distrust = new Distrust()
    const late = (from: number, count: number) =>
      Array.from({ length: count }, (_, index) => distrust.permitted(true, from + index * 60))
    expect(late(0, 9)).not.toContain(true)
    expect(distrust.permitted(false, 600)).toBe(false)
    const again = late(1_000, 10)
    expect(again.slice(0, -1)).not.toContain(true)
    expect(again.at(-1)).toBe(true)
  })
})

describe('store epoch', () => {
  const reply = { epoch: 'a', count: 1, lostUs: 0, nowUs: 0, pods: 1, joined: 1, rank: 0 }

  it('an epoch counts as different only after another one was known', () => {
    const epoch = new StoreEpoch()
    expect(epoch.isOther(reply)).toBe(false)
    expect(epoch.isOther(reply)).toBe(false)
    expect(epoch.isOther({ ...reply, epoch: 'b' })).toBe(true)
  })

  it('a store that lost data is distrusted until one window has passed', () => {
    const epoch = new StoreEpoch()
    expect(epoch.distrustMs(0)).toBeLessThanOrEqual(0)
    const loss = { ...reply, lostUs: 10_000_000, nowUs: 13_000_000 }
    expect(epoch.hasLost(loss, 60_000, 500)).toBe(true)
    expect(epoch.distrustMs(500)).toBe(57_000)
    expect(epoch.hasLost({ ...loss, nowUs: 80_000_000 }, 60_000, 900)).toBe(false)
  })
})

describe('pod shares', () => {
  const reply = { epoch: '', count: 0, lostUs: 0, nowUs: 0, pods: 2, joined: 1, rank: 1 }

  it('shares of pods that have not reported after an outage are reserved for five seconds', () => {
    const shares = new PodShares(1)
    shares.count({ ...reply, pods: 5, joined: 5 }, 0)
    shares.lost(true)
    shares.returned(1_000)
    shares.count(reply, 2_000)
    expect(shares).toMatchObject({ fleet: { pods: 5, rank: 1 }, missing: 4 })
    shares.count(reply, 6_001)
    expect(shares).toMatchObject({ fleet: { pods: 2 }, missing: 1 })
  })

  it('without a store a share is at most that of the expected number of pods', () => {
    const shares = new PodShares(4)
    shares.count(reply, 0)
    shares.lost(true)
    expect(shares.fleet).toEqual({ pods: 4, rank: 1 })
  })
})
