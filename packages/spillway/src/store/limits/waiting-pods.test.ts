/** The rules for pods that wait, on the transitions themselves. Their Lua twins are tested with random histories. */
import { describe, expect, it } from 'vitest'
import type { LimitSpec } from '../limit-spec.js'
import { emptyGuard, emptyLane } from './lane-state.js'
import { takePermits } from './take-permits.js'
import { changeLimits, settlePermits } from './transitions.js'

const START_US = 1_800_000_000_000_000
const HOUR_US = 3_600_000_000

function setup(limit: Partial<LimitSpec> = {}) {
  const [lane, guard] = [emptyLane(), emptyGuard()]
  const spec: LimitSpec = {
    id: 'requests',
    algorithm: 'sliding-window',
    limit: 100,
    windowUs: 1_000_000,
    slices: 10,
    burst: 0,
    span: 'lane',
    ...limit,
  }
  const ref = { guard: 'g', lane: 'a', limits: [spec], version: 0 }
  let nowUs = START_US
  return {
    lane,
    get nowUs() {
      return nowUs
    },
    pass(us: number) {
      nowUs += us
    },
    /** A request of `calls` calls whose pod waits for the rest. */
    take(pod: string, calls: number, forUs = 2 * HOUR_US) {
      const costs = Array.from({ length: calls }, () => [1])
      const request = { ...ref, costs, waiter: { pod, forUs } }
      const { reply, message } = takePermits(lane, guard, request, nowUs)
      return { ...reply, message }
    },
    takeCost(pod: string, cost: number) {
      const request = { ...ref, costs: [[cost]], waiter: { pod, forUs: 2 * HOUR_US } }
      return takePermits(lane, guard, request, nowUs).reply
    },
    /** Returns `units` of the newest slice; 0 only wakes the next pod. */
    settle(units: number, stamp: number) {
      const settlements = units === 0 ? [] : [{ limit: 0, stamp, delta: -units }]
      const { reply: againUs, message } = settlePermits(lane, guard, { ...ref, settlements }, nowUs)
      return { againUs, message }
    },
    override(forUs: number, overrideLimit: number) {
      const override = { id: 'requests', limit: overrideLimit, forUs }
      return changeLimits(lane, guard, { ...ref, override }, nowUs)
    },
  }
}

