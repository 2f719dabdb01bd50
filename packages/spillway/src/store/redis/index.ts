export type { RedisConnectionOptions } from './redis-options.js'
export { type RedisStore, type RedisStoreOptions, redisStore } from './redis-store.js'
