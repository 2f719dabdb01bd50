// npm run chart: writes the generated files of deploy/helm/spillway: values.schema.json, with the gateway's own schema
// for `config`, and the alerts, because a chart cannot read files outside its folder.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isMain, root } from './run-command.mjs'

export const CHART = join(root, 'deploy/helm/spillway')

const TEXT = { type: 'string' }
const NAME = { type: 'string', minLength: 1 }
const FLAG = { type: 'boolean' }
const MAP_OF_TEXT = { type: 'object', additionalProperties: TEXT }
const PORTS = { type: 'array', items: { type: 'integer', minimum: 1, maximum: 65_535 } }
const atLeast = (minimum) => ({ type: 'integer', minimum })
const object = (properties) => ({ type: 'object', properties, additionalProperties: false })

/** Generated files of the chart: their content by path. */
export function chartFiles() {
  const schema = `${JSON.stringify(valuesSchema(), null, 2)}\n`
  const alerts = readFileSync(join(root, 'deploy/prometheus/alerts.yaml'), 'utf8')
  return new Map([
    [join(CHART, 'values.schema.json'), schema],
    [join(CHART, 'files/alerts.yaml'), alerts],
  ])
}

function valuesSchema() {
  const text = readFileSync(join(root, 'packages/gateway/schema.json'), 'utf8')
  const gateway = JSON.parse(text, withoutLookaround)
  const { $schema, title: _, ...config } = gateway
  return {
    $schema,
    title: 'Values of the chart spillway',
    ...object({
      config: { ...config, required: ['port', 'admin', 'vendors'] },
      image: object({
        repository: NAME,
        tag: TEXT,
        pullPolicy: { enum: ['Always', 'IfNotPresent', 'Never'] },
      }),
      imagePullSecrets: { type: 'array', items: object({ name: NAME }) },
      secretName: NAME,
      tls: object({ secretName: TEXT }),
      replicas: atLeast(0),
      autoscaling: object({
        enabled: FLAG,
        minReplicas: atLeast(1),
        maxReplicas: atLeast(1),
        cpuUtilization: { type: 'integer', minimum: 1, maximum: 100 },
      }),
      podDisruptionBudget: object({
        enabled: FLAG,
        maxUnavailable: { type: ['integer', 'string'] },
      }),
      networkPolicy: object({
        enabled: FLAG,
        callers: MAP_OF_TEXT,
        monitoringNamespace: NAME,
        vendorPorts: PORTS,
        redisPorts: PORTS,
      }),
      serviceMonitor: object({ enabled: FLAG, interval: NAME, labels: MAP_OF_TEXT }),
      prometheusRule: object({ enabled: FLAG, labels: MAP_OF_TEXT }),
      service: object({
        type: { enum: ['ClusterIP', 'NodePort', 'LoadBalancer'] },
        annotations: MAP_OF_TEXT,
      }),
      resources: object({ requests: { type: 'object' }, limits: { type: 'object' } }),
      preStopSeconds: atLeast(0),
      podAnnotations: MAP_OF_TEXT,
      nodeSelector: MAP_OF_TEXT,
      tolerations: { type: 'array', items: { type: 'object' } },
      affinity: { type: 'object' },
      // Helm passes it to every chart.
      global: { type: 'object' },
    }),
  }
}

/** Helm's regular expressions support no lookahead and no lookbehind; `spillway check` still applies those patterns. */
function withoutLookaround(key, value) {
  return key === 'pattern' && /\(\?<?[=!]/.test(value) ? undefined : value
}

if (isMain(import.meta.url)) {
  for (const [file, content] of chartFiles()) writeFileSync(file, content)
}
