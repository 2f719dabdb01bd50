/**
 * Every transition exists twice, in TypeScript and in Lua. Both are fed the same long random
 * histories, several pods and jumps of the clock included, and have to give the same replies.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { systemClock } from '../src/core/clock.js'
import { createKeys } from '../src/store/keys.js'
import { checkLevels } from '../src/store/levels/check-levels.js'
import type { LimitSpec } from '../src/store/limit-spec.js'
import {
  emptyGuard,
  emptyLane,
  type GuardState,
  type LaneState,
} from '../src/store/limits/lane-state.js'
import { type Reports, reportRequests, totalRequests } from '../src/store/limits/reports.js'
import {
  applyFeedback,
  changeLimits,
  type Kept,
  readLimits,
  settlePermits,
  takePermits,
} from '../src/store/limits/transitions.js'
import { connectNodeRedis } from '../src/store/redis/node-redis.js'
import { createRedisLevels } from '../src/store/redis/redis-levels.js'
import { createRedisLimits } from '../src/store/redis/redis-limits.js'
import { createScriptRunner, type ScriptRunner } from '../src/store/redis/runner.js'
import { type RedisServer, startRedis } from './redis-server.js'

let server: RedisServer
let runner: ScriptRunner
beforeAll(async () => {
  server = await startRedis()
  const client = connectNodeRedis({ url: server.url })
  runner = createScriptRunner(client, { commandTimeoutMs: 5_000, clock: systemClock })
  await vi.waitUntil(() => client.ready, { timeout: 5_000 })
})
afterAll(async () => {
  await runner.close()
  await server.stop()
})

const START_US = 1_900_000_000_000_000

const spec = fc.record({
  algorithm: fc.constantFrom('sliding-window', 'token-bucket', 'leaky-bucket', 'fixed-window'),
  limit: fc.integer({ min: 1, max: 30 }),
  windowUs: fc.integer({ min: 20_000_000, max: 60_000_000 }),
  slices: fc.integer({ min: 1, max: 12 }),
  burst: fc.nat(20),
  span: fc.constantFrom('lane', 'vendor'),
})
const limits = fc
  .array(spec, { minLength: 1, maxLength: 3 })
  .map((specs) => specs.map((each, index) => ({ ...each, id: `unit${index}` }) as LimitSpec))

const pause = fc.oneof(
  { weight: 10, arbitrary: fc.integer({ min: 0, max: 3_000_000 }) },
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 90_000_000 }) },
  // The clock is a little off, or was set.
  { weight: 1, arbitrary: fc.integer({ min: -4_000_000, max: -1 }) },
  { weight: 1, arbitrary: fc.integer({ min: -600_000_000, max: -5_000_001 }) },
)
const small = fc.nat(12)
const operation = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant('take' as const),
      costs: fc.array(fc.array(small, { minLength: 3, maxLength: 3 }), { maxLength: 6 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      which: small,
      delta: fc.integer({ min: -15, max: 15 }),
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
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('change' as const),
      factor: fc.constantFrom(0.5, 1, 2),
      windowFactor: fc.constantFrom(1, 1, 0.75),
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
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('figures' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('report' as const), requests: fc.nat(1_000) }),
  },
)
const step = fc.record({
  pauseUs: pause,
  lane: fc.constantFrom('a', 'b'),
  /** Pods may believe in older limits than others do. */
  pod: fc.nat(2),
  operation,
})

let histories = 0
let steps = 0

