// test-group: io

import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { createSpillway } from '../../src/index.js'
import { exposeToPrometheus } from '../../src/observe/index.js'
import { memoryStore } from '../../src/store/memory/memory-store.js'
import { hasPrometheus, startPrometheus } from '../prometheus-server.js'

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

describe.skipIf(!hasPrometheus)('metrics in a real Prometheus', () => {
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
    const prometheus = await startPrometheus([port])
    try {
      const ask = async (query: string) => (await prometheus.ask(query)) ?? []
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
