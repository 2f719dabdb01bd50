/** The store of a fleet: the transitions as scripts, in a Redis or Valkey that all pods reach. */

import {
  bool,
  type Check,
  type Duration,
  duration,
  type OptionProblem,
  object,
  optional,
  text,
  validate,
} from '../../core/options/checks.js'
import { clockOption } from '../../core/time/clock-options.js'
import { createKeys } from '../keys.js'
import type { Store } from '../port.js'
import { connectRedis, describeServers } from './connection/connect.js'
import { FirstConnection } from './connection/first-connection.js'
import { createReplicaConfirmation } from './connection/replica-confirmation.js'
import { createScriptRunner } from './connection/runner.js'
import { createRedisBreakers } from './operations/redis-breakers.js'
import { createRedisLevels } from './operations/redis-levels.js'
import { createRedisLimits } from './operations/redis-limits.js'
import { createRedisPods } from './operations/redis-pods.js'
import { createRedisPulses } from './operations/redis-pulses.js'
import { createRedisQueues } from './operations/redis-queues.js'
import { type RedisConnectionOptions, readConnection } from './redis-options.js'
import { createWarnings } from './setup/setup-error.js'

/** Options of `redisStore()`. */
export interface RedisStoreOptions extends RedisConnectionOptions {
  /** Prefix of all keys. Fleets that share a Redis need different ones. Default: `sw`. */
  prefix?: string
  /** A command without a reply after this time has failed, and outage rules apply. Range: from 1 ms. Default: 100 ms. */
  commandTimeoutMs?: Duration
  /**
   * Whether problems of the servers become warnings of the process, which Node prints. `store.warnings` has them
   * in any case. Default: true.
   */
  emitWarnings?: boolean
}

/** A store in Redis or Valkey. Created by `redisStore()`. */
export interface RedisStore extends Store {
  /** Whether a command sent now would reach the server. */
  readonly ready: boolean
  /**
   * Why it is not ready, if known; or what is wrong with the server of a client that was passed in.
   */
  readonly problem: unknown
  /** Problems of the servers found so far. Each is also a process warning, unless `emitWarnings` is false. */
  readonly warnings: readonly string[]
  /** Commands sent so far. */
  readonly commands: number
  /**
   * Resolves when the store has a connection. Rejects with STORE_UNAVAILABLE, the URL and the reason if there
   * is none in time. For programs that should not start without their store.
   * @param options.timeoutMs - Longest wait. Range: from 1 ms. Default: 5 seconds.
   */
  connected(options?: { timeoutMs?: Duration }): Promise<void>
}

const readOwn = object({
  prefix: optional(text(), 'sw'),
  commandTimeoutMs: optional(duration({ min: 1 }), 100),
  emitWarnings: optional(bool(), true),
  clock: clockOption,
})

/**
 * For a store inside a larger configuration: notes every mistake under the path of the options.
 * Returns the input; `redisStore` reads it again.
 */
export const readRedisOptions: Check<RedisStoreOptions> = (value, path, problems) => {
  const { own, connection } = splitOptions(value as RedisStoreOptions)
  const found: OptionProblem[] = []
  readOwn(own, path, found)
  readConnection(connection, path, found)
  problems.push(...found)
  return value as RedisStoreOptions
}

/** The clock belongs to both parts. */
function splitOptions({
  prefix,
  commandTimeoutMs,
  emitWarnings,
  ...connection
}: RedisStoreOptions) {
  return { own: { prefix, commandTimeoutMs, emitWarnings, clock: connection.clock }, connection }
}

/**
 * Creates a store in Redis or Valkey. It connects in the background, so an unreachable server is no error here:
 * `ready` shows the state, and `connected()` waits for it.
 *
 * @example
 * const store = redisStore({ url: 'redis://127.0.0.1:6379' })
 */
export function redisStore(options: RedisStoreOptions = {}): RedisStore {
  const { own: given, connection } = splitOptions(options)
  const own = validate('redis', given, readOwn)
  const keys = createKeys(own.prefix)
  const warnings = createWarnings(own.emitWarnings)
  const connect = () => connectRedis(connection, { access: keys, warn: warnings.warn })
  const client = connect()
  const servers = validate('redis', connection, readConnection)
  const first = new FirstConnection({
    client,
    clock: own.clock,
    url: describeServers(servers),
    warn: warnings.warn,
    severalServers: servers.urls !== undefined,
  })
  const runner = createScriptRunner(client, {
    commandTimeoutMs: own.commandTimeoutMs,
    clock: own.clock,
    first,
  })
  const replicaConfirmation = createReplicaConfirmation({
    connect,
    commandTimeoutMs: own.commandTimeoutMs,
    clock: own.clock,
  })
  const breakers = createRedisBreakers(runner, keys, client.subscribe)
  const limits = createRedisLimits(runner, keys, client.subscribe)
  return {
    remote: true,
    limits,
    levels: createRedisLevels(runner, keys),
    breakers,
    pods: createRedisPods(runner, keys),
    pulses: createRedisPulses(runner, keys),
    queues: createRedisQueues({
      runner,
      keys,
      subscribe: client.subscribe,
      replicaConfirmation: replicaConfirmation.open,
    }),
    get ready() {
      return first.made && client.ready
    },
    get problem() {
      return client.problem
    },
    warnings: warnings.messages,
    get commands() {
      return runner.commands
    },
    connected: ({ timeoutMs } = {}) => first.connected(timeoutMs),
    close: async () => {
      first.close()
      breakers.close()
      limits.close()
      await Promise.all([runner.close(), replicaConfirmation.close()])
    },
  }
}
