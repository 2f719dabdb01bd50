/**
 * Every transition exists twice, in TypeScript and in Lua. Both run the same long random histories,
 * with several pods and clock jumps, and have to give the same replies.
 */

import { describe, expect, it, vi } from 'vitest'
import { DAY_US } from '../../src/store/calendar-day.js'
import { createKeys } from '../../src/store/keys.js'
import { checkLevels, isWindow } from '../../src/store/levels/check-levels.js'
import { refundLevels } from '../../src/store/levels/refund-levels.js'
import type { ChargeLog } from '../../src/store/levels/sliding-window.js'
import type { LimitSpec } from '../../src/store/limit-spec.js'
import {
  emptyGuard,
  emptyLane,
  type GuardState,
  hasMember,
  type LaneState,
} from '../../src/store/limits/lane-state.js'
import { type Reports, reportRequests, totalRequests } from '../../src/store/limits/reports.js'
import { takePermits } from '../../src/store/limits/take-permits.js'
import {
  applyFeedback,
  bookPermits,
  changeLimits,
  type LaneTransition,
  pauseLane,
  readLimits,
  settlePermits,
} from '../../src/store/limits/transitions.js'
import type { LaneRef, LevelRequest } from '../../src/store/port.js'
import { createRedisLevels } from '../../src/store/redis/operations/redis-levels.js'
import { createRedisLimits } from '../../src/store/redis/operations/redis-limits.js'
import { dayHistories, replayDays } from '../day-histories.js'
import { fc } from '../fast-check.js'
import { poolHistories, replayPool } from '../pool-histories.js'
import { saturate } from '../saturated-fleet.js'
import { replayWindow, windowHistories } from '../window-histories.js'
import { ALL_HISTORIES, type TwinRedis } from './twin-redis.js'

/** In 2096: some keys expire at a time of the history, which must still be in the future. */
const START_US = 4_000_000_000_000_000

const HOUR_US = 3_600_000_000

/** A failing history is shrunk for at most this time. */

/** `weight`: how much more often the usual pause occurs than others. */
const pauses = (weight: number, usualUs: number) =>
  fc.oneof(
    { weight, arbitrary: fc.integer({ min: 0, max: usualUs }) },
    { weight: 3, arbitrary: fc.integer({ min: 0, max: 90_000_000 }) },
    // The clock is slightly off or was set.
    { weight: 1, arbitrary: fc.integer({ min: -4_000_000, max: -1 }) },
    { weight: 1, arbitrary: fc.integer({ min: -600_000_000, max: -5_000_001 }) },
  )
const small = fc.nat(12)
const cost = fc.oneof(
  { weight: 100, arbitrary: small },
  // More than some limits can ever grant.
  { weight: 1, arbitrary: fc.nat(400) },
)

const operations = (weight: number) =>
  fc.oneof(
    {
      weight,
      arbitrary: fc.record({
        kind: fc.constant('take' as const),
        costs: fc.array(fc.array(cost, { minLength: 3, maxLength: 3 }), { maxLength: 12 }),
        /** How long its calls can wait, if they do. */
        waitsUs: fc.option(fc.nat(60_000_000), { nil: undefined, freq: 4 }),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant('settle' as const),
        which: small,
        /** Of which reply the permit is: 0 for the last one on its lane. */
        repliesAgo: small,
        delta: fc.integer({ min: -15, max: 15 }),
        resent: fc.boolean(),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('book' as const),
        which: small,
        /** How many slices ago it was used. */
        ago: fc.integer({ min: -1, max: 14 }),
        units: fc.integer({ min: 1, max: 15 }),
        resent: fc.boolean(),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('feedback' as const),
        ago: fc.integer({ min: -1, max: 5_000_000 }),
        throttled: fc.boolean(),
        pauseUs: fc.option(fc.nat(20_000_000), { nil: undefined }),
        remaining: small,
        resetUs: fc.nat(20_000_000),
        speaks: fc.boolean(),
        /** The costs of the refused call, what is still booked, and of which reply its permit is. */
        refused: fc.array(fc.nat(3), { minLength: 3, maxLength: 3 }),
        booked: fc.boolean(),
        repliesAgo: fc.nat(2),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('change' as const),
        factors: fc.record({
          limit: fc.constantFrom(0.5, 1, 2),
          window: fc.constantFrom(1, 1, 0.75),
        }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('override' as const),
        limit: fc.integer({ min: 1, max: 40 }),
        forUs: fc.nat(40_000_000),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('pause' as const),
        whole: fc.boolean(),
        forUs: fc.oneof(fc.constant(0), fc.nat(20_000_000)),
      }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('figures' as const) }) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('report' as const), requests: fc.nat(1_000) }),
    },
  )

