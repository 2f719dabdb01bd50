// test-group: io
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { schemaErrors, unknownFields } from './check-manifests.mjs'
import { root } from './run-command.mjs'

const deployment = read('deploy/kubernetes/base/deployment.yaml')

describe('check-manifests', () => {
  it('the deployment of the base fits the schema of Kubernetes', () => {
    expect(schemaErrors(deployment)).toEqual([])
  })

  it('a value of the wrong type is reported with its path', () => {
    expect(schemaErrors(deployment.replace('maxSkew: 1', 'maxSkew: "1"'))).toEqual([
      'Deployment/spillway /spec/template/spec/topologySpreadConstraints/0/maxSkew: must be integer',
    ])
  })

  it('an unknown kind is reported', () => {
    const misspelt = deployment.replace('kind: Deployment', 'kind: Deploymnt')
    expect(schemaErrors(misspelt)).toEqual(['Deploymnt/spillway: unknown kind in apps/v1'])
  })

  it('a misspelt field is reported, although the schemas allow it', async () => {
    const misspelt = deployment.replace('strategy:', 'stratgy:')
    expect(schemaErrors(misspelt)).toEqual([])
    expect(await unknownFields(deployment)).toEqual([])
    expect(await unknownFields(misspelt)).toEqual([expect.stringContaining('"stratgy"')])
  })

  it('the grace period of a pod is preStop, drain and 8 s, with the configuration of every overlay', () => {
    const { containers, terminationGracePeriodSeconds } = parse(deployment).spec.template.spec
    const [, , hook] = containers[0].lifecycle.preStop.exec.command
    const preStopMs = Number(/(\d+)\)$/.exec(hook)[1])
    const files = readdirSync(join(root, 'deploy/kubernetes'), { recursive: true })
      .filter((file) => file.endsWith('spillway.yaml'))
      .map((file) => `deploy/kubernetes/${file}`)
    expect(files).toHaveLength(6)
    for (const file of files) {
      const graceMs = preStopMs + drainMsOf(file) + 8_000
      expect(terminationGracePeriodSeconds, file).toBe(Math.ceil(graceMs / 1_000))
    }
  })

  it('compose gives the image more time to stop than its default configuration drains', () => {
    const { 'x-gateway': gateway } = parse(read('deploy/compose/compose.yaml'))
    const stopMs = parseDuration(gateway.stop_grace_period)
    for (const file of ['deploy/image/spillway.yaml', 'deploy/compose/spillway.yaml']) {
      expect(stopMs, file).toBeGreaterThanOrEqual(drainMsOf(file) + 10_000)
    }
  })
})

function drainMsOf(file) {
  const { drain } = parse(read(file))
  return parseDuration(drain.delayMs) + parseDuration(drain.graceMs)
}

function parseDuration(text) {
  const [, amount, unit] = /^(\d+)(s|m)$/.exec(text)
  return Number(amount) * { s: 1_000, m: 60_000 }[unit]
}

function read(file) {
  return readFileSync(join(root, file), 'utf8')
}
