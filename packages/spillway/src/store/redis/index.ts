export type { RedisConnectionOptions } from './redis-options.js'
export {
  type RedisStore,
  type RedisStoreOptions,
  readRedisOptions,
  redisStore,
} from './redis-store.js'
