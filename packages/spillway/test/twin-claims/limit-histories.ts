/** Random histories of limits: requests of several pods, clock jumps and pods of an older release. */
import { DAY_US } from '../../src/store/calendar-day.js'
import type { LimitSpec } from '../../src/store/limit-spec.js'
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
