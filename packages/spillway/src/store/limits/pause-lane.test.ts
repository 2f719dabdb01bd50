import { describe, expect, it } from 'vitest'
import { emptyGuard, emptyLane } from './lane-state.js'
import { applyFeedback, pauseLane } from './transitions.js'

const START_US = 1_900_000_000_000_000
const SECOND_US = 1_000_000

describe('pausing a lane', () => {
  it('a shorter pause does not shorten a longer one, and 0 ends both', () => {
    const [lane, guard] = [emptyLane(), emptyGuard()]
    const pause = (forUs: number, nowUs: number) =>
      pauseLane(lane, guard, { lane: 'gpt', forUs }, nowUs).reply
    expect(pause(60 * SECOND_US, START_US)).toBe(START_US + 60 * SECOND_US)
    expect(pause(SECOND_US, START_US + SECOND_US)).toBe(START_US + 60 * SECOND_US)
    expect(pause(90 * SECOND_US, START_US + SECOND_US)).toBe(START_US + 91 * SECOND_US)
    expect(pause(0, START_US + 2 * SECOND_US)).toBe(0)
  })

  it('a pause of the whole guard applies to every lane, and ending the pause of a lane does not end it', () => {
    const guard = emptyGuard()
    const untilUs = START_US + 60 * SECOND_US
    pauseLane(emptyLane(), guard, { lane: undefined, forUs: 60 * SECOND_US }, START_US)
    const lane = emptyLane()
    expect(pauseLane(lane, guard, { lane: 'gpt', forUs: SECOND_US }, START_US).reply).toBe(untilUs)
    expect(pauseLane(lane, guard, { lane: 'gpt', forUs: 0 }, START_US).reply).toBe(untilUs)
    expect(pauseLane(lane, guard, { lane: undefined, forUs: 0 }, START_US).reply).toBe(0)
  })

  it('pauses without a duration double, and start again after an operator ended a pause', () => {
    const [lane, guard] = [emptyLane(), emptyGuard()]
    let nowUs = START_US
    /** The length of the pause after a 429 without Retry-After. */
    const throttled = () => {
      const { reply } = applyFeedback(
        lane,
        guard,
        {
          guard: 'g',
          lane: 'gpt',
          version: 0,
          limits: [],
          grantedUs: 0,
          throttled: true,
          pauseUs: undefined,
          basePauseUs: SECOND_US,
          maxPauseUs: 3_600 * SECOND_US,
          left: [],
        },
        nowUs,
      )
      const forUs = reply.pausedUntilUs - nowUs
      nowUs = reply.pausedUntilUs
      return forUs / SECOND_US
    }
    expect([throttled(), throttled(), throttled()]).toEqual([1, 2, 4])
    pauseLane(lane, guard, { lane: 'gpt', forUs: 0 }, nowUs)
    expect([throttled(), throttled()]).toEqual([1, 2])
  })
})
