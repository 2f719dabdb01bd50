/** Aggregates the metrics of all workers: counters and histograms are summed, gauges according to their meaning. */
import { AggregatorRegistry } from 'prom-client'
import type { ReloadReport } from '../reload/reloads.js'
import type { MetricJson, WorkersState } from './protocol.js'

/** Gauges that each worker reads from the store, or that describe one shared thing: a sum would be wrong. */
const SHARED: Readonly<Record<string, 'max' | 'min'>> = {
  spillway_breaker_state: 'max',
  spillway_store_status: 'max',
  spillway_pods: 'max',
  spillway_limit_headroom_ratio: 'min',
  spillway_limit_units: 'min',
  spillway_limit_configured_units: 'max',
  spillway_fleet_requests_per_minute: 'max',
  spillway_retry_ratio: 'max',
  spillway_queue_oldest_seconds: 'max',
  spillway_jobs_waiting: 'max',
  spillway_jobs_by_state: 'max',
  spillway_jobs_oldest_seconds: 'max',
  spillway_jobs_paused: 'max',
  spillway_jobs_expired_leases: 'max',
  spillway_config_applied_timestamp_seconds: 'max',
}

/** Metrics that the supervisor counts itself: a worker counts only the reloads since its own start. */
const OF_SUPERVISOR: ReadonlySet<string> = new Set([
  'spillway_config_reloads_total',
  'spillway_config_generation',
  'spillway_config_refused',
])

type Metrics = readonly MetricJson[]

/** In the text format of Prometheus. */
export function aggregateMetrics(
  supervisor: Metrics,
  workers: readonly Metrics[],
): Promise<string> {
  const ofWorkers = workers.map((each) => each.filter(({ name }) => !OF_SUPERVISOR.has(name)))
  const all = [supervisor, ...ofWorkers]
  return AggregatorRegistry.aggregate(all.map(withAggregators) as object[]).metrics()
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
export function supervisorMetrics(
  { ready, total }: WorkersState,
  restarts: number,
  { counts, last }: ReloadCounts,
): Metrics {
  const metric = (name: string, type: string, help: string, values: MetricJson['values']) => ({
    name,
    type,
    help,
    values,
  })
  const one = (value: number) => [{ labels: {}, value }]
  return [
    metric(
      'spillway_workers',
      'gauge',
      'Worker processes by state. Only with more than one worker.',
      [
        { labels: { state: 'ready' }, value: ready },
        { labels: { state: 'other' }, value: total - ready },
      ],
    ),
    metric(
      'spillway_worker_restarts_total',
      'counter',
      'Workers that were started in place of one that ended. Only with more than one worker.',
      one(restarts),
    ),
    metric(
      'spillway_config_reloads_total',
      'counter',
      'Times the configuration was read again: applied, unchanged or refused.',
      Object.entries(counts).map(([result, value]) => ({ labels: { result }, value })),
    ),
    metric(
      'spillway_config_generation',
      'gauge',
      'Which configuration is in force: 1 is the one it started with.',
      one(1 + counts.applied),
    ),
    metric(
      'spillway_config_refused',
      'gauge',
      '1: the file as it is now was refused, and an older one is in force.',
      one(last === 'refused' ? 1 : 0),
    ),
  ]
}

/** Reloads of all workers together, by result. */
export interface ReloadCounts {
  readonly counts: Record<ReloadReport['result'], number>
  last: ReloadReport['result'] | undefined
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
