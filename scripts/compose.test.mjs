// test-group: io
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { root, run, runNode } from './run-command.mjs'

const folder = join(root, 'deploy/compose')
const read = (file) => parse(readFileSync(join(folder, file), 'utf8'), { merge: true })
const { services } = read('compose.yaml')
const mountsOf = ({ volumes = [] }) =>
  volumes.map((volume) => volume.split(':')).map(([source, target]) => ({ source, target }))

describe('deploy/compose', () => {
  it('every file that a service mounts or is built from exists', () => {
    const names = [
      'gateway-1',
      'gateway-2',
      'mock-vendor',
      'redis',
      'prometheus',
      'grafana',
      'load',
    ]
    expect(Object.keys(services)).toEqual(names)
    for (const service of Object.values(services)) {
      for (const { source } of mountsOf(service))
        expect(existsSync(join(folder, source))).toBe(true)
      if (service.build === undefined) continue
      const { context, dockerfile } = service.build
      expect(existsSync(join(folder, context, dockerfile))).toBe(true)
    }
  })

  it('services depend on services that exist, and ports are published on this machine only', () => {
    for (const { depends_on = [], ports = [] } of Object.values(services)) {
      for (const name of depends_on) expect(services).toHaveProperty(name)
      for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:\d+:\d+$/)
    }
  })

  it('spillway check accepts the configuration of the gateways', async () => {
    const command = join(root, 'packages/gateway/dist/bin/spillway.js')
    const file = join(folder, 'spillway.yaml')
    const checked = await runNode([command, 'check', '--no-secrets', file])
    expect(checked, checked.output).toMatchObject({ code: 0 })
  })

  it('promtool accepts the configuration of Prometheus, which scrapes both gateways', async () => {
    const etc = mkdtempSync(join(tmpdir(), 'compose-'))
    try {
      for (const { source, target } of mountsOf(services.prometheus)) {
        cpSync(join(folder, source), join(etc, target.replace('/etc/prometheus/', '')))
      }
      const checked = await run('promtool', ['check', 'config', 'prometheus.yml'], { cwd: etc })
      expect(checked, checked.output).toMatchObject({ code: 0 })
    } finally {
      rmSync(etc, { recursive: true })
    }
    const { admin } = read('spillway.yaml')
    const { targets } = read('prometheus.yml').scrape_configs[0].static_configs[0]
    expect(targets).toEqual(admin.hosts.map((host) => `${host}:${admin.port}`))
  })

  it('Grafana reads the dashboards from the folder where they are mounted', () => {
    const { path } = read('grafana/dashboards.yaml').providers[0].options
    const targets = mountsOf(services.grafana).map(({ target }) => target)
    expect(targets).toContain(path)
    const { url, type } = read('grafana/data-source.yaml').datasources[0]
    expect({ url, type }).toEqual({ url: 'http://prometheus:9090', type: 'prometheus' })
  })

  it('the load sends a limited number of requests to the gateways in turn', async () => {
    const seen = [0, 0]
    const servers = await Promise.all(
      seen.map(async (_, index) => {
        const server = createServer((request, response) => {
          seen[index]++
          request.resume().on('end', () => response.end('{}'))
        }).listen(0, '127.0.0.1')
        await once(server, 'listening')
        return server
      }),
    )
    try {
      const urls = servers.map((server) => `http://127.0.0.1:${server.address().port}`)
      const env = { ...process.env, RATE: '100', SECONDS: '0.2' }
      const child = spawn(process.execPath, [join(folder, 'load.mjs'), ...urls], { env })
      const [output] = await once(child.stdout.setEncoding('utf8'), 'data')
      expect(JSON.parse(output)).toEqual({ sent: 20, statuses: { 200: 20 } })
      expect(seen).toEqual([10, 10])
    } finally {
      for (const server of servers) server.close()
    }
  })
})
