/** Spans as seen by the OpenTelemetry SDK. */
import * as api from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { GuardOptions } from '../../src/guard/options.js'
import { createSpillway } from '../../src/index.js'
import { openTelemetryTracer } from '../../src/observe/index.js'
import { createVirtualClock } from '../../src/testing/virtual-clock.js'
import { vendorError } from '../guard-pod.js'

const exporter = new InMemorySpanExporter()
const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] })

beforeAll(() => {
  api.trace.setGlobalTracerProvider(provider)
  api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
})
afterAll(async () => {
  api.trace.disable()
  api.context.disable()
  await provider.shutdown()
})
beforeEach(() => exporter.reset())

function setup(options: GuardOptions) {
  const clock = createVirtualClock()
  const spillway = createSpillway({ clock, tracer: openTelemetryTracer(api) })
  return { clock, guard: spillway.guard('openai', options) }
}

/** In the order in which they ended. */
const spans = () => exporter.getFinishedSpans()
const named = (name: string) => spans().filter((span) => span.name === name)
const idOf = (span: ReadableSpan | undefined) => span?.spanContext().spanId

describe('spans', () => {
  it('a call has one span and one child span per attempt, inside the active span', async () => {
    const { guard, clock } = setup({
      retry: { attempts: 2, baseMs: 10, jitter: 'none', budget: 1 },
    })
    const active: (string | undefined)[] = []
    const outer = api.trace.getTracer('test').startSpan('outer')
    const answer = api.context.with(api.trace.setSpan(api.context.active(), outer), () =>
      guard.run(
        ({ attempt }) => {
          active.push(api.trace.getActiveSpan()?.spanContext().spanId)
          if (attempt === 1) throw vendorError(500)
          return 'fine'
        },
        { lane: 'gpt', user: 'ann-secret' },
      ),
    )
    await clock.advance(1_000)
    expect(await answer).toBe('fine')
    const attempts = named('spillway openai attempt')
    const [call] = named('spillway openai')
    expect(attempts.map(idOf)).toEqual(active)
    expect(attempts.map(({ attributes }) => attributes)).toEqual([
      expect.objectContaining({ 'spillway.attempt': 1, 'spillway.outcome': 'failure' }),
      expect.objectContaining({ 'spillway.attempt': 2, 'spillway.outcome': 'success' }),
    ])
    for (const each of attempts) expect(each.parentSpanContext?.spanId).toBe(idOf(call))
    expect(call?.parentSpanContext?.spanId).toBe(outer.spanContext().spanId)
    expect(call?.attributes).toMatchObject({ 'spillway.guard': 'openai', 'spillway.lane': 'gpt' })
    expect(
      JSON.stringify(spans().map(({ attributes, events }) => [attributes, events])),
    ).not.toContain('secret')
  })

  it('a refusal adds a span event with its code and numbers', async () => {
    const { guard } = setup({ userLimits: [{ per: 'user', limit: 1, windowMs: '1m' }] })
    await guard.run(() => 1, { user: 'ann-secret' })
    await guard.run(() => 1, { user: 'ann-secret' }).catch(() => {})
    const refused = named('spillway openai')[1]
    expect(named('spillway openai attempt')).toHaveLength(1)
    expect(refused?.status.code).toBe(api.SpanStatusCode.ERROR)
    expect(refused?.events[0]).toMatchObject({
      name: 'spillway.refused',
      attributes: { code: 'USER_LIMITED', stage: 'user-limit', scope: 'shared', limit: 1 },
    })
    expect(JSON.stringify(refused?.events)).not.toContain('secret')
  })

  it('a span records the type of an error but not its message', async () => {
    const { guard } = setup({})
    const fail = () => {
      throw Object.assign(new Error('no key sk-secret'), { code: 'ECONNRESET' })
    }
    await guard.run(fail).catch(() => {})
    expect(spans().map(({ attributes }) => attributes['error.type'])).toEqual([
      'ECONNRESET',
      'ECONNRESET',
    ])
    expect(
      JSON.stringify(spans().map(({ attributes, events, status }) => [attributes, events, status])),
    ).not.toContain('secret')
  })

  it('a span lasts until the body of the response has ended', async () => {
    const { guard } = setup({})
    let end = () => {}
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('a'))
        end = () => controller.close()
      },
    })
    const answer = await guard.run(() => new Response(body))
    expect(spans()).toEqual([])
    end()
    expect(await answer.text()).toBe('a')
    expect(spans().map(({ name }) => name)).toEqual(['spillway openai attempt', 'spillway openai'])
  })

  it('traceHeaders are set with a tracer and undefined without', async () => {
    const { guard } = setup({})
    expect(await guard.run(({ traceHeaders }) => JSON.stringify(traceHeaders))).toBe('{}')
    const plain = createSpillway().guard('plain', {})
    expect(await plain.run(({ traceHeaders }) => typeof traceHeaders)).toBe('undefined')
    expect(named('spillway plain')).toEqual([])
  })
})
