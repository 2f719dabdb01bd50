/** Checks one Redis server: version, latency, clock, eviction, persistence, memory. */
import { documentationUrl } from 'spillway/internal'
import type { RedisConfig } from '../../config/config.js'
import { hostOf } from '../../config/redis-address.js'
import { messageOf } from '../operate/fleet-connection.js'
import { type Finding, fail, ok, warn } from './finding.js'
import { type Link, openLink } from './redis-link.js'
import { fieldsOf } from './redis-servers.js'

type Info = ReadonlyMap<string, string>

const PINGS = 20
const DEFAULT_TIMEOUT_MS = 100
const MOST_SKEW_MS = 1_000
const FULL = 0.8
/** Remedy if a server cannot be used. */
export const CHECK_ADDRESS =
  'start Redis, or correct the address and the login: REDIS_URL, or redis in spillway.yaml'

export async function examineServer(url: string, redis: RedisConfig): Promise<Finding[]> {
  const name = hostOf(url)
  let link: Link
  try {
    link = await openLink(url, redis)
  } catch (error) {
    return [fail('server', `${name}: ${messageOf(error)}`, CHECK_ADDRESS)]
  }
  try {
    const info = fieldsOf(await link.send('INFO').catch(() => ''))
    const timeoutMs = Number(redis.commandTimeoutMs ?? DEFAULT_TIMEOUT_MS)
    return [
      versionFinding(name, info),
      await latencyFinding(link, timeoutMs),
      await clockFinding(link),
      evictionFinding(info),
      persistenceFinding(info),
      ...memoryFindings(info),
    ]
  } finally {
    link.close()
  }
}

function versionFinding(name: string, info: Info): Finding {
  const version = info.get('redis_version')
  if (version === undefined) {
    return warn('server', `${name} does not let this user see INFO`, 'ACL SETUSER … +info')
  }
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const kind =
    info.get('server_name') === 'valkey'
      ? `Valkey ${info.get('valkey_version')}`
      : `Redis ${version}`
  const topology = `${info.get('redis_mode') ?? info.get('server_mode')}, ${info.get('role')}, ${info.get('connected_slaves') ?? 0} replicas`
  const message = `${name}: ${kind}, ${topology}`
  if (major > 6 || (major === 6 && minor >= 2)) return ok('server', message)
  return fail('server', message, 'too old; install Redis 6.2 or newer, or Valkey')
}

async function latencyFinding(link: Link, timeoutMs: number): Promise<Finding> {
  const times: number[] = []
  for (let ping = 0; ping < PINGS; ping++) {
    const beganMs = performance.now()
    await link.send('PING')
    times.push(performance.now() - beganMs)
  }
  times.sort((a, b) => a - b)
  const median = times[PINGS / 2] ?? 0
  const worst = times.at(-1) ?? 0
  const message = `${median.toFixed(1)} ms, at worst ${worst.toFixed(1)} ms of ${PINGS} round trips`
  if (median > timeoutMs) {
    return fail(
      'latency',
      message,
      `commands are given up after ${timeoutMs} ms: raise redis.commandTimeoutMs`,
    )
  }
  if (median > timeoutMs / 4) {
    return warn(
      'latency',
      message,
      'calls wait for round trips to Redis; move Redis closer to the gateway',
    )
  }
  return ok('latency', message)
}

async function clockFinding(link: Link): Promise<Finding> {
  const beganMs = Date.now()
  const time = (await link.send('TIME')) as [string, string]
  const middleMs = (beganMs + Date.now()) / 2
  const skewMs = Number(time[0]) * 1_000 + Number(time[1]) / 1_000 - middleMs
  const message = `${Math.abs(Math.round(skewMs))} ms ${skewMs < 0 ? 'behind' : 'ahead of'} this machine`
  if (Math.abs(skewMs) < MOST_SKEW_MS) return ok('clock', message)
  const advice =
    "decisions use the server's clock only, but timestamps in logs will not agree: run NTP"
  return warn('clock', message, advice)
}

function evictionFinding(info: Info): Finding {
  const policy = info.get('maxmemory_policy') ?? 'unknown'
  const limited = Number(info.get('maxmemory') ?? 0) > 0
  if (policy === 'noeviction') return ok('eviction', 'noeviction')
  if (!limited) return ok('eviction', `${policy}, but there is no maxmemory`)
  const advice =
    'limits and breakers would be forgotten: maxmemory-policy noeviction, or a server of its own'
  return warn('eviction', policy, advice)
}

function persistenceFinding(info: Info): Finding {
  const aof = info.get('aof_enabled') === '1'
  const rdb = info.get('rdb_last_bgsave_status')
  if (aof) return ok('persistence', 'append-only file')
  if (rdb === 'err') {
    return fail(
      'persistence',
      'the last snapshot failed, so Redis may refuse writes',
      'look at its log and disk',
    )
  }
  const advice = `after a restart it may have lost data; gateways then use their shares of the limits for one window, see ${documentationUrl('concepts/outages')}`
  return warn('persistence', 'snapshots at most, no append-only file', advice)
}

function memoryFindings(info: Info): Finding[] {
  const [used, most] = [Number(info.get('used_memory')), Number(info.get('maxmemory'))]
  if (!(most > 0)) return []
  const share = used / most
  const message = `${Math.round(share * 100)} % of maxmemory`
  if (share < FULL) return [ok('memory', message)]
  return [warn('memory', message, 'when it is full, writes are refused: give it more')]
}
