/**
 * A permit request with piggybacked outcomes is two transitions in one step, in TypeScript and in
 * Lua. Both run the same long random histories, in which requests and reports arrive together or
 * alone, are repeated, and meet paused lanes, open breakers and clock jumps. They have to give the
 * same replies and publish the same views.
 */

import { describe, expect, it, vi } from 'vitest'
import { type BreakerState, emptyBreaker } from '../../src/store/breaker/breaker-state.js'
import {
  type BreakerKept,
  commandBreaker,
  reportOutcomes,
  syncBreaker,
  takeProbes,
} from '../../src/store/breaker/transitions.js'
import type { BreakerSpec } from '../../src/store/breaker-spec.js'
import { createKeys } from '../../src/store/keys.js'
import type { LimitSpec } from '../../src/store/limit-spec.js'
import {
  emptyGuard,
  emptyLane,
  type GuardState,
  hasMember,
  type LaneState,
} from '../../src/store/limits/lane-state.js'
import { takePermits } from '../../src/store/limits/take-permits.js'
import {
  applyFeedback,
  changeLimits,
  type LaneTransition,
} from '../../src/store/limits/transitions.js'
import { createMemoryPods } from '../../src/store/memory/memory-pods.js'
import type {
  BreakerReport,
  BreakerView,
  LaneRef,
  TakeReply,
  TakeRequest,
} from '../../src/store/port.js'
import {
  createRedisBreakers,
  readPublished,
} from '../../src/store/redis/operations/redis-breakers.js'
import { createRedisLimits } from '../../src/store/redis/operations/redis-limits.js'
import { createRedisPods } from '../../src/store/redis/operations/redis-pods.js'
import { fc } from '../fast-check.js'
import { ALL_HISTORIES, type TwinRedis } from './twin-redis.js'

/** In 2033; no key expires within a history, because expiry uses the server's time. */
const START_US = 2_000_000_000_000_000
const GUARD = 'g:{1}%'
/** Lanes of the limits. The breaker uses the same lanes or one for all. */
const LANES = ['a', '{ü b}'] as const
const BREAKERS = [...LANES, ''] as const
const PODS = ['1', 'constructor', 'a b:{c}%'] as const

const limit = (
  fc.record({
    algorithm: fc.constantFrom('sliding-window', 'sliding-window', 'token-bucket', 'fixed-window'),
    limit: fc.constantFrom(3, 20, 1_000, 1_000),
    windowUs: fc.integer({ min: 20_000_000, max: 60_000_000 }),
    slices: fc.integer({ min: 1, max: 12 }),
    burst: fc.nat(20),
    span: fc.constantFrom('lane', 'lane', 'lane', 'vendor'),
  }) as fc.Arbitrary<Omit<LimitSpec, 'id'>>
)
  // Without a draw of its own, so that a seed gives the same histories as before.
  .map((each) => ({ ...each, learn: each.windowUs % 3 === 0 }))
/** Limits that take the fast path in include/fast-take.lua. */
const usual = limit.map((each): typeof each => ({
  ...each,
  algorithm: 'sliding-window',
  limit: 1_000,
  span: 'lane',
}))
const isUsual = ({ algorithm, span }: LimitSpec) =>
  algorithm === 'sliding-window' && span !== 'vendor'
const limits = fc
  .oneof(
    fc.array(limit, { minLength: 1, maxLength: 2 }),
    fc.array(usual, { minLength: 1, maxLength: 2 }),
  )
  .map((specs) => specs.map((each, index): LimitSpec => ({ ...each, id: `unit${index}` })))
/** Half of the histories are of lanes in a pool, whose limits come first. */
const allLimits = fc
  .tuple(limits, fc.boolean())
  .map(([specs, pooled]) =>
    specs.map((each, index) => (pooled && index === 0 ? { ...each, span: 'pool' as const } : each)),
  )

