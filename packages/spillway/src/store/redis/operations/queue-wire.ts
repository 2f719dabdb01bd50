/** Encodes the arguments of job queue scripts and decodes their replies. */
import type { Keys } from '../../keys.js'
import type {
  Blocked,
  EndKind,
  Finished,
  JobState,
  JobView,
  QueueCounts,
  ReservedJob,
  ReserveReply,
  ReserveRequest,
  StoredJobStatus,
  TenantDepths,
} from '../../queue-port.js'
import { deepestFirst } from '../../tenant-depths.js'
import { readView, writeInput } from './redis-breakers.js'
import { memberAt, readTakeReply, writeSpecs } from './redis-limits.js'

type Ends = NonNullable<ReserveRequest['finish']>

const BLOCKED: readonly Blocked[] = ['no', 'empty', 'limited', 'vendor', 'breaker', 'paused']
const END: readonly EndKind[] = ['done', 'failed', 'dead', 'released', 'returned']
const FINISHED: readonly Finished[] = ['stale', 'done', 'again', 'dead', 'cancelled']
const STATE: readonly JobState[] = ['waiting', 'delayed', 'active', 'done', 'dead', 'cancelled']

/** Without a breaker the script reads none, but the key has to be in the same slot. */
export function breakerKey(keys: Keys, guard: string, lane = ''): string {
  return keys.breaker(guard, lane)
}

/** Nearly all jobs end as done, which is encoded as nothing. */
export function writeEnds({ ends, resultUs }: Pick<Ends, 'ends' | 'resultUs'>): string[] {
  const args = [String(resultUs)]
  for (const { id, turn, kind, text, delayUs, generation, probe } of ends) {
    const how = `[${END.indexOf(kind)},${delayUs},${generation},${probe ? 1 : 0}]`
    args.push(`${id}:${turn}`, kind === 'done' ? '' : how, text)
  }
  return args
}

export function readFinished(reply: readonly number[]): Finished[] {
  return reply.map((each) => FINISHED[each] as Finished)
}

const NO_ENDS = { ends: [], resultUs: 0, deadUs: 0, uncountedTurns: 0 }
const NO_LIMITS = { json: '[]', tag: '' }

/** Built by hand, because every job passes here. */
export function reserveArgs(
  request: ReserveRequest,
  keys: Keys,
  scriptKeys: readonly string[],
  time: string,
): string[] {
  const { take, breaker, probes, finish = NO_ENDS } = request
  const member = memberAt(take, scriptKeys)
  const limits = take.limits.length === 0 ? NO_LIMITS : writeSpecs(take.limits)
  const settings =
    `{"l":${limits.json},"units":${JSON.stringify(take.units)},"v":${take.version},` +
    `"keep":${request.keep},"life":${request.lifeUs},"park":${request.parkUs},` +
    `"dead":${request.deadUs},"end_dead":${finish.deadUs},"has_breaker":${breaker !== undefined},` +
    `"uncounted":${finish.uncountedTurns},` +
    (member > 0 ? `"m":${member},` : '') +
    `"wakes":${JSON.stringify(keys.wakes)}}`
  return [
    time,
    settings,
    limits.tag,
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
  uncounted: number,
  ...costs: number[],
]
export type ReserveWire = [
  blocked: number,
  waitUs: number,
  probing: number,
  take: number[],
  view: number[],
  finished: number[],
  ...jobs: JobReserved[],
]

export function readReserved(reply: ReserveWire, { take: ref }: ReserveRequest): ReserveReply {
  const [blocked, waitUs, probing, take, view, finished, ...jobs] = reply
  return {
    jobs: jobs.map((each): ReservedJob => {
      const [id, turn, attempt, attempts, data, priority, tenant, key, ageUs, leftUs, ...rest] =
        each
      const [uncounted = 0, ...costs] = rest
      const job = { id, turn, attempt, attempts, uncounted, data, priority, tenant, key }
      return { ...job, ageUs, leftUs, costs }
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
export const COUNTS = PRIORITIES + 8

export type CountsWire = [
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
  expiredLeases: number,
  tenants: (string | number)[],
]

export function readCounts(wire: CountsWire): QueueCounts {
  const tenants = wire[COUNTS - 1] as (string | number)[]
  const byPriority = wire.slice(0, PRIORITIES) as number[]
  const waiting = byPriority.reduce((sum, each) => sum + each, 0)
  const [delayed = 0, active = 0, done = 0, dead = 0, paused, oldestUs = 0, expiredLeases = 0] =
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
    expiredLeases,
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

export type JobWire = [
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

export function readJob(wire: JobWire): JobView {
  const [id, state, data, priority, tenant, key, attempt, attempts, ageUs, progress, text] = wire
  const known = STATE[state] as JobState
  return { id, state: known, data, priority, tenant, key, attempt, attempts, ageUs, progress, text }
}

export type JobStatusWire = [state: number, attempt: number, progress: string, text: string]

export function readJobStatus([state, attempt, progress, text]: JobStatusWire): StoredJobStatus {
  return { state: STATE[state] as JobState, attempt, progress, text }
}
