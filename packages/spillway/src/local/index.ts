export {
  type AdaptiveLimit,
  type AdaptiveLimitOptions,
  type AdaptiveLimitSnapshot,
  createAdaptiveLimit,
  type LimitedCall,
} from './adaptive-limit/adaptive-limit.js'
export type { AdaptiveOptions } from './adaptive-timeout.js'
export { type Attempt, attemptsOf } from './attempts.js'
export type { BackoffOptions } from './backoff.js'
export {
  type BackpressureQueue,
  type BackpressureQueueOptions,
  createBackpressureQueue,
  type QueueSnapshot,
} from './backpressure-queue/backpressure-queue.js'
export {
  queueReadable,
  queueReadableStream,
  queueWritable,
  queueWritableStream,
} from './backpressure-queue/streams.js'
export {
  type Bulkhead,
  type BulkheadOptions,
  type BulkheadSnapshot,
  createBulkhead,
} from './bulkhead.js'
export { type BulkheadRegistry, createBulkheadRegistry } from './bulkhead-registry.js'
export {
  createHedge,
  type Hedge,
  type HedgeContext,
  type HedgeOptions,
  type HedgeRunOptions,
  type HedgeSnapshot,
} from './hedge.js'
export type { HedgeDelayOptions } from './hedge-delay.js'
export {
  createLoadShedder,
  type LoadShedder,
  type LoadShedderOptions,
  type LoadShedderSnapshot,
  type ShedRequest,
  type ShedVisit,
} from './load-shedder/load-shedder.js'
export type { Sensors, ShedOptions } from './load-shedder/options.js'
export type { ShedderSnapshot, ShedReason, Signal } from './load-shedder/shedder.js'
export {
  createPodMetrics,
  type MeasureOptions,
  type PodMetrics,
  type PodMetricsOptions,
  type PodMetricsSnapshot,
} from './pod-metrics.js'
export {
  createRateLimiter,
  type RateLimiter,
  type RateLimiterOptions,
} from './rate-limiter/rate-limiter.js'
export type { Registry } from './registry.js'
export { createRetry, type Retry, type RetryOptions, type RetryResult } from './retry.js'
export {
  createRetryBudget,
  type RetryBudget,
  type RetryBudgetOptions,
  type RetryConditions,
} from './retry-budget.js'
export type { RetryContext, RetryFunction, RetryRunOptions } from './retry-call.js'
export {
  createThrottle,
  type Throttle,
  type ThrottleOptions,
  type ThrottleSnapshot,
} from './throttle.js'
export type { TimeoutContext } from './timed-call.js'
export { createTimeout, type Timeout, type TimeoutOptions } from './timeout.js'
export {
  createWorkerBulkhead,
  createWorkerBulkheadRegistry,
  type WorkerBulkhead,
  type WorkerBulkheadOptions,
  type WorkerBulkheadRegistry,
} from './worker-bulkhead.js'
