/**
 * A job is taken in one step with its permits and its breaker check, in TypeScript and in Lua. Both
 * run the same long random histories of a queue, its limits and its breaker, with clock jumps. They
 * have to give the same replies and wake the same workers.
 */

import { createHash } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import { type BreakerState, emptyBreaker } from '../../src/store/breaker/breaker-state.js'
import {
  type BreakerKept,
  commandBreaker,
  reportOutcomes,
} from '../../src/store/breaker/transitions.js'
import type { BreakerSpec } from '../../src/store/breaker-spec.js'
import { DAY_US, dayAt } from '../../src/store/calendar-day.js'
import { createKeys, type Keys } from '../../src/store/keys.js'
import type { LimitSpec } from '../../src/store/limit-spec.js'
import { emptyGuard, emptyLane, hasMember } from '../../src/store/limits/lane-state.js'
import { takePermits } from '../../src/store/limits/take-permits.js'
import { applyFeedback, changeLimits, type Kept } from '../../src/store/limits/transitions.js'
import { addJobs } from '../../src/store/queue/add-jobs.js'
import { extendJobs, finishJobs } from '../../src/store/queue/finish-jobs.js'
import {
  commandQueue,
  countJobs,
  listDead,
  readJob,
  readJobStatus,
} from '../../src/store/queue/maintenance.js'
import { ACTIVE, emptyQueue } from '../../src/store/queue/queue-state.js'
import { reserveJobs } from '../../src/store/queue/reserve-jobs.js'
import type {
  JobEnd,
  NewJob,
  QueueCommand,
  QueueCounts,
  ReserveRequest,
} from '../../src/store/queue-port.js'
import { createRedisBreakers } from '../../src/store/redis/operations/redis-breakers.js'
import { createRedisLimits } from '../../src/store/redis/operations/redis-limits.js'
import { createRedisQueues } from '../../src/store/redis/operations/redis-queues.js'
import { fc } from '../fast-check.js'
import { ALL_HISTORIES, type TwinRedis } from './twin-redis.js'

/** In 2033; no key expires within a history, because expiry uses the server's time. */
const START_US = 2_000_000_000_000_000
const GUARD = 'g:{1}%'
const QUEUE = { guard: GUARD, queue: 'nightly {batch}', lifeUs: 3_600_000_000 }
const WORKERS = ['w1', 'w2', 'w:{3}%'] as const
const LANE = 'a'
const POOL = 'p {1}'
/** Long enough that Redis stores it separately. */
const LONG_DATA = JSON.stringify('ü'.repeat(1_000))

const job: fc.Arbitrary<NewJob> = fc.record({
  data: fc.constantFrom('{}', '{"prompt":"ü"}', '[1,2,3]', LONG_DATA),
  priority: fc.nat(3),
  delayUs: fc.constantFrom(0, 0, 0, 0, 500_000, 3_000_000),
  deadlineUs: fc.constantFrom(0, 0, 0, 2_000_000, 8_000_000),
  key: fc.constantFrom('', '', '', 'k1', 'k:{2}', 'constructor'),
  tenant: fc.constantFrom('', 'acme', 'b c:{d}%', 'constructor'),
  cost: fc.constantFrom({}, {}, { requests: 2 }, { tokens: 30 }, { requests: 1, tokens: 400 }),
  attempts: fc.integer({ min: 1, max: 4 }),
})
const limit = (
  fc.record({
    algorithm: fc.constantFrom(
      'sliding-window',
      'sliding-window',
      'token-bucket',
      'fixed-window',
      'leaky-bucket',
    ),
    limit: fc.constantFrom(3, 10, 100, 1_000),
    windowUs: fc.integer({ min: 2_000_000, max: 20_000_000 }),
    slices: fc.integer({ min: 1, max: 12 }),
    burst: fc.nat(20),
    span: fc.constantFrom('lane', 'lane', 'vendor'),
  }) as fc.Arbitrary<Omit<LimitSpec, 'id'>>
)
  // Without a draw of its own, so that a seed gives the same histories as before.
  .map((each) => {
    if (each.algorithm === 'fixed-window' && each.windowUs % 3 === 0) return inDays(each)
    return { ...each, learn: each.windowUs % 2 === 0 }
  })

