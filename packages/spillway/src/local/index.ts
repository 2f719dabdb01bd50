export type { ShedQuestion } from '../guard/stages/shed.js'
export {
  type AdaptiveLimit,
  type AdaptiveLimitOptions,
  type AdaptiveLimitSnapshot,
  createAdaptiveLimit,
  type LimitedCall,
} from './adaptive-limit/adaptive-limit.js'
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
  type BulkheadRegistry,
  type BulkheadSnapshot,
  createBulkhead,
  createBulkheadRegistry,
} from './bulkhead/bulkhead.js'
export {
  createWorkerBulkhead,
  createWorkerBulkheadRegistry,
  type WorkerBulkhead,
  type WorkerBulkheadOptions,
  type WorkerBulkheadRegistry,
} from './bulkhead/worker-bulkhead.js'
export {
  createHedge,
  type Hedge,
  type HedgeContext,
  type HedgeOptions,
  type HedgeRunOptions,
  type HedgeSnapshot,
} from './hedge/hedge.js'
export type { HedgeDelayOptions } from './hedge/hedge-delay.js'
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
} from './pod-metrics/pod-metrics.js'
export type { PressureSource } from './pod-metrics/pressure.js'
export {
  createRateLimiter,
  type RateLimiter,
  type RateLimiterOptions,
} from './rate-limiter/rate-limiter.js'
export type { Registry } from './registry.js'
export { type Attempt, attemptsOf } from './retry/attempts.js'
export type { BackoffOptions } from './retry/backoff.js'
export { createRetry, type Retry, type RetryOptions, type RetryResult } from './retry/retry.js'
export {
  createRetryBudget,
  type RetryBudget,
  type RetryBudgetOptions,
  type RetryConditions,
} from './retry/retry-budget.js'
export type { RetryContext, RetryFunction, RetryRunOptions } from './retry/retry-call.js'
export {
  createThrottle,
  type Throttle,
  type ThrottleOptions,
  type ThrottleSnapshot,
} from './throttle.js'
export type { AdaptiveOptions } from './timeout/adaptive-timeout.js'
export type { TimeoutContext } from './timeout/timed-call.js'
export { createTimeout, type Timeout, type TimeoutOptions } from './timeout/timeout.js'
