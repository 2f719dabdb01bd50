/**
 * Every transition exists twice, in TypeScript and in Lua. Both run the same long random histories,
 * with several pods and clock jumps, and have to give the same replies.
 */

import { describe, expect, it, vi } from 'vitest'
import { createKeys } from '../../src/store/keys.js'
import { checkLevels, isWindow } from '../../src/store/levels/check-levels.js'
import { refundLevels } from '../../src/store/levels/refund-levels.js'
import type { ChargeLog } from '../../src/store/levels/sliding-window.js'
import type { LimitSpec } from '../../src/store/limit-spec.js'
import { emptyGuard, emptyLane } from '../../src/store/limits/lane-state.js'
import { takePermits } from '../../src/store/limits/take-permits.js'
import { applyFeedback, readLimits } from '../../src/store/limits/transitions.js'
import type { FeedbackRequest, LevelRequest } from '../../src/store/port.js'
import { createRedisLevels } from '../../src/store/redis/operations/redis-levels.js'
import { createRedisLimits } from '../../src/store/redis/operations/redis-limits.js'
import { dayHistories, replayDays } from '../day-histories.js'
import { fc } from '../fast-check.js'
import { poolHistories, replayPool } from '../pool-histories.js'
import { saturate } from '../saturated-fleet.js'
import { replayWindow, windowHistories } from '../window-histories.js'
import {
  anyLimits,
  calendarDays,
  historyOf,
  type Kind,
  type LimitHistory,
  learning,
  OLD_POD,
  pauses,
  pooled,
  pooledTraffic,
  START_US,
  saturated,
  usualTraffic,
} from './limit-histories.js'
import { replayLimits } from './replay-limits.js'
import { ALL_HISTORIES, type TwinRedis } from './twin-redis.js'

const UNPOOLED = { pool: undefined, oldKnowsPool: false }

let histories = 0
/** How often the histories reached a state that must not be missed. */
const reached = { messages: 0, severalWait: 0, shared: 0, members: 0 }
let lowered = 0

