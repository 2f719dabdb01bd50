export { type MemoryStoreOptions, memoryStore } from '../store/memory/memory-store.js'
export type { Store } from '../store/port.js'
export type {
  BreakerAnswer,
  BreakerChange,
  BreakerPermit,
  BreakerSnapshot,
  BreakerStateName,
  CircuitBreaker,
  CircuitBreakerOptions,
  LaneOption,
} from './circuit-breaker/api.js'
export { createCircuitBreaker } from './circuit-breaker/circuit-breaker.js'
export type { BreakerPolicy } from './circuit-breaker/options.js'
export type {
  AddedJob,
  AddOptions,
  JobCounts,
  JobInfo,
  JobOptions,
  JobQueue,
  JobStatus,
  TenantCount,
  TenantCounts,
} from './job-queue/api.js'
export { createJobQueue, type StandaloneJobQueueOptions } from './job-queue/create-job-queue.js'
export type { JobQueueSettings } from './job-queue/options.js'
export { QueueFullError } from './job-queue/queue-full-error.js'
export {
  createMembership,
  type Member,
  type Membership,
  type MembershipOptions,
} from './membership.js'
export type { OutageRule } from './outage/rules.js'
export type { StoreSnapshot, StoreStatus } from './outage/store-status.js'
export type {
  AcquireOptions,
  Acquisition,
  RateLimiterFigures,
  SharedRateLimiter,
  SharedRateLimiterOptions,
} from './rate-limiter/api.js'
export type { SharedLimit } from './rate-limiter/options.js'
export type { Cost, Permit } from './rate-limiter/permit.js'
export { createSharedRateLimiter } from './rate-limiter/rate-limiter.js'
export { createRateLimiter } from './rate-limiter/renamed.js'
export type { LaneEntry, LimitPool } from './rate-limiter/settings/lane-entries.js'
export type { Subject, UserLevel } from './user-limits/levels.js'
export {
  createUserLimits,
  type UserLimitResult,
  type UserLimits,
  type UserLimitsOptions,
} from './user-limits/user-limits.js'
