/** Rules by which the store is judged unreachable, without a store and without time. */
import { describe, expect, it } from 'vitest'
import { StoreFailure } from '../../store/store-failure.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { Backoff } from './backoff.js'
import { Distrust } from './distrust.js'
import { PodShares } from './pod-shares.js'
import { isSharingOff } from './rules.js'
import { StoreEpoch } from './store-epoch.js'

const lost = new StoreFailure('ambiguous', 'no answer')
const refused = new StoreFailure('not-sent', 'no connection')

describe('store failure detection', () => {
  it('one missing reply among others does not make the store unreachable', () => {
    const distrust = new Distrust()
    distrust.replied(1_000)
    expect(distrust.failed(lost, 1_050)).toBe(false)
    expect(distrust.failed(lost, 1_060)).toBe(false)
    expect(distrust.failed(lost, 1_070)).toBe(true)
  })

  it('every reply resets the failure count', () => {
    const distrust = new Distrust()
    distrust.replied(1_000)
    distrust.failed(lost, 1_010)
    distrust.failed(lost, 1_020)
    distrust.replied(1_030)
    expect(distrust.failed(lost, 1_040)).toBe(false)
    expect(distrust.failed(lost, 1_130)).toBe(true)
  })

  it('a command that could not be sent makes the store unreachable at once', () => {
    const distrust = new Distrust()
    distrust.replied(1_000)
    expect(distrust.failed(refused, 1_000)).toBe(true)
  })

  it('silence of 90 ms makes the store unreachable with the first missing reply', () => {
    const distrust = new Distrust()
    distrust.replied(1_000)
    expect(distrust.silentMs(1_040)).toBe(40)
    expect(distrust.failed(lost, 1_089)).toBe(false)
    distrust.replied(2_000)
    expect(distrust.failed(lost, 2_090)).toBe(true)
  })

  it('an error of another kind counts as a missing reply', () => {
    const distrust = new Distrust()
    distrust.replied(1_000)
    expect(distrust.failed(new Error('bug'), 1_010)).toBe(false)
    expect(distrust.failed(new Error('bug'), 1_020)).toBe(false)
    expect(distrust.failed(new Error('bug'), 1_030)).toBe(true)
  })

  it('late permits count anew after they were taken for an outage', () => {
    const distrust = new Distrust()
    const late = () =>
      Array.from({ length: 10 }, (_, i) => distrust.permitted(true, 1_000 + i * 60))
    expect(late().at(-1)).toBe(true)
    distrust.forgetLate()
    expect(distrust.permitted(true, 2_000)).toBe(false)
    // Ten of them, but in less than half a second.
    const quick = Array.from({ length: 9 }, (_, i) => distrust.permitted(true, 2_010 + i * 10))
    expect(quick).not.toContain(true)
    expect(distrust.permitted(true, 2_500)).toBe(true)
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
    expect(epoch.hasLost(loss, 70_000_000, 500)).toBe(true)
    expect(epoch.distrustMs(500)).toBe(57_000)
    expect(epoch.hasLost({ ...loss, nowUs: 80_000_000 }, 70_000_000, 900)).toBe(false)
    // A window later to the microsecond.
    expect(epoch.hasLost({ ...loss, nowUs: 70_000_000 }, 60_000, 900)).toBe(false)
  })

  it('a store that lost nothing is trusted', () => {
    const epoch = new StoreEpoch()
    expect(epoch.hasLost({ ...reply, lostUs: 0, nowUs: 1_000_000 }, 60_000, 500)).toBe(false)
    expect(epoch.distrustMs(500)).toBeLessThanOrEqual(0)
  })

  it('a store that lost data is distrusted for at least two seconds, so that all pods notice', () => {
    const epoch = new StoreEpoch()
    expect(epoch.hasLost({ ...reply, lostUs: 1_000_000, nowUs: 1_500_000 }, 100, 0)).toBe(true)
    expect(epoch.distrustMs(0)).toBe(1_500)
  })

  it('the epoch and its count are those of the last reply', () => {
    const epoch = new StoreEpoch()
    epoch.isOther({ ...reply, epoch: 'b', count: 7 })
    expect([epoch.epoch, epoch.count]).toEqual(['b', 7])
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

describe('backoff of an unreachable store', () => {
  const setup = (random: () => number) => {
    const clock = createVirtualClock()
    const backoff = new Backoff(clock, random)
    return {
      clock,
      backoff,
      next: (count: number) => Array.from({ length: count }, () => backoff.nextMs()),
    }
  }

  it('the wait doubles from 50 ms to 800 ms, and half of it is random', () => {
    expect(setup(() => 1).next(6)).toEqual([50, 100, 200, 400, 800, 800])
    expect(setup(() => 0).next(6)).toEqual([25, 50, 100, 200, 400, 400])
  })

  it('the wait starts again at 50 ms only if the store answered for five seconds', async () => {
    const { clock, backoff, next } = setup(() => 1)
    backoff.lost()
    next(3)
    backoff.found()
    await clock.advance(4_999)
    backoff.lost()
    expect(next(1)).toEqual([400])
    backoff.found()
    await clock.advance(5_000)
    backoff.lost()
    expect(next(1)).toEqual([50])
  })
})

describe('SPILLWAY_SHARED', () => {
  it.each([
    [{}, false],
    [{ SPILLWAY_SHARED: '' }, false],
    [{ SPILLWAY_SHARED: 'on' }, false],
    [{ SPILLWAY_SHARED: 'off' }, true],
  ])('with the environment %j sharing is off: %s', (env, expected) => {
    expect(isSharingOff(env)).toBe(expected)
  })

  it('another value is an error with a suggestion', () => {
    expect(() => isSharingOff({ SPILLWAY_SHARED: 'OFF' })).toThrow(
      "SPILLWAY_SHARED: must be one of 'on', 'off', got \"OFF\"; did you mean 'off'?",
    )
    expect(() => isSharingOff({ SPILLWAY_SHARED: 'disabled' })).toThrow(/got "disabled"$/)
  })
})
