/** Metrics of all workers as one: counters and histograms are summed, gauges as their meaning asks for. */
import { AggregatorRegistry } from 'prom-client'
import type { MetricJson, WorkersState } from './protocol.js'

/** Gauges that each worker reads from the store, or that describe one shared thing: a sum would be wrong. */
const SHARED: Readonly<Record<string, 'max' | 'min'>> = {
  spillway_breaker_state: 'max',
  spillway_store_status: 'max',
  spillway_pods: 'max',
  spillway_limit_headroom_ratio: 'min',
  spillway_fleet_requests_per_minute: 'max',
  spillway_retry_ratio: 'max',
  spillway_queue_oldest_seconds: 'max',
  spillway_jobs_waiting: 'max',
  spillway_jobs_held: 'max',
  spillway_jobs_oldest_seconds: 'max',
  spillway_jobs_paused: 'max',
  spillway_jobs_lapsed: 'max',
  // All workers reload together, so one reload is not as many as there are workers.
  spillway_config_reloads_total: 'max',
  spillway_config_generation: 'min',
  spillway_config_applied_timestamp_seconds: 'max',
  spillway_config_refused: 'max',
}

type Metrics = readonly MetricJson[]

/** In the text format of Prometheus. */
export function aggregateMetrics(workers: readonly Metrics[]): Promise<string> {
  return AggregatorRegistry.aggregate(workers.map(withAggregators) as object[]).metrics()
}

/**
 * The part of a worker's metrics that outlives it. Without it sums would fall when a worker ends, which
 * Prometheus takes for a restart of the whole gateway.
 */
export function keepTotals(before: Metrics, ended: Metrics): Metrics {
  const totals = withAggregators(ended).filter(
    ({ type, aggregator }) => (type === 'counter' || type === 'histogram') && aggregator === 'sum',
  )
  return sum([before, totals])
}

/** Metrics of the supervisor itself. */
export function workerMetrics({ ready, total }: WorkersState, restarts: number): Metrics {
  return [
    {
      name: 'spillway_workers',
      type: 'gauge',
      help: 'Worker processes by state.',
      values: [
        { labels: { state: 'ready' }, value: ready },
        { labels: { state: 'other' }, value: total - ready },
      ],
    },
    {
      name: 'spillway_worker_restarts_total',
      type: 'counter',
      help: 'Workers that were started in place of one that ended.',
      values: [{ labels: {}, value: restarts }],
    },
  ]
}

function withAggregators(metrics: Metrics): MetricJson[] {
  return metrics.map((metric) => ({
    ...metric,
    aggregator: SHARED[metric.name] ?? metric.aggregator ?? 'sum',
  }))
}

function sum(all: readonly Metrics[]): Metrics {
  const byName = new Map<string, MetricJson>()
  const values = new Map<string, Map<string, MetricJson['values'][number]>>()
  for (const metric of all.flat()) {
    byName.set(metric.name, metric)
    const known = values.get(metric.name) ?? new Map()
    values.set(metric.name, known)
    for (const each of metric.values) {
      const key = JSON.stringify([each.metricName, Object.entries(each.labels).toSorted()])
      const value = (known.get(key)?.value ?? 0) + each.value
      known.set(key, { ...each, value })
    }
  }
  return [...byName.values()].map((metric) => ({
    ...metric,
    values: [...(values.get(metric.name)?.values() ?? [])],
  }))
}
