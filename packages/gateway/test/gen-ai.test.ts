// test-group: sockets

/** Metrics and span attributes of a gateway under the GenAI conventions of OpenTelemetry. */
import * as api from '@opentelemetry/api'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { until } from '../../spillway/test/streams/stream-kit.js'
import { type RunningGateway, startGateway } from './gateway-kit.js'

const spans = new InMemorySpanExporter()
const traces = new TracerProvider({
  spanProcessors: [new SimpleSpanProcessor({ exporter: spans })],
})
const exported = new InMemoryMetricExporter(AggregationTemporality.DELTA)
const reader = new PeriodicExportingMetricReader({ exporter: exported, exportIntervalMillis: 1e9 })
const meters = new MeterProvider({ readers: [reader] })

beforeAll(() => {
  api.trace.setGlobalTracerProvider(traces)
  api.metrics.setGlobalMeterProvider(meters)
})
afterAll(async () => {
  api.trace.disable()
  api.metrics.disable()
  await Promise.all([traces.shutdown(), meters.shutdown()])
})
beforeEach(async () => {
  await meters.forceFlush()
  exported.reset()
  spans.reset()
})

interface Point {
  attributes: Record<string, unknown>
  value: { count: number; sum: number }
}

async function pointsOf(name: string): Promise<Point[]> {
  await meters.forceFlush()
  const all = exported.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics)
  const found = all
    .flatMap(({ metrics }) => metrics)
    .filter(({ descriptor }) => descriptor.name === name)
  return found.flatMap(({ dataPoints }) => dataPoints as unknown as Point[])
}

const GEMINI = { protocol: 'gemini' }

async function gemini({ url }: RunningGateway, method: string) {
  const response = await fetch(`${url}/v1beta/models/gemini-pro:${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ contents: [{ parts: [{ text: 'Hello?' }] }] }),
  })
  return response
}

const usage = { stream_options: { include_usage: true } }
const ASK: Record<string, (gateway: RunningGateway, stream: boolean) => Promise<Response>> = {
  openai: ({ chat }, stream) => chat(stream ? { stream, ...usage } : {}),
  anthropic: ({ messages }, stream) => messages({ stream }),
  'gcp.gemini': (gateway, stream) =>
    gemini(gateway, stream ? 'streamGenerateContent?alt=sse' : 'generateContent'),
}

describe('telemetry.genAi of the gateway', () => {
  it.each([
    ['openai', 'chat', 'gpt'],
    ['anthropic', 'chat', 'claude'],
    ['gcp.gemini', 'generate_content', 'gemini-pro'],
  ])(
    '%s: plain and streamed requests are measured, and their spans have the tokens',
    async (provider, operation, model) => {
      const gateway = await startGateway(
        {
          telemetry: { genAi: true },
          tracing: {},
          ...(provider === 'gcp.gemini' && {
            vendors: { gemini: GEMINI },
            routes: [{ path: '/v1beta/*', vendor: 'gemini' }],
          }),
        },
        { knobs: { tokens: 5 } },
      )
      const ask = ASK[provider] as (typeof ASK)[string]
      await (await ask(gateway, false)).text()
      await (await ask(gateway, true)).text()
      await until('both are recorded', () => gateway.records.length === 2)
      const attributes = {
        'gen_ai.operation.name': operation,
        'gen_ai.provider.name': provider,
        'gen_ai.request.model': model,
        'server.address': '127.0.0.1',
        'server.port': Number(new URL(gateway.vendorUrl).port),
      }
      const durations = await pointsOf('gen_ai.client.operation.duration')
      expect(durations).toMatchObject([{ attributes, value: { count: 2 } }])
      expect(await pointsOf('gen_ai.client.operation.time_to_first_chunk')).toMatchObject([
        { attributes, value: { count: 1 } },
      ])
      const tokens = await pointsOf('gen_ai.client.token.usage')
      const output = tokens.find((each) => each.attributes['gen_ai.token.type'] === 'output')
      expect(output).toMatchObject({ attributes, value: { count: 2, sum: 10 } })
      const requests = spans.getFinishedSpans().filter(({ kind }) => kind === api.SpanKind.SERVER)
      for (const span of requests) {
        const { 'gen_ai.usage.output_tokens': counted } = span.attributes
        expect([span.attributes, counted]).toMatchObject([attributes, 5])
      }
      expect(requests).toHaveLength(2)
      const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
      expect(text).toMatch(/^gen_ai_client_operation_duration_seconds_count\{.*\} 2$/m)
      expect(text).toMatch(/^gen_ai_client_token_usage_sum\{.*gen_ai_token_type="output"\} 10$/m)
    },
  )

  it('a model is (other) until the vendor has answered a request for it', async () => {
    const gateway = await startGateway({ telemetry: { genAi: true } })
    gateway.vendor.set({ status: 404 })
    for (let i = 0; i < 3; i++) await (await gateway.chat({ model: `made-up-${i}` })).text()
    await until('all are recorded', () => gateway.records.length === 3)
    const durations = await pointsOf('gen_ai.client.operation.duration')
    expect(durations).toMatchObject([
      {
        attributes: { 'gen_ai.request.model': '(other)', 'error.type': '404' },
        value: { count: 3 },
      },
    ])
  })

  it('without telemetry.genAi the gateway has no such metrics and attributes', async () => {
    const gateway = await startGateway({ tracing: {} })
    await (await gateway.chat()).text()
    await until('it is recorded', () => gateway.records.length === 1)
    expect(await pointsOf('gen_ai.client.operation.duration')).toEqual([])
    expect(await (await fetch(`${gateway.adminUrl}/metrics`)).text()).not.toContain('gen_ai')
    expect(JSON.stringify(spans.getFinishedSpans().map((each) => each.attributes))).not.toContain(
      'gen_ai',
    )
  })
})
