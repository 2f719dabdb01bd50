/** Fallback steps of a guard, and features that are switched off by importance. */
export type {
  Degradable,
  DegradedReason,
  FailedCall,
  FallbackAnswer,
  FallbackStep,
  GuardLike,
} from '../guard/stages/fallback.js'
export type { Dependency, DependencyStatus } from './dependencies.js'
export { type EnqueuedJob, type EnqueueOptions, enqueue } from './enqueue.js'
export { createFeatureManager, type FeatureManager, type FeatureState } from './feature-manager.js'
export type {
  DegradationLevel,
  FeatureManagerOptions,
  FeatureOptions,
  Importance,
} from './feature-options.js'
export type { PodLoad } from './pod-load.js'
export { type StaleCache, type StaleCacheOptions, staleCache } from './stale-cache.js'
export type { StepOptions } from './step-options.js'
export { otherGuard, type ReducedOptions, reduced, staticValue } from './steps.js'