const OLD_POD = 2
/** Pods may have older limits than others; one belongs to an older release. */
const pods = (weight: number) =>
  fc.oneof(
    { weight, arbitrary: fc.nat(OLD_POD - 1) },
    { weight: 1, arbitrary: fc.constant(OLD_POD) },
  )

interface Kind {
  spec: fc.Arbitrary<Omit<LimitSpec, 'id'>>
  /** Both lanes are in it. Its limits come first. Default: none. */
  pool?: string
  usualPauseUs: number
  weight: number
}

const anyLimits: Kind = {
  spec: fc.record({
    algorithm: fc.constantFrom('sliding-window', 'token-bucket', 'leaky-bucket', 'fixed-window'),
    limit: fc.integer({ min: 1, max: 30 }),
    windowUs: fc.integer({ min: 20_000_000, max: 60_000_000 }),
    slices: fc.integer({ min: 1, max: 12 }),
    burst: fc.nat(20),
    span: fc.constantFrom('lane', 'vendor'),
  }),
  usualPauseUs: 3_000_000,
  weight: 10,
}

/** Traffic that takes the fast path in include/fast-take.lua. */
const usualTraffic: Kind = {
  spec: fc.record({
    algorithm: fc.constant('sliding-window'),
    limit: fc.oneof(
      { weight: 1, arbitrary: fc.integer({ min: 20, max: 2_000 }) },
      { weight: 3, arbitrary: fc.integer({ min: 2_000, max: 20_000 }) },
    ),
    windowUs: fc.integer({ min: 20_000_000, max: 60_000_000 }),
    slices: fc.integer({ min: 1, max: 12 }),
    burst: fc.constant(0),
    span: fc.constant('lane'),
  }),
  usualPauseUs: 100_000,
  weight: 1_000,
}

/** Small windows and short pauses, so that several pods wait and are due at the same time. */
const saturated: Kind = {
  spec: fc.record({
    algorithm: fc.constantFrom('sliding-window', 'token-bucket', 'leaky-bucket', 'fixed-window'),
    limit: fc.integer({ min: 30, max: 200 }),
    windowUs: fc.integer({ min: 1_000_000, max: 3_000_000 }),
    slices: fc.integer({ min: 1, max: 12 }),
    burst: fc.nat(60),
    span: fc.constantFrom('lane', 'lane', 'vendor'),
  }),
  usualPauseUs: 150_000,
  weight: 30,
}

/** Short windows in full use, so that limits are lowered and raised again. */
const learning: Kind = {
  spec: fc.record({
    algorithm: fc.constantFrom(
      ...(['sliding-window', 'sliding-window', 'token-bucket', 'fixed-window'] as const),
    ),
    limit: fc.integer({ min: 10, max: 60 }),
    windowUs: fc.integer({ min: 200_000, max: 2_000_000 }),
    slices: fc.integer({ min: 1, max: 12 }),
    burst: fc.constantFrom(0, 0, 20),
    span: fc.constantFrom('lane', 'lane', 'vendor'),
    learn: fc.constantFrom(true, true, false),
  }),
  usualPauseUs: 150_000,
  weight: 12,
}

