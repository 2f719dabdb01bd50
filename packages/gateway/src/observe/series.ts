/**
 * Counts of requests that have their labels in common. Kept as plain numbers, because every request is
 * counted and hardly anybody asks; put into the form of Prometheus when somebody does.
 */
import type { Metric, Registry } from 'prom-client'
import type { RequestRecord } from '../data/record.js'

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]

/** How long something took, by buckets. */
class Durations {
  /** One for each bound, and one beyond. */
  readonly counts = new Array<number>(SECONDS.length + 1).fill(0)
  sum = 0

  add(seconds: number): void {
    this.sum += seconds
    let bucket = 0
    while (bucket < SECONDS.length && seconds > (SECONDS[bucket] as number)) bucket++
    ;(this.counts[bucket] as number)++
  }
}

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

  constructor({ route = '', vendor = '', status, code = '' }: RequestRecord) {
    this.labels = { route, vendor, status, reason: code }
  }

  add({ tries, code, end, usage, durationMs, firstByteMs }: RequestRecord): void {
    this.requests++
    for (const { vendor, attempts } of tries) increase(this.attempts, vendor, attempts)
    if (tries.length > 1 && code === undefined) this.fallbacks++
    if (end !== undefined) increase(this.ends, end, 1)
    this.inputTokens += usage?.inputTokens ?? 0
    this.outputTokens += usage?.outputTokens ?? 0
    this.durations.add(durationMs / 1_000)
    if (firstByteMs !== undefined) this.firstBytes.add(firstByteMs / 1_000)
  }
}

function increase(counts: Map<string, number>, name: string, by: number): void {
  counts.set(name, (counts.get(name) ?? 0) + by)
}

export class AllSeries {
  readonly #byLabels = new Map<string, Series>()

  add(record: RequestRecord): void {
    const { route = '', vendor = '', status, code = '' } = record
    const key = `${status} ${code} ${vendor} ${route}`
    let series = this.#byLabels.get(key)
    if (series === undefined) {
      series = new Series(record)
      this.#byLabels.set(key, series)
    }
    series.add(record)
  }

  /** A counter, summed over all series that agree on these labels. */
  counter(
    registry: Registry,
    { name, help, labels }: { name: string; help: string; labels: readonly string[] },
    read: (series: Series) => Iterable<readonly [more: Labels, count: number]>,
  ): void {
    register(registry, name, help, 'counter', () => {
      const sums = new Map<string, { labels: Labels; value: number }>()
      for (const series of this.#byLabels.values()) {
        const own = pick(series.labels, labels)
        for (const [more, count] of read(series)) {
          if (count > 0) addTo(sums, { ...own, ...more }, count)
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
    register(registry, name, help, 'histogram', () => {
      const sums = new Map<string, { labels: Labels; value: number; metricName: string }>()
      for (const series of this.#byLabels.values()) {
        const own = pick(series.labels, ['route', 'vendor'])
        const { counts, sum } = read(series)
        let total = 0
        for (const [index, count] of counts.entries()) {
          total += count
          const le = SECONDS[index] ?? '+Inf'
          addTo(sums, { le, ...own }, total, `${name}_bucket`)
        }
        addTo(sums, own, sum, `${name}_sum`)
        addTo(sums, own, total, `${name}_count`)
      }
      return [...sums.values()]
    })
  }
}

function pick(labels: Labels, names: readonly string[]): Labels {
  return Object.fromEntries(names.map((name) => [name, labels[name] ?? '']))
}

function addTo(
  sums: Map<string, { labels: Labels; value: number; metricName?: string }>,
  labels: Labels,
  count: number,
  metricName?: string,
): void {
  const key = JSON.stringify([metricName, labels])
  const known = sums.get(key)
  if (known !== undefined) known.value += count
  else sums.set(key, { labels, value: count, ...(metricName !== undefined && { metricName }) })
}

/** A metric of our own making, as the registry wants it. */
function register(
  registry: Registry,
  name: string,
  help: string,
  type: 'counter' | 'histogram',
  read: () => unknown[],
): void {
  const metric = {
    name,
    help,
    type,
    aggregator: 'sum',
    get: async () => ({ name, help, type, aggregator: 'sum', values: read() }),
    reset: () => {},
  }
  registry.registerMetric(metric as unknown as Metric)
}