const breaker: fc.Arbitrary<BreakerSpec> = fc.record({
  consecutive: fc.constantFrom(0, 3, 5),
  failureRate: fc.constantFrom(0.3, 0.5, 0.8),
  slowRate: fc.constantFrom(0, 0.5),
  windowUs: fc.integer({ min: 20_000_000, max: 60_000_000 }),
  windowCalls: fc.constant(0),
  minimumCalls: fc.integer({ min: 2, max: 10 }),
  openUs: fc.integer({ min: 500_000, max: 5_000_000 }),
  openFactor: fc.constantFrom(1, 1.5),
  maxOpenUs: fc.constant(20_000_000),
  probes: fc.integer({ min: 1, max: 3 }),
  successes: fc.integer({ min: 1, max: 2 }),
  probeLeaseUs: fc.integer({ min: 500_000, max: 20_000_000 }),
  quorum: fc.constantFrom(1, 1, 2),
})

const pauseUs = fc.oneof(
  { weight: 40, arbitrary: fc.integer({ min: 0, max: 300_000 }) },
  { weight: 4, arbitrary: fc.integer({ min: 0, max: 20_000_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: -4_000_000, max: -1 }) },
  { weight: 1, arbitrary: fc.integer({ min: -600_000_000, max: -5_000_001 }) },
)
const reported = fc.record({
  breaker: fc.constantFrom(...BREAKERS),
  pod: fc.constantFrom(...PODS),
  outcomes: fc.array(fc.tuple(fc.constantFrom(0, 0, 0, 1, 1, 2), fc.integer({ min: 1, max: 4 })), {
    maxLength: 4,
  }),
  stale: fc.nat(9).map((chance) => chance === 0),
  /** Repeats the last report of this pod in this lane, whose reply may have been lost. */
  again: fc.nat(4).map((chance) => chance === 0),
})
const operation = fc.oneof(
  {
    weight: 14,
    arbitrary: fc.record({
      kind: fc.constant('take' as const),
      costs: fc.array(fc.tuple(fc.nat(3), fc.nat(3)), { maxLength: 5 }),
      reported: fc.option(reported, { nil: undefined, freq: 4 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('report' as const), reported }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('probe' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('sync' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('isolate' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('pause' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('change' as const), factor: fc.constantFrom(0.5, 2) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('beat' as const) }) },
)
const step = fc.record({
  pauseUs,
  lane: fc.constantFrom(...LANES),
  breaker: fc.constantFrom(...BREAKERS),
  pod: fc.constantFrom(...PODS),
  operation,
})
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never
type Reported = typeof reported extends fc.Arbitrary<infer T> ? T : never

let histories = 0
const reached = {
  together: 0,
  refused: 0,
  paused: 0,
  granted: 0,
  newer: 0,
  again: 0,
  trips: 0,
  whileOpen: 0,
  probesEnded: 0,
  setBack: 0,
  published: 0,
  lowered: 0,
}

export function claimPiggybackTwins(twin: TwinRedis, runs = ALL_HISTORIES): void {
  describe('Lua script of a permit request with piggybacked outcomes', () => {
    it(`piggyback script replies and publishes like the TypeScript transitions over ${100 * runs} steps`, async () => {
      let steps = 0
      await fc.assert(
        fc.asyncProperty(
          allLimits,
          breaker,
          fc.array(step, { minLength: 100, maxLength: 160, size: 'max' }),
          async (...history) => {
            await replay(twin, ...history)
            steps += history[2].length
          },
        ),
        { numRuns: runs },
      )
      expect(steps).toBeGreaterThanOrEqual(100 * runs)
      if (runs < ALL_HISTORIES) return
      // Makes sure that the histories reach every interesting state.
      for (const [what, times] of Object.entries(reached)) {
        expect(times, what).toBeGreaterThan(runs / 4)
      }
      // Many permits were granted on the fast path.
      const stats = String(await twin.servers.everywhere('INFO', 'commandstats'))
      expect(Number(/cmdstat_setrange:calls=(\d+)/.exec(stats)?.[1])).toBeGreaterThan(2 * runs)
    })

    it('piggyback script leaves no key without an expiry', async () => {
      const { count, endless } = await twin.keys()
      expect(count).toBeGreaterThan(0)
      expect(endless).toEqual([])
    })
  })
}

async function replay(
  twin: TwinRedis,
  specs: LimitSpec[],
  spec: BreakerSpec,
  plan: Step[],
): Promise<void> {
  let nowUs = START_US
  const keys = createKeys(`r${histories++}-`)
  const time = () => String(nowUs)
  const redis = {
    limits: createRedisLimits(twin.runner, keys, () => ({ close() {} }), time),
    breakers: createRedisBreakers(twin.runner, keys, () => ({ close() {} }), time),
    pods: createRedisPods(twin.runner, keys, time),
  }
  const memoryPods = createMemoryPods(() => nowUs)
  const lanes: Record<string, LaneState> = Object.fromEntries(
    LANES.map((lane) => [lane, emptyLane()]),
  )
  const pool = specs[0]?.span === 'pool' ? 'p {1}' : undefined
  const pools: Record<string, LaneState> = { 'p {1}': emptyLane() }
  let guard: GuardState = emptyGuard()
  const breakers = new Map<string, BreakerState>(BREAKERS.map((each) => [each, emptyBreaker()]))
  const views = new Map<string, BreakerView>()
  const probes = new Map<string, string[]>(BREAKERS.map((each) => [each, []]))
  const sequences = new Map<string, number>()
  const lastReports = new Map<string, BreakerReport>()
  const expected: ReturnType<typeof readPublished>[] = []
  let belief = { limits: specs, version: 0 }
  /** Of the last grant in each lane, by limit. */
  const stamps = new Map<string, readonly number[]>()
  let numbers = 0

  /** Runs a transition on copies and keeps the changed ones. */
  function onLimits<R extends Pick<LaneRef, 'lane' | 'limits'>, T>(
    transition: LaneTransition<R, T>,
    request: R,
  ): T {
    const [states, home] = pool === undefined ? [lanes, request.lane] : [pools, pool]
    const lane = structuredClone(states[home] as LaneState)
    const ofGuard = structuredClone(guard)
    const isMember = hasMember({ pool, limits: request.limits })
    const member = isMember ? structuredClone(lanes[request.lane] as LaneState) : undefined
    const kept = transition(lane, ofGuard, request, nowUs, member)
    const { reply, laneLifeUs, guardLifeUs, memberLifeUs } = kept
    if (laneLifeUs !== undefined) states[home] = lane
    if (guardLifeUs !== undefined) guard = ofGuard
    if (memberLifeUs !== undefined) lanes[request.lane] = member as LaneState
    return reply
  }
  function onBreaker<R extends { lane: string }, T>(
    transition: (state: BreakerState, request: R, now: number) => BreakerKept<T>,
    request: R,
  ): T {
    const before = breakers.get(request.lane) as BreakerState
    const state = structuredClone(before)
    const { reply, lifeUs, published: view } = transition(state, request, nowUs)
    if (lifeUs !== undefined) breakers.set(request.lane, state)
    if (view !== undefined) expected.push({ guard: GUARD, lane: request.lane, view })
    if (before.kind === 0 && state.kind === 1) reached.trips++
    if (before.timeUs - nowUs > 5_000_000) reached.setBack++
    return reply
  }
  function report(request: BreakerReport): BreakerView {
    const key = `${request.lane} ${request.pod}`
    if ((sequences.get(key) ?? 0) >= request.sequence) {
      return onBreaker(syncBreaker, { ...request, renew: [] })
    }
    sequences.set(key, request.sequence)
    const live = spec.quorum > 1 ? memoryPods.live(GUARD) : 1
    return onBreaker((state, each, now) => reportOutcomes(state, each, now, live), request)
  }
  function reportOf({ breaker: lane, pod, outcomes, stale, again }: Reported): BreakerReport {
    const key = `${lane} ${pod}`
    const last = lastReports.get(key)
    if (again && last !== undefined) {
      reached.again++
      return last
    }
    const ended = probes.get(lane)?.splice(0, 1) ?? []
    reached.probesEnded += ended.length
    const request: BreakerReport = {
      guard: GUARD,
      lane,
      spec,
      pod,
      sequence: ++numbers,
      generation: (views.get(lane)?.generation ?? 0) - (stale ? 1 : 0),
      outcomes,
      probes: ended.map((name) => [name, outcomes[0]?.[0] ?? 3]),
    }
    lastReports.set(key, request)
    return request
  }
  function take({ report: along, ...request }: TakeRequest): TakeReply {
    const reply = onLimits(takePermits, request)
    return along === undefined ? reply : { ...reply, view: report(along) }
  }

  for (const { pauseUs: howLong, lane, breaker: breakerLane, pod, operation: op } of plan) {
    nowUs += howLong
    const ref = { guard: GUARD, lane, pool, ...belief }
    const breakerRef = { guard: GUARD, lane: breakerLane, spec }
    switch (op.kind) {
      case 'take': {
        const costs = op.costs.map((each) => each.slice(0, specs.length))
        const along = op.reported && reportOf(op.reported)
        const request = { ...ref, costs, ...(along && { report: along }) }
        const wasOpen = along !== undefined && views.get(along.lane)?.kind === 1
        const reply = take(request)
        expect(await redis.limits.take(request)).toEqual(reply)
        if (reply.newer) belief = { limits: [...reply.newer.limits], version: reply.newer.version }
        stamps.set(lane, reply.stamps)
        if (along === undefined) break
        views.set(along.lane, reply.view as BreakerView)
        reached.together++
        if (reply.granted < costs.length) reached.refused++
        if (reply.paused) reached.paused++
        if (reply.granted > 0) reached.granted++
        if (reply.newer) reached.newer++
        if (wasOpen) reached.whileOpen++
        break
      }
      case 'report': {
        const request = reportOf(op.reported)
        const view = report(request)
        expect(await redis.breakers.report(request)).toEqual(view)
        views.set(request.lane, view)
        break
      }
      case 'probe': {
        const request = { ...breakerRef, probes: [`probe ${++numbers}`] }
        const reply = onBreaker(takeProbes, request)
        expect(await redis.breakers.probe(request)).toEqual(reply)
        if (reply.granted > 0) probes.get(breakerLane)?.push(...request.probes)
        views.set(breakerLane, reply.view)
        break
      }
      case 'sync': {
        const requests = BREAKERS.map((each) => ({ ...breakerRef, lane: each, renew: [] }))
        const replies = requests.map((each) => onBreaker(syncBreaker, each))
        expect(await redis.breakers.sync(requests)).toEqual(replies)
        for (const [index, each] of BREAKERS.entries()) views.set(each, replies[index]!)
        break
      }
      case 'isolate': {
        const command = { kind: 'isolate', holder: pod, forUs: 1_000_000 } as const
        const request = { ...breakerRef, command }
        expect(await redis.breakers.command(request)).toEqual(onBreaker(commandBreaker, request))
        break
      }
      case 'pause': {
        const pauses = { pauseUs: 2_000_000, basePauseUs: 500_000, maxPauseUs: 15_000_000 }
        // A vendor that refuses a call lowers the limits that learn.
        const costs = specs.map(() => 1)
        const refused = { costs, booked: costs, stamps: stamps.get(lane) ?? costs.map(() => 0) }
        const request = {
          ...ref,
          ...pauses,
          grantedUs: nowUs - 100_000,
          throttled: true,
          left: [],
          refused: specs.some(({ learn }) => learn) ? refused : undefined,
        }
        const reply = onLimits(applyFeedback, request)
        expect(await redis.limits.feedback(request)).toEqual(reply)
        if (reply.learned !== undefined) reached.lowered++
        break
      }
      case 'change': {
        // Changed limits never take the fast path again.
        if (specs.every(isUsual)) break
        const changed = specs.map((each) => ({
          ...each,
          limit: Math.max(1, Math.round(each.limit * op.factor)),
        }))
        // Its own pod learns of the change with its next request, like all other pods.
        const request = { ...ref, limits: changed }
        expect(await redis.limits.change(request)).toBe(onLimits(changeLimits, request))
        break
      }
      case 'beat': {
        const beat = { group: GUARD, pod, lifeUs: 60_000_000, snapshot: '' }
        expect(await redis.pods.beat(beat)).toEqual(memoryPods.beat(beat))
      }
    }
  }
  // On the server of the other messages, so that it cannot overtake them.
  const server = await twin.servers.at(keys.breaker(GUARD, 'any'))
  await server.send('PUBLISH', keys.breakers, 'end')
  const publishedViews = () => twin.published.get(keys.breakers) ?? []
  await vi.waitUntil(() => publishedViews().at(-1) === 'end', { interval: 1 })
  expect(publishedViews().slice(0, -1).map(readPublished)).toEqual(expected)
  reached.published += expected.length
}
