/** The queue operations as scripts, and what the scripts publish as calls of workers. */
import type { Keys } from '../keys.js'
import type {
  AddReply,
  AddRequest,
  Blocked,
  EndKind,
  Extended,
  Finished,
  JobState,
  JobView,
  QueueCounts,
  QueueRef,
  QueueStore,
  ReservedJob,
  ReserveReply,
  ReserveRequest,
  TenantDepths,
} from '../queue-port.js'
import { deepestFirst } from '../tenant-depths.js'
import type { Confirming } from './confirming.js'
import { readView, writeInput } from './redis-breakers.js'
import { readTakeReply, writeSpecs } from './redis-limits.js'
import type { ScriptRunner } from './runner.js'
import { SCRIPTS } from './scripts.gen.js'
import type { Subscribe } from './subscription.js'

export interface RedisQueuesOptions {
  runner: ScriptRunner
  keys: Keys
  subscribe: Subscribe
  /** What adds that have to be confirmed go through: others must not wait behind them. */
  confirming: () => Promise<Confirming>
  /** Of a priority, so many jobs are looked at to tell whose they are. Default: 200. */
  look?: number
  /** Replaces the server's time, for tests that feed twins the same history. */
  time?: () => string
}

type Ends = NonNullable<ReserveRequest['finish']>

const BLOCKED: readonly Blocked[] = ['no', 'empty', 'limited', 'vendor', 'breaker', 'paused']
const END: readonly EndKind[] = ['done', 'failed', 'dead', 'released']
const FINISHED: readonly Finished[] = ['stale', 'done', 'again', 'dead', 'cancelled']
const EXTENDED: readonly Extended[] = ['lost', 'kept', 'cancelled']
const STATE: readonly JobState[] = ['waiting', 'delayed', 'active', 'done', 'dead', 'cancelled']

export function createRedisQueues({
  runner,
  keys,
  subscribe,
  confirming,
  look: mostLookedAt = 200,
  time = () => '',
}: RedisQueuesOptions): QueueStore {
  const keysOf = ({ guard, queue }: QueueRef) => keys.queue(guard, queue)
  const input = ({ lifeUs }: QueueRef, own: object) =>
    JSON.stringify({ life: lifeUs, wakes: keys.wakes, ...own })

  async function add(by: ScriptRunner, request: AddRequest): Promise<AddReply> {
    const jobs = request.jobs.map((job) => [
      job.priority,
      job.delayUs,
      job.deadlineUs,
      job.key,
      job.tenant,
      job.cost,
      job.attempts,
    ])
    const own = input(request, { most: request.maxSize, jobs })
    const args = [time(), own, ...request.jobs.map(({ data }) => data)]
    const reply = await by.run(SCRIPTS.addJobs, keysOf(request), args)
    const [size, ...added] = reply as [number, ...(string | number)[]]
    const ids: { id: string; fresh: boolean }[] = []
    for (let at = 0; at < added.length; at += 2) {
      ids.push({ id: added[at] as string, fresh: added[at + 1] === 1 })
    }
    return { jobs: ids, size }
  }

  async function look(
    request: QueueRef,
    wanted: { id?: string; from?: number; count?: number; tenants?: number },
  ) {
    const own = { id: '', from: 0, count: 0, tenants: 0, look: mostLookedAt, ...wanted }
    const args = [time(), input(request, own)]
    const reply = await runner.run(SCRIPTS.readQueue, keysOf(request), args)
    const wire = reply as [...CountsWire, ...(JobWire | null)[]]
    return {
      counts: readCounts(wire.slice(0, COUNTS) as CountsWire),
      jobs: (wire.slice(COUNTS) as (JobWire | null)[]).flatMap((job) =>
        job ? [readJob(job)] : [],
      ),
    }
  }

  return {
    async add(request) {
      const { durable } = request
      if (durable === undefined) return add(runner, request)
      const { runner: own, confirm } = await confirming()
      const reply = await add(own, request)
      const key = keysOf(request)[0] as string
      const replicas = await confirm(key, durable.replicas, durable.timeoutMs)
      return { ...reply, confirmed: replicas >= durable.replicas }
    },
    async reserve(request) {
      const reply = await runner.run(
        SCRIPTS.reserveJobs,
        reserveKeys(keys, request),
        reserveArgs(request, keys, time()),
      )
      return readReserved(reply as ReserveWire, request)
    },
    async finish(request) {
      const { breaker } = request
      const own = { finish: writeEnds(request, breaker !== undefined) }
      const args = [time(), input(request, own), ...request.ends.map(({ text }) => text)]
      const scriptKeys = [breakerKey(keys, request.guard, breaker?.lane), ...keysOf(request)]
      const reply = await runner.run(SCRIPTS.finishJobs, scriptKeys, args)
      return readFinished(reply as number[])
    },
    async extend(request) {
      const leases = request.leases.map(({ id, turn, progress }) => [
        id,
        turn,
        progress === undefined ? 0 : 1,
      ])
      const own = input(request, { lease: request.leaseUs, leases })
      const args = [time(), own, ...request.leases.map(({ progress }) => progress ?? '')]
      const reply = await runner.run(SCRIPTS.extendJobs, keysOf(request), args)
      return (reply as number[]).map((each) => EXTENDED[each] as Extended)
    },
    async job(request) {
      const { jobs } = await look(request, { id: request.id })
      return jobs[0]
    },
    counts: async (request) => (await look(request, { tenants: request.tenants ?? 0 })).counts,
    dead: async (request) => {
      const { from, count } = request
      return (await look(request, { from, count })).jobs
    },
    async command(request) {
      const { kind: command, id, keepUs } = { id: '', keepUs: 0, ...request.command }
      const own = input(request, { command, id, keep: keepUs })
      return (await runner.run(SCRIPTS.commandQueue, keysOf(request), [time(), own])) === 1
    },
    onWake(worker, wake, onGap) {
      const heard = { onMessage: wake, onSubscribed: onGap }
      const subscription = subscribe(`${keys.wakes}${worker}`, heard)
      return () => subscription.close()
    },
  }
}

