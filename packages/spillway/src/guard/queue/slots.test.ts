import { describe, expect, it } from 'vitest'
import { tokenBucket } from '../../local/rate-limiter/token-bucket.js'
import { Slots } from './slots.js'

describe('Slots', () => {
  it('a slot is free, then reserved, then in use until its call ends', () => {
    const slots = new Slots(3, undefined)
    slots.reserve(2)
    expect(slots.free(0)).toBe(1)
    slots.giveUp()
    slots.admit()
    expect(slots).toMatchObject({ active: 1, reserved: 0 })
    expect(slots.free(0)).toBe(2)
    slots.beat(0)
    slots.end()
    expect(slots.free(0)).toBe(3)
  })

  it('a pace token is spent only when a call really starts', () => {
    const slots = new Slots(10, tokenBucket(2, 1_000, 2))
    slots.reserve(2)
    expect(slots.free(0)).toBe(0)
    slots.giveUp()
    expect(slots.free(0)).toBe(1)
    slots.admit()
    // An admitted call counts before it has begun.
    expect(slots.free(0)).toBe(1)
    slots.skip()
    expect(slots.free(0)).toBe(2)
    expect(slots.active).toBe(0)
  })

  it('paceWaitMs() is the wait for the pace, or zero if slots are missing', () => {
    const slots = new Slots(2, tokenBucket(2, 1_000, 1))
    const start = () => {
      slots.reserve(1)
      slots.admit()
      slots.beat(0)
    }
    expect(slots.paceWaitMs(0)).toBe(0)
    start()
    expect(slots.paceWaitMs(0)).toBe(500)
    start()
    expect(slots.paceWaitMs(0)).toBe(0)
  })

  it('slots that are reserved or about to start count for the wait for the pace', () => {
    const slots = new Slots(3, tokenBucket(2, 1_000, 1))
    slots.reserve(1)
    expect(slots.paceWaitMs(0)).toBe(500)
    slots.admit()
    expect(slots.paceWaitMs(0)).toBe(500)
    slots.reserve(2)
    // All slots are taken, so a call waits for a slot and not for the pace.
    expect(slots.paceWaitMs(0)).toBe(0)
  })

  it('slots follow a limit that changes', () => {
    const slots = new Slots(1, undefined)
    slots.reserve(1)
    slots.admit()
    slots.limit = 3
    expect(slots.free(0)).toBe(2)
    slots.limit = 0
    expect(slots.free(0)).toBeLessThanOrEqual(0)
  })
})
