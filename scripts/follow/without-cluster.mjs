// Takes a command for kubectl or Helm and does what is possible without a cluster: renders the same manifests and validates
// them, or looks up in them what the command refers to.
//
//   node scripts/follow/without-cluster.mjs kubectl apply -k deploy/kubernetes/overlays/redis

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { parseAllDocuments } from 'yaml'
import { renderChart } from '../check-chart.mjs'
import { renderOverlay, schemaErrors, unknownFields } from '../check-manifests.mjs'
import { ensureHelm } from '../ensure-helm.mjs'
import { root, run } from '../run-command.mjs'

const OPTIONS = {
  namespace: { type: 'string', short: 'n' },
  kustomize: { type: 'string', short: 'k' },
  values: { type: 'string', short: 'f' },
}

/** By the first two words of a command. */
const INSTEAD = {
  'kubectl create': createDryRun,
  'kubectl apply': ({ kustomize }) => renderOverlay(nameOf(kustomize)).then(validate),
  'kubectl port-forward': ({ namespace }, [target, port]) => findPort(namespace, target, port),
  'kubectl exec': ({ namespace }, [target, ...command]) => findProgram(namespace, target, command),
  'helm install': installChart,
}

const words = process.argv.slice(2)
const instead = INSTEAD[words.slice(0, 2).join(' ')]
if (instead === undefined) fail(`there is no substitute for: ${words.join(' ')}`)
const { values, positionals } = parseArgs({
  args: words.slice(2),
  options: OPTIONS,
  strict: false,
  allowPositionals: true,
})
await instead(values, positionals)

async function createDryRun() {
  const { code, stdout, output } = await run('kubectl', [
    ...words.slice(1),
    '--dry-run=client',
    '-o',
    'yaml',
  ])
  // The server fills it in.
  const yaml = stdout.replace(/^ *creationTimestamp: null\n/m, '')
  await validate(code === 0 ? { yaml } : { error: output })
}

async function installChart({ values: file }) {
  const helm = await ensureHelm()
  if (helm === undefined) fail('there is no Helm for this system')
  await validate(await renderChart(helm, join(root, file)))
}

async function validate({ yaml, error }) {
  if (error !== undefined) fail(error)
  const problems = [...schemaErrors(yaml), ...(await unknownFields(yaml))]
  if (problems.length > 0) fail(problems.join('\n'))
  const kinds = resourcesOf(yaml).map(({ kind, metadata }) => `${kind}/${metadata.name}`)
  process.stdout.write(`valid: ${kinds.join(', ')}\n`)
}

async function findPort(namespace, target, port) {
  const { ports } = await containerOf(namespace, target)
  if (!ports.some(({ containerPort }) => containerPort === Number(port))) {
    fail(`${target} has no port ${port}`)
  }
  process.stdout.write(`${target} has the port ${port}\n`)
}

/** The program is in the image under /app, which has the layout of this repository. */
async function findProgram(namespace, target, [node, program, command, ...rest]) {
  const { volumeMounts } = await containerOf(namespace, target)
  const path = join(root, program.replace(/^\/app\//, ''))
  if (node !== 'node' || !existsSync(path)) fail(`the image has no ${program}`)
  const { code, output } = await run(process.execPath, [path, command, '--help'])
  if (code !== 0) fail(output)
  const file = rest.find((word) => word.startsWith('/'))
  if (!volumeMounts.some(({ mountPath }) => file.startsWith(`${mountPath}/`))) {
    fail(`no volume of ${target} contains ${file}`)
  }
  process.stdout.write(`${target} has ${program} ${command} and a volume for ${file}\n`)
}

async function containerOf(namespace, target) {
  const { yaml, error } = await renderOverlay('redis')
  if (error !== undefined) fail(error)
  const found = resourcesOf(yaml).find(
    ({ kind, metadata }) =>
      kind === 'Deployment' &&
      `deploy/${metadata.name}` === target &&
      metadata.namespace === namespace,
  )
  if (found === undefined) fail(`there is no ${target} in the namespace ${namespace}`)
  return found.spec.template.spec.containers[0]
}

function resourcesOf(yaml) {
  return parseAllDocuments(yaml).map((document) => document.toJS())
}

function nameOf(overlay) {
  return overlay.replace('deploy/kubernetes/overlays/', '')
}

function fail(message) {
  process.stderr.write(`${message}\n`)
  process.exit(1)
}
