import { describe, expect, it } from 'vitest'
import type { LevelCharge } from '../port.js'
import { type ChargeLog, LevelWindow } from './sliding-window.js'

const START_US = 1_800_000_000_000_000
const MINUTE_US = 60_000_000

/** A window of one minute, kept between operations. */
function setup(limit: number) {
  const level: LevelCharge = {
    ...{ key: 'u', limit, windowUs: MINUTE_US, burst: limit },
    algorithm: 'sliding-window',
  }
  let stored: ChargeLog | undefined
  let keptUntilUs = 0
  const store = {
    get: () => stored,
    set(_: string, log: ChargeLog, untilUs: number) {
      stored = [...log]
      keptUntilUs = untilUs
    },
  }
  const at = (afterUs: number) => new LevelWindow(level, stored, START_US + afterUs)
  return {
    at,
    charge(afterUs: number, cost: number) {
      const window = at(afterUs)
      window.charge(cost)
      window.save(store)
    },
    refund(afterUs: number, cost: number, chargedAfterUs: number) {
      const window = at(afterUs)
      window.refund(cost, START_US + chargedAfterUs)
      window.save(store)
      return window.remaining
    },
    /** Times since the start and units. */
    log: () => stored?.map((value, index) => (index % 2 === 0 ? value - START_US : value)),
    keptForUs: () => keptUntilUs - START_US,
  }
}

describe('sliding window of a user limit', () => {
  it('unused sliding window has its whole limit left and nothing to wait for', () => {
    const window = setup(5).at(0)
    expect([window.remaining, window.resetUs, window.waitUs(5), window.rebased]).toEqual([
      ...[5, 0, 0, false],
    ])
  })

  it('sliding window waits until enough of the oldest charges have left it', () => {
    const { at, charge } = setup(5)
    charge(0, 2)
    charge(10, 1)
    charge(20, 2)
    const window = at(30)
    expect(window.remaining).toBe(0)
    expect([1, 2, 3, 4, 5].map((cost) => window.waitUs(cost) + 30 - MINUTE_US)).toEqual([
      ...[0, 0, 10, 20, 20],
    ])
    expect(window.resetUs).toBe(MINUTE_US - 10)
  })

  it('charge counts until exactly one window after it', () => {
    const { at, charge } = setup(5)
    charge(0, 5)
    expect(at(MINUTE_US - 1).remaining).toBe(0)
    expect(at(MINUTE_US).remaining).toBe(5)
  })

  it('cost above the limit of a sliding window takes all of it and needs all of it', () => {
    const { at, charge } = setup(5)
    expect(at(0).waitUs(100)).toBe(0)
    charge(0, 100)
    expect(at(0).remaining).toBe(0)
    expect(at(0).waitUs(100)).toBe(MINUTE_US)
    expect(at(MINUTE_US).waitUs(100)).toBe(0)
  })

  it('sliding window that holds more than a lowered limit has nothing left, not less', () => {
    const { charge, log } = setup(5)
    charge(0, 5)
    const lowered = { key: 'u', limit: 3, windowUs: MINUTE_US, burst: 3 }
    const stored = log()?.map((value, index) => (index % 2 === 0 ? value + START_US : value))
    const window = new LevelWindow(lowered, stored, START_US)
    expect(window.remaining).toBe(0)
    expect(window.waitUs(1)).toBe(MINUTE_US)
  })

  it('limit of 60 keeps every charge of its own, and charges of one moment share an entry', () => {
    const { charge, log } = setup(60)
    charge(0, 1)
    charge(0, 2)
    charge(1, 3)
    expect(log()).toEqual([0, 3, 1, 3])
  })

  it('limit of 61 keeps charges of one second together, at the time of the last of them', () => {
    const { charge, log } = setup(61)
    charge(0, 1)
    charge(999_999, 2)
    charge(1_000_000, 3)
    expect(log()).toEqual([999_999, 3, 1_000_000, 3])
  })

  it('log of a sliding window is kept until its newest charge leaves the window', () => {
    const { charge, keptForUs } = setup(5)
    charge(0, 1)
    expect(keptForUs()).toBe(MINUTE_US)
    charge(40, 1)
    expect(keptForUs()).toBe(MINUTE_US + 40)
  })
})

describe('refunds of a sliding window', () => {
  it('refund takes units from the charge of its own moment', () => {
    const { charge, refund, log } = setup(9)
    charge(0, 3)
    charge(10, 3)
    charge(20, 3)
    expect(refund(30, 2, 10)).toBe(2)
    expect(log()).toEqual([0, 3, 10, 1, 20, 3])
  })

  it('refund takes units that its moment no longer has from earlier charges, and none from later ones', () => {
    const { charge, refund, log } = setup(9)
    charge(0, 3)
    charge(10, 2)
    charge(20, 3)
    expect(refund(30, 4, 10)).toBe(5)
    expect(log()).toEqual([0, 1, 20, 3])
    expect(refund(30, 4, 10)).toBe(6)
    expect(log()).toEqual([20, 3])
    expect(refund(30, 4, 10)).toBe(6)
    expect(log()).toEqual([20, 3])
  })

  it('refund of more than the limit returns no more than the limit', () => {
    const { charge, refund, log } = setup(5)
    charge(0, 5)
    expect(refund(10, 100, 0)).toBe(5)
    expect(log()).toEqual([])
  })

  it('refund finds the shared entry of its second in a large window', () => {
    const { charge, refund, log } = setup(100)
    charge(100, 1)
    charge(900_000, 5)
    charge(1_000_000, 7)
    refund(1_000_001, 4, 100)
    expect(log()).toEqual([900_000, 2, 1_000_000, 7])
  })
})

describe('sliding window after the clock was set back', () => {
  it('charges count as made now if the clock was set back by more than five seconds', () => {
    const { at, charge } = setup(5)
    charge(0, 1)
    charge(20_000_000, 3)
    const window = at(14_999_999)
    expect(window.rebased).toBe(true)
    expect(window.remaining).toBe(1)
    expect(window.resetUs).toBe(MINUTE_US)
    expect(window.log).toEqual([START_US, 1, START_US + 14_999_999, 3])
  })

  it('charges keep their time if the clock is at most five seconds behind', () => {
    const { at, charge } = setup(5)
    charge(0, 1)
    charge(20_000_000, 3)
    const window = at(15_000_000)
    expect(window.rebased).toBe(false)
    expect(window.resetUs).toBe(MINUTE_US + 5_000_000)
    window.charge(1)
    expect(window.log).toEqual([START_US, 1, START_US + 20_000_000, 4])
  })
})
