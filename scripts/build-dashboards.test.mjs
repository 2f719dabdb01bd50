// test-group: io
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { allQueries, dashboardFiles, FOLDER } from './build-dashboards.mjs'
import { exportedMetrics, metricsIn, unknownMetrics } from './metric-names.mjs'

describe('dashboards', () => {
  it('deploy/grafana has the dashboards that npm run dashboards writes', () => {
    const files = dashboardFiles()
    expect(readdirSync(FOLDER)).toEqual([...files.keys()].sort())
    for (const [file, dashboard] of files) {
      expect(JSON.parse(readFileSync(join(FOLDER, file), 'utf8'))).toEqual(dashboard)
    }
  })

  it('panels, variables and alerts name only metrics that the gateway exports', async () => {
    expect(allQueries().length).toBeGreaterThan(50)
    expect(unknownMetrics(allQueries(), await exportedMetrics())).toEqual([])
  })

  it('a misspelt metric is reported with its panel', async () => {
    const queries = [
      {
        place: "fleet.json, panel 'Calls'",
        query: 'sum by (vendor) (rate(spillway_cals_total[5m]))',
      },
      { place: 'alerts.yaml, Wait', query: 'spillway_queue_wait_seconds > up{job="x"}' },
    ]
    expect(unknownMetrics(queries, await exportedMetrics())).toEqual([
      "fleet.json, panel 'Calls': the gateway exports no metric spillway_cals_total",
      'alerts.yaml, Wait: the gateway exports no metric spillway_queue_wait_seconds',
    ])
  })

  it('functions, labels, strings, durations and numbers of a query are no metrics', () => {
    const query = `
      histogram_quantile(0.95, sum by (le, vendor) (rate(a_bucket{x="spillway_b", y=~"$z"}[$__rate_interval])))
        / on (vendor) group_left (key) max without (le) (b offset 5m) > 14.4 * 1e-3 and bool c or vector(0)`
    expect(metricsIn(query)).toEqual(['a_bucket', 'b', 'c'])
  })

  it('panels of a dashboard do not overlap, and have different ids', () => {
    for (const { panels } of dashboardFiles().values()) {
      expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
      const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
        Array.from({ length: w * h }, (_, i) => `${x + (i % w)} ${y + Math.floor(i / w)}`),
      )
      expect(new Set(cells).size).toBe(cells.length)
    }
  })
})
