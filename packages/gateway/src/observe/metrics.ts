/** The metrics for Prometheus. Requests are counted as they end; the state of guards is read at each scrape. */
import { collectDefaultMetrics, Registry } from 'prom-client'
import type { Spillway } from 'spillway'
import type { KeyState } from 'spillway/internal'
import { exposeToPrometheus, registerSamples } from 'spillway/metrics'
import type { RequestRecord } from '../request/record.js'
import { AllSeries, type Series } from './series.js'

export interface GatewayMetrics {
  readonly registry: Registry
  /** Counts requests when they have ended. */
  readonly requests: { add(record: RequestRecord): void }
}

/** Counts reloads, and names the active configuration. */
export interface ReloadFigures {
  readonly counts: Readonly<Record<string, number>>
  readonly generation: number
  readonly since: number
  readonly refusedLast: boolean
}

/** Gauges of the data port, read by each scrape. */
interface Port {
  readonly running: number
  readonly connectionsRefused: number
}

/** A vendor with the state of its keys. */
interface KeyHolder {
  readonly name: string
  readonly keys: { states(): readonly KeyState[] } | undefined
}

export function createMetrics(
  spillway: Spillway,
  port: () => Port,
  reloads: ReloadFigures,
  vendors: () => Iterable<KeyHolder>,
): GatewayMetrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })

  const series = new AllSeries()
  addCounters(registry, series)
  addGauges(registry, spillway, port)
  addReloads(registry, reloads)
  addKeys(registry, vendors)

  return {
    registry,
    requests: series,
  }
}

function addCounters(registry: Registry, series: AllSeries): void {
  const seconds = {
    name: 'spillway_request_seconds',
    help: 'From the first byte of a request to the last of its answer.',
  }
  const firstByte = {
    name: 'spillway_first_byte_seconds',
    help: 'From the first byte of a request to the first of its answer.',
  }
  const counter = (
    name: string,
    help: string,
    labelNames: readonly string[],
    read: (series: Series) => Iterable<readonly [Record<string, string>, number]>,
  ) => series.counter(registry, { name, help, labelNames }, read)

  counter(
    'spillway_requests_total',
    'Requests by route, vendor, status, and why they were refused or failed.',
    ['route', 'vendor', 'status', 'reason'],
    ({ requests }) => [[{}, requests]],
  )
  series.histogram(registry, seconds, ({ durations }) => durations)
  series.histogram(registry, firstByte, ({ firstBytes }) => firstBytes)
  counter(
    'spillway_attempts_total',
    'Requests made to vendors, retries included.',
    ['vendor'],
    ({ attempts }) => Array.from(attempts, ([vendor, count]) => [{ vendor }, count] as const),
  )
  counter(
    'spillway_fallbacks_total',
    'Requests answered by another target than the one that was meant, or by a fallback without a target.',
    ['route', 'vendor'],
    ({ fallbacks }) => [[{}, fallbacks]],
  )
  counter(
    'spillway_bodies_total',
    'How answers ended: complete, truncated, stalled, abandoned, aborted.',
    ['vendor', 'end'],
    ({ ends }) => Array.from(ends, ([end, count]) => [{ end }, count] as const),
  )
  counter(
    'spillway_tokens_total',
    'Tokens, as vendors count them in their answers.',
    ['vendor', 'kind'],
    ({ inputTokens, outputTokens }) => [
      [{ kind: 'input' }, inputTokens],
      [{ kind: 'output' }, outputTokens],
    ],
  )
}

/** The state of the gateway and of its guards at the moment of a scrape. */
function addGauges(registry: Registry, spillway: Spillway, port: () => Port): void {
  const requests = {
    name: 'spillway_requests_running',
    help: 'Requests inside the gateway.',
    type: 'gauge',
    labelNames: [],
  } as const
  registerSamples(registry, requests, () => [{ labels: {}, value: port().running }])
  const refused = {
    name: 'spillway_connections_refused_total',
    help: 'Connections closed at once because there were too many, or too many of one address.',
    type: 'counter',
    labelNames: [],
  } as const
  registerSamples(registry, refused, () => [{ labels: {}, value: port().connectionsRefused }])
  exposeToPrometheus({ spillway, registry, guardLabel: 'vendor' })
}

/** The configuration names the keys, so there are few. */
function addKeys(registry: Registry, vendors: () => Iterable<KeyHolder>): void {
  const quarantined = {
    name: 'spillway_key_quarantined',
    help: '1: this configured API key is not used, because its quota is exhausted, it is invalid, or an operator quarantined it.',
    type: 'gauge',
    labelNames: ['vendor', 'key'],
  } as const
  registerSamples(registry, quarantined, () =>
    [...vendors()].flatMap(({ name: vendor, keys }) =>
      (keys?.states() ?? []).map(({ key, state }) => ({
        labels: { vendor, key },
        value: state === 'usable' ? 0 : 1,
      })),
    ),
  )
}

function addReloads(registry: Registry, reloads: ReloadFigures): void {
  const total = {
    name: 'spillway_config_reloads_total',
    help: 'Times the configuration was read again: applied, unchanged or refused.',
    type: 'counter',
    labelNames: ['result'],
  } as const
  registerSamples(registry, total, () =>
    Object.entries(reloads.counts).map(([result, value]) => ({ labels: { result }, value })),
  )
  const gauge = (name: string, help: string, read: () => number) =>
    registerSamples(registry, { name, help, type: 'gauge', labelNames: [] }, () => [
      { labels: {}, value: read() },
    ])
  gauge(
    'spillway_config_generation',
    'Which configuration is in force: 1 is the one it started with.',
    () => reloads.generation,
  )
  gauge(
    'spillway_config_applied_timestamp_seconds',
    'Time when the configuration in force was applied, in seconds since 1970.',
    () => reloads.since,
  )
  gauge(
    'spillway_config_refused',
    '1: the file as it is now was refused, and an older one is in force.',
    () => (reloads.refusedLast ? 1 : 0),
  )
}
