/**
 * Counts of requests with the same labels. Kept as plain numbers, because every request is
 * counted and scrapes are rare; converted to the Prometheus format by a scrape.
 */
import type { Registry } from 'prom-client'
import {
  type DescribedMetric,
  Durations,
  histogramOf,
  registerSamples,
  type Sample,
} from 'spillway/metrics'
import type { RequestRecord } from '../request/record.js'

type Labels = Readonly<Record<string, string | number>>

export class Series {
  readonly labels: Labels
  requests = 0
  readonly attempts = new Map<string, number>()
  fallbacks = 0
  inputTokens = 0
  outputTokens = 0
  readonly ends = new Map<string, number>()
  readonly durations = new Durations()
  readonly firstBytes = new Durations()

  constructor(record: RequestRecord) {
    const { route = '', vendor = '', status } = record
    this.labels = { route, vendor, status, reason: reasonOf(record) }
  }

  add({
    vendorAttempts,
    code,
    degraded,
    end,
    usage,
    durationMs,
    firstByteMs,
  }: RequestRecord): void {
    this.requests++
    for (const { vendor, attempts } of vendorAttempts) increase(this.attempts, vendor, attempts)
    if (code === undefined && (vendorAttempts.length > 1 || degraded !== undefined))
      this.fallbacks++
    if (end !== undefined) increase(this.ends, end, 1)
    this.inputTokens += usage?.inputTokens ?? 0
    this.outputTokens += usage?.outputTokens ?? 0
    this.durations.add(durationMs / 1_000)
    if (firstByteMs !== undefined) this.firstBytes.add(firstByteMs / 1_000)
  }
}

/** Error code of the refusal or failure; `DEGRADED` if a fallback answered. */
function reasonOf({ code, degraded }: RequestRecord): string {
  return code ?? (degraded === undefined ? '' : 'DEGRADED')
}

function increase(counts: Map<string, number>, name: string, by: number): void {
  counts.set(name, (counts.get(name) ?? 0) + by)
}

export class AllSeries {
  readonly #byLabels = new Map<string, Series>()

  add(record: RequestRecord): void {
    const { route = '', vendor = '', status } = record
    const key = `${status} ${reasonOf(record)} ${vendor} ${route}`
    let series = this.#byLabels.get(key)
    if (series === undefined) {
      series = new Series(record)
      this.#byLabels.set(key, series)
    }
    series.add(record)
  }

  /** A counter, summed over all series that agree on these labels. `read` may set some of them itself. */
  counter(
    registry: Registry,
    { name, help, labelNames }: Omit<DescribedMetric, 'type'>,
    read: (series: Series) => Iterable<readonly [more: Labels, count: number]>,
  ): void {
    registerSamples(registry, { name, help, type: 'counter', labelNames }, () => {
      const sums = new Map<string, Sample>()
      for (const series of this.#byLabels.values()) {
        const own = pick(series.labels, labelNames)
        for (const [more, count] of read(series)) {
          if (count > 0) addTo(sums, { labels: { ...own, ...more }, value: count })
        }
      }
      return [...sums.values()]
    })
  }

  /** A histogram by route and vendor. */
  histogram(
    registry: Registry,
    { name, help }: { name: string; help: string },
    read: (series: Series) => Durations,
  ): void {
    const labelNames = ['route', 'vendor']
    registerSamples(registry, { name, help, type: 'histogram', labelNames }, () => {
      const sums = new Map<string, Sample>()
      for (const series of this.#byLabels.values()) {
        const own = pick(series.labels, labelNames)
        for (const sample of histogramOf(name, own, read(series))) addTo(sums, sample)
      }
      return [...sums.values()]
    })
  }
}

function pick(labels: Labels, names: readonly string[]): Labels {
  return Object.fromEntries(names.map((name) => [name, labels[name] ?? '']))
}

function addTo(sums: Map<string, Sample>, sample: Sample): void {
  const key = JSON.stringify([sample.metricName, sample.labels])
  const known = sums.get(key)
  if (known !== undefined) known.value += sample.value
  else sums.set(key, sample)
}
