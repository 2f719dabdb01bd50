/** The options of a Redis store that say how to reach the server. */
import type { ConnectionOptions } from 'node:tls'
import type { Clock } from '../../core/clock.js'
import { clockOption, randomOption } from '../../core/injected.js'
import { type Check, type OptionProblem, object, optional } from '../../core/options.js'
import type { Random } from '../../core/random.js'

export interface NodeRedisOptions {
  /** `redis://user:password@host:6379/0`, `rediss:` for TLS, or `unix:`. Default: this machine. */
  url?: string | undefined
  /** Certificates and such for a `rediss:` URL. */
  tls?: ConnectionOptions | undefined
  /**
   * A node-redis client or cluster to use instead of a connection of our own. It is never closed by
   * us. Create it with `disableOfflineQueue: true`, or what it could not send runs late.
   */
  client?: unknown
  clock?: Clock | undefined
  random?: Random | undefined
}

/** What we use of node-redis. */
export interface NodeRedisClient {
  readonly isOpen: boolean
  readonly isReady: boolean
  sendCommand(args: readonly string[], options: object): Promise<unknown>
  listenerCount(event: 'error'): number
  on(event: 'error', listener: (error: unknown) => void): unknown
}

export interface NodeRedisCluster extends Omit<NodeRedisClient, 'sendCommand'> {
  sendCommand(
    key: string | undefined,
    readOnly: boolean,
    args: readonly string[],
    options: object,
  ): Promise<unknown>
}

const readUrl: Check<string> = (value, path, problems) => {
  // Not what was found: URLs contain passwords.
  const complain = (message: string) => problems.push({ path, message })
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined
  if (!url || !['redis:', 'rediss:', 'unix:'].includes(url.protocol)) {
    complain('must be a URL such as redis://localhost:6379, rediss://… or unix:///…')
  } else if (url.protocol !== 'unix:' && !/^\/?\d*$/.test(url.pathname)) {
    complain('must end in the number of a database, such as /0, or in nothing')
  }
  return value as string
}

const readTls: Check<ConnectionOptions> = (value, path, problems) => {
  if (typeof value !== 'object' || value === null) {
    problems.push({ path, message: 'must be an object with options of tls.connect' })
  }
  return value as ConnectionOptions
}

const readClient: Check<NodeRedisClient | NodeRedisCluster> = (value, path, problems) => {
  const client = value as Partial<NodeRedisClient> | null | undefined
  if (typeof client?.sendCommand !== 'function' || typeof client.isReady !== 'boolean') {
    problems.push({ path, message: 'must be a client or cluster of node-redis (createClient)' })
  } else if ('getMasterNode' in client) {
    const why = 'after a failover it would send again what may have run already'
    problems.push({ path, message: `must not be a Sentinel client of node-redis: ${why}` })
  }
  return value as NodeRedisClient | NodeRedisCluster
}

/** For whoever passes these on. */
export const nodeRedisFields = {
  url: optional(readUrl),
  tls: optional(readTls),
  client: optional(readClient),
}

const readFields = object({ ...nodeRedisFields, clock: clockOption, random: randomOption })

export const readNodeRedisOptions: Check<ReturnType<typeof readFields>> = (
  value,
  path,
  problems,
) => {
  const fields = readFields(value, path, problems)
  if (problems.length === 0) checkTogether(fields, path, problems)
  return fields
}

function checkTogether(
  { url, tls, client }: ReturnType<typeof readFields>,
  path: string,
  problems: OptionProblem[],
): void {
  if (client !== undefined && (url !== undefined || tls !== undefined)) {
    problems.push({ path: `${path}.client`, message: 'must not come together with url or tls' })
  } else if (tls !== undefined && url?.startsWith('rediss:') !== true) {
    problems.push({ path: `${path}.tls`, message: 'needs a rediss: URL' })
  }
}
