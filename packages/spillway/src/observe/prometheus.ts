/** Exports metrics to Prometheus through a registry of prom-client, read on each scrape. */
import { type Durations, SECONDS } from '../core/collections/histogram.js'
import { TIMED } from './durations-of.js'
import type { Row } from './instrument.js'
import { bounded, INSTRUMENTS } from './instruments.js'
import { createSource, type MetricsOptions } from './source.js'

/** The part of prom-client's `Registry` that is used. */
export interface PrometheusRegistry {
  /** Adds a metric. */
  registerMetric(metric: never): void
}

/** Options of the Prometheus metrics. */
export interface PrometheusOptions extends MetricsOptions {
  /** The registry of prom-client that the application serves. */
  registry: PrometheusRegistry
}

/** One value of a metric with its labels. */
export interface Sample {
  /** Labels of the value. */
  labels: Readonly<Record<string, string | number>>
  /** The value. */
  value: number
  /** If it differs from the name of the metric. */
  metricName?: string
}

/**
 * Registers the metrics of a `Spillway` with a registry of prom-client.
 *
 * @example
 * exposeToPrometheus({ spillway, registry })
 */
export function exposeToPrometheus({ registry, ...options }: PrometheusOptions): void {
  const view = createSource(options)
  const { guardLabel = 'guard' } = options
  const named = (labels: readonly string[]) =>
    labels.map((label) => (label === 'guard' ? guardLabel : label))
  for (const { name, help, kind, labels, read } of INSTRUMENTS) {
    const described = { name, help, type: kind, labelNames: named(labels) }
    registerSamples(registry, described, async () =>
      bounded(read(await view()), kind).map(toSample),
    )
  }
  for (const { name, help, labels, read } of TIMED) {
    const described = { name, help, type: 'histogram', labelNames: named(labels) } as const
    registerSamples(registry, described, async () =>
      read(await view()).flatMap(({ labels, durations }) => histogramOf(name, labels, durations)),
    )
  }
}

/** A metric, without its values. */
export interface DescribedMetric {
  /** Name in Prometheus. */
  name: string
  /** What it counts or measures, and its unit. */
  help: string
  /** Its type in Prometheus. */
  type: 'counter' | 'gauge' | 'histogram'
  /** Names of its labels; `le` of a histogram is left out. */
  labelNames: readonly string[]
}

/** Registers a metric that is computed when it is scraped. */
export function registerSamples(
  registry: PrometheusRegistry,
  described: DescribedMetric,
  read: () => Sample[] | Promise<Sample[]>,
): void {
  const metric = {
    ...described,
    aggregator: 'sum',
    get: async () => ({ ...described, aggregator: 'sum', values: await read() }),
    reset: () => {},
  }
  registry.registerMetric(metric as never)
}

/** The samples of a histogram: cumulative counts by bound, sum and count. */
export function histogramOf(
  name: string,
  labels: Sample['labels'],
  { counts, sum }: Pick<Durations, 'counts' | 'sum'>,
): Sample[] {
  let total = 0
  const buckets = counts.map((count, index): Sample => {
    total += count
    const le = SECONDS[index] ?? '+Inf'
    return { labels: { le, ...labels }, value: total, metricName: `${name}_bucket` }
  })
  return [
    ...buckets,
    { labels, value: sum, metricName: `${name}_sum` },
    { labels, value: total, metricName: `${name}_count` },
  ]
}

function toSample([labels, value]: Row): Sample {
  return { labels, value }
}
