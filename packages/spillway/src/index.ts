export { type CallerSignal, LeaveSignal } from './core/abort.js'
export {
  type Details,
  type ErrorCode,
  type Scope,
  SpillwayError,
  type SpillwayErrorInit,
  type Stage,
} from './core/errors.js'
export {
  EVENT_CHANNEL,
  onEvent,
  type SpillwayEvent,
  type StopReason,
  type TimeoutKind,
} from './core/events.js'
export { type OptionProblem, OptionsError } from './core/options/checks.js'
export type { Priority } from './core/options/priority.js'
export {
  type CallEnd,
  judge,
  judgeStatus,
  type Outcome,
  type OutcomeOptions,
  type Verdict,
} from './core/outcome.js'
export type { Random } from './core/random.js'
export { refusalOf } from './core/refusal-of.js'
export { parseRetryAfter, retryAfterFromHeaders } from './core/retry-after.js'
export { type Clock, systemClock, type Timer } from './core/time/clock.js'
export {
  createDeadline,
  currentDeadline,
  Deadline,
  earlierOf,
  runWithDeadline,
} from './core/time/deadline.js'
export type { Duration } from './core/time/duration.js'
export {
  createTimeBudget,
  type TimeBudget,
  type TimeBudgetOptions,
} from './core/time/time-budget.js'
export type { Dependency, DependencyStatus } from './degrade/dependencies.js'
export { type EnqueuedJob, type EnqueueOptions, enqueue } from './degrade/enqueue.js'
export {
  createFeatureManager,
  type FeatureManager,
  type FeatureState,
} from './degrade/feature-manager.js'
export type {
  DegradationLevel,
  FeatureManagerOptions,
  FeatureOptions,
  Importance,
} from './degrade/feature-options.js'
export type { PodLoad } from './degrade/pod-load.js'
export { type StaleCache, type StaleCacheOptions, staleCache } from './degrade/stale-cache.js'
export type { StepOptions } from './degrade/step-options.js'
export { otherGuard, type ReducedOptions, reduced, staticValue } from './degrade/steps.js'
export type { SdkClass, SdkOptions, SdkSettings } from './guard/fetch/sdk.js'
export type {
  FleetBreakerReport,
  FleetGuardReport,
  FleetLimitReport,
  FleetReport,
  FleetStoreStatus,
} from './guard/fleet/fleet-report.js'
export { type Guard, nameLanes } from './guard/guard.js'
export type {
  Job,
  JobHandler,
  JobQueueOptions,
  JobWorker,
  WorkableQueue,
  WorkOptions,
} from './guard/jobs/api.js'
export type {
  FleetQueueReport,
  QueueSnapshot,
  WorkerSnapshot,
} from './guard/jobs/queue-snapshot.js'
export { JobStopped } from './guard/jobs/running-job.js'
export { type LlmGuardOptions, type LlmLimits, llmDefaults } from './guard/llm/llm-defaults.js'
export type { GuardOptions } from './guard/options.js'
export type { CallContext, CallFunction } from './guard/pipeline/context.js'
export type { GuardTimings } from './guard/pipeline/counters.js'
export { ORDER, type ShadowStage, type StageRow } from './guard/pipeline/stages.js'
export type { AttemptTrace, CallTrace, GuardTracer } from './guard/pipeline/trace.js'
export type { RunOptions, UserStanding } from './guard/run-options.js'
export type { GuardSnapshot, GuardStoreSnapshot, StageSnapshot } from './guard/snapshot.js'
export {
  createSpillway,
  type Spillway,
  type SpillwayHealth,
  type SpillwayOptions,
  type SpillwaySnapshot,
} from './guard/spillway.js'
export {
  type CustomStage,
  type CustomStageCall,
  type CustomStageOptions,
  customStage,
  type StageEnd,
  type StageRefusal,
} from './guard/stages/custom.js'
export type {
  Degradable,
  DegradedReason,
  FailedCall,
  FallbackAnswer,
  FallbackCount,
  FallbackStep,
  GuardLike,
} from './guard/stages/fallback.js'
export type { ShedQuestion } from './guard/stages/shed.js'
export type { BodyEnd } from './guard/stream/body-watch.js'
export {
  type BodyOwner,
  type BodySigns,
  RELAYED,
  type Relayed,
} from './guard/stream/relayed.js'
export { UsageReader } from './guard/stream/usage.js'
export type { CheckAnswer, CheckResult, HealthStatus } from './health/checks.js'
export {
  createHealth,
  type Health,
  type HealthCheckOptions,
  type HealthLevel,
  type HealthOptions,
  type HealthReport,
} from './health/health.js'
export type { PressureSource } from './local/pod-metrics/pressure.js'
export type { OperatorAction, OperatorRequest, OperatorResult } from './operate/actions.js'
export { createOperator, type Operator, type OperatorOptions } from './operate/operator.js'
export type { RecentAction } from './operate/recent-actions.js'
export type {
  AddedJob,
  AddOptions,
  JobCounts,
  JobInfo,
  JobOptions,
  JobProgress,
  JobQueue,
  TenantCount,
  TenantCounts,
} from './shared/job-queue/api.js'
export type { JobQueueSettings } from './shared/job-queue/options.js'
export { QueueFullError } from './shared/job-queue/queue-full-error.js'
