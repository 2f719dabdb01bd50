import { describe, expect, it } from 'vitest'
import { fc } from '../../../test/fast-check.js'
import { numberOfRuns } from '../../../test/long-run.js'
import type { LimitSpec } from '../limit-spec.js'
import type { FeedbackRequest } from '../port.js'
import { emptyGuard, emptyLane, type GuardState, type LaneState } from './lane-state.js'
import { takePermits } from './take-permits.js'
import { applyFeedback, changeLimits, readLimits } from './transitions.js'

const SECOND_US = 1_000_000
const WINDOW_US = 3 * SECOND_US

/** One lane of a guard, and a vendor that refuses calls when the test says so. */
class LearningLane {
  nowUs = 1_000 * SECOND_US
  readonly lane: LaneState = emptyLane()
  readonly guard: GuardState = emptyGuard()
  readonly limits: LimitSpec[]

  constructor(...limits: Partial<LimitSpec>[]) {
    this.limits = limits.map((each, index) => ({
      id: `unit${index}`,
      algorithm: 'sliding-window',
      limit: 200,
      windowUs: WINDOW_US,
      slices: 30,
      burst: 0,
      span: 'lane',
      learn: true,
      ...each,
    }))
  }

  get ref() {
    return { guard: 'g', lane: 'a', limits: this.limits, version: this.guard.version }
  }

  get limit(): number {
    return this.figures[0]?.limit as number
  }

  get figures() {
    return readLimits(this.lane, this.guard, this.ref, this.nowUs).limits
  }

  pass(us: number): void {
    this.nowUs += us
  }

  take(calls: number, costs = this.limits.map(() => 1)) {
    const request = { ...this.ref, costs: Array.from({ length: calls }, () => costs) }
    return takePermits(this.lane, this.guard, request, this.nowUs).reply
  }

  /** The vendor refuses some calls of a reply. */
  refuse(
    calls: number,
    reply: ReturnType<LearningLane['take']>,
    more: Partial<FeedbackRequest> = {},
  ) {
    const costs = this.limits.map(() => 1)
    const { stamps, nowUs: grantedUs } = reply
    let last: ReturnType<typeof applyFeedback>['reply'] | undefined
    for (let call = 0; call < calls; call++) {
      const feedback: FeedbackRequest = {
        ...this.ref,
        grantedUs,
        throttled: true,
        pauseUs: undefined,
        basePauseUs: SECOND_US / 2,
        maxPauseUs: 60 * SECOND_US,
        left: [],
        refused: { costs, booked: costs, stamps },
        ...more,
      }
      last = applyFeedback(this.lane, this.guard, feedback, this.nowUs).reply
    }
    return last
  }

  /** The vendor accepts this number of calls per window, until the limit is known. */
  learn(given: number): void {
    for (let window = 0; window < 2; window++) {
      this.pass(2 * WINDOW_US)
      const reply = this.take(200)
      this.pass(10_000)
      this.refuse(Math.max(0, reply.granted - given), reply)
    }
    this.pass(WINDOW_US + SECOND_US / 5)
  }
}

