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
interface NodeRedis {
  readonly isOpen: boolean
  readonly isReady: boolean
  listenerCount(event: 'error'): number
  on(event: 'error', listener: (error: unknown) => void): unknown
}

export interface NodeRedisClient extends NodeRedis {
  readonly options?: { socket?: object }
  sendCommand(args: readonly string[]): Promise<unknown>
  withCommandOptions(options: object): NodeRedisClient
  duplicate(overrides: object): NodeRedisClient
  connect(): Promise<unknown>
  subscribe(channel: string, hear: (text: string) => void): Promise<unknown>
  ping(): Promise<unknown>
  unref(): void
  destroy(): void
}

export interface NodeRedisCluster extends NodeRedis {
  sendCommand(key: string | undefined, readOnly: boolean, args: readonly string[]): Promise<unknown>
  withCommandOptions(options: object): NodeRedisCluster
  subscribe(channel: string, hear: (text: string) => void): Promise<unknown>
  unsubscribe(channel: string, hear: (text: string) => void): Promise<unknown>
  on(event: 'error' | 'node-ready', listener: (error: unknown) => void): unknown
  off(event: 'node-ready', listener: (error: unknown) => void): unknown
}

const readUrl: Check<string> = (value, path, problems) => {
  if (typeof value === 'string' && /^(rediss?:\/\/[^/]+(\/\d*)?|unix:\/\/.*\/.+)$/.test(value)) {
    if (value.startsWith('unix:') || URL.canParse(value)) return value
  }
  const expected = 'redis://host:6379, rediss://host:6379/0 or unix:///path'
  // Does not say what was found: URLs contain passwords.
  problems.push({ path, message: `must be a URL such as ${expected}` })
  return ''
}

const readTls: Check<ConnectionOptions> = (value, path, problems) => {
  if (typeof value !== 'object' || value === null) {
    problems.push({ path, message: 'must be an object with options of tls.connect' })
  }
  return value as ConnectionOptions
}

const readClient: Check<NodeRedisClient | NodeRedisCluster> = (value, path, problems) => {
  const client = Object(value) as Partial<NodeRedisClient>
  const methods = [client.sendCommand, client.withCommandOptions, client.on]
  if (!methods.every((method) => typeof method === 'function') || !('isReady' in client)) {
    problems.push({ path, message: 'must be a client or cluster of node-redis (createClient)' })
  } else if ('getMasterNode' in client) {
    const why = 'after a failover it would send again what may have run already'
    problems.push({ path, message: `must not be a Sentinel client of node-redis: ${why}` })
  }
  return value as NodeRedisClient | NodeRedisCluster
}

const readFields = object({
  url: optional(readUrl),
  tls: optional(readTls),
  client: optional(readClient),
  clock: clockOption,
  random: randomOption,
})

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