export function claimLimitTwins(twin: TwinRedis, runs = ALL_HISTORIES): void {
  describe('Lua scripts of the limits', () => {
    const { runner } = twin
    const replayMany = async (kind: Kind) => {
      let steps = 0
      await fc.assert(
        fc.asyncProperty(historyOf(kind), async (history) => {
          await replay(twin, history)
          steps += history.steps.length
        }),
        { numRuns: runs },
      )
      expect(steps).toBeGreaterThanOrEqual(100 * runs)
    }

    it(`limit scripts give the same replies as the TypeScript transitions over ${100 * runs} steps`, async () => {
      await replayMany(anyLimits)
    })

    it('limit scripts give the same replies and wake the same pods while several pods wait', async () => {
      await replayMany(saturated)
      await replayMany(pooled)
      if (runs < ALL_HISTORIES) return
      for (const [what, times] of Object.entries(reached)) {
        expect(times, what).toBeGreaterThan(runs / 4)
      }
    })

    it('limit scripts count calendar days as the TypeScript transitions do', async () => {
      await replayMany(calendarDays)
    })

    it('limit scripts grant no calendar day of a time zone more than the limit', async () => {
      const total = { granted: 0, refused: 0 }
      await fc.assert(
        fc.asyncProperty(dayHistories, async (history) => {
          let nowUs = 0
          const keys = createKeys(`l${histories++}-`)
          const clock = () => String(nowUs)
          const redis = createRedisLimits(runner, keys, () => ({ close() {} }), clock)
          const counts = await replayDays(redis, history, (us) => {
            nowUs = us
          })
          total.granted += counts.granted
          total.refused += counts.refused
        }),
        { numRuns: runs },
      )
      expect(Math.min(total.granted, total.refused)).toBeGreaterThan(2 * runs)
    })

    it('limit scripts lower limits that learn as the TypeScript transitions do', async () => {
      await replayMany(learning)
      if (runs < ALL_HISTORIES) return
      expect(lowered).toBeGreaterThan(runs)
    })

    it('limit scripts follow a vendor that gives less, and later more, as the TypeScript transitions do', async () => {
      const window = { windowUs: 500_000, slices: 10, burst: 0, span: 'lane', learn: true } as const
      for (const algorithm of ['sliding-window', 'token-bucket', 'fixed-window'] as const) {
        const limits: LimitSpec[] = [{ ...window, id: 'unit0', limit: 60, algorithm }]
        const seen = await replayLearning(twin, limits)
        expect(Math.min(...seen)).toBeLessThan(30)
        expect(seen.at(-1)).toBe(60)
      }
    })

    it('limit scripts lower a limit twice to the same values as the TypeScript transitions, at the edges of the rules', async () => {
      const window = { windowUs: 1_000_000, slices: 10, burst: 0, span: 'lane' } as const
      const limit = { ...window, id: 'unit0', limit: 100, algorithm: 'sliding-window' } as const
      const learned: number[] = []
      // A second refusal confirms the first one if it comes after 75 % to 125 % of its units.
      for (const units of [14, 15, 24, 25, 26]) {
        const pair = refusals(twin, [{ ...limit, learn: true }])
        await pair.refuse([20])
        pair.pass(1_100_000)
        learned.push(await pair.refuse([units]))
      }
      expect(learned).toEqual([25, 15, 24, 25, 26])
    })

    it('limit scripts find the refused limit among several as the TypeScript transitions do', async () => {
      const window = { windowUs: 1_000_000, slices: 10, burst: 0, span: 'lane' } as const
      const each = { ...window, algorithm: 'sliding-window', learn: true } as const
      const limits: LimitSpec[] = [
        { ...each, id: 'unit0', limit: 105 },
        { ...each, id: 'unit1', limit: 1_000 },
      ]
      const lowered: number[] = []
      // A limit of which a tenth is left, as the vendor says, is not the one that refused.
      for (const remaining of [9, 10, 11]) {
        const pair = refusals(twin, limits)
        lowered.push(await pair.refuse([90, 500], [{ limit: 0, remaining, resetUs: 0 }]))
      }
      expect(lowered).toEqual([90, 90, 105])
    })

    it('limit scripts divide free units between saturated pods as the TypeScript transition does', async () => {
      const window = { windowUs: 800_000, slices: 10, burst: 0, span: 'lane' } as const
      const sliding = { ...window, algorithm: 'sliding-window' } as const
      const bucket = { ...window, algorithm: 'token-bucket', burst: 10 } as const
      const large = { ...bucket, id: 'unit0', limit: 100, burst: 100 }
      const fleets: { limits: LimitSpec[]; costs: number[][] }[] = [
        { limits: [{ ...bucket, id: 'unit0', limit: 100 }], costs: [[1], [1], [1], [1]] },
        {
          limits: [
            { ...sliding, id: 'unit0', limit: 100 },
            { ...sliding, id: 'unit1', limit: 900 },
          ],
          costs: [10, 20, 40, 40].map((tokens) => [1, tokens]),
        },
        {
          limits: [{ ...sliding, id: 'unit0', limit: 77, span: 'vendor' }],
          costs: [[1], [1], [1], [1]],
        },
        // Pods that sleep claim units.
        { limits: [large], costs: [[1], [60], [20], [1]] },
        { limits: [{ ...sliding, id: 'unit0', limit: 100 }], costs: [[1], [60], [5], [1]] },
      ]
      for (const [seed, { limits, costs }] of fleets.entries()) {
        let atUs = 0
        const clock = () => String(atUs)
        const keys = createKeys(`l${histories++}-`)
        const redis = createRedisLimits(twin.runner, keys, () => ({ close() {} }), clock)
        const [lane, guard] = [emptyLane(), emptyGuard()]
        const options = { limits, costs, callers: 20, seconds: 6, seed, stopsAfterSeconds: 3 }
        const lateMs = { mean: 40, most: 400 }
        const calls = await saturate({ ...options, lateMs }, async (request, nowUs) => {
          atUs = nowUs
          const kept = takePermits(lane, guard, request, nowUs)
          expect(await redis.take(request)).toEqual(kept.reply)
          return kept
        })
        expect(Math.min(...calls)).toBeGreaterThan(0)
      }
    })

    it('limit scripts give the same replies for usual traffic, much of it on the fast path', async () => {
      const before = { takes: await calls(twin, 'evalsha'), usual: await calls(twin, 'setrange') }
      await replayMany(usualTraffic)
      const takes = (await calls(twin, 'evalsha')) - before.takes
      const usual = (await calls(twin, 'setrange')) - before.usual
      expect(usual).toBeGreaterThan(takes / 4)
    })

    it('limit scripts give the same replies for usual traffic of a pool, much of it on the fast path', async () => {
      const before = { takes: await calls(twin, 'evalsha'), usual: await calls(twin, 'setrange') }
      await replayMany(pooledTraffic)
      const takes = (await calls(twin, 'evalsha')) - before.takes
      const usual = (await calls(twin, 'setrange')) - before.usual
      expect(usual).toBeGreaterThan(takes / 4)
    })

    it('limit scripts grant a pool of three lanes no more than its limits in any window', async () => {
      const total = { granted: 0, refused: 0 }
      await fc.assert(
        fc.asyncProperty(poolHistories, async (history) => {
          let nowUs = START_US
          const keys = createKeys(`l${histories++}-`)
          const clock = () => String(nowUs)
          const redis = createRedisLimits(runner, keys, () => ({ close() {} }), clock)
          const counts = await replayPool(redis, 'g', history, (us) => {
            nowUs = us
          })
          total.granted += counts.granted
          total.refused += counts.refused
        }),
        { numRuns: 2 * runs },
      )
      expect(Math.min(total.granted, total.refused)).toBeGreaterThan(10 * runs)
    })

    it('limit scripts return to the window of a release when nothing of the other one counts any more', async () => {
      const windowUs = 30_000_000
      const spec = {
        limit: 100,
        windowUs,
        slices: 3,
        burst: 0,
        algorithm: 'sliding-window',
      } as const
      const take = { kind: 'take' as const, costs: [[5, 0, 0]], waitsUs: undefined }
      const settled = { which: 0, repliesAgo: 0, delta: -15, resent: false }
      const giveBack = { kind: 'settle' as const, ...settled }
      const steps = [
        { pod: OLD_POD, operation: take },
        { pod: 0, operation: take },
        { pod: 0, operation: giveBack },
        { pod: 0, operation: take },
        { pod: 0, operation: take },
      ]
      await replay(twin, {
        ...UNPOOLED,
        specs: [{ ...spec, id: 'unit0', span: 'lane' }],
        oldFactors: { limit: 1, window: 1.3 },
        steps: steps.map((step) => ({ ...step, pauseUs: 1_000, lane: 'a' })),
      })
    })

    it('limit scripts return as much of each late permit of a token bucket as the TypeScript transition', async () => {
      const take = { kind: 'take' as const, costs: [[3, 0, 0]], waitsUs: undefined }
      const refund = (repliesAgo: number) => ({
        ...{ kind: 'settle' as const, which: 0, repliesAgo, delta: -3, resent: false },
      })
      const takes = Array.from({ length: 30 }, () => take)
      const refunds = Array.from({ length: 30 }, (_, index) => refund((index * 7) % 30))
      await replay(twin, {
        ...UNPOOLED,
        specs: [
          {
            ...{ id: 'unit0', span: 'lane', algorithm: 'token-bucket' },
            ...{ limit: 600, windowUs: 60_000_000, slices: 1, burst: 100 },
          },
        ],
        oldFactors: { limit: 1, window: 1 },
        steps: [...takes, ...refunds, ...takes].map((operation, index) => ({
          ...{ operation, pod: 0, lane: 'a', pauseUs: 100_000 + (index % 5) * 90_000 },
        })),
      })
    })

    it('limit scripts merge low points of a token bucket as the TypeScript transition does', async () => {
      const step = (operation: LimitHistory['steps'][number]['operation'], pauseUs = 0) => ({
        ...{ operation, pauseUs, pod: 0, lane: 'a' as const },
      })
      const take = step({ kind: 'take', costs: [[30, 0, 0]], waitsUs: undefined })
      const refund = (repliesAgo: number) =>
        step({ kind: 'settle', which: 0, repliesAgo, delta: -30, resent: false })
      // The debt grows by 5 units from one take to the next, and once by 2: these low points are merged.
      for (let similar = 0; similar < 9; similar++) {
        const takes = Array.from({ length: 10 }, (_, index) => ({
          ...take,
          pauseUs: index === similar + 1 ? 2_800_000 : 2_500_000,
        }))
        for (const permit of [similar, similar + 1]) {
          await replay(twin, {
            ...UNPOOLED,
            specs: [
              {
                ...{ id: 'unit0', span: 'lane', algorithm: 'token-bucket' },
                ...{ limit: 600, windowUs: 60_000_000, slices: 1, burst: 100 },
              },
            ],
            oldFactors: { limit: 1, window: 1 },
            steps: [...takes, refund(9 - permit), step({ kind: 'figures' })],
          })
        }
      }
    })

    it(`level scripts charge and refund like the TypeScript transition over ${120 * runs} requests`, async () => {
      let requests = 0
      const reached = { refunds: 0, windowRefusals: 0 }
      const keys = runner.slotOf === undefined ? LEVELS : LEVELS_OF_ONE_SLOT
      const bucket = fc.record({
        key: fc.constantFrom(...keys),
        limit: fc.integer({ min: 1, max: 20 }),
        windowUs: fc.integer({ min: 1, max: 60_000_000 }),
        burst: fc.integer({ min: 1, max: 25 }),
      })
      // Windows of up to 60 units keep every charge, larger ones share entries.
      const window = fc.record({
        key: fc.constantFrom(...keys.map((key) => `${key}w`)),
        limit: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 58, max: 75 })),
        windowUs: fc.oneof(
          fc.integer({ min: 1, max: 2_000 }),
          fc.integer({ min: 1, max: 60_000_000 }),
        ),
        algorithm: fc.constant('sliding-window' as const),
        burst: fc.constant(1),
      })
      const request = fc.record({
        levels: fc.uniqueArray(fc.oneof(bucket, window), {
          selector: ({ key }) => key,
          minLength: 1,
        }),
        cost: fc.oneof(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 10, max: 40 })),
      })
      const trip = fc.record({
        pauseUs: pauses(10, 3_000_000),
        requests: fc.array(request, { minLength: 3, maxLength: 8 }),
        /** Which of the last requests are refunded: 0 is the last one. */
        refunds: fc.array(fc.nat(12), { maxLength: 3 }),
      })
      await fc.assert(
        fc.asyncProperty(fc.array(trip, { minLength: 40, maxLength: 60 }), async (trips) => {
          let nowUs = START_US
          const redis = createRedisLevels(runner, createKeys(`l${histories++}-`), () =>
            String(nowUs),
          )
          const buckets = new Map<string, number>()
          const logs = new Map<string, ChargeLog>()
          const granted: LevelRequest[] = []
          for (const each of trips) {
            nowUs += each.pauseUs
            const expected = checkLevels(buckets, each.requests, nowUs, logs)
            expect(await redis.check(each.requests)).toEqual(expected)
            requests += each.requests.length
            for (const [index, { refusedBy, atUs, fullAtUs }] of expected.entries()) {
              const charged = each.requests[index] as LevelRequest
              if (refusedBy === 0) granted.push({ ...charged, atUs, fullAtUs })
              else if (charged.levels.some(isWindow)) reached.windowRefusals++
            }
            const refunds = each.refunds.flatMap((ago) => granted.splice(-1 - ago, 1))
            if (refunds.length === 0) continue
            reached.refunds += refunds.length
            refundLevels(buckets, refunds, nowUs, logs)
            await redis.refund(refunds)
          }
        }),
        { numRuns: runs },
      )
      expect(requests).toBeGreaterThanOrEqual(120 * runs)
      if (runs < ALL_HISTORIES) return
      expect(reached.refunds).toBeGreaterThan(10 * runs)
      expect(reached.windowRefusals).toBeGreaterThan(10 * runs)
    })

    it('level scripts grant no sliding window more than its limit, and refused requests exactly after their wait', async () => {
      let nowUs = 0
      const redis = createRedisLevels(runner, createKeys(`l${histories++}-`), () => String(nowUs))
      const total = { started: 0, refunded: 0, refused: 0 }
      let key = 0
      await fc.assert(
        fc.asyncProperty(windowHistories, async (history) => {
          const counts = await replayWindow(redis, `{k${key++}}:uw`, history, (us) => {
            nowUs = us
          })
          for (const name of ['started', 'refunded', 'refused'] as const)
            total[name] += counts[name]
        }),
        { numRuns: runs },
      )
      if (runs < ALL_HISTORIES) return
      expect(Math.min(total.started, total.refunded, total.refused)).toBeGreaterThan(2 * runs)
    })

    it('limit scripts leave no key without an expiry', async () => {
      const { count, endless } = await twin.keys()
      expect(count).toBeGreaterThan(0)
      expect(endless).toEqual([])
    })
  })
}

