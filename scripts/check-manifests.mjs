// npm run check -- manifests: renders every overlay in deploy/kubernetes with `kubectl kustomize` and validates the
// result against the schemas of Kubernetes and of the Prometheus operator. TypeScript finds misspelt fields, which
// the schemas allow. `spillway check` validates the gateway's configuration in each overlay.

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as prometheus from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1'
import * as apps from 'kubernetes-models/apps/v1'
import * as autoscaling from 'kubernetes-models/autoscaling/v2'
import * as networking from 'kubernetes-models/networking.k8s.io/v1'
import * as policy from 'kubernetes-models/policy/v1'
import * as core from 'kubernetes-models/v1'
import { parseAllDocuments } from 'yaml'
import { isOnPath } from './debian-package.mjs'
import { isMain, root, run, runNode, SKIPPED, tools } from './run-command.mjs'

/** By `apiVersion`: its models, and the module with their types. */
const MODELS = {
  v1: [core, 'kubernetes-models/v1'],
  'apps/v1': [apps, 'kubernetes-models/apps/v1'],
  'autoscaling/v2': [autoscaling, 'kubernetes-models/autoscaling/v2'],
  'networking.k8s.io/v1': [networking, 'kubernetes-models/networking.k8s.io/v1'],
  'policy/v1': [policy, 'kubernetes-models/policy/v1'],
  'monitoring.coreos.com/v1': [
    prometheus,
    '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1',
  ],
}

const OVERLAYS = join(root, 'deploy/kubernetes/overlays')

/** @returns {Promise<{ yaml: string } | { error: string }>} */
export async function renderOverlay(name) {
  const { code, stdout, output } = await run('kubectl', ['kustomize', join(OVERLAYS, name)])
  return code === 0 ? { yaml: stdout } : { error: output }
}

/**
 * Mistakes in a rendered manifest, such as `Deployment/spillway /spec/replicas: must be integer`.
 * @param {string} yaml
 * @returns {string[]}
 */
export function schemaErrors(yaml) {
  return resourcesOf(yaml).flatMap((resource) => {
    const name = `${resource.kind}/${resource.metadata?.name}`
    const Model = MODELS[resource.apiVersion]?.[0][resource.kind]
    if (Model === undefined) return [`${name}: unknown kind in ${resource.apiVersion}`]
    try {
      new Model(resource).validate()
      return []
    } catch (error) {
      return error.errors.map(({ instancePath, message }) => `${name} ${instancePath}: ${message}`)
    }
  })
}

/**
 * Finds unknown fields by compiling the resources as values of the types of Kubernetes.
 * @param {string} yaml
 * @returns {Promise<string[]>}
 */
export async function unknownFields(yaml) {
  const lines = resourcesOf(yaml).map((resource, index) => {
    const { apiVersion, kind, ...rest } = resource
    const [, module] = MODELS[apiVersion]
    const value = JSON.stringify({ apiVersion, kind, ...rest })
    return `export const resource${index}: import('${module}').I${kind} = ${value}`
  })
  // Inside the repository, so that the packages are found.
  const folder = mkdtempSync(join(root, 'node_modules', '.manifests-'))
  try {
    const file = join(folder, 'manifests.ts')
    writeFileSync(file, `${lines.join('\n')}\n`)
    const options = [
      '--ignoreConfig',
      '--noEmit',
      '--strict',
      '--skipLibCheck',
      '--module',
      'nodenext',
      '--target',
    ]
    const { code, stdout } = await runNode([tools.tsc, ...options, 'es2023', file])
    if (code === 0) return []
    return stdout
      .split('\n')
      .filter((line) => line.includes('error TS'))
      .map((line) => line.replace(/^.*error TS\d+: /, ''))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Empty documents, such as a template of a chart that is switched off, are left out. */
function resourcesOf(yaml) {
  return parseAllDocuments(yaml)
    .map((document) => document.toJS())
    .filter((resource) => resource !== null)
}

async function checkOverlays() {
  if (!isOnPath('kubectl')) {
    process.stdout.write('kubectl is not installed, so the manifests are not rendered\n')
    return SKIPPED
  }
  const rendered = new Map()
  const errors = []
  for (const name of readdirSync(OVERLAYS)) {
    const { yaml, error } = await renderOverlay(name)
    if (error === undefined) rendered.set(name, yaml)
    else errors.push(`${name}: ${error}`)
  }
  const operator = join(root, 'deploy/kubernetes/components/prometheus')
  for (const file of ['service-monitor.yaml', 'prometheus-rule.yaml']) {
    rendered.set(file, readFileSync(join(operator, file), 'utf8'))
  }
  for (const [name, yaml] of rendered) {
    errors.push(...schemaErrors(yaml).map((error) => `${name}: ${error}`))
  }
  errors.push(...(await unknownFields([...rendered.values()].join('\n---\n'))))
  for (const error of errors) process.stdout.write(`${error}\n`)
  process.stdout.write(`${rendered.size} manifests rendered, ${errors.length} mistakes\n`)
  return errors.length === 0 ? 0 : 1
}

if (isMain(import.meta.url)) process.exitCode = await checkOverlays()