/** Calendar days, in a zone whose clock changes twice soon. */
const calendarDays: Kind = {
  spec: fc.record({
    algorithm: fc.constant('fixed-window'),
    limit: fc.integer({ min: 5, max: 150 }),
    windowUs: fc.constant(DAY_US),
    slices: fc.constant(30),
    burst: fc.constant(0),
    span: fc.constantFrom('lane', 'lane', 'vendor'),
    day: fc.record({
      offsets: fc
        .tuple(...[-12, 0, 13].map((most) => fc.integer({ min: most - 1, max: most + 1 })))
        .chain(([first = 0, second = 0, third = 0]) =>
          fc
            .tuple(fc.nat(40), fc.integer({ min: 41, max: 90 }))
            .map(([one, two]) => [
              first * HOUR_US,
              START_US + one * HOUR_US,
              second * HOUR_US,
              START_US + two * HOUR_US,
              third * HOUR_US,
            ]),
        ),
      quietUs: fc.constantFrom(0, 100_000, HOUR_US),
    }),
  }),
  usualPauseUs: HOUR_US,
  weight: 10,
}

/** As `saturated`, with limits of a pool, of its lanes and of all lanes. */
const pooled: Kind = {
  ...saturated,
  spec: fc.record({
    algorithm: fc.constantFrom('sliding-window', 'token-bucket', 'leaky-bucket', 'fixed-window'),
    limit: fc.integer({ min: 5, max: 150 }),
    windowUs: fc.integer({ min: 1_000_000, max: 20_000_000 }),
    slices: fc.integer({ min: 1, max: 12 }),
    burst: fc.nat(60),
    span: fc.constantFrom('pool', 'lane', 'lane', 'vendor'),
  }),
  pool: 'p {1}',
}

/** As `usualTraffic`, in a pool. */
const pooledTraffic: Kind = {
  ...usualTraffic,
  spec: usualTraffic.spec.map((each) => ({ ...each, span: 'pool' as const })),
  pool: 'p {1}',
}

const historyOf = ({ spec, pool, usualPauseUs, weight }: Kind) =>
  fc.record({
    pool: fc.constant(pool),
    /** Whether the older release knows the pool. */
    oldKnowsPool: fc.boolean(),
    specs: fc
      .array(spec, { minLength: 1, maxLength: 3 })
      .map((specs) => specs.map((each, index) => ({ ...each, id: `unit${index}` })))
      .map((specs) => (pool === undefined ? specs : withPoolFirst(specs))),
    /** The older release knows only the first limit, with other values. */
    oldFactors: fc.record({
      limit: fc.constantFrom(0.5, 1, 2),
      window: fc.constantFrom(1, 1, 1, 0.7, 1.3),
    }),
    steps: fc.array(
      fc.record({
        pauseUs: pauses(weight, usualPauseUs),
        lane: fc.constantFrom('a', 'b'),
        pod: pods(Math.min(weight, 200)),
        operation: operations(weight),
      }),
      { minLength: 100, maxLength: 160 },
    ),
  })

function withPoolFirst(specs: readonly LimitSpec[]): LimitSpec[] {
  const [first, ...others] = specs as [LimitSpec, ...LimitSpec[]]
  return [{ ...first, span: 'pool' }, ...others]
}

type History = ReturnType<typeof historyOf> extends fc.Arbitrary<infer T> ? T : never

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

function changedBy(spec: LimitSpec, factors: { limit: number; window: number }): LimitSpec {
  return {
    ...spec,
    limit: Math.max(1, Math.round(spec.limit * factors.limit)),
    windowUs: Math.round(spec.windowUs * factors.window),
  }
}

