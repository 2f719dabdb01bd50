// test-group: sockets

import Anthropic from '@anthropic-ai/sdk'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { createMockVendor } from '@spillway/mock-vendor'
import OpenAI from 'openai'
import { Registry } from 'prom-client'
import { createSpillway, type Guard } from 'spillway'
import { createGenAiMetrics, type GenAiRecorder } from 'spillway/metrics'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'

const vendor = createMockVendor({ knobs: { tokens: 5 } })
const spillway = createSpillway()
let url = ''
let guard: Guard
beforeAll(async () => {
  url = (await vendor.start()).url
  guard = spillway.guard('vendor', { timeout: { callMs: '20s', idleMs: '10s' } })
})
afterAll(async () => {
  await spillway.close({ graceMs: 0 })
  await vendor.close()
})

interface Point {
  attributes: Record<string, unknown>
  value: { count: number; sum: number; buckets: { boundaries: number[] } }
}

/** The real SDK of OpenTelemetry. */
function startMeter() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1e9 })
  const provider = new MeterProvider({ readers: [reader] })
  return {
    meter: provider.getMeter('test'),
    async points(name: string): Promise<Point[]> {
      await provider.forceFlush()
      const metrics = exporter.getMetrics().at(-1)?.scopeMetrics[0]?.metrics ?? []
      const found = metrics.find(({ descriptor }) => descriptor.name === name)
      return (found?.dataPoints ?? []) as unknown as Point[]
    },
    close: () => provider.shutdown(),
  }
}

const messages = [{ role: 'user' as const, content: 'Hello?' }]

function clients(genAi: GenAiRecorder) {
  const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'k', ...guard.sdk(OpenAI, { genAi }) })
  const anthropic = new Anthropic({ baseURL: url, apiKey: 'k', ...guard.sdk(Anthropic, { genAi }) })
  const gemini = guard.sdk(class Client {}, { protocol: 'gemini', genAi }).fetch
  const generate = async (method: string) => {
    const answer = await gemini(`${url}/v1beta/models/gemini-pro:${method}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ contents: [{ parts: [{ text: 'Hello?' }] }] }),
    })
    await answer.text()
  }
  return {
    openai: {
      plain: () => openai.chat.completions.create({ model: 'gpt', messages }),
      async streamed() {
        const body = { model: 'gpt', messages, stream: true } as const
        for await (const _ of await openai.chat.completions.create(body));
      },
    },
    anthropic: {
      plain: () => anthropic.messages.create({ model: 'claude', max_tokens: 9, messages }),
      async streamed() {
        const body = { model: 'claude', max_tokens: 9, messages, stream: true } as const
        for await (const _ of await anthropic.messages.create(body));
      },
    },
    'gcp.gemini': {
      plain: () => generate('generateContent'),
      streamed: () => generate('streamGenerateContent?alt=sse'),
    },
  }
}

describe('GenAI metrics of guard.sdk()', () => {
  beforeEach(() => vendor.reset())

  it.each([
    ['openai', 'chat', 'gpt'],
    ['anthropic', 'chat', 'claude'],
    ['gcp.gemini', 'generate_content', 'gemini-pro'],
  ] as const)(
    '%s: plain and streamed answers are measured with tokens, duration and first chunk',
    async (provider, operation, model) => {
      const { meter, points, close } = startMeter()
      const client = clients(createGenAiMetrics({ meter }))[provider]
      await client.plain()
      expect(await points('gen_ai.client.operation.time_to_first_chunk')).toEqual([])
      await client.streamed()
      const attributes = {
        'gen_ai.operation.name': operation,
        'gen_ai.provider.name': provider,
        'gen_ai.request.model': model,
        'server.address': '127.0.0.1',
        'server.port': Number(new URL(url).port),
      }
      const tokens = await points('gen_ai.client.token.usage')
      const byType = tokens.map((each) => [each.attributes, each.value.count, each.value.sum])
      expect(byType).toEqual([
        [{ ...attributes, 'gen_ai.token.type': 'input' }, 2, expect.any(Number)],
        [{ ...attributes, 'gen_ai.token.type': 'output' }, 2, 10],
      ])
      expect(tokens[0]?.value.buckets.boundaries).toEqual([
        1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864,
      ])
      const durations = await points('gen_ai.client.operation.duration')
      expect(durations.map((each) => [each.attributes, each.value.count])).toEqual([
        [attributes, 2],
      ])
      expect(durations[0]?.value.buckets.boundaries.slice(0, 3)).toEqual([0.01, 0.02, 0.04])
      const first = await points('gen_ai.client.operation.time_to_first_chunk')
      expect(first.map((each) => [each.attributes, each.value.count])).toEqual([[attributes, 1]])
      await close()
    },
  )

  it('an error has its status, a refusal its code, and an unknown model is (other)', async () => {
    const { meter, points, close } = startMeter()
    const shedding = spillway.guard('shedding', { shed: { when: () => true } })
    const genAi = createGenAiMetrics({ meter })
    vendor.set({ status: 503 })
    const { openai } = clients(genAi)
    await openai.plain().catch(() => {})
    const settings = shedding.sdk(OpenAI, { genAi })
    const other = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'k', ...settings })
    await other.chat.completions.create({ model: 'made-up', messages }).catch(() => {})
    const seen = (await points('gen_ai.client.operation.duration')).map(({ attributes }) => [
      attributes['error.type'],
      attributes['gen_ai.request.model'],
    ])
    expect(seen).toEqual([
      ['503', '(other)'],
      ['SHED', '(other)'],
    ])
    await close()
  })

  it('Prometheus has the same metrics under translated names', async () => {
    const registry = new Registry()
    const { openai } = clients(createGenAiMetrics({ registry }))
    await openai.streamed()
    const text = await registry.metrics()
    const labels = `gen_ai_operation_name="chat",gen_ai_provider_name="openai",gen_ai_request_model="gpt"`
    expect(text).toContain(`gen_ai_client_operation_duration_seconds_count{${labels}`)
    expect(text).toContain(`gen_ai_client_operation_time_to_first_chunk_seconds_bucket{le="0.01",`)
    expect(text).toMatch(/^gen_ai_client_token_usage_sum\{.*gen_ai_token_type="output"\} 5$/m)
    expect(text).toMatch(/^gen_ai_client_token_usage_bucket\{le="4",.*="output"\} 0$/m)
    expect(text).toMatch(/^gen_ai_client_token_usage_bucket\{le="16",.*="output"\} 1$/m)
  })

  it('at most 100 models have a series of their own', async () => {
    const { meter, points, close } = startMeter()
    const genAi = createGenAiMetrics({ meter })
    for (let i = 0; i < 150; i++) {
      genAi.record({ operation: 'chat', provider: 'openai', model: `m${i}`, durationMs: 1 })
    }
    const counts = await points('gen_ai.client.operation.duration')
    expect(counts).toHaveLength(101)
    const other = counts.find((each) => each.attributes['gen_ai.request.model'] === '(other)')
    expect(other?.value.count).toBe(50)
    await close()
  })

  it('createGenAiMetrics() without a meter and a registry is rejected', () => {
    expect(() => createGenAiMetrics({})).toThrow('genAi: needs a meter, a registry, or both')
  })
})