describe('learned limits', () => {
  it('two windows with refusals lower a limit of 200 to the 60 calls that the vendor accepts', () => {
    const lane = new LearningLane({})
    lane.refuse(140, lane.take(200))
    expect(lane.limit).toBe(100)
    lane.pass(2 * WINDOW_US)
    lane.refuse(40, lane.take(100))
    expect(lane.figures[0]).toMatchObject({ limit: 60, configured: 200 })
  })

  it('one refusal lowers a limit by half at most, however little of it was used', () => {
    const lane = new LearningLane({})
    lane.refuse(1, lane.take(4))
    expect(lane.limit).toBe(100)
  })

  it('vendor that accepts nothing in a window lowers no limit', () => {
    const lane = new LearningLane({})
    lane.refuse(3, lane.take(3))
    lane.pass(2 * WINDOW_US)
    const before = lane.limit
    const reply = lane.refuse(1, lane.take(1))
    expect(lane.limit).toBe(before)
    expect(reply?.pausedUntilUs).toBeGreaterThan(lane.nowUs)
  })

  it('late refusals of one burst lower a limit once', () => {
    const lane = new LearningLane({})
    lane.learn(60)
    const reply = lane.take(60)
    lane.pass(SECOND_US)
    lane.refuse(1, reply)
    expect(lane.limit).toBe(59)
    lane.pass(WINDOW_US + SECOND_US / 2)
    lane.refuse(1, reply)
    expect(lane.limit).toBe(58)
  })

  it('lane is not paused while the lowered limit holds its calls back', () => {
    const lane = new LearningLane({})
    lane.learn(60)
    const short = lane.refuse(1, lane.take(60), { pauseUs: WINDOW_US })
    expect(short).toMatchObject({ pausedUntilUs: 0, learned: 0 })
    lane.pass(2 * WINDOW_US)
    const long = lane.refuse(1, lane.take(60), { pauseUs: 30 * SECOND_US })
    expect(long?.pausedUntilUs).toBe(lane.nowUs + 30 * SECOND_US)
  })

  it('limit rises step by step while calls wait for it, up to the configured one', () => {
    const lane = new LearningLane({})
    lane.learn(60)
    const seen: number[] = []
    for (let window = 0; window < 12; window++) {
      lane.take(200)
      seen.push(lane.limit)
      lane.pass(WINDOW_US + SECOND_US / 5)
    }
    expect(seen.slice(0, 4)).toEqual([60, 61, 65, 82])
    expect(seen.at(-1)).toBe(200)
    expect(seen).toEqual([...seen].sort((one, other) => one - other))
  })

  it('limit that is not used in full does not rise', () => {
    const lane = new LearningLane({})
    lane.learn(60)
    for (let window = 0; window < 12; window++) {
      lane.take(30)
      lane.pass(WINDOW_US + SECOND_US / 5)
    }
    expect(lane.limit).toBe(60)
  })

  it('limit is forgotten an hour after its last change', () => {
    const lane = new LearningLane({})
    lane.learn(60)
    lane.pass(3_601 * SECOND_US)
    expect(lane.limit).toBe(200)
  })

  it('change of the limits by an operator begins learning again', () => {
    const lane = new LearningLane({})
    lane.learn(60)
    changeLimits(lane.lane, lane.guard, lane.ref, lane.nowUs)
    expect(lane.limit).toBe(200)
    lane.learn(60)
    lane.pass(SECOND_US)
    const override = { id: 'unit0', limit: 150, forUs: 60 * SECOND_US }
    changeLimits(lane.lane, lane.guard, { ...lane.ref, override }, lane.nowUs)
    expect(lane.limit).toBe(150)
  })

  it('refusal is attributed to the limit that the vendor names, otherwise to the one used most', () => {
    const named = new LearningLane({}, { limit: 1_000 })
    const left = [
      { limit: 0, remaining: 50, resetUs: 0 },
      { limit: 1, remaining: 0, resetUs: 0 },
    ]
    expect(named.refuse(1, named.take(100), { left })).toMatchObject({ learned: 1 })
    expect(named.limit).toBe(200)
    const unnamed = new LearningLane({}, { limit: 1_000 })
    expect(unnamed.refuse(1, unnamed.take(100))).toMatchObject({ learned: 0 })
  })

  it('refusal for another reason lowers no limit of which the vendor says that enough is left', () => {
    const lane = new LearningLane({})
    const left = [{ limit: 0, remaining: 150, resetUs: 0 }]
    const reply = lane.refuse(1, lane.take(50), { left })
    expect(reply?.learned).toBeUndefined()
    expect(lane.limit).toBe(200)
  })

  it('answer with the units left lowers a limit before any call is refused', () => {
    const lane = new LearningLane({})
    const left = [{ limit: 0, remaining: 20, resetUs: SECOND_US }]
    lane.refuse(1, lane.take(40), { throttled: false, refused: undefined, left })
    expect(lane.figures[0]).toMatchObject({ limit: 60, used: 40, remaining: 20 })
  })

  it('limit without `learn` is not lowered', () => {
    const lane = new LearningLane({ learn: false })
    expect(lane.refuse(1, lane.take(200))?.learned).toBeUndefined()
    lane.pass(60 * SECOND_US)
    const left = [{ limit: 0, remaining: 20, resetUs: SECOND_US }]
    const answer = { throttled: false, refused: undefined, left }
    expect(lane.refuse(1, lane.take(40), answer)?.learned).toBeUndefined()
    expect(lane.limit).toBe(200)
  })

  it('effective limit is at least 1, at most the configured one, and recovers, whatever the vendor refuses', () => {
    const step = fc.record({
      calls: fc.nat(80),
      refused: fc.nat(80),
      passUs: fc.integer({ min: 0, max: 2 * WINDOW_US }),
      left: fc.option(fc.nat(300), { nil: undefined }),
    })
    const algorithm = fc.constantFrom(
      ...(['sliding-window', 'fixed-window', 'token-bucket', 'leaky-bucket'] as const),
    )
    const limit = fc.integer({ min: 1, max: 300 })
    fc.assert(
      fc.property(algorithm, limit, fc.array(step, { maxLength: 40 }), (by, configured, steps) => {
        const lane = new LearningLane({ algorithm: by, limit: configured })
        for (const { calls, refused, passUs, left } of steps) {
          const reply = lane.take(calls)
          const says = left === undefined ? [] : [{ limit: 0, remaining: left, resetUs: 0 }]
          lane.refuse(Math.min(refused, reply.granted), reply, { left: says })
          expect(lane.limit).toBeGreaterThanOrEqual(1)
          expect(lane.limit).toBeLessThanOrEqual(configured)
          lane.pass(passUs)
        }
        lane.pass(120 * SECOND_US)
        for (let window = 0; window < 60; window++) {
          for (let part = 0; part < 4; part++) {
            lane.take(400)
            lane.pass(WINDOW_US / 3)
          }
        }
        expect(lane.limit).toBe(configured)
      }),
      { numRuns: numberOfRuns(20, 60) },
    )
  })
})
