/** The store of a fleet: the transitions as scripts, in one Redis or Valkey that all pods reach. */
import { clockOption } from '../../core/injected.js'
import { type Duration, duration, object, optional, text, validate } from '../../core/options.js'
import { createKeys } from '../keys.js'
import type { Store } from '../port.js'
import { connectNodeRedis } from './node-redis.js'
import type { NodeRedisOptions } from './node-redis-options.js'
import { createRedisBreakers } from './redis-breakers.js'
import { createRedisLevels } from './redis-levels.js'
import { createRedisLimits } from './redis-limits.js'
import { createRedisPods } from './redis-pods.js'
import { createRedisPulses } from './redis-pulses.js'
import { createScriptRunner } from './runner.js'

export interface RedisStoreOptions extends NodeRedisOptions {
  /** What all keys begin with; fleets that must not meet need different ones. Default: `sw`. */
  prefix?: string
  /** The longest a command may take. Default: 100 ms. */
  commandTimeoutMs?: Duration
}

export interface RedisStore extends Store {
  /** Whether a command sent now would reach the server. */
  readonly ready: boolean
  /** Commands sent so far. */
  readonly commands: number
}

const readOwn = object({
  prefix: optional(text(), 'sw'),
  commandTimeoutMs: optional(duration({ min: 1 }), 100),
  clock: clockOption,
})

/** Connects in the background: an unreachable server is no error here, `ready` tells. */
export function redisStore(options: RedisStoreOptions = {}): RedisStore {
  const { prefix, commandTimeoutMs, ...connection } = options
  const own = validate('redis', { prefix, commandTimeoutMs, clock: options.clock }, readOwn)
  const client = connectNodeRedis(connection)
  const runner = createScriptRunner(client, {
    commandTimeoutMs: own.commandTimeoutMs,
    clock: own.clock,
  })
  const keys = createKeys(own.prefix)
  const breakers = createRedisBreakers(runner, keys, client.subscribe)
  return {
    remote: true,
    limits: createRedisLimits(runner, keys),
    levels: createRedisLevels(runner, keys),
    breakers,
    pods: createRedisPods(runner, keys),
    pulses: createRedisPulses(runner, keys),
    get ready() {
      return client.ready
    },
    get commands() {
      return runner.commands
    },
    close: () => {
      breakers.close()
      return runner.close()
    },
  }
}
