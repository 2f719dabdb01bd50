import { describe, expect, it } from 'vitest'
import { aggregateMetrics, keepTotals } from './aggregate-metrics.js'
import type { MetricJson } from './protocol.js'

const metric = (
  name: string,
  type: string,
  ...values: [labels: Record<string, string>, value: number, metricName?: string][]
): MetricJson => ({
  name,
  type,
  help: `${name}.`,
  aggregator: 'sum',
  values: values.map(([labels, value, metricName]) => ({
    labels,
    value,
    ...(metricName !== undefined && { metricName }),
  })),
})

const worker = (requests: number, pods: number) => [
  metric('spillway_requests_total', 'counter', [{ status: '200' }, requests]),
  metric(
    'spillway_request_seconds',
    'histogram',
    [{ le: '+Inf' }, requests, 'spillway_request_seconds_bucket'],
    [{}, requests / 2, 'spillway_request_seconds_sum'],
    [{}, requests, 'spillway_request_seconds_count'],
  ),
  metric('spillway_calls_active', 'gauge', [{}, 3]),
  metric('spillway_pods', 'gauge', [{}, pods]),
]

describe('metrics of workers', () => {
  it('counters, histograms and local gauges of workers are summed, shared gauges are not', async () => {
    const lines = (await aggregateMetrics([], [worker(10, 2), worker(4, 2)])).split('\n')
    expect(lines).toContain('spillway_requests_total{status="200"} 14')
    expect(lines).toContain('spillway_request_seconds_bucket{le="+Inf"} 14')
    expect(lines).toContain('spillway_request_seconds_sum 7')
    expect(lines).toContain('spillway_request_seconds_count 14')
    expect(lines).toContain('spillway_calls_active 6')
    expect(lines).toContain('spillway_pods 2')
  })

  it('counters and histograms keep what workers that ended had counted, gauges do not', async () => {
    const ended = keepTotals(keepTotals([], worker(10, 2)), worker(5, 2))
    const lines = (await aggregateMetrics([], [ended, worker(1, 1)])).split('\n')
    expect(lines).toContain('spillway_requests_total{status="200"} 16')
    expect(lines).toContain('spillway_request_seconds_count 16')
    expect(lines).toContain('spillway_calls_active 3')
    expect(lines).toContain('spillway_pods 1')
  })
})
