/** Reads INFO of a server and checks it against the requirements. */
import { RedisSetupError } from './setup-error.js'

/** The kind of server that the options expect. */
export type Expected = 'server' | 'cluster'

export interface Verdict {
  /** Why it cannot be used, if so. */
  problem?: Error
  /** It can be used, but something is wrong. */
  warning?: string
}

/** `SET … PXAT` came with it. Without it, keys would not expire by the server's clock. */
const OLDEST = [6, 2] as const

export function judge(info: string, expected: Expected, name: string): Verdict {
  const fields = parseInfo(info)
  const problem = problemOf(fields, expected, name)
  if (problem !== undefined) return { problem }
  const warning = evictionWarning(fields, name)
  return warning === undefined ? {} : { warning }
}

function problemOf(
  fields: ReadonlyMap<string, string>,
  expected: Expected,
  name: string,
): Error | undefined {
  const version = fields.get('redis_version') ?? ''
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (version !== '' && (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]))) {
    const why = 'scripts set keys that expire by server time (SET … PXAT)'
    return new RedisSetupError(
      `${name} is Redis ${version}, which is too old: ${why}, which needs Redis ${OLDEST.join('.')} or newer, or Valkey`,
    )
  }
  // Valkey 9 has a new name for it.
  const mode = fields.get('redis_mode') ?? fields.get('server_mode')
  if (mode === 'sentinel') {
    return new RedisSetupError(`${name} is a Sentinel: name it in redis.sentinels`)
  }
  if (mode === 'cluster' && expected === 'server') {
    return new RedisSetupError(
      `${name} is a node of a cluster: name it in redis.urls, not redis.url`,
    )
  }
  if (mode === 'standalone' && expected === 'cluster') {
    return new RedisSetupError(
      `${name} is not a node of a cluster: name it in redis.url, not redis.urls`,
    )
  }
  if (fields.get('loading') === '1') return new Error(`${name} is still loading its data`)
  if (fields.get('role') === 'slave' && expected === 'server') {
    const master = `${fields.get('master_host')}:${fields.get('master_port')}`
    return new RedisSetupError(
      `${name} is a read-only replica of ${master}: name the master, or Sentinels in redis.sentinels`,
    )
  }
  return undefined
}

/** All of our keys expire, so the `volatile-*` policies evict them as well. */
function evictionWarning(fields: ReadonlyMap<string, string>, name: string): string | undefined {
  const policy = fields.get('maxmemory_policy') ?? 'noeviction'
  if (policy === 'noeviction' || (fields.get('maxmemory') ?? '0') === '0') return undefined
  return (
    `Redis at ${name} evicts keys when its memory is full (maxmemory-policy ${policy}): limits and breakers ` +
    'would be forgotten. Set maxmemory-policy noeviction, or give Spillway a server of its own'
  )
}

function parseInfo(info: string): Map<string, string> {
  const fields = new Map<string, string>()
  for (const line of info.split('\n')) {
    const colon = line.indexOf(':')
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).trim())
  }
  return fields
}
