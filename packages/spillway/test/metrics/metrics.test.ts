import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { Registry } from 'prom-client'
import { afterEach, describe, expect, it } from 'vitest'
import { createSpillway, type Spillway, staticValue } from '../../src/index.js'
import { exposeToOpenTelemetry, exposeToPrometheus } from '../../src/observe/index.js'
import { createVirtualClock } from '../../src/testing/virtual-clock.js'

const open: Spillway[] = []
afterEach(async () => {
  for (const each of open.splice(0)) await each.close({ graceMs: 0 })
})

function createPod() {
  const clock = createVirtualClock()
  const spillway = createSpillway({ clock })
  open.push(spillway)
  return { clock, spillway }
}

const fail = () => Promise.reject(new Error('503'))

/** A guard that has seen every kind of outcome. */
async function busyPod() {
  const { clock, spillway } = createPod()
  const measured = spillway.timings()
  expect(measured).toEqual([])
  const vendor = spillway.guard('vendor', {
    breaker: { consecutiveFailures: 3, openMs: '30s' },
    limits: [{ unit: 'requests', limit: 10, windowMs: '1m' }],
    concurrency: { limit: 4 },
    retry: { attempts: 2, budget: 1, baseMs: 10, jitter: 'none' },
    fallback: [staticValue('less', { on: ['error'] })],
  })
  const slow = () => new Promise((done) => clock.schedule(40, () => done('ok')))
  const calls = [vendor.run(slow), vendor.run(fail, { lane: 'gpt "4"' })]
  await clock.advance(100)
  await Promise.all(calls)
  await vendor.breaker?.trip({ lane: 'broken' })
  await expect(vendor.run(slow, { lane: 'broken' })).rejects.toThrow()
  return { clock, spillway }
}

