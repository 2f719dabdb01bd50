// test-group: io

/** OpenTelemetry's own packages, loaded into a gateway process, see its requests and its calls to vendors. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { until } from '../../spillway/test/streams/stream-kit.js'
import { startVendor } from './gateway-kit.js'
import { startGatewayProcess } from './gateway-process.js'

const PRELOAD = fileURLToPath(new URL('./auto-instrumentation.mjs', import.meta.url))
const SERVER = 1
const CLIENT = 2

interface Span {
  readonly kind: number
  readonly path: string
  readonly status: number
  readonly spanId: string
  readonly traceId: string
  readonly parent?: string
}

describe('a gateway with OpenTelemetry for node:http and undici', () => {
  it('every request and every vendor call is a span, and a call is the child of its request', async () => {
    const { url: vendorUrl, vendor } = await startVendor()
    const file = join(tmpdir(), `spans-${process.pid}.jsonl`)
    writeFileSync(file, '')
    onTestFinished(() => rmSync(file, { force: true }))
    const { url } = await startGatewayProcess({
      config: {
        vendors: {
          openai: {
            protocol: 'openai',
            url: vendorUrl,
            // Some of the calls wait for a slot that another request gives back.
            concurrency: { limit: 2 },
            queue: { size: 50, timeoutMs: '30s' },
            retry: { attempts: 2, budget: 1, baseMs: 1 },
          },
        },
        log: { level: 'silent' },
      },
      env: { NODE_OPTIONS: `--import ${PRELOAD}`, SPANS: file },
    })
    const chat = async (body: object, headers: Record<string, string> = {}) => {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ model: 'gpt', messages: [], ...body }),
      })
      await response.text()
      return response.status
    }
    const statuses = await Promise.all([
      ...Array.from({ length: 8 }, () => chat({})),
      ...Array.from({ length: 4 }, () => chat({ stream: true })),
      chat({}, { 'x-mock': '{"status": 400}' }),
      // Refused without a call.
      chat({ model: 7 }),
    ])
    expect(statuses).toEqual([...Array(12).fill(200), 400, 400])
    const spans = () =>
      readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Span)
    const ofKind = (kind: number) => spans().filter((span) => span.kind === kind)
    const chats = () => ofKind(SERVER).filter(({ path }) => path === '/v1/chat/completions')
    await until('all requests are spans', () => chats().length === statuses.length)
    await until('all calls are spans', () => ofKind(CLIENT).length === vendor.counts.arrived)
    expect(vendor.counts.arrived).toBe(13)
    expect(
      chats()
        .map(({ status }) => status)
        .sort(),
    ).toEqual([...statuses].sort())
    const requests = new Map(chats().map((span) => [span.spanId, span]))
    const parents = ofKind(CLIENT).map(({ parent = '' }) => parent)
    // Each call has its own request span, although it starts when another request frees a slot.
    expect(new Set(parents).size).toBe(13)
    for (const parent of parents) expect(requests.has(parent)).toBe(true)
    // The vendor can continue the trace.
    const passed = vendor.calls.map(({ headers }) => String(headers.traceparent).split('-')[1])
    expect(passed.sort()).toEqual(
      ofKind(CLIENT)
        .map(({ traceId }) => traceId)
        .sort(),
    )
  })
})