/** How often the server has run a command, inside or outside a script. */
async function calls({ servers }: TwinRedis, command: string): Promise<number> {
  const pattern = new RegExp(`cmdstat_${command}:calls=(\\d+)`)
  const stats = await servers.everywhere('INFO', 'commandstats')
  return stats.reduce((sum: number, each) => sum + Number(pattern.exec(String(each))?.[1] ?? 0), 0)
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

async function replay(
  twin: TwinRedis,
  { specs, pool, oldKnowsPool, oldFactors, steps }: History,
): Promise<void> {
  let nowUs = START_US
  const keys = createKeys(`l${histories++}-`)
  const redis = createRedisLimits(
    twin.runner,
    keys,
    () => ({ close() {} }),
    () => String(nowUs),
  )
  /** Messages that wake pods, by channel. */
  const expected = new Map<string, string[]>()
  const expectMessage = (channel: string, text: string) =>
    expected.set(channel, [...(expected.get(channel) ?? []), text])
  const lanes: Record<string, LaneState> = { a: emptyLane(), b: emptyLane() }
  const pools: Record<string, LaneState> = pool === undefined ? {} : { [pool]: emptyLane() }
  let guard: GuardState = emptyGuard()
  /** Where the state of a lane is kept, and the state of a lane with limits beside those of its pool. */
  const homeOf = ({ lane, pool }: { lane: string; pool?: string | undefined }) =>
    pool === undefined ? ([lanes, lane] as const) : ([pools, pool] as const)
  const memberOf = (request: Pick<LaneRef, 'lane' | 'pool' | 'limits'>) =>
    hasMember(request) ? structuredClone(lanes[request.lane] as LaneState) : undefined
  /** Runs a transition on copies and keeps the changed ones. */
  const mine = <R extends Pick<LaneRef, 'lane' | 'pool' | 'limits'>, T>(
    transition: LaneTransition<R, T>,
    request: R,
  ): T => {
    const [states, name] = homeOf(request)
    const lane = structuredClone(states[name] as LaneState)
    const ofGuard = structuredClone(guard)
    const member = memberOf(request)
    const kept = transition(lane, ofGuard, request, nowUs, member)
    const { reply, laneLifeUs, guardLifeUs, memberLifeUs, message, wakesAll } = kept
    if (laneLifeUs !== undefined) states[name] = lane
    if (guardLifeUs !== undefined) guard = ofGuard
    if (memberLifeUs !== undefined) lanes[request.lane] = member as LaneState
    if (member !== undefined && memberLifeUs !== undefined) reached.members++
    if (message) expectMessage(keys.permits(message.pod), `g ${message.lane}`)
    if (wakesAll) expectMessage(keys.limitChanges, 'g')
    if (message) reached.messages++
    if (lane.waiting.length + ofGuard.waiting.length > 2) reached.severalWait++
    return reply
  }
  const oldPool = oldKnowsPool ? pool : undefined
  const oldSpecs = specs.slice(0, 1).map((each) => ({
    ...changedBy(each, oldFactors),
    span: each.span === 'pool' && oldPool === undefined ? ('lane' as const) : each.span,
  }))
  /** The limits that each pod was started with, and those it uses now. */
  const releases = [specs, specs, oldSpecs]
  const knownLimits = releases.map((limits) => ({ limits, version: 0 }))
  /** By lane, the last reply first. */
  const stamps: Record<string, number[][]> = {}
  const reports: Reports = new Map()
  let sequence = 0

  for (const { pauseUs, lane: name, pod: number, operation: op } of steps) {
    nowUs += pauseUs
    const release = releases[number] as LimitSpec[]
    const known = knownLimits[number] as (typeof knownLimits)[number]
    const ref = { guard: 'g', lane: name, pool: number === OLD_POD ? oldPool : pool, ...known }
    const refusedBy = (op: { refused: number[]; booked: boolean; repliesAgo: number }) => {
      const costs = op.refused.slice(0, release.length)
      const booked = costs.map((units) => (op.booked ? units : 0))
      const stampsOf = stamps[name]?.[op.repliesAgo] ?? []
      return { costs, booked, stamps: costs.map((_, index) => stampsOf[index] ?? 0) }
    }
    switch (op.kind) {
      case 'take': {
        const costs = op.costs.map((each) => each.slice(0, release.length))
        const waiter =
          op.waitsUs === undefined ? undefined : { pod: `p${number}`, forUs: op.waitsUs }
        const request = { ...ref, costs, waiter }
        const reply = mine(takePermits, request)
        expect(await redis.take(request)).toEqual(reply)
        if (reply.granted > 0 && reply.waitUs === 50_000) reached.shared++
        stamps[name] = [[...reply.stamps], ...(stamps[name] ?? [])]
        const { newer } = reply
        if (newer) knownLimits[number] = { limits: [...newer.limits], version: newer.version }
        break
      }
      case 'settle': {
        const limit = op.which % release.length
        const stamp = (stamps[name]?.[op.repliesAgo]?.[limit] ?? 0) - (op.which % 3)
        // Nothing to settle only wakes the next pod.
        const settlements = op.delta === 0 ? [] : [{ limit, stamp, delta: op.delta }]
        const request = { ...ref, pod: 'p', sequence: ++sequence, settlements }
        expect(await redis.settle(request)).toBe(mine(settlePermits, request))
        if (op.resent) expect(await redis.settle(request)).toBe(0)
        break
      }
      case 'book': {
        const limit = op.which % release.length
        const spent = [
          { limit, stamp: (stamps[name]?.[0]?.[limit] ?? 0) - op.ago, units: op.units },
        ]
        const request = { ...ref, pod: 'b', sequence: ++sequence, spent }
        mine(bookPermits, request)
        await redis.book(request)
        if (op.resent) await redis.book(request)
        break
      }
      case 'feedback': {
        const request = {
          ...ref,
          grantedUs: op.ago < 0 ? 0 : nowUs - op.ago,
          throttled: op.throttled,
          pauseUs: op.pauseUs,
          basePauseUs: 500_000,
          maxPauseUs: 15_000_000,
          left: op.speaks ? [{ limit: 0, remaining: op.remaining, resetUs: op.resetUs }] : [],
          refused:
            op.throttled && ref.limits.some(({ learn }) => learn) ? refusedBy(op) : undefined,
        }
        const reply = mine(applyFeedback, request)
        expect(await redis.feedback(request)).toEqual(reply)
        if (reply.learned !== undefined) lowered++
        break
      }
      case 'change': {
        const changed = release.map((each) => changedBy(each, op.factors))
        const version = mine(changeLimits, { ...ref, limits: changed })
        expect(await redis.change({ ...ref, limits: changed })).toBe(version)
        knownLimits[number] = { limits: changed, version }
        break
      }
      case 'override': {
        const override = { id: 'unit0', limit: op.limit, forUs: op.forUs }
        expect(await redis.change({ ...ref, override })).toBe(
          mine(changeLimits, { ...ref, override }),
        )
        break
      }
      case 'pause': {
        const whole = { lane: undefined, pool: undefined }
        const pauseRequest = {
          forUs: op.forUs,
          ...(op.whole ? whole : { lane: name, pool: ref.pool }),
        }
        // For all lanes the script reads a lane without a name.
        if (op.whole) lanes[''] = emptyLane()
        const until = mine((lane, guards, _, now) => pauseLane(lane, guards, pauseRequest, now), {
          lane: op.whole ? '' : name,
          pool: pauseRequest.pool,
          limits: [],
        })
        expect(await redis.pause({ guard: 'g', ...pauseRequest })).toBe(until)
        break
      }
      case 'report': {
        const request = { guard: 'g', pod: `p${number}`, requests: op.requests }
        reportRequests(reports, request.pod, request.requests, nowUs)
        await redis.report(request)
        break
      }
      case 'figures': {
        const [states, home] = homeOf(ref)
        const figures = readLimits(states[home] as LaneState, guard, ref, nowUs, memberOf(ref))
        expect(await redis.figures(ref)).toEqual({
          ...figures,
          requestsLastMinute: totalRequests(reports, figures.nowUs),
        })
      }
    }
  }
  const server = await twin.servers.at(keys.guard('g'))
  await server.send('PUBLISH', keys.prefix, 'end')
  await vi.waitUntil(() => twin.published.has(keys.prefix), { interval: 1 })
  const channels = [...[0, 1, 2].map((pod) => keys.permits(`p${pod}`)), keys.limitChanges]
  for (const channel of channels) {
    expect(twin.published.get(channel) ?? []).toEqual(expected.get(channel) ?? [])
  }
}
