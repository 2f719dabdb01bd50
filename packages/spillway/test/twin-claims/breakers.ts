/**
 * The breaker's transitions exist twice, in TypeScript and in Lua. Both run the same long random
 * histories: pods that join and leave, late and repeated reports, lost probes, commands and clock
 * jumps. They have to give the same replies and publish the same views.
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
import { isTripped } from '../../src/store/breaker/trip-conditions.js'
import type { BreakerSpec } from '../../src/store/breaker-spec.js'
import { createKeys } from '../../src/store/keys.js'
import { createMemoryPods } from '../../src/store/memory/memory-pods.js'
import type { BreakerCommand, BreakerReport, BreakerView } from '../../src/store/port.js'
import {
  createRedisBreakers,
  readPublished,
} from '../../src/store/redis/operations/redis-breakers.js'
import { createRedisPods } from '../../src/store/redis/operations/redis-pods.js'
import { fc } from '../fast-check.js'
import { ALL_HISTORIES, type TwinRedis } from './twin-redis.js'

const START_US = 1_900_000_000_000_000
const GUARD = 'g:{1}%'
const LANES = ['a', '{ü b}'] as const
/** Names that a table, an object or a key might take for something else. */
const PODS = ['1', '2', 'constructor', '__proto__', 'a b:{c}%', '*'] as const

const rate = fc.constantFrom(0, 0.1, 0.25, 0.5, 0.7, 1)
const window = fc.oneof(
  fc
    .integer({ min: 20_000_000, max: 60_000_000 })
    .map((windowUs) => ({ windowUs, windowCalls: 0 })),
  fc.integer({ min: 3, max: 20 }).map((windowCalls) => ({ windowUs: 0, windowCalls })),
)
const spec: fc.Arbitrary<BreakerSpec> = fc
  .record({
    window,
    conditions: fc
      .record({ consecutive: fc.constantFrom(0, 0, 2, 3, 5), failureRate: rate, slowRate: rate })
      .filter((all) => Object.values(all).some((each) => each > 0)),
    rest: fc.record({
      minimumCalls: fc.integer({ min: 1, max: 6 }),
      openUs: fc.integer({ min: 1_000_000, max: 20_000_000 }),
      openFactor: fc.constantFrom(1, 1.5, 2, 1.1),
      maxOpenUs: fc.integer({ min: 20_000_000, max: 70_000_000 }),
      probes: fc.integer({ min: 1, max: 3 }),
      successes: fc.integer({ min: 1, max: 3 }),
      probeLeaseUs: fc.integer({ min: 500_000, max: 20_000_000 }),
      quorum: fc.constantFrom(1, 1, 2, 3),
    }),
  })
  .map(({ window: length, conditions, rest }) => ({ ...length, ...conditions, ...rest }))

