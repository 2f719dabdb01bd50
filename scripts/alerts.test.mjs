// test-group: io
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { prometheusRule, RULE_FILE, runbookUrl } from './build-alerts.mjs'
import { root, run } from './run-command.mjs'

const folder = join(root, 'deploy/prometheus')
const { groups } = parse(readFileSync(join(folder, 'alerts.yaml'), 'utf8'))
const alerts = groups.flatMap(({ rules }) => rules)

describe('alerts', () => {
  it('promtool accepts the rules, and each alert fires and stays silent as its test expects', async () => {
    const checked = await run('promtool', ['check', 'rules', 'alerts.yaml'], { cwd: folder })
    expect(checked, checked.output).toMatchObject({ code: 0 })
    const tested = await run('promtool', ['test', 'rules', 'alerts.test.yaml'], { cwd: folder })
    expect(tested, tested.output).toMatchObject({ code: 0 })
  })

  it('every alert has a test that expects it to fire', () => {
    const { tests } = parse(readFileSync(join(folder, 'alerts.test.yaml'), 'utf8'))
    const fired = tests
      .flatMap(({ alert_rule_test }) => alert_rule_test)
      .filter(({ exp_alerts }) => exp_alerts.length > 0)
      .map(({ alertname }) => alertname)
    expect(new Set(fired)).toEqual(new Set(alerts.map(({ alert }) => alert)))
  })

  it('the PrometheusRule for Kubernetes has the same rules; npm run alerts copies them', () => {
    expect(readFileSync(RULE_FILE, 'utf8')).toBe(prometheusRule())
  })

  it('every alert links to its section of the runbooks', () => {
    const page = readFileSync(join(root, 'docs/operations/runbooks.md'), 'utf8')
    for (const { alert, annotations } of alerts) {
      expect(page).toContain(`## ${alert}\n`)
      expect(annotations.runbook_url).toBe(runbookUrl(alert))
    }
  })

  it('every runbook has effects for users, confirmation, action with commands, and verification', () => {
    const page = readFileSync(join(root, 'docs/operations/runbooks.md'), 'utf8')
    const sections = new Map(
      page.split(/^## /m).map((section) => [section.slice(0, section.indexOf('\n')), section]),
    )
    for (const { alert } of alerts) {
      for (const part of [
        '**Users notice**',
        '**Confirm**',
        '**Do**',
        '**Verify**',
        '`spillway ',
      ]) {
        expect(sections.get(alert), alert).toContain(part)
      }
    }
  })
})