/** Without a breaker the script looks at none; but the key has to be of the same slot. */
function breakerKey(keys: Keys, guard: string, lane = ''): string {
  return keys.breaker(guard, lane)
}

function writeEnds({ ends, resultUs, deadUs }: Ends, hasBreaker: boolean): object {
  const written = ends.map(({ id, turn, kind, delayUs, generation, probe }) => [
    id,
    turn,
    END.indexOf(kind),
    delayUs,
    generation,
    probe ? 1 : 0,
  ])
  return { has_breaker: hasBreaker, result: resultUs, dead: deadUs, ends: written }
}

function readFinished(reply: readonly number[]): Finished[] {
  return reply.map((each) => FINISHED[each] as Finished)
}

function reserveKeys(keys: Keys, { guard, queue, take, breaker }: ReserveRequest): string[] {
  return [
    keys.lane(guard, take.lane),
    keys.guard(guard),
    breakerKey(keys, guard, breaker?.lane),
    ...keys.queue(guard, queue),
  ]
}

function reserveArgs(request: ReserveRequest, keys: Keys, time: string): string[] {
  const { take, breaker, probes, finish } = request
  const { json, tag } = writeSpecs(take.limits)
  const own = JSON.stringify({
    v: take.version,
    life: request.lifeUs,
    wakes: keys.wakes,
    worker: request.worker,
    wanted: request.wanted,
    lease: request.leaseUs,
    park: request.parkUs,
    aging: request.agingUs,
    dead: request.deadUs,
    units: take.units,
    keep: request.keep,
    breaker: breaker === undefined ? '' : writeInput(keys, breaker, { probes }),
    finish: finish && writeEnds(finish, breaker !== undefined),
  })
  const texts = finish?.ends.map(({ text }) => text) ?? []
  return [time, `{"l":${json},${own.slice(1)}`, tag, ...texts]
}

type JobReserved = [
  id: string,
  turn: number,
  attempt: number,
  attempts: number,
  data: string,
  priority: number,
  tenant: string,
  key: string,
  ageUs: number,
  leftUs: number,
  ...costs: number[],
]
type ReserveWire = [
  blocked: number,
  waitUs: number,
  probing: number,
  take: number[],
  view: number[],
  finished: number[],
  ...jobs: JobReserved[],
]

function readReserved(reply: ReserveWire, { take: ref }: ReserveRequest): ReserveReply {
  const [blocked, waitUs, probing, take, view, finished, ...jobs] = reply
  return {
    jobs: jobs.map((each): ReservedJob => {
      const [id, turn, attempt, attempts, data, priority, tenant, key, ageUs, leftUs, ...costs] =
        each
      return { id, turn, attempt, attempts, data, priority, tenant, key, ageUs, leftUs, costs }
    }),
    blocked: BLOCKED[blocked] as Blocked,
    waitUs,
    take: readTakeReply(take, ref),
    view: view.length === 0 ? undefined : readView(view),
    probing: probing === 1,
    finished: readFinished(finished),
  }
}

const PRIORITIES = 4
const COUNTS = PRIORITIES + 8

type CountsWire = [
  critical: number,
  high: number,
  normal: number,
  low: number,
  delayed: number,
  active: number,
  done: number,
  dead: number,
  paused: number,
  oldestUs: number,
  lapsed: number,
  tenants: (string | number)[],
]

function readCounts(wire: CountsWire): QueueCounts {
  const tenants = wire[COUNTS - 1] as (string | number)[]
  const byPriority = wire.slice(0, PRIORITIES) as number[]
  const waiting = byPriority.reduce((sum, each) => sum + each, 0)
  const [delayed = 0, active = 0, done = 0, dead = 0, paused, oldestUs = 0, lapsed = 0] =
    wire.slice(PRIORITIES) as number[]
  return {
    waiting,
    byPriority,
    delayed,
    active,
    done,
    dead,
    paused: paused === 1,
    oldestUs,
    lapsed,
    ...(tenants.length > 0 && { tenants: readTenants(tenants) }),
  }
}

function readTenants([exact, others, ...rest]: readonly (string | number)[]): TenantDepths {
  const top: TenantDepths['top'][number][] = []
  for (let at = 0; at < rest.length; at += 1 + PRIORITIES) {
    const byPriority = rest.slice(at + 1, at + 1 + PRIORITIES) as number[]
    top.push({ tenant: rest[at] as string, byPriority })
  }
  return { exact: exact === 1, top: top.sort(deepestFirst), others: others as number }
}

type JobWire = [
  id: string,
  state: number,
  data: string,
  priority: number,
  tenant: string,
  key: string,
  attempt: number,
  attempts: number,
  ageUs: number,
  progress: string,
  text: string,
]

function readJob(wire: JobWire): JobView {
  const [id, state, data, priority, tenant, key, attempt, attempts, ageUs, progress, text] = wire
  const known = STATE[state] as JobState
  return { id, state: known, data, priority, tenant, key, attempt, attempts, ageUs, progress, text }
}