const LEVELS = ['{u1}:u', '{u2}:u', '{*}:g', '{ip}:i']
/**
 * Levels in several slots are tested elsewhere, because a cluster cannot charge them in one step.
 */
const LEVELS_OF_ONE_SLOT = ['{u1}:u', '{u1}:u2', '{u1}:t', '{u1}:i']
/** How often the server has run a command, inside or outside a script. */
async function calls({ servers }: TwinRedis, command: string): Promise<number> {
  const pattern = new RegExp(`cmdstat_${command}:calls=(\\d+)`)
  const stats = await servers.everywhere('INFO', 'commandstats')
  return stats.reduce((sum: number, each) => sum + Number(pattern.exec(String(each))?.[1] ?? 0), 0)
}

/** A lane in which all permits of a moment are granted, and then one more call is refused by the vendor. */
function refusals(twin: TwinRedis, limits: readonly LimitSpec[]) {
  let nowUs = START_US
  const keys = createKeys(`l${histories++}-`)
  const clock = () => String(nowUs)
  const redis = createRedisLimits(twin.runner, keys, () => ({ close() {} }), clock)
  const [lane, guard] = [emptyLane(), emptyGuard()]
  const ref = { guard: 'g', lane: 'a', limits, version: 0 }
  const ones = limits.map(() => 1)
  const take = async (costs: number[]) => {
    const request = { ...ref, costs: [costs], waiter: { pod: 'p', forUs: 0 } }
    const { reply } = takePermits(lane, guard, request, nowUs)
    expect(await redis.take(request)).toEqual(reply)
    return reply
  }
  return {
    pass(us: number) {
      nowUs += us
    },
    /** Returns the first limit after the refusal. `left`: units left in the vendor's headers. */
    async refuse(costs: number[], left: FeedbackRequest['left'] = []) {
      await take(costs)
      const { granted, stamps, nowUs: grantedUs } = await take(ones)
      expect(granted).toBe(1)
      const pauses = { pauseUs: undefined, basePauseUs: 1_000, maxPauseUs: 1_000 }
      const refused = { costs: ones, booked: ones, stamps }
      const request = { ...ref, ...pauses, grantedUs, throttled: true, left, refused }
      const { reply } = applyFeedback(lane, guard, request, nowUs)
      expect(await redis.feedback(request)).toEqual(reply)
      return readLimits(lane, guard, ref, nowUs).limits[0]?.limit as number
    },
  }
}

