/** For Prometheus, through the registry of prom-client; all of it is read when somebody scrapes. */
import { type Durations, SECONDS } from '../core/collections/histogram.js'
import { TIMED } from './durations-of.js'
import type { Row } from './instrument.js'
import { bounded, INSTRUMENTS } from './instruments.js'
import { createSource, type MetricsOptions } from './source.js'

/** As much of prom-client's `Registry` as it takes. */
export interface PrometheusRegistry {
  registerMetric(metric: never): void
}

export interface PrometheusOptions extends MetricsOptions {
  registry: PrometheusRegistry
}

export interface Sample {
  labels: Readonly<Record<string, string | number>>
  value: number
  /** If it is not the metric's own. */
  metricName?: string
}

export function exposeToPrometheus({ registry, ...options }: PrometheusOptions): void {
  const view = createSource(options)
  for (const { name, help, kind, read } of INSTRUMENTS) {
    registerSamples(registry, { name, help, type: kind }, async () =>
      bounded(read(await view()), kind).map(toSample),
    )
  }
  for (const { name, help, read } of TIMED) {
    registerSamples(registry, { name, help, type: 'histogram' }, async () =>
      read(await view()).flatMap(({ labels, durations }) => histogramOf(name, labels, durations)),
    )
  }
}

/** A metric that is read when it is asked for, as the registry wants it. */
export function registerSamples(
  registry: PrometheusRegistry,
  described: { name: string; help: string; type: 'counter' | 'gauge' | 'histogram' },
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

/** A histogram's samples: how many took no longer than each bound, and all together. */
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
