/** The way to the store that the options ask for. */
import { validate } from '../../core/options.js'
import type { Access } from './access.js'
import { parseServerUrl, type ServerUrl } from './address.js'
import { connectCluster } from './cluster.js'
import { createDialler } from './dial.js'
import { useClient } from './given-client.js'
import type { Login } from './handshake.js'
import { loadDriver } from './load-driver.js'
import { connectServer } from './one-server.js'
import {
  type CheckedConnection,
  type RedisConnectionOptions,
  readConnection,
} from './redis-options.js'
import type { RedisClient } from './runner.js'
import { connectSentinels } from './sentinel.js'
import type { Warn } from './setup-error.js'
import type { Subscribe } from './subscription.js'

export interface RedisConnection extends RedisClient {
  /** Takes a connection of its own, which does not keep the process alive, until it is closed. */
  readonly subscribe: Subscribe
}

export interface Surroundings {
  access: Access
  warn: Warn
}

const HERE = parseServerUrl('redis://127.0.0.1:6379') as ServerUrl

/**
 * Connects in the background: an unreachable server is no error here, `ready` and `problem` say how
 * it stands. Connections alone do not keep the process alive; a command under way does.
 */
export function connectRedis(
  options: RedisConnectionOptions,
  { access, warn }: Surroundings,
): RedisConnection {
  const own = validate('redis', options, readConnection)
  const { client, url, urls, sentinels, master = 'mymaster', clock, random } = own
  if (client !== undefined) return useClient(client, { access, warn, clock, random })
  const seeds = urls ?? [url ?? HERE]
  const common = {
    driver: loadDriver(own.driver),
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