/** A vendor gives 20 units in any 450 ms, and everything after 10 seconds. Returns the limits that were in force. */
async function replayLearning(twin: TwinRedis, limits: readonly LimitSpec[]): Promise<number[]> {
  let nowUs = START_US
  const keys = createKeys(`l${histories++}-`)
  const clock = () => String(nowUs)
  const redis = createRedisLimits(twin.runner, keys, () => ({ close() {} }), clock)
  const [lane, guard] = [emptyLane(), emptyGuard()]
  const ref = { guard: 'g', lane: 'a', limits, version: 0 }
  const accepted: number[] = []
  const seen: number[] = []
  for (let turn = 0; turn < 600; turn++) {
    nowUs += 40_000 + (turn % 7) * 1_000
    const waiter = { pod: `p${turn % 2}`, forUs: 60_000_000 }
    const take = { ...ref, costs: Array.from({ length: 10 }, () => [1]), waiter }
    const { reply } = takePermits(lane, guard, take, nowUs)
    expect(await redis.take(take)).toEqual(reply)
    const { granted, stamps, nowUs: grantedUs } = reply
    for (let call = 0; call < granted; call++) {
      const used = accepted.filter((atUs) => atUs > nowUs - 450_000).length
      if (used < 20 || nowUs > START_US + 10_000_000) accepted.push(nowUs)
      else {
        const pauses = { pauseUs: undefined, basePauseUs: 1_000, maxPauseUs: 1_000 }
        const refused = { costs: [1], booked: [1], stamps }
        const throttled = { ...ref, ...pauses, grantedUs, throttled: true, left: [], refused }
        const feedback = applyFeedback(lane, guard, throttled, nowUs).reply
        expect(await redis.feedback(throttled)).toEqual(feedback)
      }
    }
    seen.push(readLimits(lane, guard, ref, nowUs).limits[0]?.limit as number)
  }
  return seen
}
async function replay(twin: TwinRedis, history: LimitHistory): Promise<void> {
  let atUs = 0
  const keys = createKeys(`l${histories++}-`)
  const clock = () => String(atUs)
  const redis = createRedisLimits(twin.runner, keys, () => ({ close() {} }), clock)
  const seen = await replayLimits(history, async (method, request, reply, nowUs) => {
    atUs = nowUs
    const send = redis[method] as (request: unknown) => unknown
    expect(await send(request)).toEqual(reply)
  })
  reached.messages += seen.messages.length
  reached.severalWait += seen.severalWait
  reached.shared += seen.shared
  reached.members += seen.members
  lowered += seen.lowered
  const server = await twin.servers.at(keys.guard('g'))
  await server.send('PUBLISH', keys.prefix, 'end')
  await vi.waitUntil(() => twin.published.has(keys.prefix), { interval: 1 })
  for (const pod of ['p0', 'p1', 'p2']) {
    const woken = seen.messages.filter((each) => each.pod === pod).map(({ lane }) => `g ${lane}`)
    expect(twin.published.get(keys.permits(pod)) ?? []).toEqual(woken)
  }
  const all = Array.from({ length: seen.wakesAll }, () => 'g')
  expect(twin.published.get(keys.limitChanges) ?? []).toEqual(all)
}
