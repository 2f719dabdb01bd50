/** Creates the connection that the options describe. */
import { validate } from '../../../core/options/checks.js'
import { loadDriver } from '../drivers/load-driver.js'
import {
  type CheckedConnection,
  type RedisConnectionOptions,
  readConnection,
} from '../redis-options.js'
import type { Access } from '../setup/access.js'
import type { Login } from '../setup/handshake.js'
import type { Warn } from '../setup/setup-error.js'
import { parseServerUrl, type ServerUrl } from '../topology/address.js'
import { connectCluster } from '../topology/cluster.js'
import { createDialler } from '../topology/dial.js'
import { connectServer } from '../topology/one-server.js'
import { connectSentinels } from '../topology/sentinel.js'
import { useClient } from '../user-client/user-client.js'
import type { RedisConnection } from './redis-connection.js'

export interface ConnectionEnvironment {
  access: Access
  warn: Warn
}

const LOCAL_REDIS = parseServerUrl('redis://127.0.0.1:6379') as ServerUrl

/**
 * Connects in the background. An unreachable server is no error here: `ready` and `problem` show
 * the state. Connections alone do not keep the process alive; a running command does.
 */
export function connectRedis(
  options: RedisConnectionOptions,
  { access, warn }: ConnectionEnvironment,
): RedisConnection {
  const own = validate('redis', options, readConnection)
  const { client, url, urls, sentinels, master = 'mymaster', clock, random } = own
  if (client !== undefined) return useClient(client, { access, warn, clock, random })
  const seeds = urls ?? [url ?? LOCAL_REDIS]
  const common = {
    driver: loadDriver(own.driver, warn),
    tls: (sentinels ?? seeds)[0]?.secure ? (own.tls ?? {}) : undefined,
    access,
    warn,
    clock,
    random,
  }
  const login = loginOf(own, seeds)
  if (sentinels !== undefined) return connectSentinels(sentinels, master, login, common)
  const dialler = createDialler(common, login)
  if (urls !== undefined)
    return connectCluster(
      urls.map(({ address }) => address),
      dialler,
    )
  return connectServer(seeds[0]!.address, dialler)
}

function loginOf(own: CheckedConnection, seeds: readonly ServerUrl[]): Login {
  const inUrl = own.sentinels === undefined ? seeds.find(({ password }) => password) : undefined
  return {
    username: own.username ?? inUrl?.username,
    password: own.password ?? inUrl?.password,
    database: own.database ?? (own.sentinels === undefined ? (seeds[0]?.database ?? 0) : 0),
  }
}

/** The servers as URLs, without logins. */
export function describeServers({ client, url, urls, sentinels }: CheckedConnection): string {
  if (client !== undefined) return 'the given client'
  if (sentinels !== undefined) return `Sentinels ${sentinels.map(withoutLogin).join(', ')}`
  return (urls ?? [url ?? LOCAL_REDIS]).map(withoutLogin).join(', ')
}

function withoutLogin({ address, secure, database }: ServerUrl): string {
  if ('path' in address) return `unix://${address.path}`
  const scheme = secure ? 'rediss' : 'redis'
  const host = address.host.includes(':') ? `[${address.host}]` : address.host
  return `${scheme}://${host}:${address.port}${database > 0 ? `/${database}` : ''}`
}
