// test-group: io

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { createSpillway } from '../../src/index.js'
import { exposeToPrometheus } from '../../src/observe/index.js'
import { memoryStore } from '../../src/store/memory/memory-store.js'
import { freePort } from '../redis-server.js'

const isThere = (program: string) => spawnSync(program, ['--version']).error === undefined
const thereIsOne = isThere('prometheus') && isThere('promtool')
if (!thereIsOne) {
  process.stderr.write('no prometheus and promtool on the PATH: SKIPPED, nothing was scraped\n')
}

async function createPod() {
  const spillway = createSpillway({ store: memoryStore() })
  const registry = new Registry()
  exposeToPrometheus({ spillway, registry })
  const vendor = spillway.guard('vendor', {
    shed: { maxQueue: 100 },
    breaker: { consecutiveFailures: 5, openMs: '30s' },
    limits: [{ unit: 'requests', limit: 100, windowMs: '1m' }],
    concurrency: { limit: 4 },
    retry: { attempts: 2, baseMs: 1 },
  })
  for (let i = 0; i < 7; i++) await vendor.run(() => 'ok', { user: `user-${i}` })
  await vendor.run(() => Promise.reject(new Error('503'))).catch(() => {})
  return { spillway, registry }
}

describe.skipIf(!thereIsOne)('metrics in a real Prometheus', () => {
  it('promtool finds nothing wrong with the metrics', async () => {
    const { spillway, registry } = await createPod()
    try {
      const input = await registry.metrics()
      expect(input).toContain('spillway_calls_total{guard="vendor"} 8')
      const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input })
      expect(`${stdout}${stderr}`).toBe('')
      expect(status).toBe(0)
    } finally {
      await spillway.close()
    }
  })

  it('Prometheus scrapes the metrics and answers queries', async () => {
    const { spillway, registry } = await createPod()
    const server = createServer(async (_, response) => {
      response.setHeader('content-type', registry.contentType)
      response.end(await registry.metrics())
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const prometheus = await startPrometheus(port)
    try {
      const ask = (query: string) => prometheus.ask(query)
      await expect.poll(() => ask('up{job="spillway"}')).toEqual([1])
      expect(await ask('spillway_calls_total{guard="vendor"}')).toEqual([8])
      expect(await ask('spillway_breaker_state{state="closed"}')).toEqual([1])
      expect(
        await ask('histogram_quantile(0.9, spillway_attempt_seconds_bucket{attempt="1"}) > 0'),
      ).toHaveLength(1)
      expect((await ask('spillway_limit_headroom_ratio'))[0]).toBeCloseTo(0.91, 1)
    } finally {
      await prometheus.stop()
      server.closeAllConnections()
      server.close()
      await spillway.close()
    }
  })
})

interface Answer {
  data?: { result?: { value: [number, string] }[] }
}

async function startPrometheus(target: number) {
  const folder = mkdtempSync(join(tmpdir(), 'prometheus-'))
  const config = join(folder, 'prometheus.yml')
  const targets = `[{ targets: ['127.0.0.1:${target}'] }]`
  writeFileSync(
    config,
    `global: { scrape_interval: 200ms }\nscrape_configs: [{ job_name: spillway, static_configs: ${targets} }]\n`,
  )
  const port = await freePort()
  const child: ChildProcess = spawn(
    'prometheus',
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: 'ignore' },
  )
  const endWithUs = () => child.kill('SIGKILL')
  process.once('exit', endWithUs)
  return {
    /** The values of a query result. */
    async ask(query: string): Promise<number[]> {
      const url = `http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(query)}`
      const response = await fetch(url).catch(() => undefined)
      const answer = (await response?.json()) as Answer | undefined
      const found = answer?.data?.result ?? []
      return found.map(({ value }) => Number(value[1]))
    },
    async stop() {
      const gone = once(child, 'close')
      child.kill('SIGKILL')
      await gone
      process.off('exit', endWithUs)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
