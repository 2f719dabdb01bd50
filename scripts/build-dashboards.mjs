// npm run dashboards: writes deploy/grafana/*.json from scripts/dashboard-panels.mjs. It fails if a panel or an alert
// names a metric that the gateway does not export.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { DASHBOARDS } from './dashboard-panels.mjs'
import { exportedMetrics, unknownMetrics } from './metric-names.mjs'
import { isMain, root, runNode, tools } from './run-command.mjs'
import { setupOrExit } from './setup.mjs'

export const FOLDER = join(root, 'deploy/grafana')

const COLUMNS = 24
const SIZES = { stat: { w: 6, h: 4 }, timeseries: { w: 8, h: 8 } }
const DATA_SOURCE = { type: 'prometheus', uid: '${' + 'datasource}' }

/** The dashboards as Grafana reads them, by file name. */
export function dashboardFiles() {
  return new Map(DASHBOARDS.map((dashboard) => [dashboard.file, toGrafana(dashboard)]))
}

function toGrafana({ uid, title, description, variables, rows }) {
  return {
    uid,
    title,
    description,
    tags: ['spillway'],
    schemaVersion: 39,
    editable: true,
    graphTooltip: 1,
    refresh: '10s',
    time: { from: 'now-1h', to: 'now' },
    templating: { list: [dataSourceVariable(), ...variables.map(toVariable)] },
    panels: layOut(rows).map((panel, index) => ({ id: index + 1, ...panel })),
  }
}

function dataSourceVariable() {
  return { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' }
}

function toVariable({ name, label, query, all = false }) {
  return {
    name,
    label,
    type: 'query',
    datasource: DATA_SOURCE,
    query: { query, refId: name },
    refresh: 2,
    sort: 1,
    includeAll: all,
    multi: all,
    ...(all && { allValue: '.*', current: { text: 'All', value: '$__all' } }),
  }
}

/** Rows one below the other, and their panels from left to right. */
function layOut(rows) {
  let y = 0
  return rows.flatMap(({ title, panels, kind = 'timeseries' }) => {
    const { w, h } = SIZES[kind]
    const perLine = COLUMNS / w
    const top = y + 1
    const row = { type: 'row', title, collapsed: false, gridPos: { x: 0, y, w: COLUMNS, h: 1 } }
    y = top + Math.ceil(panels.length / perLine) * h
    const placed = panels.map((panel, index) => ({
      ...toPanel(panel, kind),
      gridPos: { x: (index % perLine) * w, y: top + Math.floor(index / perLine) * h, w, h },
    }))
    return [row, ...placed]
  })
}

function toPanel([title, unit, query, legend], kind) {
  const queries = Array.isArray(query) ? query : [[query, legend]]
  return {
    type: kind,
    title,
    datasource: DATA_SOURCE,
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    targets: queries.map(([expr, legendFormat], index) => ({
      refId: String.fromCharCode(65 + index),
      datasource: DATA_SOURCE,
      expr,
      legendFormat,
    })),
  }
}

/** All queries of panels, variables and alerts, each with its location. */
export function allQueries() {
  const panels = DASHBOARDS.flatMap(({ file, rows, variables }) => [
    ...rows
      .flatMap((row) => row.panels)
      .flatMap(([title, , query]) => {
        const queries = Array.isArray(query) ? query.map(([each]) => each) : [query]
        return queries.map((each) => ({ place: `${file}, panel '${title}'`, query: each }))
      }),
    ...variables.map(({ name, query }) => ({
      place: `${file}, variable '${name}'`,
      // label_values(metric, label): the label is no metric.
      query: query.replace(/,\s*\w+\)$/, ')'),
    })),
  ])
  const { groups } = parse(readFileSync(join(root, 'deploy/prometheus/alerts.yaml'), 'utf8'))
  const alerts = groups
    .flatMap(({ rules }) => rules)
    .map(({ alert, expr }) => ({ place: `alerts.yaml, ${alert}`, query: expr }))
  return [...panels, ...alerts]
}

if (isMain(import.meta.url)) {
  await setupOrExit({ build: ['packages/gateway'], types: false })
  const problems = unknownMetrics(allQueries(), await exportedMetrics())
  for (const problem of problems) process.stderr.write(`${problem}\n`)
  if (problems.length > 0) process.exit(1)
  mkdirSync(FOLDER, { recursive: true })
  for (const [file, dashboard] of dashboardFiles()) {
    writeFileSync(join(FOLDER, file), JSON.stringify(dashboard))
  }
  const { code, output } = await runNode([tools.biome, 'format', '--write', FOLDER])
  if (code !== 0) process.stderr.write(output)
  process.exitCode = code
}
