// test-group: sockets

/** Spans of a gateway: continued from callers and passed on to vendors. */
import * as api from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { until } from '../../spillway/test/streams/stream-kit.js'
import { startGateway } from './gateway-kit.js'

const exporter = new InMemorySpanExporter()
const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] })

beforeAll(() => {
  api.trace.setGlobalTracerProvider(provider)
  api.propagation.setGlobalPropagator(new W3CTraceContextPropagator())
})
afterAll(async () => {
  api.trace.disable()
  api.propagation.disable()
  await provider.shutdown()
})
beforeEach(() => exporter.reset())

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const traceparent = `00-${TRACE}-b7ad6b7169203331-01`
const spanNamed = (name: string) => exporter.getFinishedSpans().find((span) => span.name === name)
const whole = () => exporter.getFinishedSpans().length >= 3

describe('gateway tracing', () => {
  it('gateway continues the trace of a request and passes it on to the vendor', async () => {
    const { chat, vendor } = await startGateway(
      { tracing: {}, guard: { key: 'env:KEY' } },
      {},
      { KEY: 'vendor-secret' },
    )
    const answer = await chat({ stream: true }, { headers: { traceparent } })
    await answer.text()
    await until('the span is exported', whole)
    const request = spanNamed('POST /v1/*')
    const call = spanNamed('spillway openai')
    const attempt = spanNamed('spillway openai attempt')
    expect(request?.kind).toBe(api.SpanKind.SERVER)
    expect(request?.parentSpanContext?.spanId).toBe('b7ad6b7169203331')
    expect(request?.attributes).toMatchObject({
      'http.response.status_code': 200,
      'spillway.vendor': 'openai',
      'spillway.attempts': 1,
    })
    expect(call?.parentSpanContext?.spanId).toBe(request?.spanContext().spanId)
    expect(attempt?.parentSpanContext?.spanId).toBe(call?.spanContext().spanId)
    const passed = vendor.calls[0]?.headers.traceparent
    expect(passed).toBe(`00-${TRACE}-${attempt?.spanContext().spanId}-01`)
    const inSpans = exporter
      .getFinishedSpans()
      .map(({ attributes, events }) => [attributes, events])
    expect(JSON.stringify(inSpans)).not.toMatch(/secret|twelve chars/)
  })

  it('traces of callers and to vendors can be turned off', async () => {
    const { chat, vendor } = await startGateway({
      tracing: { fromCallers: false, toVendors: false },
    })
    await (await chat({}, { headers: { traceparent } })).text()
    await until('the span is exported', whole)
    expect(spanNamed('POST /v1/*')).toBeDefined()
    expect(spanNamed('POST /v1/*')?.parentSpanContext).toBeUndefined()
    expect(spanNamed('POST /v1/*')?.spanContext().traceId).not.toBe(TRACE)
    expect(vendor.calls[0]?.headers.traceparent).toBeUndefined()
  })

  it('spans show paths as logs do: without the key of the caller and without what looks like a key', async () => {
    const { url, records } = await startGateway({ tracing: {} })
    const key = 'plainly-the-key'
    for (const path of [`/v1/${key}/x?key=${key}`, '/v1/sk-planted0123456789/x', '/v1/%70lainly']) {
      await (await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${key}` } })).text()
    }
    await until('all three are recorded', () => exporter.getFinishedSpans().length === 3)
    const paths = exporter.getFinishedSpans().map(({ attributes }) => attributes['url.path'])
    expect(paths).toEqual(['***', '/v1/***/x', '/v1/plainly'])
    expect(records.map(({ path }) => path)).toEqual(paths)
    const inSpans = exporter.getFinishedSpans().map(({ name, attributes }) => [name, attributes])
    expect(JSON.stringify(inSpans)).not.toMatch(/plainly-the-key|planted/)
  })

  it('a span states why a request was refused', async () => {
    const { chat } = await startGateway({
      tracing: {},
      guard: { userLimits: [{ per: 'user', limit: 1, windowMs: '1m' }] },
    })
    await (await chat()).text()
    await (await chat()).text()
    await until('it is exported', () => exporter.getFinishedSpans().length === 5)
    const refused = exporter.getFinishedSpans().filter(({ events }) => events.length > 0)
    expect(refused.map(({ name }) => name).sort()).toEqual(['POST /v1/*', 'spillway openai'])
    for (const { events } of refused) {
      expect(events[0]?.attributes).toMatchObject({ code: 'USER_LIMITED', stage: 'user-limit' })
    }
  })

  it('gateway traces nothing by default', async () => {
    const { chat, vendor } = await startGateway()
    await (await chat({}, { headers: { traceparent } })).text()
    expect(vendor.calls[0]?.headers.traceparent).toBe(traceparent)
    expect(exporter.getFinishedSpans()).toEqual([])
  })
})
