/** The options of a Redis store that describe how to reach the server or servers. */
import type { ConnectionOptions } from 'node:tls'
import {
  arrayOf,
  type Check,
  integer,
  type OptionProblem,
  object,
  optional,
  text,
} from '../../core/options/checks.js'
import type { Random } from '../../core/random.js'
import type { Clock } from '../../core/time/clock.js'
import { clockOption, randomOption } from '../../core/time/clock-options.js'
import { readDriver } from './drivers/load-driver.js'
import { parseServerUrl, type ServerUrl } from './topology/address.js'
import { readClient } from './user-client/user-client.js'

/** How to connect to Redis. */
export interface RedisConnectionOptions {
  /**
   * One server: `redis://user:password@host:6379/0`, `rediss:` for TLS, or `unix:`. An empty or undefined `url`
   * is an error, because its variable is not set. Default: `redis://127.0.0.1:6379`, if the key is left out.
   */
  url?: string | undefined
  /** Nodes of a cluster, as URLs. Some are enough, because they know the others. Default: none. */
  urls?: readonly string[] | undefined
  /**
   * Sentinels, as URLs such as `redis://host:26379`. A user and password there are for the Sentinels. Default:
   * none.
   */
  sentinels?: readonly string[] | undefined
  /** The name under which the Sentinels know the master. Default: `mymaster`. */
  master?: string | undefined
  /** Name of the Redis user. Default: the one in the URL, or none. */
  username?: string | undefined
  /** Password of the Redis user. Default: the one in the URL, or none. */
  password?: string | undefined
  /**
   * Number of the database. A cluster has only 0. Range: integers from 0. Default: the one in the URL, or 0.
   */
  database?: number | undefined
  /** TLS options for `rediss:` URLs, such as certificates. Default: those of Node. */
  tls?: ConnectionOptions | undefined
  /**
   * The package for connections: `'redis'` (node-redis), `'ioredis'`, or the package itself.
   * Default: `redis` if it is installed, otherwise `ioredis`.
   */
  driver?: 'redis' | 'ioredis' | object | undefined
  /**
   * An existing client of node-redis or ioredis, used in place of our own connections. It is never closed. A
   * client that queues while it is offline, or resends commands that may have run, is rejected. Default: none.
   */
  client?: unknown
  /** The clock to read and to set timers with. Default: the system clock. */
  clock?: Clock | undefined
  /** Source of random numbers from 0 to 1. Default: `Math.random`. */
  random?: Random | undefined
}

const SENTINEL_PORT = 26379

const readUrl =
  (expected: string, defaultPort?: number): Check<ServerUrl> =>
  (value, path, problems) => {
    const url = typeof value === 'string' ? parseServerUrl(value, defaultPort) : undefined
    // The value is not shown, because URLs contain passwords.
    if (url === undefined) problems.push({ path, message: `must be a URL such as ${expected}` })
    return url as ServerUrl
  }

const atLeastOne =
  <T>(check: Check<T[]>): Check<T[]> =>
  (value, path, problems) => {
    if (Array.isArray(value) && value.length === 0) {
      problems.push({ path, message: 'must have at least one entry' })
    }
    return check(value, path, problems)
  }

const readTls: Check<ConnectionOptions> = (value, path, problems) => {
  if (typeof value !== 'object' || value === null) {
    problems.push({ path, message: 'must be an object with options of tls.connect' })
  }
  return value as ConnectionOptions
}

const readFields = object({
  url: optional(readUrl('redis://host:6379, rediss://host:6379/0 or unix:///path')),
  urls: optional(atLeastOne(arrayOf(readUrl('redis://host:6379 or rediss://host:6379')))),
  sentinels: optional(
    atLeastOne(arrayOf(readUrl('redis://host:26379 or rediss://host:26379', SENTINEL_PORT))),
  ),
  master: optional(text()),
  username: optional(text()),
  password: optional(text()),
  database: optional(integer({ min: 0 })),
  tls: optional(readTls),
  driver: optional(readDriver),
  client: optional(readClient),
  clock: clockOption,
  random: randomOption,
})

