// test-group: io
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { schemaErrors, unknownFields } from './check-manifests.mjs'
import { root } from './run-command.mjs'

const base = join(root, 'deploy/kubernetes/base')
const deployment = readFileSync(join(base, 'deployment.yaml'), 'utf8')

describe('check-manifests', () => {
  it('the deployment of the base fits the schema of Kubernetes', () => {
    expect(schemaErrors(deployment)).toEqual([])
  })

  it('a value of the wrong type is reported with its path', () => {
    expect(schemaErrors(deployment.replace('replicas: 1', 'replicas: "1"'))).toEqual([
      'Deployment/spillway /spec/replicas: must be integer',
    ])
  })

  it('an unknown kind is reported', () => {
    const misspelt = deployment.replace('kind: Deployment', 'kind: Deploymnt')
    expect(schemaErrors(misspelt)).toEqual(['Deploymnt/spillway: unknown kind in apps/v1'])
  })

  it('a misspelt field is reported, although the schemas allow it', async () => {
    const misspelt = deployment.replace('replicas: 1', 'replcas: 1')
    expect(schemaErrors(misspelt)).toEqual([])
    expect(await unknownFields(deployment)).toEqual([])
    expect(await unknownFields(misspelt)).toEqual([expect.stringContaining('"replcas"')])
  })

  it('the grace period of a pod is longer than its drain', () => {
    const { drain } = parse(readFileSync(join(base, 'spillway.yaml'), 'utf8'))
    const { terminationGracePeriodSeconds } = parse(deployment).spec.template.spec
    const drainSeconds = Number.parseInt(drain.delayMs, 10) + Number.parseInt(drain.graceMs, 10)
    expect(terminationGracePeriodSeconds).toBeGreaterThanOrEqual(drainSeconds + 10)
  })
})
