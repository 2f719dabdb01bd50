// npm run check -- chart: renders deploy/helm/spillway with Helm for every file in deploy/helm/values. Each result must fit
// the schemas of Kubernetes, and equal the kustomize overlay of the same name.

import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { parse, parseAllDocuments } from 'yaml'
import { CHART } from './build-chart.mjs'
import { renderOverlay, schemaErrors, unknownFields } from './check-manifests.mjs'
import { isOnPath } from './debian-package.mjs'
import { ensureHelm } from './ensure-helm.mjs'
import { isMain, root, run, SKIPPED } from './run-command.mjs'

const VALUES = join(root, 'deploy/helm/values')
/** Helm's own labels, and what starts a rolling update: a checksum, or the hash in the name of a ConfigMap. */
const DIFFERENT = new Set([
  'app.kubernetes.io/instance',
  'app.kubernetes.io/managed-by',
  'app.kubernetes.io/version',
  'helm.sh/chart',
  'checksum/config',
  'namespace',
  'imagePullPolicy',
])
const OPERATOR = ['--set', 'serviceMonitor.enabled=true', '--set', 'prometheusRule.enabled=true']

/**
 * Renders the chart with a file of values, or returns Helm's message.
 * @param {Function} helm
 * @param {string[]} args such as `--set replicas=2`
 * @returns {Promise<{ yaml: string } | { error: string }>}
 */
export async function renderChart(helm, values, args = []) {
  // A copy, because Helm may run as a user that cannot read the repository.
  const folder = mkdtempSync(join(tmpdir(), 'chart-'))
  try {
    cpSync(CHART, join(folder, 'spillway'), { recursive: true })
    cpSync(values, join(folder, 'values.yaml'))
    await run('chmod', ['-R', 'a+rX', folder])
    const files = [join(folder, 'spillway'), '-f', join(folder, 'values.yaml')]
    const rendered = await helm('template', 'spillway', ...files, '-n', 'spillway', ...args)
    return rendered.code === 0 ? { yaml: rendered.stdout } : { error: rendered.output }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Paths at which a rendered chart differs from a rendered overlay. */
export function differences(chart, overlay) {
  const [left, right] = [resourcesOf(chart), resourcesOf(overlay)]
  const names = new Set([...left.keys(), ...right.keys()])
  return [...names].flatMap((name) => differingPaths(left.get(name), right.get(name), name))
}

function resourcesOf(yaml) {
  const resources = parseAllDocuments(yaml)
    .map((document) => document.toJS())
    .filter((resource) => resource !== null)
    .map((resource) => comparable(resource))
  return new Map(
    resources.map((resource) => [`${resource.kind}/${resource.metadata.name}`, resource]),
  )
}

function comparable(value, key) {
  if (key === 'spillway.yaml') return parse(value)
  if (typeof value === 'string') return value.replace(/^spillway-config-\w+$/, 'spillway-config')
  if (Array.isArray(value)) return value.map((item) => comparable(item))
  if (value === null || typeof value !== 'object') return value
  const fields = Object.entries(value)
    .filter(([name]) => !DIFFERENT.has(name))
    .map(([name, field]) => [name, comparable(field, name)])
    // Left empty by the filter above.
    .filter(([name, field]) => name !== 'annotations' || Object.keys(field).length > 0)
  return Object.fromEntries(fields)
}

function differingPaths(left, right, path) {
  if (isDeepStrictEqual(left, right)) return []
  const isObject = (value) => value !== null && typeof value === 'object'
  if (!isObject(left) || !isObject(right)) {
    return [
      `${path}: ${JSON.stringify(left)} in the chart, ${JSON.stringify(right)} in the overlay`,
    ]
  }
  const keys = new Set([...Object.keys(left), ...Object.keys(right)])
  return [...keys].flatMap((key) => differingPaths(left[key], right[key], `${path}/${key}`))
}

async function checkChart() {
  const helm = await ensureHelm()
  if (helm === undefined || !isOnPath('kubectl')) {
    process.stdout.write('helm or kubectl cannot be had, so the chart is not rendered\n')
    return SKIPPED
  }
  const errors = []
  const rendered = []
  for (const file of readdirSync(VALUES)) {
    const name = basename(file, '.yaml')
    const chart = await renderChart(helm, join(VALUES, file))
    const overlay = await renderOverlay(name)
    const problem = chart.error ?? overlay.error
    if (problem !== undefined) {
      errors.push(`${name}: ${problem}`)
      continue
    }
    const found = [...schemaErrors(chart.yaml), ...differences(chart.yaml, overlay.yaml)]
    errors.push(...found.map((error) => `${name}: ${error}`))
    rendered.push(chart.yaml)
  }
  const operator = await renderChart(helm, join(VALUES, 'redis.yaml'), OPERATOR)
  if (operator.error !== undefined) errors.push(`Prometheus operator: ${operator.error}`)
  else {
    errors.push(...schemaErrors(operator.yaml))
    rendered.push(operator.yaml)
  }
  errors.push(...(await unknownFields(rendered.join('\n---\n'))))
  for (const error of errors) process.stdout.write(`${error}\n`)
  process.stdout.write(`chart rendered ${rendered.length} times, ${errors.length} mistakes\n`)
  return errors.length === 0 ? 0 : 1
}

if (isMain(import.meta.url)) process.exitCode = await checkChart()
