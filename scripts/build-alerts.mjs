// npm run alerts: copies the rules of deploy/prometheus/alerts.yaml into the PrometheusRule for Kubernetes.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, stringify } from 'yaml'
import { isMain, root } from './run-command.mjs'

export const RULE_FILE = join(root, 'deploy/kubernetes/components/prometheus/prometheus-rule.yaml')

export function prometheusRule() {
  const { groups } = parse(readFileSync(join(root, 'deploy/prometheus/alerts.yaml'), 'utf8'))
  const rule = {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'spillway' },
    spec: { groups },
  }
  const comment = '# Written by `npm run alerts` from deploy/prometheus/alerts.yaml.\n'
  return comment + stringify(rule, { lineWidth: 0 })
}

if (isMain(import.meta.url)) writeFileSync(RULE_FILE, prometheusRule())
