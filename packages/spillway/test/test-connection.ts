/** A connection to Redis for tests below the store. */
import { createKeys } from '../src/store/keys.js'
import { connectRedis } from '../src/store/redis/connection/connect.js'
import type { RedisConnection } from '../src/store/redis/connection/redis-connection.js'
import type { RedisConnectionOptions } from '../src/store/redis/redis-options.js'

/** Reports a problem of the server as a test error. */
export function connectTestRedis(options: RedisConnectionOptions): RedisConnection {
  return connectRedis(options, { access: createKeys('sw'), warn })
}

function warn(message: string): void {
  throw new Error(message)
}