describe('waiting pods of a lane', () => {
  it('a settlement that frees enough wakes the pod that has waited longest', () => {
    const { take, settle } = setup({ windowUs: HOUR_US })
    const [stamp = 0] = take('owner', 100).stamps
    expect(take('first', 3).granted).toBe(0)
    expect(take('second', 3).granted).toBe(0)
    expect(settle(1, stamp).message).toEqual({ pod: 'first', lane: 'a' })
    // The first pod is on its way; what is free is for it.
    expect(settle(0, stamp).message).toBeUndefined()
    expect(settle(1, stamp).message).toEqual({ pod: 'second', lane: 'a' })
  })

  it('a settlement that frees too little for the next pod wakes no pod', () => {
    const { take, settle } = setup({ windowUs: HOUR_US })
    const [stamp = 0] = take('owner', 100).stamps
    take('first', 1)
    expect(settle(1, stamp).message).toEqual({ pod: 'first', lane: 'a' })
    take('second', 1)
    // The only free unit is for the first pod.
    expect(settle(0, stamp)).toEqual({ againUs: 0, message: undefined })
  })

  it('a pod whose calls cannot wait until its time is not woken', () => {
    const { take, settle } = setup({ windowUs: HOUR_US })
    const [stamp = 0] = take('owner', 100).stamps
    expect(take('hasty', 1, 1_000_000).waitUs).toBeGreaterThan(1_000_000)
    expect(settle(5, stamp).message).toBeUndefined()
  })

  it('a settlement asks to be repeated while there is enough for further pods', () => {
    const { take, settle, pass } = setup({ windowUs: HOUR_US })
    const [stamp = 0] = take('owner', 100).stamps
    for (const pod of ['a', 'b', 'c']) take(pod, 1)
    const woken: (string | undefined)[] = []
    let { againUs, message } = settle(3, stamp)
    for (woken.push(message?.pod); againUs > 0; woken.push(message?.pod)) {
      pass(againUs)
      ;({ againUs, message } = settle(0, stamp))
    }
    expect(woken).toEqual(['a', 'b', 'c'])
  })

  it('a lane sends at most 20 messages in any second', () => {
    const fleet = setup({ windowUs: HOUR_US, limit: 10_000 })
    const [stamp = 0] = fleet.take('owner', 10_000).stamps
    for (let pod = 0; pod < 50; pod++) fleet.take(`pod ${pod}`, 1)
    const sentUs: number[] = []
    for (let ms = 0; ms < 5_000; ms++) {
      fleet.pass(1_000)
      const { message } = fleet.settle(1, stamp)
      if (message === undefined) continue
      sentUs.push(fleet.nowUs)
      // It takes what is free and waits again.
      fleet.take(message.pod, 1_000)
    }
    expect(sentUs.length).toBeGreaterThan(40)
    for (const [index, fromUs] of sentUs.entries()) {
      const inASecond = sentUs.slice(index).filter((us) => us - fromUs < 1_000_000)
      expect(inASecond.length).toBeLessThanOrEqual(20)
    }
  })

  it('pods that are due get equal shares, whichever asks first and however often', () => {
    const pods = ['a', 'b', 'c', 'd']
    for (let seed = 1; seed <= 50; seed++) {
      const fleet = setup()
      fleet.take('owner', 100)
      const waits = pods.map((pod) => fleet.take(pod, 60).waitUs)
      fleet.pass(Math.max(...waits))
      const got: Record<string, number> = { a: 0, b: 0, c: 0, d: 0 }
      let state = seed
      for (let request = 0; request < 40; request++) {
        state = (state * 48_271) % 2_147_483_647
        const pod = pods[state % pods.length] as string
        got[pod] = (got[pod] as number) + fleet.take(pod, 60).granted
        fleet.pass(1_000)
      }
      for (const pod of pods) {
        const { granted } = fleet.take(pod, 60)
        got[pod] = (got[pod] as number) + granted
      }
      expect(got).toEqual({ a: 25, b: 25, c: 25, d: 25 })
    }
  })

  it('the share of a pod that has stopped goes to the others after a quarter of a second', () => {
    const fleet = setup({ windowUs: 10_000_000 })
    fleet.take('owner', 100)
    const [waitUs] = ['stopped', 'running'].map((pod) => fleet.take(pod, 200).waitUs)
    fleet.pass(waitUs as number)
    expect(fleet.take('running', 200).granted).toBe(50)
    fleet.pass(240_000)
    expect(fleet.take('running', 200)).toMatchObject({ granted: 0, waitUs: 50_000 })
    fleet.pass(20_000)
    expect(fleet.take('running', 200).granted).toBe(50)
  })

  it('a pod that comes back late makes up for what the others were granted meanwhile', () => {
    const fleet = setup({ algorithm: 'token-bucket', limit: 100, burst: 40 })
    fleet.take('owner', 40)
    const got: Record<string, number> = { late: 0, a: 0, b: 0 }
    const ask = (...pods: string[]) => {
      for (const pod of pods) got[pod] = (got[pod] as number) + fleet.take(pod, 100).granted
    }
    ask('late', 'a', 'b')
    fleet.pass(30_000)
    ask('a', 'b')
    fleet.pass(280_000)
    ask('a', 'b')
    expect(got.a).toBeGreaterThanOrEqual(15)
    expect(got.late).toBe(0)
    fleet.pass(200_000)
    ask('late', 'a', 'b')
    expect(got.late).toBeGreaterThanOrEqual(15)
    expect(Math.max(...Object.values(got)) - Math.min(...Object.values(got))).toBeLessThan(3)
  })

  it('a pod that got all it asked for does not get more than its share by asking again', () => {
    const fleet = setup()
    fleet.take('owner', 100)
    const waits = ['a', 'b'].map((pod) => fleet.take(pod, 40).waitUs)
    fleet.pass(Math.max(...waits))
    expect(fleet.take('a', 40).granted).toBe(40)
    expect(fleet.take('a', 40).granted).toBe(10)
    expect(fleet.take('a', 40).granted).toBe(0)
    expect(fleet.take('b', 100).granted).toBe(50)
  })

  it('a pod whose calls do not wait gets no more than its share by asking again', () => {
    const fleet = setup({ algorithm: 'token-bucket', limit: 100, burst: 40 })
    fleet.take('owner', 40)
    fleet.take('waiting', 100)
    fleet.pass(200_000)
    const got = [10, 10, 10].map((calls) => fleet.take('hasty', calls, 0).granted)
    expect(got).toEqual([10, 0, 0])
    expect(fleet.take('waiting', 100).granted).toBe(10)
  })

  it('a pod that waits for a large call claims its part while it sleeps', () => {
    const fleet = setup({ algorithm: 'token-bucket', limit: 100, burst: 100 })
    fleet.take('owner', 100)
    expect(fleet.takeCost('large', 60).waitUs).toBe(600_000)
    fleet.pass(200_000)
    expect(fleet.take('small', 100).granted).toBe(10)
    // As much as it has must be there for the large call before it gets more.
    fleet.pass(10_000)
    expect(fleet.take('small', 100)).toMatchObject({ granted: 0, waitUs: 50_000 })
    fleet.pass(490_000)
    expect(fleet.takeCost('large', 60).granted).toBe(1)
  })

  it('a pod that sleeps for units of a fixed window or a leaky bucket claims none of them', () => {
    for (const algorithm of ['fixed-window', 'leaky-bucket'] as const) {
      const fleet = setup({ algorithm, windowUs: 10_000_000, limit: 10 })
      fleet.take('owner', 6)
      const { waitUs } = fleet.takeCost('sleeping', 5)
      expect(waitUs).toBeGreaterThan(900_000)
      if (algorithm === 'leaky-bucket') fleet.pass(waitUs - 100_000)
      const most = algorithm === 'fixed-window' ? 4 : 0
      expect(fleet.take('other', 10).granted).toBe(most)
    }
  })

  it('pods that were granted less share what is free until they have as much as the others', () => {
    const fleet = setup({ algorithm: 'token-bucket', limit: 100, burst: 40 })
    fleet.take('owner', 40)
    for (const pod of ['a', 'b', 'c']) fleet.take(pod, 100)
    fleet.pass(300_000)
    expect(['a', 'b', 'c'].map((pod) => fleet.take(pod, 100).granted)).toEqual([30, 0, 0])
    fleet.pass(100_000)
    expect(['b', 'a', 'c'].map((pod) => fleet.take(pod, 100).granted)).toEqual([5, 0, 5])
  })

  it('a pod waiting for one large call does not hold back the small calls of others', () => {
    const fleet = setup({ windowUs: HOUR_US })
    fleet.take('owner', 50)
    expect(fleet.takeCost('large', 80).granted).toBe(0)
    expect(fleet.take('small', 50).granted).toBe(50)
  })

  it('pods wake in turns, two for each call that becomes possible', () => {
    const { take } = setup({ algorithm: 'token-bucket', limit: 10, burst: 10 })
    take('owner', 10)
    expect(['a', 'b', 'c', 'd', 'e'].map((pod) => take(pod, 5).waitUs)).toEqual([
      100_000, 100_000, 200_000, 200_000, 300_000,
    ])
  })

  it('a unit is reserved for the pod that has waited longest, unless that pod is late', () => {
    const { take, pass } = setup({ algorithm: 'token-bucket', limit: 10, burst: 10 })
    take('owner', 10)
    take('first', 1)
    take('second', 1)
    pass(100_000)
    expect(take('second', 1)).toMatchObject({ granted: 0, waitUs: 50_000 })
    pass(50_000)
    expect(take('second', 1).granted).toBe(1)
  })

  it('a unit stays reserved for 40 ms after the time of the pod that has waited longest', () => {
    for (const [lateUs, granted] of [
      [39_999, 0],
      [40_000, 1],
    ] as const) {
      const { take, pass } = setup({ algorithm: 'token-bucket', limit: 10, burst: 10 })
      take('owner', 10)
      take('first', 1)
      take('second', 1)
      pass(100_000 + lateUs)
      expect(take('second', 1).granted).toBe(granted)
    }
  })

  it('nothing is remembered of a pod that got everything once no pod waits any more', () => {
    const fleet = setup({ windowUs: 10_000_000 })
    fleet.take('owner', 100)
    const { waitUs } = fleet.take('waiting', 1)
    fleet.pass(waitUs)
    expect(fleet.take('served', 1).granted).toBe(1)
    expect(fleet.lane.waiting.map(({ pod }) => pod)).toEqual(['waiting', 'served'])
    expect(fleet.take('waiting', 1).granted).toBe(1)
    expect(fleet.lane.waiting).toEqual([])
  })

  it('no pod has to make up for more than a whole limit', () => {
    const fleet = setup({ algorithm: 'token-bucket', limit: 100, burst: 10 })
    fleet.take('owner', 10)
    fleet.take('late', 1)
    let taken = 0
    for (let ms = 0; ms < 1_000; ms += 50) {
      taken += fleet.take('greedy', 10).granted
      fleet.pass(50_000)
    }
    expect(taken).toBeGreaterThan(30)
    const greedy = fleet.lane.waiting.find(({ pod }) => pod === 'greedy')
    expect(greedy?.got).toBe(1_000_000_000)
  })

  it('at most 256 pods of a lane are kept in its list', () => {
    const fleet = setup({ windowUs: HOUR_US, limit: 1 })
    fleet.take('owner', 1)
    for (let pod = 0; pod < 300; pod++) fleet.take(`pod ${pod}`, 1)
    expect(fleet.lane.waiting).toHaveLength(256)
  })

  it('a pod asks again when an override ends, because the limit may be higher then', () => {
    const { take, override } = setup({ windowUs: HOUR_US })
    override(5_000_000, 1)
    take('owner', 1)
    expect(take('waiting', 1).waitUs).toBe(5_000_000)
  })

  it('changed limits wake all pods', () => {
    const { take, override } = setup({ windowUs: HOUR_US })
    take('owner', 100)
    take('waiting', 1)
    expect(override(HOUR_US, 500).wakesAll).toBe(true)
  })

  it('a pod without limits does not change the sums of pods that are due', () => {
    const [lane, guard] = [emptyLane(), emptyGuard()]
    const window = {
      algorithm: 'sliding-window',
      windowUs: 1_000_000,
      slices: 10,
      burst: 0,
    } as const
    const limits: LimitSpec[] = [{ ...window, id: 'requests', limit: 2, span: 'lane' }]
    const take = (pod: string, own: LimitSpec[], nowUs: number) => {
      const costs = [own.map(() => 1), own.map(() => 1), own.map(() => 1)]
      const waiter = { pod, forUs: HOUR_US }
      const request = { guard: 'g', lane: 'a', limits: own, version: 0, costs, waiter }
      return takePermits(lane, guard, request, nowUs).reply
    }
    take('first', limits, START_US)
    const { waitUs } = take('second', limits, START_US)
    expect(take('unlimited', [], START_US + waitUs).granted).toBe(3)
    expect(lane.waiting.map(({ got }) => got)).toEqual([0, 0, 0])
  })
})
