export { Durations } from '../core/collections/histogram.js'
export type { StopReason, TimeoutKind } from '../core/events.js'
export type { JobQueueSnapshot, WorkerSnapshot } from '../guard/jobs/queue-snapshot.js'
export type { GenAiOperation, GenAiRecorder } from '../guard/llm/gen-ai.js'
export type { AttemptTrace, CallTrace, GuardTracer } from '../guard/pipeline/trace.js'
export type {
  GuardSnapshot,
  GuardStoreSnapshot,
  SpillwaySnapshot,
  StageSnapshot,
} from '../guard/snapshot.js'
export type { FallbackCount } from '../guard/stages/fallback.js'
export { createGenAiMetrics, type GenAiMeter, type GenAiMetricsOptions } from './gen-ai.js'
export {
  exposeToOpenTelemetry,
  type OpenTelemetryMeter,
  type OpenTelemetryOptions,
} from './open-telemetry.js'
export {
  type DescribedMetric,
  exposeToPrometheus,
  histogramOf,
  type PrometheusOptions,
  type PrometheusRegistry,
  registerSamples,
  type Sample,
} from './prometheus.js'
export type { MeteredServer, MeteredSpillway, MetricsOptions } from './source.js'
export { type OpenTelemetryApi, openTelemetryTracer } from './spans.js'
