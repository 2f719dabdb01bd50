export {
  type Details,
  type ErrorCode,
  type Scope,
  SpillwayError,
  type Stage,
} from './core/errors.js'
export { EVENT_CHANNEL, onEvent, type SpillwayEvent } from './core/events.js'
export { OptionsError } from './core/options/checks.js'
export type { Priority } from './core/options/priority.js'
export { type CallEnd, judge, type Outcome, type OutcomeOptions } from './core/outcome.js'
export { refusalOf } from './core/refusal-of.js'
export type { Clock } from './core/time/clock.js'
export {
  createDeadline,
  currentDeadline,
  Deadline,
  earlierOf,
  runWithDeadline,
} from './core/time/deadline.js'
export type { Duration } from './core/time/duration.js'
export { createTimeBudget, type TimeBudget } from './core/time/time-budget.js'
export { enqueue } from './degrade/enqueue.js'
export { createFeatureManager, type FeatureManager } from './degrade/feature-manager.js'
export { type StaleCache, staleCache } from './degrade/stale-cache.js'
export { otherGuard, reduced, staticValue } from './degrade/steps.js'
export type { SdkOptions, SdkSettings } from './guard/fetch/sdk.js'
export type { Guard } from './guard/guard.js'
export type {
  Job,
  JobHandler,
  JobQueueOptions,
  JobWorker,
  WorkableJobQueue,
  WorkOptions,
} from './guard/jobs/api.js'
export { JobStopped } from './guard/jobs/running-job.js'
export { type LlmGuardOptions, type LlmLimits, llmDefaults } from './guard/llm/llm-defaults.js'
export type { QuotaOptions } from './guard/llm/quota-model.js'
export type { GuardOptions } from './guard/options.js'
export type { CallContext, CallFunction } from './guard/pipeline/context.js'
export { ORDER } from './guard/pipeline/stages.js'
export type { RunOptions } from './guard/run-options.js'
export type { GuardSnapshot, SpillwaySnapshot } from './guard/snapshot.js'
export {
  createSpillway,
  type Spillway,
  type SpillwayOptions,
} from './guard/spillway.js'
export {
  type CustomStage,
  type CustomStageCall,
  type CustomStageOptions,
  customStage,
} from './guard/stages/custom.js'
export type { FallbackStep } from './guard/stages/fallback.js'
export { createHealth, type Health } from './health/health.js'
export { createOperator, type Operator } from './operate/operator.js'
export { QueueFullError } from './shared/job-queue/queue-full-error.js'
