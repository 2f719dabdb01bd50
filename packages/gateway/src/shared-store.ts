/** What a gateway shares with others, and what operates it from outside: the same store, by the same options. */
import { type RedisStore, redisStore } from 'spillway/redis'
import type { RedisConfig } from './config/config.js'

export function openStore({ expectedPods: _, ...options }: RedisConfig): RedisStore {
  return redisStore(options)
}