describe('Prometheus metrics', () => {
  it('metrics cover calls, breakers, headroom, waits, latencies, retries, store and pods', async () => {
    const { spillway } = await busyPod()
    const registry = new Registry()
    const servers = [
      {
        snapshot: () => ({
          name: 'api',
          admitted: 7,
          unchecked: 2,
          refused: [{ code: 'SHED', count: 3 }],
        }),
      },
    ]
    exposeToPrometheus({ spillway, registry, servers })
    const text = await registry.metrics()
    for (const line of [
      '# TYPE spillway_calls_total counter',
      'spillway_calls_total{guard="vendor"} 3',
      'spillway_refused_total{guard="vendor",stage="breaker",code="CIRCUIT_OPEN"} 1',
      'spillway_outcomes_total{guard="vendor",outcome="failure"} 2',
      'spillway_degraded_total{guard="vendor",step="static",reason="error"} 1',
      'spillway_calls_active{guard="vendor"} 0',
      'spillway_calls_limit{guard="vendor"} 4',
      'spillway_calls_waiting{guard="vendor",priority="high"} 0',
      'spillway_breaker_state{guard="vendor",lane="default",state="closed"} 1',
      'spillway_breaker_state{guard="vendor",lane="broken",state="open"} 1',
      'spillway_breaker_state{guard="vendor",lane="gpt \\"4\\"",state="closed"} 1',
      'spillway_limit_headroom_ratio{guard="vendor",lane="default",limit="requests"} 0.9',
      'spillway_retry_ratio{guard="vendor"} 0.5',
      'spillway_attempt_seconds_bucket{le="0.05",guard="vendor",attempt="1"} 2',
      'spillway_attempt_seconds_count{guard="vendor",attempt="2"} 1',
      'spillway_queue_wait_seconds_count{guard="vendor"} 2',
      'spillway_store_status{guard="vendor",status="memory"} 1',
      'spillway_store_status{guard="vendor",status="unreachable"} 0',
      'spillway_pods 1',
      'spillway_server_requests_total{server="api",decision="admitted"} 5',
      'spillway_server_requests_total{server="api",decision="SHED"} 3',
    ]) {
      expect(text).toContain(line)
    }
  })

  it('a scrape reads the store once', async () => {
    const { spillway } = createPod()
    let reads = 0
    const counted = {
      snapshot: () => spillway.snapshot(),
      timings: () => spillway.timings(),
      fleet: () => {
        reads++
        return spillway.fleet()
      },
    }
    const registry = new Registry()
    exposeToPrometheus({ spillway: counted, registry })
    await registry.metrics()
    expect(reads).toBe(1)
    await registry.metrics()
    expect(reads).toBe(2)
  })

  it('the number of series stays bounded for any number of users, lanes and guards', async () => {
    const { spillway } = createPod()
    const vendor = spillway.guard('vendor', {
      userLimits: [{ per: 'user', limit: 5, windowMs: '1m' }],
      breaker: { consecutiveFailures: 3, openMs: '30s' },
    })
    for (let i = 0; i < 5_000; i++) {
      await vendor.run(() => i, { user: `user-${i}`, lane: `lane-${i % 500}` })
    }
    for (let i = 0; i < 1_500; i++) spillway.guard(`guard-${i}`, {}).snapshot()
    await spillway.guard('guard-1400').run(() => 1)
    const registry = new Registry()
    exposeToPrometheus({ spillway, registry })
    const text = await registry.metrics()
    expect(text).not.toContain('user-1')
    const count = (name: string) =>
      text.split('\n').filter((line) => line.startsWith(`${name}{`)).length
    expect(count('spillway_breaker_state')).toBe(400)
    expect(count('spillway_calls_total')).toBe(1_001)
    // Nothing that was counted is lost.
    expect(text).toContain('spillway_calls_total{guard="other"} 1\n')
    expect(text.split('\n').length).toBeLessThan(25_000)
  })

  it('timings are measured only after they were requested once', async () => {
    const { clock, spillway } = createPod()
    const vendor = spillway.guard('vendor', {})
    await vendor.run(() => 1)
    const [timings] = spillway.timings()
    await vendor.run(() => 1)
    spillway.guard('later', {})
    expect(timings?.queueWait.counts[0]).toBe(1)
    expect(spillway.timings().map(({ name }) => name)).toEqual(['vendor', 'later'])
    await clock.advance(0)
  })

  it('exposeToPrometheus names the invalid option', () => {
    expect(() => exposeToPrometheus({ registry: new Registry() } as never)).toThrow(
      'metrics.spillway: must be a spillway',
    )
  })
})

describe('OpenTelemetry metrics', () => {
  it('OpenTelemetry receives the same metrics under its own conventions', async () => {
    const { spillway } = await busyPod()
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
    const provider = new MeterProvider({ readers: [reader] })
    const stop = exposeToOpenTelemetry({ spillway, meter: provider.getMeter('test') })
    try {
      await provider.forceFlush()
      const metrics = exporter.getMetrics().flatMap((each) => each.scopeMetrics[0]?.metrics ?? [])
      const named = Object.fromEntries(
        metrics.map(({ descriptor, dataPoints }) => [
          descriptor.name,
          {
            unit: descriptor.unit,
            points: dataPoints.map(({ value, attributes }) => ({ value, ...attributes })),
          },
        ]),
      )
      expect(named['spillway.calls']).toEqual({
        unit: '{call}',
        points: [{ value: 3, guard: 'vendor' }],
      })
      expect(named['spillway.calls.refused']?.points).toEqual([
        { value: 1, guard: 'vendor', stage: 'breaker', code: 'CIRCUIT_OPEN' },
      ])
      expect(named['spillway.attempt.duration.count']?.points).toContainEqual({
        value: 2,
        guard: 'vendor',
        attempt: '1',
      })
      expect(named['spillway.attempt.duration.sum']?.unit).toBe('s')
      expect(named['spillway.limit.headroom']?.points[0]?.value).toBe(0.9)
      expect(named['spillway.pods']?.points).toEqual([{ value: 1 }])
    } finally {
      stop()
      await provider.shutdown()
    }
  })
})
