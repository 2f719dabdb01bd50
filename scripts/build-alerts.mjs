// npm run alerts: sets the address of the documentation in deploy/prometheus, and copies the rules into the
// PrometheusRule for Kubernetes. `npm run chart` copies them into the Helm chart.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, stringify } from 'yaml'
import { documentationUrl } from '../packages/spillway/dist/core/project.js'
import { isMain, root } from './run-command.mjs'

export const RULE_FILE = join(root, 'deploy/kubernetes/components/prometheus/prometheus-rule.yaml')

const ALERTS = join(root, 'deploy/prometheus/alerts.yaml')
const ALERT_TESTS = join(root, 'deploy/prometheus/alerts.test.yaml')

export function runbookUrl(alert) {
  return documentationUrl(`operations/runbooks#${alert.toLowerCase()}`)
}

function setRunbookUrls(file) {
  const before = readFileSync(file, 'utf8')
  writeFileSync(
    file,
    before.replace(/(runbook_url: )\S+#(\w+)/g, (_, key, alert) => key + runbookUrl(alert)),
  )
}

export function prometheusRule() {
  const { groups } = parse(readFileSync(ALERTS, 'utf8'))
  const rule = {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'spillway' },
    spec: { groups },
  }
  const comment = '# Written by `npm run alerts` from deploy/prometheus/alerts.yaml.\n'
  return comment + stringify(rule, { lineWidth: 0 })
}

if (isMain(import.meta.url)) {
  setRunbookUrls(ALERTS)
  setRunbookUrls(ALERT_TESTS)
  writeFileSync(RULE_FILE, prometheusRule())
}
