/** Pauses, settlements and overrides of a lane, at the edges of their rules. */
import { describe, expect, it } from 'vitest'
import type { LimitSpec } from '../limit-spec.js'
import type { FeedbackRequest } from '../port.js'
import { emptyGuard, emptyLane } from './lane-state.js'
import { takePermits } from './take-permits.js'
import { applyFeedback, changeLimits, pauseLane, readLimits, settlePermits } from './transitions.js'

const SECOND_US = 1_000_000

class Lane {
  nowUs = 1_000 * SECOND_US
  readonly lane = emptyLane()
  readonly guard = emptyGuard()
  readonly ref

  constructor(change: Partial<LimitSpec> = {}) {
    const spec: LimitSpec = {
      ...{ id: 'requests', algorithm: 'sliding-window', limit: 10, windowUs: 60 * SECOND_US },
      ...{ slices: 60, burst: 0, span: 'lane' },
      ...change,
    }
    this.ref = { guard: 'g', lane: 'a', limits: [spec], version: 0 }
  }

  take(calls: number, pod = 'p') {
    const costs = Array.from({ length: calls }, () => [1])
    const waiter = { pod, forUs: 3_600 * SECOND_US }
    return takePermits(this.lane, this.guard, { ...this.ref, costs, waiter }, this.nowUs).reply
  }

  settle(stamp: number, ...deltas: number[]) {
    const settlements = deltas.map((delta) => ({ limit: 0, stamp, delta }))
    return settlePermits(this.lane, this.guard, { ...this.ref, settlements }, this.nowUs)
  }

  feedback(change: Partial<FeedbackRequest>) {
    const pauses = { pauseUs: undefined, basePauseUs: SECOND_US, maxPauseUs: 60 * SECOND_US }
    const usual = { grantedUs: this.nowUs, throttled: true, left: [] }
    const request = { ...this.ref, ...usual, ...pauses, ...change }
    return applyFeedback(this.lane, this.guard, request, this.nowUs).reply
  }

  /** How long the vendor's next 429 without a duration pauses the lane, in seconds. */
  nextPause(): number {
    this.nowUs = Math.max(this.nowUs, this.lane.pausedUntilUs)
    return (this.feedback({}).pausedUntilUs - this.nowUs) / SECOND_US
  }

  override(forUs: number) {
    const override = { id: 'requests', limit: 5, forUs }
    changeLimits(this.lane, this.guard, { ...this.ref, override }, this.nowUs)
  }

  get figures() {
    return readLimits(this.lane, this.guard, this.ref, this.nowUs).limits[0]
  }
}

describe('replies of transitions', () => {
  it('a lane is not paused any more at the end of its pause', () => {
    const lane = new Lane()
    const { pausedUntilUs } = lane.feedback({ pauseUs: SECOND_US })
    expect(pausedUntilUs).toBe(lane.nowUs + SECOND_US)
    lane.nowUs = pausedUntilUs
    expect(lane.feedback({ throttled: false }).pausedUntilUs).toBe(0)
  })
})

describe('pauses after 429s without a duration', () => {
  it('each pause is twice as long as the pause before, and a success resets the length', () => {
    const lane = new Lane()
    expect([lane.nextPause(), lane.nextPause(), lane.nextPause()]).toEqual([1, 2, 4])
    lane.feedback({ throttled: false })
    expect(lane.nextPause()).toBe(1)
  })

  it('several 429s during a pause double the next pause once', () => {
    const lane = new Lane()
    lane.nextPause()
    for (let call = 0; call < 3; call++) lane.feedback({})
    expect(lane.nextPause()).toBe(2)
  })

  it('an answer without a permit does not shorten the next pause', () => {
    const lane = new Lane()
    lane.nextPause()
    lane.feedback({ throttled: false, grantedUs: 0 })
    expect(lane.nextPause()).toBe(2)
  })

  it('a 429 that only lowers a learned limit does not shorten the next pause', () => {
    const lane = new Lane({ learn: true })
    lane.nextPause()
    lane.nowUs = lane.lane.pausedUntilUs
    const { stamps } = lane.take(10)
    const refused = { costs: [1], booked: [0], stamps }
    expect(lane.feedback({ refused }).learned).toBe(0)
    expect(lane.lane.pauseDoublings).toBe(1)
  })

  it('a manual pause keeps the length of the next pause, and its end resets it', () => {
    const lane = new Lane()
    lane.nextPause()
    const pause = (forUs: number) =>
      pauseLane(lane.lane, lane.guard, { lane: 'a', forUs }, lane.nowUs)
    pause(SECOND_US)
    expect(lane.nextPause()).toBe(2)
    pause(0)
    expect(lane.nextPause()).toBe(1)
  })
})

describe('settlements', () => {
  it('a settlement wakes a waiting pod if one of its parts frees units', () => {
    const lane = new Lane()
    const [stamp = 0] = lane.take(8).stamps
    lane.take(3, 'waiting')
    expect(lane.settle(stamp, 1).message).toBeUndefined()
    expect(lane.settle(stamp, 1, -4).message).toMatchObject({ pod: 'waiting' })
  })

  it('a settlement without a difference changes nothing and wakes no pod', () => {
    const lane = new Lane()
    const [stamp = 0] = lane.take(8).stamps
    lane.take(3, 'waiting')
    expect(lane.settle(stamp, 0)).toMatchObject({ reply: 0 })
    expect(lane.settle(stamp, 0).message).toBeUndefined()
    expect(lane.figures?.used).toBe(10)
  })
})

describe('changes by an operator', () => {
  it('an override without a duration ends the override in force', () => {
    const lane = new Lane()
    lane.override(60 * SECOND_US)
    expect(lane.figures?.limit).toBe(5)
    lane.override(0)
    expect(lane.figures?.limit).toBe(10)
    expect(lane.guard.overrides).toEqual({})
  })

  it('a pod with older limits reads the limit that was learned for the newest version', () => {
    const lane = new Lane({ learn: true })
    changeLimits(lane.lane, lane.guard, lane.ref, lane.nowUs)
    const { stamps } = lane.take(10)
    lane.feedback({ refused: { costs: [1], booked: [1], stamps } })
    expect(lane.figures?.limit).toBe(9)
    const read = readLimits(lane.lane, lane.guard, { ...lane.ref, version: 1 }, lane.nowUs)
    expect(read.limits[0]?.limit).toBe(9)
  })
})
