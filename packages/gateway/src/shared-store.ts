/** Creates the store for a gateway and for commands that operate it, from the same options. */
import { type RedisStore, redisStore } from 'spillway/redis'
import type { RedisConfig } from './config/config.js'

export function openStore(options: RedisConfig): RedisStore {
  return redisStore(options)
}
