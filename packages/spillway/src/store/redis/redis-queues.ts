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
} from '../queue-port.js'
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

  async function look(request: QueueRef, own: { id: string; from: number; count: number }) {
    const reply = await runner.run(SCRIPTS.readQueue, keysOf(request), [
      time(),
      input(request, own),
    ])
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
      const own = { has_breaker: breaker !== undefined, end_dead: request.deadUs }
      const args = [time(), input(request, own), ...writeEnds(request)]
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
      const { jobs } = await look(request, { id: request.id, from: 0, count: 0 })
      return jobs[0]
    },
    counts: async (request) => (await look(request, { id: '', from: 0, count: 0 })).counts,
    dead: async (request) => {
      const { from, count } = request
      return (await look(request, { id: '', from, count })).jobs
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

/** Nearly all are done, and that takes no words. */
function writeEnds({ ends, resultUs }: Pick<Ends, 'ends' | 'resultUs'>): string[] {
  const args = [String(resultUs)]
  for (const { id, turn, kind, text, delayUs, generation, probe } of ends) {
    const how = `[${END.indexOf(kind)},${delayUs},${generation},${probe ? 1 : 0}]`
    args.push(`${id}:${turn}`, kind === 'done' ? '' : how, text)
  }
  return args
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

const NO_ENDS = { ends: [], resultUs: 0, deadUs: 0 }

function reserveArgs(request: ReserveRequest, keys: Keys, time: string): string[] {
  const { take, breaker, probes, finish = NO_ENDS } = request
  const { json, tag } = writeSpecs(take.limits)
  const settings = JSON.stringify({
    v: take.version,
    life: request.lifeUs,
    wakes: keys.wakes,
    park: request.parkUs,
    dead: request.deadUs,
    units: take.units,
    keep: request.keep,
    has_breaker: breaker !== undefined,
    end_dead: finish.deadUs,
  })
  return [
    time,
    `{"l":${json},${settings.slice(1)}`,
    take.limits.length === 0 ? '' : tag,
    breaker === undefined ? '' : writeInput(keys, breaker, { probes }),
    request.worker,
    String(request.wanted),
    String(request.leaseUs),
    String(request.agingUs),
    ...writeEnds(finish),
  ]
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
const COUNTS = PRIORITIES + 7

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
]

function readCounts(wire: CountsWire): QueueCounts {
  const byPriority = wire.slice(0, PRIORITIES)
  const waiting = byPriority.reduce((sum, each) => sum + each, 0)
  const [delayed = 0, active = 0, done = 0, dead = 0, paused, oldestUs = 0, lapsed = 0] =
    wire.slice(PRIORITIES)
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
  }
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
