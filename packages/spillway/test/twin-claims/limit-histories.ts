/**
 * Random histories of limits: several pods, clock jumps and pods of an older release. The TypeScript transitions run them, and
 * whatever they answer is compared with the Lua scripts or with a recording.
 */
import { DAY_US } from '../../src/store/calendar-day.js'
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
import type { LaneRef, LimitStore } from '../../src/store/port.js'
import { fc } from '../fast-check.js'

/** In 2096: some keys expire at a time of the history, which must still be in the future. */
export const START_US = 4_000_000_000_000_000

const HOUR_US = 3_600_000_000

/** `weight`: how much more often the usual pause occurs than others. */
export const pauses = (weight: number, usualUs: number) =>
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

export const OLD_POD = 2
/** Pods may have older limits than others; one belongs to an older release. */
const pods = (weight: number) =>
  fc.oneof(
    { weight, arbitrary: fc.nat(OLD_POD - 1) },
    { weight: 1, arbitrary: fc.constant(OLD_POD) },
  )

export interface Kind {
  spec: fc.Arbitrary<Omit<LimitSpec, 'id'>>
  /** Both lanes are in it. Its limits come first. Default: none. */
  pool?: string
  usualPauseUs: number
  weight: number
}

export const anyLimits: Kind = {
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
export const usualTraffic: Kind = {
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
export const saturated: Kind = {
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
export const learning: Kind = {
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
export const calendarDays: Kind = {
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
export const pooled: Kind = {
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
export const pooledTraffic: Kind = {
  ...usualTraffic,
  spec: usualTraffic.spec.map((each) => ({ ...each, span: 'pool' as const })),
  pool: 'p {1}',
}

export const historyOf = ({ spec, pool, usualPauseUs, weight }: Kind) =>
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

export type LimitHistory = ReturnType<typeof historyOf> extends fc.Arbitrary<infer T> ? T : never

/** Sends a request to what is compared, `nowUs` being its time, and compares the replies. */
type Compare = <M extends keyof LimitStore>(
  method: M,
  request: Parameters<LimitStore[M]>[0],
  reply: unknown,
  nowUs: number,
) => Promise<void> | void

/** What a history led to. */
export interface Replayed {
  /** Messages that wake pods, in order. */
  messages: { pod: string; lane: string }[]
  /** How often pods of all lanes were woken. */
  wakesAll: number
  /** Everything that the transitions kept, without the replies. */
  lives: (number | undefined)[][]
  severalWait: number
  shared: number
  members: number
  lowered: number
}

export async function replayLimits(
  { specs, pool, oldKnowsPool, oldFactors, steps }: LimitHistory,
  compare: Compare,
): Promise<Replayed> {
  let nowUs = START_US
  const seen: Replayed = {
    ...{ messages: [], wakesAll: 0, lives: [] },
    ...{ severalWait: 0, shared: 0, members: 0, lowered: 0 },
  }
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
    seen.lives.push([laneLifeUs, guardLifeUs, memberLifeUs])
    if (laneLifeUs !== undefined) states[name] = lane
    if (guardLifeUs !== undefined) guard = ofGuard
    if (memberLifeUs !== undefined) lanes[request.lane] = member as LaneState
    if (member !== undefined && memberLifeUs !== undefined) seen.members++
    if (message) seen.messages.push(message)
    if (wakesAll) seen.wakesAll++
    if (lane.waiting.length + ofGuard.waiting.length > 2) seen.severalWait++
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
        await compare('take', request, reply, nowUs)
        if (reply.granted > 0 && reply.waitUs === 50_000) seen.shared++
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
        await compare('settle', request, mine(settlePermits, request), nowUs)
        if (op.resent) await compare('settle', request, 0, nowUs)
        break
      }
      case 'book': {
        const limit = op.which % release.length
        const spent = [
          { limit, stamp: (stamps[name]?.[0]?.[limit] ?? 0) - op.ago, units: op.units },
        ]
        const request = { ...ref, pod: 'b', sequence: ++sequence, spent }
        await compare('book', request, mine(bookPermits, request), nowUs)
        if (op.resent) await compare('book', request, undefined, nowUs)
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
        await compare('feedback', request, reply, nowUs)
        if (reply.learned !== undefined) seen.lowered++
        break
      }
      case 'change': {
        const changed = release.map((each) => changedBy(each, op.factors))
        const request = { ...ref, limits: changed }
        const version = mine(changeLimits, request)
        await compare('change', request, version, nowUs)
        knownLimits[number] = { limits: changed, version }
        break
      }
      case 'override': {
        const override = { id: 'unit0', limit: op.limit, forUs: op.forUs }
        const request = { ...ref, override }
        await compare('change', request, mine(changeLimits, request), nowUs)
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
        await compare('pause', { guard: 'g', ...pauseRequest }, until, nowUs)
        break
      }
      case 'report': {
        const request = { guard: 'g', pod: `p${number}`, requests: op.requests }
        reportRequests(reports, request.pod, request.requests, nowUs)
        await compare('report', request, undefined, nowUs)
        break
      }
      case 'figures': {
        const [states, home] = homeOf(ref)
        const figures = readLimits(states[home] as LaneState, guard, ref, nowUs, memberOf(ref))
        const requestsLastMinute = totalRequests(reports, figures.nowUs)
        await compare('figures', ref, { ...figures, requestsLastMinute }, nowUs)
      }
    }
  }
  return seen
}

function changedBy(spec: LimitSpec, factors: { limit: number; window: number }): LimitSpec {
  return {
    ...spec,
    limit: Math.max(1, Math.round(spec.limit * factors.limit)),
    windowUs: Math.round(spec.windowUs * factors.window),
  }
}
