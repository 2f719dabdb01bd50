// The metrics that a gateway exports, and the metrics that a PromQL query names.

import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from './run-command.mjs'

/** Prometheus adds these to every target. */
const ADDED_BY_PROMETHEUS = ['up']
const HISTOGRAM_SUFFIXES = ['_bucket', '_sum', '_count']

/** Words of PromQL without a parenthesis behind them. */
const WORDS = new Set(
  [
    'and or unless bool offset inf nan by without on ignoring group_left group_right',
    'sum min max avg count group stddev stdvar topk bottomk quantile count_values',
  ].flatMap((line) => line.split(' ')),
)

/** Names of all series of a gateway. */
export async function exportedMetrics() {
  const metrics = await registeredMetrics()
  return new Set([...metrics.flatMap(seriesOf), ...ADDED_BY_PROMETHEUS])
}

/** Every metric of a gateway with its type, labels and description, sorted; without those of Node.js itself. */
export async function gatewayMetrics() {
  const { INSTRUMENTS } = await importBuilt('packages/spillway/dist/observe/instruments.js')
  const { TIMED } = await importBuilt('packages/spillway/dist/observe/durations-of.js')
  const dotted = new Map([
    ...INSTRUMENTS.map((each) => [each.name, each.dotted]),
    ...TIMED.map((each) => [each.name, each.dotted]),
  ])
  const metrics = await registeredMetrics()
  return metrics
    .filter(({ name }) => /^(spillway|gen_ai)_/.test(name))
    .map(({ name, type, help, labelNames }) => {
      return { name, type, help, labelNames, dotted: dotted.get(name) }
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** Read from the registry of a gateway, which has to be built. */
async function registeredMetrics() {
  const { createMetrics } = await importBuilt('packages/gateway/dist/observe/metrics.js')
  const { createSpillway } = await importBuilt('packages/spillway/dist/index.js')
  const { createGenAiMetrics } = await importBuilt('packages/spillway/dist/observe/index.js')
  const spillway = createSpillway()
  try {
    const port = () => ({ running: 0, connectionsRefused: 0 })
    const reloads = { counts: {}, generation: 1, since: 0, refusedLast: false }
    const { registry } = createMetrics(spillway, port, reloads, () => [])
    createGenAiMetrics({ registry })
    const metrics = registry.getMetricsAsArray()
    const names = new Set(metrics.map(({ name }) => name))
    return [...metrics, ...(await workerMetrics()).filter(({ name }) => !names.has(name))]
  } finally {
    await spillway.close()
  }
}

/** Those that exist only in a gateway with several workers, counted by its supervisor. */
async function workerMetrics() {
  const { supervisorMetrics } = await importBuilt(
    'packages/gateway/dist/workers/aggregate-metrics.js',
  )
  return supervisorMetrics({ ready: 1, total: 1 }, 0, { counts: {} }).map((metric) => ({
    ...metric,
    labelNames: Object.keys(metric.values[0]?.labels ?? {}),
  }))
}

function seriesOf({ name, type }) {
  return type === 'histogram' ? HISTOGRAM_SUFFIXES.map((suffix) => name + suffix) : [name]
}

function importBuilt(path) {
  return import(pathToFileURL(join(root, path)).href)
}

/** The metrics in `query`: identifiers that are no function, keyword, label, string or duration. */
export function metricsIn(query) {
  const bare = query
    .replace(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g, '')
    .replace(/\{[^}]*\}|\[[^\]]*\]/g, ' ')
    .replace(/\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/gi, ' ')
  const names = [...bare.matchAll(/(?<![\w$.])[a-z_:][\w:]*(?!\w|\s*\()/gi)].map(([name]) => name)
  return [...new Set(names.filter((name) => !WORDS.has(name.toLowerCase())))]
}

/** One line for each metric of `queries` (`{ place, query }`) that is not in `exported`. */
export function unknownMetrics(queries, exported) {
  return queries.flatMap(({ place, query }) =>
    metricsIn(query)
      .filter((name) => !exported.has(name))
      .map((name) => `${place}: the gateway exports no metric ${name}`),
  )
}
