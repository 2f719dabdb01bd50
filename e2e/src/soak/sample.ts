/** Reads quantities that grow with a leak: heap, descriptors, Redis keys, slots, queued calls. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RedisProcess } from '../faults/redis-process.js'
import type { GatewayProcess } from '../gateway-process.js'

export interface GatewaySample {
  /** In use after a garbage collection. */
  readonly heapMb: number
  readonly descriptors: number
  /** Calls that hold a slot. */
  readonly active: number
  /** Calls in the queue. */
  readonly waiting: number
  /** Requests inside the gateway. */
  readonly running: number
  /** Longest since the last sample. */
  readonly loopDelayMs: number
  /** Smallest remaining share of any vendor limit. */
  readonly headroom: number
}

export interface Sample {
  /** Seconds since the start of the run. */
  readonly atS: number
  /** Requests sent so far. */
  readonly sent: number
  /** Requests answered with 200 so far. */
  readonly succeeded: number
  readonly gateways: readonly GatewaySample[]
  /** Undefined while Redis does not answer. */
  readonly redisKeys: number | undefined
}

const COLLECTION_MS = 300
const REDIS_MS = 500

export async function sampleGateway({
  pid,
  adminUrl,
  signal,
}: GatewayProcess): Promise<GatewaySample> {
  signal('SIGUSR2')
  await sleep(COLLECTION_MS)
  const answer = await fetch(`${adminUrl}/metrics`)
  if (!answer.ok) throw new Error(`${adminUrl}/metrics answered ${answer.status}`)
  const metrics = await answer.text()
  const values = (name: string) =>
    [...metrics.matchAll(new RegExp(`^${name}(?:{[^}]*})? (\\S+)$`, 'gm'))].map(([, value]) =>
      Number(value),
    )
  const sum = (name: string) => values(name).reduce((total, value) => total + value, 0)
  return {
    heapMb: sum('nodejs_heap_size_used_bytes') / 1e6,
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    active: sum('spillway_calls_active'),
    waiting: sum('spillway_calls_waiting'),
    running: sum('spillway_requests_running'),
    loopDelayMs: sum('nodejs_eventloop_lag_max_seconds') * 1_000,
    headroom: Math.min(1, ...values('spillway_limit_headroom_ratio')),
  }
}

export async function countKeys(redis: RedisProcess): Promise<number | undefined> {
  const reply = await Promise.race([
    redis.command('DBSIZE').catch(() => ''),
    sleep(REDIS_MS).then(() => ''),
  ])
  return reply.startsWith(':') ? Number(reply.slice(1)) : undefined
}

/** Keys that never expire. One script, because the operator's connection reads one line. */
export async function countLastingKeys(redis: RedisProcess): Promise<number> {
  const script =
    "local n=0 for _,k in ipairs(redis.call('KEYS','*')) do if redis.call('PTTL',k)==-1 then n=n+1 end end return n"
  const reply = await redis.command(`EVAL "${script}" 0`)
  return Number(reply.slice(1))
}

const CPU_PRESSURE = '/proc/pressure/cpu'

/** Time since the start of the machine in which at least one process waited for a CPU. Undefined if it is unknown. */
export function waitedForCpuMs(): number | undefined {
  if (!existsSync(CPU_PRESSURE)) return undefined
  return Number(/^some .*total=(\d+)/.exec(readFileSync(CPU_PRESSURE, 'utf8'))?.[1]) / 1_000
}