export type CheckedConnection = ReturnType<typeof readFields>

export const readConnection: Check<CheckedConnection> = (value, path, problems) => {
  if (isUnsetUrl(value)) {
    problems.push({ path: `${path}.url`, message: UNSET_URL })
    return undefined as never
  }
  const fields = readFields(value, path, problems)
  if (problems.length > 0) return fields
  const complain = (option: string, message: string) =>
    problems.push({ path: `${path}.${option}`, message })
  checkWays(fields, complain)
  checkUrls(fields, complain)
  checkLogin(fields, complain)
  return fields
}

const UNSET_URL =
  'is empty; check the environment variable that sets it. ' +
  'Omit url for a Redis on this machine (redis://127.0.0.1:6379)'

/**
 * `url: process.env.REDIS_URL` without that variable would silently mean the Redis of this machine.
 */
function isUnsetUrl(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || !('url' in value)) return false
  const { url, ...others } = value as RedisConnectionOptions
  if (typeof url === 'string') return url.trim() === ''
  const way = others.client ?? others.urls ?? others.sentinels
  return (url === undefined || url === null) && way === undefined
}

type Complain = (option: string, message: string) => OptionProblem[] | number

const SERVER_OPTIONS = ['client', 'url', 'urls', 'sentinels'] as const
const CONNECTION_OPTIONS = ['tls', 'driver', 'master', 'username', 'password', 'database'] as const

function checkWays(fields: CheckedConnection, complain: Complain): void {
  const [way, another] = SERVER_OPTIONS.filter((option) => fields[option] !== undefined)
  if (way !== undefined && another !== undefined) {
    complain(way, `must not come together with ${another}; remove one of them`)
  }
  if (fields.client !== undefined) {
    const conflicting = CONNECTION_OPTIONS.find((option) => fields[option] !== undefined)
    if (conflicting !== undefined) {
      complain('client', `must not come together with ${conflicting}, because a client has its own`)
    }
  } else if (fields.master !== undefined && fields.sentinels === undefined) {
    complain('master', 'needs sentinels')
  }
}

function checkUrls({ url, urls, sentinels, tls }: CheckedConnection, complain: Complain): void {
  const option = urls === undefined ? 'sentinels' : 'urls'
  for (const [index, { address, database, secure }] of (urls ?? sentinels ?? []).entries()) {
    const path = `${option}[${index}]`
    if ('path' in address) complain(path, 'must not be a unix: URL')
    if (database > 0) complain(path, `must not name a database: ${WITHOUT_DATABASE[option]}`)
    if (secure !== (urls ?? sentinels)?.[0]?.secure) {
      complain(path, 'must have the same scheme as the first URL, redis: or rediss:')
    }
  }
  const secure = url?.secure ?? urls?.[0]?.secure ?? sentinels?.[0]?.secure ?? false
  if (tls !== undefined && !secure) complain('tls', 'needs a rediss: URL')
}

const WITHOUT_DATABASE = {
  urls: 'a cluster has only 0',
  sentinels: 'set the database of the servers with redis.database',
}

function checkLogin(fields: CheckedConnection, complain: Complain): void {
  const { url, urls, username, password, database } = fields
  const inUrl = url ?? urls?.find((each) => each.password !== undefined)
  if (database !== undefined && database > 0 && urls !== undefined) {
    complain('database', 'must be 0, the only database of a cluster')
  } else if (database !== undefined && (url?.database ?? 0) > 0) {
    complain('database', 'is also in the URL; remove one of them')
  }
  if (password !== undefined && inUrl?.password !== undefined) {
    complain('password', 'is also in the URL; remove one of them')
  }
  if (username !== undefined && password === undefined) complain('username', 'needs a password')
}
