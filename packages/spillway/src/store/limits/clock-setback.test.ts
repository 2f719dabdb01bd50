/** The server's clock is set back by ten minutes: what counted goes on counting for as long as it would have. */
import { describe, expect, it } from 'vitest'
import type { LimitSpec } from '../limit-spec.js'
import { emptyGuard, emptyLane } from './lane-state.js'
import { takePermits } from './take-permits.js'
import { applyFeedback, changeLimits, pauseLane, settlePermits } from './transitions.js'

const START_US = 1_800_000_000_000_000
const SECOND_US = 1_000_000
const MINUTE_US = 60 * SECOND_US

function setup(change: Partial<LimitSpec> = {}) {
  const [lane, guard] = [emptyLane(), emptyGuard()]
  const spec: LimitSpec = {
    ...{ id: 'requests', algorithm: 'sliding-window', span: 'lane' },
    ...{ limit: 10, windowUs: MINUTE_US, slices: 60, burst: 0 },
    ...change,
  }
  const ref = { guard: 'g', lane: 'a', limits: [spec], version: 0 }
  let nowUs = START_US
  return {
    lane,
    guard,
    pass(us: number) {
      nowUs += us
    },
    setBack() {
      nowUs -= 10 * MINUTE_US
    },
    take(calls: number, pod = 'p') {
      const costs = Array.from({ length: calls }, () => [1])
      const waiter = { pod, forUs: 60 * MINUTE_US }
      return takePermits(lane, guard, { ...ref, costs, waiter }, nowUs).reply
    },
    refund([stamp = 0]: readonly number[], units: number) {
      const settlements = [{ limit: 0, stamp, delta: -units }]
      settlePermits(lane, guard, { ...ref, settlements }, nowUs)
    },
    throttled(grantedUs: number) {
      const pauses = { pauseUs: 5 * SECOND_US, basePauseUs: 1, maxPauseUs: MINUTE_US }
      const feedback = { ...ref, grantedUs, throttled: true, left: [], ...pauses }
      return applyFeedback(lane, guard, feedback, nowUs).reply.pausedUntilUs - nowUs
    },
    pause: (name: string | undefined) =>
      pauseLane(lane, guard, { lane: name, forUs: MINUTE_US }, nowUs),
    override(limit: number) {
      const override = { id: 'requests', limit, forUs: MINUTE_US }
      changeLimits(lane, guard, { ...ref, override }, nowUs)
    },
  }
}

describe('limits after the clock was set back', () => {
  it.for(['sliding-window', 'fixed-window', 'token-bucket'] as const)(
    'units of a %s count no shorter and at most one window longer after the clock was set back',
    (algorithm) => {
      for (const span of ['lane', 'vendor'] as const) {
        const { take, setBack, pass } = setup({ algorithm, span })
        expect(take(10).granted).toBe(10)
        setBack()
        const { granted, waitUs } = take(1)
        expect(granted).toBe(0)
        expect(waitUs).toBeLessThanOrEqual(MINUTE_US + SECOND_US)
        pass(MINUTE_US + SECOND_US)
        expect(take(10).granted).toBe(10)
      }
    },
  )

  it.for([['a lane', 'a'] as const, ['a guard', undefined] as const])(
    'a pause of %s lasts as long as before after the clock was set back',
    ([, name]) => {
      const { pause, take, setBack, pass } = setup({ span: name === undefined ? 'vendor' : 'lane' })
      take(1)
      pause(name)
      pass(20 * SECOND_US)
      expect(take(1)).toMatchObject({ granted: 0, paused: true, waitUs: 40 * SECOND_US })
      // The state knows the time of its last change, not of the last reading.
      setBack()
      const { paused, waitUs } = take(1)
      expect(paused).toBe(true)
      expect(waitUs).toBeLessThanOrEqual(MINUTE_US)
      pass(MINUTE_US)
      expect(take(1).granted).toBe(1)
    },
  )

  it('an override ends at its time after the clock was set back', () => {
    const { override, take, setBack, pass } = setup({ limit: 1, span: 'vendor' })
    override(5)
    expect(take(6).granted).toBe(5)
    setBack()
    expect(take(1).granted).toBe(0)
    pass(2 * MINUTE_US)
    // The limit is 1 again.
    expect(take(5).granted).toBe(1)
  })

  it('feedback on a permit that was granted after the clock was set back counts', () => {
    const { take, throttled, setBack, pass } = setup()
    throttled(take(1).nowUs)
    pass(10 * SECOND_US)
    expect(take(1).granted).toBe(1)
    setBack()
    pass(MINUTE_US)
    expect(throttled(take(1).nowUs)).toBe(5 * SECOND_US)
  })

  it('pods that waited before the clock was set back are forgotten', () => {
    for (const span of ['lane', 'vendor'] as const) {
      const { take, setBack, lane, guard } = setup({ span })
      take(10, 'owner')
      take(1, 'waiting')
      const list = span === 'lane' ? lane : guard
      expect(list.waiting.map(({ pod }) => pod)).toEqual(['waiting'])
      setBack()
      take(1, 'later')
      expect(list.waiting.map(({ pod }) => pod)).toEqual(['later'])
    }
  })

  it('a token bucket returns late permits after the clock was set back as it would have before', () => {
    const { take, refund, setBack, pass } = setup({ algorithm: 'token-bucket' })
    take(4)
    setBack()
    const late = take(4)
    pass(SECOND_US)
    expect(take(2).granted).toBe(2)
    refund(late.stamps, 4)
    expect(take(10).granted).toBe(4)
  })
})
