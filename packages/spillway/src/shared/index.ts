export { type MemoryStoreOptions, memoryStore } from '../store/memory/memory-store.js'
export type { Store } from '../store/port.js'
export type { SharedLimit } from './rate-limiter/options.js'
export type { Cost, Permit } from './rate-limiter/permit.js'
export {
  type AcquireOptions,
  type Acquisition,
  createRateLimiter,
  type RateLimiter,
  type RateLimiterFigures,
  type RateLimiterOptions,
} from './rate-limiter/rate-limiter.js'
export type { Subject, UserLevel } from './user-limits/levels.js'
export {
  createUserLimits,
  type UserLimitResult,
  type UserLimits,
  type UserLimitsOptions,
} from './user-limits/user-limits.js'
