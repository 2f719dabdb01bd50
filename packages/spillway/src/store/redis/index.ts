export type { NodeRedisOptions } from './node-redis-options.js'
export { type RedisStore, type RedisStoreOptions, redisStore } from './redis-store.js'
