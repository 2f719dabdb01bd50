// test-group: io
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { chartFiles } from './build-chart.mjs'
import { differences, renderChart } from './check-chart.mjs'
import { ensureHelm } from './ensure-helm.mjs'
import { root } from './run-command.mjs'

const values = (name) => join(root, 'deploy/helm/values', `${name}.yaml`)
const helm = await ensureHelm()
const deploymentIn = ({ yaml }) =>
  parseAllDocuments(yaml)
    .map((document) => document.toJS())
    .find(({ kind }) => kind === 'Deployment').spec.template.spec

describe('Helm chart', () => {
  it('values.schema.json and the alerts in the chart are current; npm run chart writes them', () => {
    for (const [file, content] of chartFiles()) expect(readFileSync(file, 'utf8')).toBe(content)
  })

  it('a difference between chart and overlay is reported with its path', () => {
    const service = (port) =>
      `kind: Service\nmetadata: { name: spillway }\nspec: { ports: [{ port: ${port} }] }`
    expect(differences(service(80), service(80))).toEqual([])
    expect(differences(service(80), service(443))).toEqual([
      'Service/spillway/spec/ports/0/port: 80 in the chart, 443 in the overlay',
    ])
    expect(differences('', service(80))).toHaveLength(1)
  })

  it.skipIf(helm === undefined)(
    'terminationGracePeriodSeconds of the chart follows drain, in every notation of a duration',
    async () => {
      const graces = []
      for (const [delayMs, graceMs] of [
        ['5s', '60s'],
        ['1500ms', '2.5m'],
        ['0', '45000'],
      ]) {
        const drain = `config.drain.delayMs=${delayMs},config.drain.graceMs=${graceMs}`
        const rendered = await renderChart(helm, values('no-redis'), ['--set', drain])
        graces.push(deploymentIn(rendered).terminationGracePeriodSeconds)
      }
      // preStop 2 s and 8 s for the rest of the shutdown.
      expect(graces).toEqual([75, 162, 55])
    },
  )

  it.skipIf(helm === undefined)(
    'values with a mistake are refused with the path, inside the configuration too',
    async () => {
      const misspelt = ['--set', 'config.vendors.openai.qeue.size=1', '--set', 'replicas=two']
      const { error } = await renderChart(helm, values('no-redis'), misspelt)
      expect(error).toContain('config.vendors.openai: Additional property qeue is not allowed')
      expect(error).toContain('replicas: Invalid type. Expected: integer, given: string')
    },
  )
})
