export { Durations } from '../core/collections/histogram.js'
export {
  exposeToOpenTelemetry,
  type OpenTelemetryMeter,
  type OpenTelemetryOptions,
} from './open-telemetry.js'
export {
  exposeToPrometheus,
  histogramOf,
  type PrometheusOptions,
  type PrometheusRegistry,
  registerSamples,
  type Sample,
} from './prometheus.js'
export type { MeteredServer, MeteredSpillway, MetricsOptions } from './source.js'
export { type OpenTelemetryApi, openTelemetryTracer } from './spans.js'