describe('the Lua scripts', () => {
  it('give the same replies as the TypeScript transitions, over ten thousand steps', async () => {
    await fc.assert(
      fc.asyncProperty(
        limits,
        fc.array(step, { minLength: 100, maxLength: 160 }),
        async (specs, plan) => {
          await replay(specs, plan)
          steps += plan.length
        },
      ),
      { numRuns: 110 },
    )
    expect(steps).toBeGreaterThan(10_000)
  }, 120_000)

  it('charge levels as the TypeScript transition does, over ten thousand requests', async () => {
    let requests = 0
    const level = fc.record({
      key: fc.constantFrom('{u1}:u', '{u2}:u', '{*}:g', '{ip}:i'),
      limit: fc.integer({ min: 1, max: 20 }),
      windowUs: fc.integer({ min: 1, max: 60_000_000 }),
      burst: fc.integer({ min: 1, max: 25 }),
    })
    const request = fc.record({
      levels: fc.uniqueArray(level, { selector: ({ key }) => key, minLength: 1 }),
      cost: fc.integer({ min: 1, max: 6 }),
    })
    const trip = fc.record({
      pauseUs: pause,
      requests: fc.array(request, { minLength: 3, maxLength: 8 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(trip, { minLength: 40, maxLength: 60 }), async (trips) => {
        let nowUs = START_US
        const redis = createRedisLevels(runner, createKeys(`t${histories++}-`), () => String(nowUs))
        const buckets = new Map<string, number>()
        for (const each of trips) {
          nowUs += each.pauseUs
          expect(await redis.check(each.requests)).toEqual(
            checkLevels(buckets, each.requests, nowUs),
          )
          requests += each.requests.length
        }
      }),
      { numRuns: 120 },
    )
    expect(requests).toBeGreaterThan(10_000)
  }, 120_000)

  it('leave no key without an end', async () => {
    const keys = (await server.send('KEYS', '*')) as string[]
    expect(keys.length).toBeGreaterThan(0)
    // -1: never ends; -2: ended meanwhile.
    for (const key of keys) expect(await server.send('PTTL', key)).not.toBe(-1)
  })
})

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

async function replay(specs: LimitSpec[], plan: Step[]): Promise<void> {
  let nowUs = START_US
  const redis = createRedisLimits(runner, createKeys(`t${histories++}-`), () => String(nowUs))
  const lanes: Record<string, LaneState> = { a: emptyLane(), b: emptyLane() }
  let guard: GuardState = emptyGuard()
  /** Runs a transition on copies, and keeps those it says have to be kept. */
  const mine = <R extends { lane: string }, T>(
    transition: (lane: LaneState, guard: GuardState, request: R, now: number) => Kept<T>,
    request: R,
  ): T => {
    const lane = structuredClone(lanes[request.lane] as LaneState)
    const ofGuard = structuredClone(guard)
    const { reply, laneLifeUs, guardLifeUs } = transition(lane, ofGuard, request, nowUs)
    if (laneLifeUs !== undefined) lanes[request.lane] = lane
    if (guardLifeUs !== undefined) guard = ofGuard
    return reply
  }
  const beliefs = [0, 1, 2].map(() => ({ limits: specs, version: 0 }))
  const stamps: Record<string, number[]> = {}
  const reports: Reports = new Map()
  let sequence = 0

  for (const { pauseUs, lane: name, pod, operation: op } of plan) {
    nowUs += pauseUs
    const belief = beliefs[pod] as (typeof beliefs)[number]
    const ref = { guard: 'g', lane: name, ...belief }
    switch (op.kind) {
      case 'take': {
        const costs = op.costs.map((each) => each.slice(0, specs.length))
        const reply = mine(takePermits, { ...ref, costs })
        expect(await redis.take({ ...ref, costs })).toEqual(reply)
        stamps[name] = [...reply.stamps]
        const { newer } = reply
        if (newer) beliefs[pod] = { limits: [...newer.limits], version: newer.version }
        break
      }
      case 'settle': {
        const limit = op.which % specs.length
        const stamp = (stamps[name]?.[limit] ?? 0) - (op.which % 3)
        const settlements = [{ limit, stamp, delta: op.delta }]
        const request = { ...ref, pod: 'p', sequence: ++sequence, settlements }
        mine(settlePermits, request)
        await redis.settle(request)
        if (op.resent) await redis.settle(request)
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
        }
        expect(await redis.feedback(request)).toBe(mine(applyFeedback, request))
        break
      }
      case 'change': {
        const changed = specs.map((each) => ({
          ...each,
          limit: Math.max(1, Math.round(each.limit * op.factor)),
          windowUs: Math.round(each.windowUs * op.windowFactor),
        }))
        const version = mine(changeLimits, { ...ref, limits: changed })
        expect(await redis.change({ ...ref, limits: changed })).toBe(version)
        beliefs[pod] = { limits: changed, version }
        break
      }
      case 'override': {
        const override = { id: 'unit0', limit: op.limit, forUs: op.forUs }
        expect(await redis.change({ ...ref, override })).toBe(
          mine(changeLimits, { ...ref, override }),
        )
        break
      }
      case 'report': {
        const request = { guard: 'g', pod: `p${pod}`, requests: op.requests }
        reportRequests(reports, request.pod, request.requests, nowUs)
        await redis.report(request)
        break
      }
      case 'figures': {
        const figures = readLimits(lanes[name] as LaneState, guard, ref, nowUs)
        expect(await redis.figures(ref)).toEqual({
          ...figures,
          requestsLastMinute: totalRequests(reports, figures.nowUs),
        })
      }
    }
  }
}