/** A limit per calendar day instead of per window. The first midnight comes when the window would end. */
function inDays(each: Omit<LimitSpec, 'id'>): Omit<LimitSpec, 'id'> {
  const offsets = [-((START_US + each.windowUs) % DAY_US)]
  return { ...each, windowUs: DAY_US, day: { offsets, quietUs: 100_000 } }
}

const breaker: fc.Arbitrary<BreakerSpec> = fc.record({
  consecutive: fc.constantFrom(2, 3),
  failureRate: fc.constantFrom(0.5, 0.8),
  slowRate: fc.constant(0),
  windowUs: fc.constant(20_000_000),
  windowCalls: fc.constant(0),
  minimumCalls: fc.integer({ min: 2, max: 10 }),
  openUs: fc.integer({ min: 500_000, max: 3_000_000 }),
  openFactor: fc.constantFrom(1, 1.5),
  maxOpenUs: fc.constant(20_000_000),
  probes: fc.integer({ min: 1, max: 3 }),
  successes: fc.integer({ min: 1, max: 2 }),
  probeLeaseUs: fc.integer({ min: 500_000, max: 5_000_000 }),
  quorum: fc.constant(1),
})
const pauseUs = fc.oneof(
  { weight: 60, arbitrary: fc.integer({ min: 0, max: 300_000 }) },
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 20_000_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: -4_000_000, max: -1 }) },
  { weight: 1, arbitrary: fc.integer({ min: -600_000_000, max: -5_000_001 }) },
)
const which = fc.nat(30)
const ends = fc.array(
  fc.record({
    which,
    stale: fc.nat(9).map((chance) => chance === 0),
    kind: fc.constantFrom(
      ...(['done', 'done', 'done', 'failed', 'failed', 'dead', 'released', 'returned'] as const),
    ),
    text: fc.constantFrom('', '"fine"', 'ünlucky'),
    delayUs: fc.constantFrom(0, 0, 1_000_000),
    probe: fc.nat(3).map((chance) => chance === 0),
  }),
  { maxLength: 3 },
)
type Ends = typeof ends extends fc.Arbitrary<infer T> ? T : never
const operation = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('add' as const),
      jobs: fc.array(job, { minLength: 1, maxLength: 4 }),
      maxSize: fc.constantFrom(6, 40, 1_000),
      maxPerTenant: fc.constantFrom(1, 3, 10, 1_000),
    }),
  },
  {
    weight: 9,
    arbitrary: fc.record({
      kind: fc.constant('reserve' as const),
      worker: fc.constantFrom(...WORKERS),
      wanted: fc.nat(4),
      leaseUs: fc.constantFrom(400_000, 3_000_000),
      parkUs: fc.constantFrom(0, 2_000_000),
      ends: fc.option(ends, { nil: undefined }),
      resultUs: fc.constantFrom(0, 3_000_000),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('finish' as const),
      ends,
      resultUs: fc.constantFrom(0, 3_000_000),
      again: fc.nat(4).map((chance) => chance === 0),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('extend' as const),
      which: fc.array(which, { maxLength: 3 }),
      progress: fc.option(fc.constantFrom('', '50'), { nil: undefined }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('command' as const),
      command: fc.constantFrom(
        'pause',
        'resume',
        'resume',
        'cancel',
        'cancel',
        'cancel',
        'replay',
        'replay',
        'drop',
      ),
      which,
      keepUs: fc.constantFrom(0, 2_000_000),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('look' as const), which }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('outcomes' as const),
      outcomes: fc.array(fc.tuple(fc.constantFrom(0, 0, 1, 1), fc.integer({ min: 1, max: 3 })), {
        maxLength: 2,
      }),
      probe: fc.constantFrom(0, 0, 1, 3),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('isolate' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('vendor' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('take' as const), cost: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('change' as const) }) },
)
const history = fc.record({
  limits: fc.tuple(fc.array(limit, { maxLength: 2 }), fc.boolean()).map(([specs, pooled]) =>
    specs.map((each, index): LimitSpec => {
      // In a pool, its limits come first.
      const span = pooled && index === 0 ? 'pool' : each.span
      return { ...each, span, id: `unit${index}` }
    }),
  ),
  breaker: fc.option(breaker, { nil: undefined }),
  keep: fc.constantFrom<number>(0, 0.1, 0.5),
  agingUs: fc.constantFrom(300_000, 5_000_000),
  uncountedTurns: fc.constantFrom(0, 1, 10),
  steps: fc.array(fc.record({ pauseUs, operation }), { minLength: 100, maxLength: 140 }),
})
type History = typeof history extends fc.Arbitrary<infer T> ? T : never

const reached: Record<string, number> = {}
const count = (what: string, times = 1) => {
  reached[what] = (reached[what] ?? 0) + times
}

export function claimQueueTwins(twin: TwinRedis, runs = ALL_HISTORIES): void {
  describe('Lua scripts of the job queue', () => {
    it(`job queue scripts reply and wake workers like the TypeScript transitions over ${100 * runs} steps`, async () => {
      let steps = 0
      await fc.assert(
        fc.asyncProperty(history, async (each) => {
          await replay(twin, each)
          steps += each.steps.length
        }),
        { numRuns: runs },
      )
      expect(steps).toBeGreaterThanOrEqual(100 * runs)
      if (runs < ALL_HISTORIES) return
      for (const what of EVERYTHING) expect([what, reached[what] ?? 0]).not.toEqual([what, 0])
    })

    it('job queue scripts forget as many ended jobs in one request as the TypeScript transitions do', async () => {
      const add = (count: number): Operation => ({
        ...{ kind: 'add', jobs: Array(count).fill(PLAIN_JOB), maxSize: 1_000, maxPerTenant: 1_000 },
      })
      const reserve = (wanted: number): Operation => ({
        ...{ kind: 'reserve', worker: 'w1', wanted, leaseUs: 3_000_000, parkUs: 0 },
        ...{ ends: undefined, resultUs: 0 },
      })
      const finish = (count: number): Operation => ({
        kind: 'finish',
        ends: Array.from({ length: count }, (_, which) => ({
          ...{ which, stale: false, kind: 'done', text: '', delayUs: 0, probe: false },
        })),
        ...{ resultUs: 3_000_000, again: false },
      })
      // `finish` knows the last twelve jobs.
      const ended = Array.from({ length: 4 }, () => [add(12), reserve(12), finish(12)]).flat()
      for (const forgetting of [add(1), reserve(0), reserve(1), finish(1)]) {
        const steps = [...ended, add(2), reserve(1)].map((operation) => at(0, operation))
        await replay(twin, { ...PLAIN, steps: [...steps, at(4_000_000, forgetting)] })
      }
    })

    it.each(['sliding-window', 'fixed-window'] as const)(
      'job queue scripts spread jobs over a %s like the TypeScript transitions, and leave a part for calls',
      async (algorithm) => {
        const window = { algorithm, windowUs: 4_000_000, slices: 8, burst: 0, learn: false }
        const limits: LimitSpec[] = [{ ...window, id: 'unit0', limit: 60, span: 'lane' }]
        const add: Operation = {
          ...{ kind: 'add', jobs: Array(40).fill({ ...PLAIN_JOB, cost: { requests: 2 } }) },
          ...{ maxSize: 1_000, maxPerTenant: 1_000 },
        }
        const reserve: Operation = {
          ...{ kind: 'reserve', worker: 'w1', wanted: 1, leaseUs: 3_000_000, parkUs: 0 },
          ...{ ends: undefined, resultUs: 0 },
        }
        const reserves = Array.from({ length: 100 }, (_, index) =>
          at(20_000 + (index % 7) * 3_001, reserve),
        )
        for (const keep of [0.1, 0.3]) {
          await replay(twin, { ...PLAIN, limits, keep, steps: [at(0, add), ...reserves] })
        }
      },
    )

    it('job queue scripts leave no key without an expiry', async () => {
      const { count: keys, endless } = await twin.keys()
      expect(keys).toBeGreaterThan(0)
      expect(endless).toEqual([])
    })
  })
}

type Operation = History['steps'][number]['operation']

const at = (pauseUs: number, operation: Operation) => ({ pauseUs, operation })

const PLAIN_JOB: NewJob = {
  ...{ data: '{}', priority: 0, delayUs: 0, deadlineUs: 0 },
  ...{ key: '', tenant: '', cost: {}, attempts: 3 },
}

/** A queue without limits and breaker. */
const PLAIN: Omit<History, 'steps'> = {
  ...{ limits: [], breaker: undefined, keep: 0, agingUs: 5_000_000, uncountedTurns: 1 },
}

/** States that the histories have to reach. */
const EVERYTHING = [
  ...[
    'full',
    'tenant full',
    'known',
    'handed out',
    'brought along',
    'probing',
    'woken',
    'newer',
    'lowered',
    'too late',
    'next day',
  ],
  ...['tenants counted', 'tenants by turns', 'tenants estimated'],
  ...['no', 'empty', 'limited', 'vendor', 'breaker', 'paused'].map((each) => `blocked: ${each}`),
  ...['stale', 'done', 'again', 'dead', 'cancelled'].map((each) => `finished: ${each}`),
  ...['lost', 'kept', 'cancelled'].map((each) => `extended: ${each}`),
  ...['pause', 'resume', 'cancel', 'replay', 'drop'].map((each) => `command: ${each}`),
]

const FIELDS = {
  name: 'fields',
  text: "return { redis.call('HGETALL', KEYS[1]), redis.call('HGETALL', KEYS[2]) }",
}

/** What Redis keeps about tenants: the last tag in each priority, and how many open jobs there are. */
async function tenantFields(runner: TwinRedis['runner'], keys: Keys) {
  const parts = keys.queue(QUEUE.guard, QUEUE.queue).slice(-2)
  const sha = createHash('sha1').update(FIELDS.text).digest('hex')
  const reply = (await runner.run({ ...FIELDS, sha }, parts, [])) as string[][]
  const [tags, tenants] = reply.map((flat) => {
    const fields = new Map<string, string>()
    for (let at = 0; at < flat.length; at += 2) fields.set(flat[at]!, flat[at + 1]!)
    fields.delete('')
    return fields
  })
  const open = new Map<string, number>()
  for (const [field, value] of tenants!) {
    if (field.startsWith('c:')) open.set(field.slice(2), Number(value))
  }
  const last = new Map(Array.from(tags!, ([field, value]) => [field, Number(value)] as const))
  return { tags: sorted(last), open: sorted(open) }
}

const JOB_IDS = { name: 'job-ids', text: "return redis.call('HKEYS', KEYS[1])" }

/** The ids of all jobs in Redis. The empty field sets the expiry. */
async function storedJobs(runner: TwinRedis['runner'], keys: Keys): Promise<string[]> {
  const jobs = keys.queue(QUEUE.guard, QUEUE.queue)[7]!
  const sha = createHash('sha1').update(JOB_IDS.text).digest('hex')
  return ((await runner.run({ ...JOB_IDS, sha }, [jobs], [])) as string[])
    .filter((id) => id !== '')
    .sort()
}

function sorted(map: ReadonlyMap<string, number>): [string, number][] {
  return [...map].sort(([one], [other]) => (one < other ? -1 : 1))
}

let histories = 0

async function replay({ runner, published }: TwinRedis, given: History): Promise<void> {
  let nowUs = START_US
  const keys = createKeys(`q${histories++}-`)
  const time = () => String(nowUs)
  const noMessages = () => ({ close() {} })
  const replicaConfirmation = () => Promise.reject(new Error('nothing is confirmed here'))
  const queues = createRedisQueues({
    runner,
    keys,
    subscribe: noMessages,
    replicaConfirmation,
    time,
  })
  const limits = createRedisLimits(runner, keys, () => ({ close() {} }), time)
  const breakers = createRedisBreakers(runner, keys, noMessages, time)
  /** Reads only a few entries at once, as with a very long queue. */
  const hasty = createRedisQueues({
    runner,
    keys,
    subscribe: noMessages,
    replicaConfirmation,
    time,
    tenantSample: 2,
  })
  const queue = emptyQueue()
  const pool = given.limits[0]?.span === 'pool' ? POOL : undefined
  /** In a pool, `lane` is its state and `member` that of the lane. */
  let [lane, guard, member] = [emptyLane(), emptyGuard(), emptyLane()]
  let breakerState: BreakerState = emptyBreaker()
  const wakes: string[] = []
  const expectedChanges: string[] = []
  const leased: { id: string; turn: number }[] = []
  const probes: string[] = []
  let generation = 0
  let sequence = 0
  let probe = 0
  let knownLimits = { limits: given.limits as readonly LimitSpec[], version: 0 }
  /** Of the last permit, by limit. */
  let stamps: readonly number[] = given.limits.map(() => 0)
  const units = ['requests', 'tokens'].slice(0, given.limits.length)
  const { uncountedTurns } = given
  const ref = given.breaker && { guard: GUARD, lane: LANE, spec: given.breaker }

  function keepLimits<T>(
    own: ReturnType<typeof copies>,
    { reply, laneLifeUs, guardLifeUs, memberLifeUs }: Kept<T>,
  ): T {
    if (laneLifeUs !== undefined) lane = own.lane
    if (guardLifeUs !== undefined) guard = own.guard
    if (memberLifeUs !== undefined && own.member !== undefined) {
      member = own.member
      count('in a pool')
    }
    return reply
  }
  function keepBreaker<T>(own: BreakerState, { reply, lifeUs }: BreakerKept<T>): T {
    if (lifeUs !== undefined) breakerState = own
    return reply
  }
  const hasOwn = hasMember({ pool, limits: given.limits })
  const copies = () => ({
    lane: structuredClone(lane),
    guard: structuredClone(guard),
    member: hasOwn ? structuredClone(member) : undefined,
  })
  const woken = <T>({ reply, wakes: called }: { reply: T; wakes: readonly string[] }): T => {
    wakes.push(...called)
    count('woken', called.length)
    return reply
  }
  const endsOf = (all: Ends): JobEnd[] =>
    all.flatMap(({ which: index, stale, ...end }) => {
      const job = one(index)
      if (job === undefined) return []
      const kind = end.kind as JobEnd['kind']
      return [{ ...end, kind, ...job, turn: job.turn - (stale ? 1 : 0), generation }]
    })
  /** Prefers the jobs handed out last, which are most likely still leased. */
  const one = (index: number) => leased.at(-1 - (index % Math.min(12, Math.max(1, leased.length))))

  /** Counts marked as exact have to be exact, however few entries were read. */
  async function lookAtFew(tenants: number, truth: QueueCounts): Promise<void> {
    const few = await hasty.counts({ ...QUEUE, tenants })
    const isShort = truth.byPriority.every((each) => each <= 2)
    if (few.tenants?.exact) expect(few).toEqual(truth)
    else expect(isShort).toBe(false)
    count(
      few.tenants?.exact ? (isShort ? 'tenants counted' : 'tenants by turns') : 'tenants estimated',
    )
  }

  for (const { pauseUs: passed, operation: op } of given.steps) {
    const beforeUs = nowUs
    nowUs += passed
    const isNextDay = given.limits.some(
      ({ day }) => day && dayAt(day, beforeUs) < dayAt(day, nowUs),
    )
    if (isNextDay) count('next day')
    const laneRef = { guard: GUARD, lane: LANE, pool, ...knownLimits }
    switch (op.kind) {
      case 'add': {
        const { kind: _, ...own } = op
        const reply = woken(addJobs(queue, { ...QUEUE, ...own }, nowUs))
        expect(await queues.add({ ...QUEUE, ...own })).toEqual(reply)
        if (reply.tenantSize !== undefined) count('tenant full')
        else if (reply.jobs.length < op.jobs.length) count('full')
        if (reply.jobs.some(({ fresh }) => !fresh)) count('known')
        break
      }
      case 'reserve': {
        const { kind: _, ends: brought, resultUs, ...own } = op
        const names = Array.from({ length: own.wanted }, () => `p${++probe}`)
        const request: ReserveRequest = {
          ...QUEUE,
          ...own,
          agingUs: given.agingUs,
          deadUs: 5_000_000,
          take: { ...laneRef, units },
          keep: given.keep,
          breaker: ref,
          probes: names,
          ...(brought && {
            finish: { ends: endsOf(brought), resultUs, deadUs: 3_000_000, uncountedTurns },
          }),
        }
        const mine = copies()
        const breakerCopy = structuredClone(breakerState)
        const around = { ...mine, breaker: ref && breakerCopy }
        const made = reserveJobs(queue, around, request, nowUs)
        const reply = woken(made)
        keepLimits(mine, made.limits)
        if (made.breaker !== undefined) keepBreaker(breakerCopy, made.breaker)
        expect(await queues.reserve(request)).toEqual(reply)
        for (const { id, turn } of reply.jobs) leased.push({ id, turn })
        count('handed out', reply.jobs.length)
        count(`blocked: ${reply.blocked}`)
        count('brought along', reply.finished.length)
        if (reply.probing && reply.jobs.length > 0) {
          count('probing')
          probes.push(...names.slice(0, reply.jobs.length))
        }
        generation = reply.view?.generation ?? 0
        const { newer } = reply.take
        if (newer !== undefined) {
          count('newer')
          knownLimits = { limits: newer.limits, version: newer.version }
        }
        break
      }
      case 'finish': {
        const { resultUs } = op
        const request = {
          ...QUEUE,
          ends: endsOf(op.ends),
          resultUs,
          deadUs: 4_000_000,
          uncountedTurns,
          breaker: ref,
        }
        for (const _ of op.again ? [1, 2] : [1]) {
          const reply = woken(finishJobs(queue, ref && breakerState, request, nowUs))
          expect(await queues.finish(request)).toEqual(reply)
          for (const each of reply) count(`finished: ${each}`)
        }
        break
      }
      case 'extend': {
        const leases = op.which.flatMap((index) => {
          const job = one(index)
          return job === undefined ? [] : [{ ...job, progress: op.progress }]
        })
        const request = { ...QUEUE, leaseUs: 1_000_000, leases }
        const reply = extendJobs(queue, request, nowUs)
        expect(await queues.extend(request)).toEqual(reply)
        for (const [index, { id, progress }] of leases.entries()) {
          if (progress !== undefined && reply[index] !== 'lost') {
            expectedChanges.push(`progress ${id}`)
          }
        }
        for (const each of reply) count(`extended: ${each}`)
        break
      }
      case 'command': {
        const dead = queue.dead.sorted()
        const known = [...queue.jobs.keys()]
        const pool = op.command === 'cancel' || dead.length === 0 ? known : dead
        const any = pool[op.which % Math.max(1, pool.length)] ?? 'unknown'
        const handedOut = op.command === 'cancel' && op.which % 2 === 0
        const id = (handedOut ? leased.at(-1)?.id : undefined) ?? any
        const command = { kind: op.command, id, keepUs: op.keepUs } as QueueCommand
        const reply = woken(commandQueue(queue, command, nowUs))
        expect(await queues.command({ ...QUEUE, command })).toBe(reply)
        if (op.command === 'cancel' && queue.jobs.get(id)?.state === ACTIVE) {
          expectedChanges.push(`cancel ${id}`)
        }
        if (reply) count(`command: ${op.command}`)
        break
      }
      case 'look': {
        expect(await queues.counts(QUEUE)).toEqual(countJobs(queue, nowUs))
        const most = 1 + (op.which % 5)
        const truth = countJobs(queue, nowUs, most)
        expect(await queues.counts({ ...QUEUE, tenants: most })).toEqual(truth)
        await lookAtFew(most, truth)
        const range = { from: op.which % 2, count: 10 }
        const dead = listDead(queue, range, nowUs)
        expect(await queues.dead({ ...QUEUE, ...range })).toEqual(dead)
        count('too late', dead.filter(({ text }) => text === 'its deadline has passed').length)
        const id = [...queue.jobs.keys()][op.which] ?? 'unknown'
        expect(await queues.job({ ...QUEUE, id })).toEqual(readJob(queue, id, nowUs))
        expect(await queues.jobStatus({ ...QUEUE, id })).toEqual(readJobStatus(queue, id))
        break
      }
      case 'outcomes': {
        if (ref === undefined) break
        const name = probes.shift()
        const ended: [string, number][] = name === undefined ? [] : [[name, op.probe]]
        const { outcomes } = op
        const request = {
          ...ref,
          pod: 'p',
          sequence: ++sequence,
          generation,
          outcomes,
          probes: ended,
        }
        const own = structuredClone(breakerState)
        const view = keepBreaker(own, reportOutcomes(own, request, nowUs, 1))
        expect(await breakers.report(request)).toEqual(view)
        generation = view.generation
        break
      }
      case 'isolate': {
        if (ref === undefined) break
        const command = { kind: 'isolate' as const, holder: 'me', forUs: 400_000 }
        const own = structuredClone(breakerState)
        const view = keepBreaker(own, commandBreaker(own, { ...ref, command }, nowUs))
        expect(await breakers.command({ ...ref, command })).toEqual(view)
        break
      }
      case 'vendor': {
        if (knownLimits.limits.length === 0) break
        // A vendor that refuses a call lowers the limits that learn.
        const costs = knownLimits.limits.map(() => 1)
        const refused = { costs, booked: costs, stamps }
        const request = {
          ...laneRef,
          grantedUs: nowUs - 50_000,
          throttled: true,
          pauseUs: 600_000,
          left: [],
          basePauseUs: 1_000,
          maxPauseUs: 1_000_000,
          refused: knownLimits.limits.some(({ learn }) => learn) ? refused : undefined,
        }
        const own = copies()
        const paused = keepLimits(
          own,
          applyFeedback(own.lane, own.guard, request, nowUs, own.member),
        )
        expect(await limits.feedback(request)).toEqual(paused)
        if (paused.learned !== undefined) count('lowered')
        break
      }
      case 'take': {
        if (knownLimits.limits.length === 0) break
        const costs = [knownLimits.limits.map(() => op.cost)]
        const own = copies()
        const reply = keepLimits(
          own,
          takePermits(own.lane, own.guard, { ...laneRef, costs }, nowUs, own.member),
        )
        expect(await limits.take({ ...laneRef, costs })).toEqual(reply)
        stamps = reply.stamps
        break
      }
      case 'change': {
        if (knownLimits.limits.length === 0) break
        // From a pod that this one does not know.
        const changed = given.limits.map((each) => ({ ...each, limit: each.limit + 1 }))
        const own = copies()
        const request = { ...laneRef, limits: changed }
        const version = keepLimits(
          own,
          changeLimits(own.lane, own.guard, request, nowUs, own.member),
        )
        expect(await limits.change(request)).toBe(version)
      }
    }
  }
  const wakeCounts = () =>
    WORKERS.map((worker) => published.get(`${keys.wakes}${worker}`)?.length ?? 0)
  const called = WORKERS.map((worker) => wakes.filter((each) => each === worker).length)
  await vi
    .waitUntil(() => wakeCounts().join() === called.join(), { timeout: 2_000 })
    .catch(() => {})
  expect(wakeCounts()).toEqual(called)
  const changes = () =>
    (published.get(keys.jobChanges) ?? []).flatMap((text) => {
      const { kind, ids } = JSON.parse(text) as { kind: string; ids: string[] }
      return ids.map((id) => `${kind} ${id}`)
    })
  await vi
    .waitUntil(() => changes().length >= expectedChanges.length, { timeout: 2_000 })
    .catch(() => {})
  expect(changes()).toEqual(expectedChanges)
  expect(await storedJobs(runner, keys)).toEqual([...queue.jobs.keys()].sort())
  expect(await tenantFields(runner, keys)).toEqual({
    tags: sorted(queue.tags),
    open: sorted(queue.open),
  })
}