const pause = fc.oneof(
  { weight: 40, arbitrary: fc.integer({ min: 0, max: 1_000_000 }) },
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 40_000_000 }) },
  // To the exact end of the open time, or the moment before.
  { weight: 10, arbitrary: fc.constantFrom('end' as const, 'before the end' as const) },
  // The same for the counting window.
  { weight: 2, arbitrary: fc.constantFrom('window' as const, 'before the window' as const) },
  // The clock is slightly off or was set.
  { weight: 2, arbitrary: fc.integer({ min: -4_000_000, max: -1 }) },
  { weight: 1, arbitrary: fc.integer({ min: -600_000_000, max: -5_000_001 }) },
)
const outcome = fc.tuple(
  // Success, failure, slow; and those of retries.
  fc.constantFrom(0, 0, 0, 1, 1, 1, 2, 4, 5),
  fc.integer({ min: 1, max: 4 }),
  // Slices of the window since the call began: mostly this one, sometimes one outside.
  fc.constantFrom(0, 0, 0, 1, 3, 9, 10, 25),
)
const someOutcomes = fc.array(outcome, { maxLength: 5 })
/** A report without outcomes only brings the number of calls in flight. */
const outcomes = fc.oneof(
  { weight: 5, arbitrary: someOutcomes },
  { weight: 3, arbitrary: fc.array(outcome, { maxLength: 0 }) },
)
const inFlight = fc.oneof(
  fc.constant([0, 0] as const),
  fc.tuple(fc.integer({ min: 0, max: 8 }), fc.integer({ min: 1, max: 30_000_000 })),
)
/** Calls that hung; undefined until a pod got its first answer. */
const hung = fc.option(
  fc.record({
    answeredAgoUs: fc.oneof(fc.nat(3_000_000), fc.nat(60_000_000)),
    failed: fc.array(fc.tuple(fc.nat(10_000_000), fc.integer({ min: 1, max: 20 })), {
      maxLength: 3,
    }),
    overdue: fc.constantFrom(0, 0, 1, 5),
  }),
  { nil: undefined, freq: 3 },
)
const which = fc.nat(100)
const operation = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant('report' as const),
      outcomes,
      inFlight,
      hung,
      generation: fc.constantFrom('known', 'known', 'known', 'known', 'stale', 'later'),
      resent: fc.boolean(),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('end probes' as const),
      ends: fc.array(fc.tuple(which, fc.constantFrom(0, 0, 0, 0, 0, 1, 2, 3)), {
        minLength: 1,
        maxLength: 3,
      }),
      outcomes,
      inFlight,
      hung,
    }),
  },
  {
    weight: 7,
    arbitrary: fc.record({
      kind: fc.constant('probe' as const),
      wanted: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('sync' as const),
      renew: fc.array(which, { maxLength: 3 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('command' as const),
      command: fc.oneof(
        fc.record({
          kind: fc.constant('isolate' as const),
          holder: fc.constantFrom('me', '7', '__proto__'),
          forUs: fc.nat(6_000_000),
        }),
        fc.record({ kind: fc.constant('release' as const), holder: fc.constantFrom('me', '7') }),
        fc.constantFrom(
          { kind: 'release' as const },
          { kind: 'trip' as const },
          { kind: 'trip' as const, forUs: 2_500_000 },
          { kind: 'reset' as const },
        ),
        // A call has found a reason; `generation` stands for one the pod knows.
        fc.record({
          kind: fc.constant('trip' as const),
          found: fc.constantFrom('known', 'known', 'stale', 'later'),
          forUs: fc.constantFrom(undefined, 500_000, 30_000_000),
        }),
      ),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('beat' as const),
      lifeUs: fc.integer({ min: 1_000_000, max: 200_000_000 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('leave' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('list' as const) }) },
)
const step = fc.record({
  pause,
  lane: fc.constantFrom(...LANES),
  pod: fc.constantFrom(...PODS),
  /** During a rollout some pods have another configuration. */
  other: fc.nat(15).map((chance) => chance === 0),
  operation,
})
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** Outcomes are random, or some pods always fail and the others never do. */
const sick = fc.option(fc.subarray([...PODS], { minLength: 1, maxLength: 3 }), { nil: undefined })

let histories = 0
const reached = {
  steps: 0,
  trips: 0,
  halfOpenings: 0,
  closings: 0,
  openedAgain: 0,
  longerOpen: 0,
  probes: 0,
  places: 0,
  leasesLost: 0,
  heldByInFlight: 0,
  outlived: 0,
  hanging: 0,
  failedProbes: 0,
  quorumRefusals: 0,
  quorumTrips: 0,
  isolated: 0,
  late: 0,
  resent: 0,
  setBack: 0,
  published: 0,
  tripsFound: 0,
}

export function claimBreakerTwins(twin: TwinRedis, runs = ALL_HISTORIES): void {
  describe('Lua scripts of the breaker', () => {
    it(`breaker scripts reply and publish like the TypeScript transitions over ${100 * runs} steps`, async () => {
      await fc.assert(
        fc.asyncProperty(
          spec,
          spec,
          sick,
          fc.array(step, { minLength: 100, maxLength: 160, size: 'max' }),
          (...history) => replay(twin, ...history),
        ),
        { numRuns: runs },
      )
      expect(reached.steps).toBeGreaterThanOrEqual(100 * runs)
      if (runs < ALL_HISTORIES) return
      // Makes sure that the histories reach every interesting state.
      for (const [what, times] of Object.entries(reached)) {
        expect(times, what).toBeGreaterThan(runs / 4)
      }
    })

    it('breaker scripts wait for as many failures as the TypeScript transition while calls run side by side', async () => {
      for (const failureRate of [0.25, 0.5, 0.7]) {
        const spec = { ...DIRECTED, consecutive: 0, failureRate, minimumCalls: 6 }
        const plan = Array.from({ length: 60 }, (_, index): Step => {
          const failed = (index * 7) % 10 < 10 * failureRate + 1 ? 1 : 0
          return after(1_000, {
            ...{ kind: 'report', outcomes: [[failed, 1, 0]], inFlight: [4, 30_000_000] },
            ...{ hung: undefined, generation: 'known', resent: false },
          })
        })
        await replay(twin, spec, spec, undefined, plan)
      }
    })

    it('breaker scripts count probes of an earlier half-open phase as the TypeScript transition does', async () => {
      const trip: Operation = { kind: 'command', command: { kind: 'trip' } }
      const probe = (wanted: number): Operation => ({ kind: 'probe', wanted })
      const end: Operation = {
        ...{ kind: 'end probes', ends: [[0, 0]], outcomes: [], inFlight: [0, 0], hung: undefined },
      }
      const renew: Operation = { kind: 'sync', renew: [0, 1, 2] }
      const readState: Operation = { kind: 'sync', renew: [] }
      const twoPhases = [
        ...[after(0, trip), after('end', probe(2)), after(1_000, trip), after('end', probe(2))],
        after(1_000, probe(2)),
      ]
      const endings = [
        // The late ones end, and their places are free.
        [after(1_000, end), after(1_000, probe(2)), after(1_000, end), after(1_000, probe(3))],
        // Their leases end, or are renewed.
        [after(17_500_000, readState), after(1_000_000, probe(3)), after(2_000_000, probe(3))],
        [after(15_000_000, renew), after(15_000_000, probe(3)), after(6_000_000, probe(3))],
        // The clock is set back.
        [after(-60_000_000, readState), after(10_000_000, probe(3)), after(15_000_000, probe(3))],
      ]
      for (const ending of endings) {
        await replay(twin, DIRECTED, DIRECTED, undefined, [...twoPhases, ...ending])
      }
    })

    it('a half-open breaker without a failure rate opens when half of its probes fail, in Lua as in TypeScript', async () => {
      const trip: Operation = { kind: 'command', command: { kind: 'trip' } }
      const end = (outcome: 0 | 1): Operation => ({
        ...{ kind: 'end probes', ends: [[0, outcome]], outcomes: [], inFlight: [0, 0] },
        hung: undefined,
      })
      const endings: (0 | 1)[][] = [
        [0, 0, 0, 0, 1, 1, 1, 1],
        [1, 0, 0, 1, 0, 0, 1, 0],
      ]
      for (const outcomes of endings) {
        const spec = { ...DIRECTED, probes: 8, successes: 8 }
        await replay(twin, spec, spec, undefined, [
          ...[after(0, trip), after('end', { kind: 'probe', wanted: 8 })],
          ...outcomes.map((outcome) => after(1_000, end(outcome))),
        ])
      }
    })

    it('breaker scripts keep a breaker as long as the TypeScript transition does', async () => {
      const report: Operation = {
        ...{ kind: 'report', outcomes: [[0, 1, 0]], inFlight: [0, 0] },
        ...{ hung: undefined, generation: 'known', resent: false },
      }
      const trip: Operation = { kind: 'command', command: { kind: 'trip' } }
      // Never opened; open.
      for (const last of [report, trip]) {
        await replay(twin, DIRECTED, DIRECTED, undefined, [after(0, report), after(1_000, last)])
      }
    })

    it('breaker scripts leave no key without an expiry', async () => {
      const { count, endless } = await twin.keys()
      expect(count).toBeGreaterThan(0)
      expect(endless).toEqual([])
    })
  })
}

const DIRECTED: BreakerSpec = {
  ...{ windowUs: 60_000_000, windowCalls: 0, consecutive: 5, failureRate: 0, slowRate: 0 },
  ...{ minimumCalls: 5, openUs: 1_000_000, openFactor: 1, maxOpenUs: 20_000_000 },
  ...{ probes: 3, successes: 3, probeLeaseUs: 20_000_000, quorum: 1 },
}

type Operation = Step['operation']

function after(pause: Step['pause'], operation: Operation): Step {
  return { pause, lane: LANES[0], pod: PODS[0], other: false, operation }
}

async function replay(
  twin: TwinRedis,
  spec: BreakerSpec,
  other: BreakerSpec,
  sickPods: string[] | undefined,
  plan: Step[],
): Promise<void> {
  let nowUs = START_US
  const keys = createKeys(`b${histories++}-`)
  const time = () => String(nowUs)
  const noSubscription = () => ({ close() {} })
  const redis = createRedisBreakers(twin.runner, keys, noSubscription, time)
  const redisPods = createRedisPods(twin.runner, keys, time)
  const memoryPods = createMemoryPods(() => nowUs)
  const states = new Map<string, BreakerState>(LANES.map((lane) => [lane, emptyBreaker()]))
  const known = new Map<string, BreakerView[]>(LANES.map((lane) => [lane, []]))
  const expected: { guard: string; lane: string; view: BreakerView }[] = []
  const sequences = new Map<string, number>()
  const allUnderWay = new Map<string, string[]>(LANES.map((lane) => [lane, []]))
  /** The expiry that the last write of a lane should have set, and when. */
  const lives = new Map<string, { lifeUs: number; sinceMs: number }>()
  let lastReport: BreakerReport | undefined
  let probeNumber = 0

  function mine<R extends { lane: string }, T>(
    transition: (state: BreakerState, request: R, now: number) => BreakerKept<T>,
    request: R,
  ): T {
    const before = states.get(request.lane) as BreakerState
    const state = structuredClone(before)
    if (before.timeUs - nowUs > 5_000_000) reached.setBack++
    const { reply, lifeUs, published: view } = transition(state, request, nowUs)
    if (lifeUs !== undefined) {
      states.set(request.lane, state)
      lives.set(request.lane, { lifeUs, sinceMs: performance.now() })
    }
    if (view !== undefined) expected.push({ guard: GUARD, lane: request.lane, view })
    note(before, state)
    return reply
  }

  function report(request: BreakerReport): BreakerView {
    const key = `${request.lane} ${request.pod}`
    if ((sequences.get(key) ?? 0) >= request.sequence) {
      return mine(syncBreaker, { ...request, renew: [] })
    }
    sequences.set(key, request.sequence)
    const live = request.spec.quorum > 1 ? memoryPods.live(GUARD) : 1
    const view = mine((state, each, now) => reportOutcomes(state, each, now, live), request)
    const state = states.get(request.lane) as BreakerState
    if (state.kind === 0 && state.tally.inFlight.size > 0) {
      const none = { ...state.tally, inFlight: new Map() }
      if (isTripped(none, request.spec, live, nowUs)) reached.heldByInFlight++
    }
    if (view.kind === 1 && view.version === view.nowUs && request.outcomes.length === 0) {
      reached.outlived++
    }
    if (view.kind === 1 && view.version === view.nowUs) {
      const none = { ...state.tally, hung: new Map() }
      if (!isTripped(none, request.spec, live, nowUs)) reached.hanging++
    }
    if (view.kind === 2 && view.failedProbes > 0) reached.failedProbes++
    if (request.spec.quorum > 1 && state.kind === 0) {
      const alone = { ...request.spec, quorum: 1 }
      if (isTripped(state.tally, alone, 1, nowUs)) reached.quorumRefusals++
    } else if (request.spec.quorum > 1 && view.kind === 1 && view.version === view.nowUs) {
      reached.quorumTrips++
    }
    return view
  }

  /** Publishes the view of a reply to everyone. */
  function receiveView(lane: string, view: BreakerView): void {
    known.get(lane)?.push(view)
    if (view.isolatedUntilUs > nowUs) reached.isolated++
  }

  for (const { pause: howLong, lane, pod, other: isOther, operation: op } of plan) {
    const views = known.get(lane) as BreakerView[]
    const underWay = allUnderWay.get(lane) as string[]
    const latest = views.at(-1)
    if (typeof howLong === 'number') nowUs += howLong
    else if (howLong.endsWith('window')) {
      nowUs = (latest?.nowUs ?? nowUs) + (spec.windowUs || 300_000_000)
    } else if (latest?.kind === 1 && latest.untilUs > nowUs) nowUs = latest.untilUs
    if (typeof howLong === 'string' && howLong.startsWith('before')) nowUs--
    const ref = { guard: GUARD, lane, spec: isOther ? other : spec }
    reached.steps++
    switch (op.kind) {
      case 'report':
      case 'end probes': {
        const current = latest?.generation ?? 0
        const before = views.findLast((each) => each.generation < current)?.generation ?? 0
        const how = op.kind === 'report' ? op.generation : 'known'
        if (how === 'stale' && before < current && latest?.kind === 0) reached.late++
        const ends = op.kind === 'report' ? [] : op.ends
        const request: BreakerReport = {
          ...ref,
          pod,
          sequence: (sequences.get(`${lane} ${pod}`) ?? 0) + 1,
          generation: how === 'known' ? current : how === 'stale' ? before : current + 1_000_000,
          outcomes: op.outcomes.map(([kind, times, slicesAgo]) => {
            if (sickPods === undefined || kind > 1) return [kind, times, slicesAgo]
            return [sickPods.includes(pod) ? 1 : 0, times, slicesAgo]
          }),
          inFlight: op.inFlight,
          hung: op.hung,
          probes: ends.flatMap(([index, kind]): [string, number][] => {
            const [name] = underWay.splice(index % Math.max(1, underWay.length), 1)
            return name === undefined ? [] : [[name, kind]]
          }),
        }
        const view = report(request)
        expect(await redis.report(request)).toEqual(view)
        receiveView(lane, view)
        if (op.kind === 'report' && op.resent && lastReport !== undefined) {
          reached.resent++
          // First, because the time of the write is noted here.
          const again = report(lastReport)
          expect(await redis.report(lastReport)).toEqual(again)
        }
        lastReport = request
        break
      }
      case 'probe': {
        const probes = Array.from({ length: op.wanted }, () => String(++probeNumber))
        const reply = mine(takeProbes, { ...ref, probes })
        expect(await redis.probe({ ...ref, probes })).toEqual(reply)
        reached.probes += reply.granted
        if (reply.granted > 0 && reply.granted < op.wanted) reached.places++
        underWay.push(...probes.slice(0, reply.granted))
        receiveView(lane, reply.view)
        break
      }
      case 'sync': {
        const renew = op.renew.flatMap(
          (index) => underWay[index % Math.max(1, underWay.length)] ?? [],
        )
        const requests = LANES.map((each) => ({ ...ref, lane: each, renew }))
        const replies = requests.map((each) => mine(syncBreaker, each))
        expect(await redis.sync(requests)).toEqual(replies)
        for (const [index, each] of LANES.entries())
          receiveView(each, replies[index] as BreakerView)
        break
      }
      case 'command': {
        const current = latest?.generation ?? 0
        const request = { ...ref, command: commandOf(op.command, current) }
        const view = mine(commandBreaker, request)
        expect(await redis.command(request)).toEqual(view)
        if ('found' in op.command && view.generation !== current) reached.tripsFound++
        receiveView(lane, view)
        break
      }
      case 'beat': {
        const beat = { group: GUARD, pod, lifeUs: op.lifeUs, snapshot: `at\n${nowUs}` }
        expect(await redisPods.beat(beat)).toEqual(memoryPods.beat(beat))
        break
      }
      case 'leave':
        memoryPods.leave({ group: GUARD, pod })
        await redisPods.leave({ group: GUARD, pod })
        break
      case 'list':
        expect(await redisPods.list({ group: GUARD })).toEqual(memoryPods.list({ group: GUARD }))
    }
  }
  for (const [lane, { lifeUs, sinceMs }] of lives) {
    const leftMs = Number(await twin.servers.send('PTTL', keys.breaker(GUARD, lane)))
    const passedMs = performance.now() - sinceMs
    // A key that has expired meanwhile has -2 ms left.
    expect(leftMs + passedMs + 3).toBeGreaterThanOrEqual(lifeUs / 1_000)
    expect(leftMs).toBeLessThanOrEqual(Math.ceil(lifeUs / 1_000))
  }
  // On the server of the other messages, so that it cannot overtake them.
  const server = await twin.servers.at(keys.breaker(GUARD, LANES[0]))
  await server.send('PUBLISH', keys.breakers, 'end')
  const publishedViews = () => twin.published.get(keys.breakers) ?? []
  await vi.waitUntil(() => publishedViews().at(-1) === 'end', { interval: 1 })
  expect(publishedViews().slice(0, -1).map(readPublished)).toEqual(expected)
  reached.published += expected.length
}

type PlannedCommand = Extract<Operation, { kind: 'command' }>['command']

function commandOf(planned: PlannedCommand, current: number): BreakerCommand['command'] {
  if (!('found' in planned)) return planned as BreakerCommand['command']
  const { found, forUs } = planned
  const generation = { known: current, stale: current - 1, later: current + 1_000_000 }[
    found as 'known' | 'stale' | 'later'
  ]
  return { kind: 'trip', generation, ...(forUs !== undefined && { forUs }) }
}

function note(before: BreakerState, after: BreakerState): void {
  if (before.kind === 2 && after.kind === 2 && after.probes.size < before.probes.size) {
    reached.leasesLost++
  }
  if (before.generation === after.generation) return
  if (before.kind === 0 && after.kind === 1) reached.trips++
  if (before.kind === 1 && after.kind === 2) reached.halfOpenings++
  if (before.kind === 2 && after.kind === 0) reached.closings++
  if (before.kind === 2 && after.kind === 1) reached.openedAgain++
  if (after.openings > 0 && after.openForUs > before.openForUs) reached.longerOpen++
}
