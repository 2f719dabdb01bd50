// test-group: sockets

/** Answers in place of a vendor's: a cached one, a static one, or that of a smaller model under load. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { SDKS } from '../../spillway/test/streams/sdk-clients.js'
import { until } from '../../spillway/test/streams/stream-kit.js'
import { loadConfig } from '../src/config/load.js'
import { createGateway } from '../src/gateway.js'
import { expectIdle, type RunningGateway, startGateway, type Written } from './gateway-kit.js'

const CALLERS = [
  { key: 'env:ANN', user: 'ann' },
  { key: 'env:BOB', user: 'bob' },
]
const ENV = { ANN: 'key-of-ann-1', BOB: 'key-of-bob-1' }
const ANN = { headers: { authorization: `Bearer ${ENV.ANN}` } }
const BOB = { headers: { authorization: `Bearer ${ENV.BOB}` } }
const FROM_CACHE = /^cached;age=\d+$/
const CACHED = { cached: { maxAgeMs: '1h' } }

function start(fallbacks: unknown[], more: Written = {}): Promise<RunningGateway> {
  const routes = [
    { vendor: 'openai', fallbacks },
    { vendor: 'anthropic', fallbacks: fallbacks.filter((each) => 'static' in (each as object)) },
  ]
  return startGateway({ callers: CALLERS, routes, ...more }, { knobs: { tokens: 2 } }, ENV)
}

const degradedBy = ({ headers }: Response) => headers.get('spillway-degraded')

describe('cached answers', () => {
  it('a caller gets the last good answer to its request while the vendor fails', async () => {
    const { chat, vendor, records } = await start([CACHED])
    const good = await chat({ user: 'one', metadata: { run: 1 } }, ANN)
    expect(degradedBy(good)).toBe('?0')
    const text = await good.text()
    vendor.set({ status: 503 })
    const cached = await chat({ metadata: { run: 2 }, user: 'two' }, ANN)
    expect([cached.status, degradedBy(cached)]).toEqual([200, expect.stringMatching(FROM_CACHE)])
    expect(await cached.text()).toBe(text)
    expect(cached.headers.get('content-type')).toBe(good.headers.get('content-type'))
    expect(cached.headers.get('spillway-decision')).toMatch(/^fallback;answer=cached;reason=error;/)
    expect(cached.headers.get('spillway-vendor')).toBe('openai')
    await until('both are recorded', () => records.length === 2)
    expect(records.map(({ degraded }) => degraded)).toEqual([
      undefined,
      { step: 'cached', reason: 'error' },
    ])
    expect(records[1]).toMatchObject({ status: 200, code: undefined, attempts: 1, end: undefined })
  })

  it('a caller never gets the cached answer of another caller unless it is shared', async () => {
    const { chat, vendor } = await start([CACHED])
    const shared = await start([{ cached: { shared: true } }])
    await (await chat({}, ANN)).text()
    await (await shared.chat({}, ANN)).text()
    for (const each of [vendor, shared.vendor]) each.set({ status: 503 })
    expect((await chat({}, BOB)).status).toBe(503)
    const asAnn = { headers: { ...BOB.headers, 'spillway-user': 'ann' } }
    expect((await chat({}, asAnn)).status).toBe(503)
    expect((await chat({}, ANN)).status).toBe(200)
    const answer = await shared.chat({}, BOB)
    expect([answer.status, degradedBy(answer)]).toEqual([200, expect.stringMatching(FROM_CACHE)])
  })

  it('without callers, clients with different keys or names have different cached answers', async () => {
    const { chat, vendor } = await startGateway({
      routes: [{ vendor: 'openai', fallbacks: [CACHED] }],
    })
    await (await chat({}, ANN)).text()
    await (await chat({}, { headers: { 'spillway-user': 'ann' } })).text()
    vendor.set({ status: 503 })
    const statuses = []
    for (const headers of [ANN.headers, BOB.headers, { 'spillway-user': 'bob' }, {}]) {
      statuses.push((await chat({}, { headers })).status)
    }
    expect(statuses).toEqual([200, 503, 503, 503])
  })

  it('another question, model or header that the vendor receives has no cached answer', async () => {
    const { chat, vendor } = await start([CACHED])
    await (await chat({ temperature: 1 }, ANN)).text()
    vendor.set({ status: 503 })
    const beta = { headers: { ...ANN.headers, 'openai-beta': 'x=1' } }
    const answers = [
      await chat({ temperature: 0 }, ANN),
      await chat({ temperature: 1, model: 'a' }, ANN),
      await chat({ temperature: 1, stream: true }, ANN),
      await chat({ temperature: 1 }, beta),
      await chat({ temperature: 1 }, ANN),
    ]
    expect(answers.map(({ status }) => status)).toEqual([503, 503, 503, 503, 200])
  })

  it('an answer such as 400 or 404 is never replaced, and a 429 only if it is named', async () => {
    const { chat, vendor } = await start([CACHED, { static: 'busy' }])
    const limited = await start([{ ...CACHED, on: ['limited'] }])
    await (await chat({}, ANN)).text()
    await (await limited.chat({}, ANN)).text()
    for (const status of [400, 401, 404, 408, 422, 429]) {
      vendor.set({ status })
      const answer = await chat({}, ANN)
      expect([answer.status, degradedBy(answer)]).toEqual([status, '?0'])
    }
    limited.vendor.set({ status: 503 })
    expect((await limited.chat({}, ANN)).status).toBe(503)
    limited.vendor.set({ status: 429 })
    expect(degradedBy(await limited.chat({}, ANN))).toMatch(FROM_CACHE)
  })

  it.each([
    ['an open circuit', { breaker: { consecutiveFailures: 1, openMs: '1m' } }, { status: 500 }],
    ['no answer in time', { timeout: { callMs: 100 } }, { neverAnswer: true }],
    ['no first byte in time', { timeout: { firstByteMs: 100 } }, { stallBefore: true }],
    ['a cut before the first byte', {}, { cutAfter: 0 }],
  ])('a cached answer is sent after %s', async (_, guard, knobs) => {
    const { chat, vendor } = await start([CACHED], { guard })
    // On a busy machine even a good answer may exceed these timeouts.
    let first: Response
    do first = await chat({ stream: true }, ANN)
    while (first.status !== 200)
    await first.text()
    vendor.set(knobs)
    for (let i = 0; i < 2; i++) {
      expect(degradedBy(await chat({ stream: true }, ANN))).toMatch(FROM_CACHE)
    }
  })

  it('a user over its limit gets no cached answer', async () => {
    const guard = { userLimits: [{ per: 'user', limit: 1, windowMs: '1m' }] }
    const { chat } = await start([CACHED, { static: 'busy' }], { guard })
    await (await chat({}, ANN)).text()
    expect((await chat({}, ANN)).status).toBe(429)
  })

  it('a streamed answer is cached as its events, and one that was cut off is not', async () => {
    const { chat, vendor } = await start([CACHED])
    const text = await (await chat({ stream: true }, ANN)).text()
    vendor.set({ cutAfter: 1 })
    expect(await (await chat({ stream: true, seed: 1 }, ANN)).text()).toContain('VENDOR_ERROR')
    vendor.reset()
    vendor.set({ status: 503 })
    const cached = await chat({ stream: true }, ANN)
    expect(cached.headers.get('content-type')).toContain('text/event-stream')
    expect(await cached.text()).toBe(text)
    expect(text).toContain('[DONE]')
    expect((await chat({ stream: true, seed: 1 }, ANN)).status).toBe(503)
    expect((await chat({}, ANN)).status).toBe(503)
  })

  it('a client that did not request usage gets no usage event from the cache', async () => {
    const guard = { limits: [{ unit: 'tokens', limit: 1_000_000, windowMs: '1m' }] }
    const { chat, vendor } = await start([CACHED], { guard })
    const text = await (await chat({ stream: true }, ANN)).text()
    vendor.set({ status: 503 })
    expect(await (await chat({ stream: true }, ANN)).text()).toBe(text)
    expect(text).not.toContain('"usage":{')
  })

  it('only answers of the usual target are kept', async () => {
    const { chat, vendor } = await start([{ model: 'spare' }, CACHED])
    vendor.set({ status: 503 }, 'gpt')
    expect(degradedBy(await chat({}, ANN))).toBe('?1')
    vendor.set({ status: 503 }, 'spare')
    expect((await chat({}, ANN)).status).toBe(503)
  })

  it('cached answers outlive a reload that does not change them', async () => {
    const written = { callers: CALLERS, routes: [{ vendor: 'openai', fallbacks: [CACHED] }] }
    const { chat, vendor, rewrite } = await startGateway(written, {}, ENV)
    await (await chat({}, ANN)).text()
    vendor.set({ status: 503 })
    await rewrite({ ...written, log: { level: 'warn' } })
    expect(degradedBy(await chat({}, ANN))).toMatch(FROM_CACHE)
    const routes = [{ vendor: 'openai', fallbacks: [{ cached: { maxAgeMs: '2h' } }] }]
    await rewrite({ ...written, routes })
    expect((await chat({}, ANN)).status).toBe(503)
  })
})

describe('answers of an http vendor', () => {
  it('only GET is cached, without answers that set a cookie or forbid to keep them', async () => {
    const next = { status: 200, headers: {}, body: '' }
    const server = createServer((_, response) =>
      response.writeHead(next.status, next.headers).end(next.body),
    )
    await once(server.listen(0, '127.0.0.1'), 'listening')
    onTestFinished(() => void server.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const gateway = await start([], {
      vendors: { shop: { protocol: 'http', url } },
      routes: [
        { path: '/shop/*', vendor: 'shop', fallbacks: [{ cached: {} }, { static: 'later' }] },
      ],
    })
    const ask = (path: string, method = 'GET') =>
      fetch(`${gateway.url}/shop/${path}`, { method, ...ANN })
    const HEADERS = {
      plain: {},
      cookie: { 'set-cookie': 'a=1' },
      secret: { 'cache-control': 'no-store' },
      varied: { vary: '*' },
    }
    const answers: string[] = []
    for (const [path, headers] of Object.entries(HEADERS)) {
      Object.assign(next, { status: 200, headers, body: path })
      await (await ask(path)).text()
      await (await ask(path, 'POST')).text()
      Object.assign(next, { status: 503, headers: {}, body: 'down' })
      for (const method of ['GET', 'POST']) answers.push(await (await ask(path, method)).text())
    }
    expect(answers).toEqual(['plain', ...Array(7).fill('later')])
  })
})

describe('static answers', () => {
  it('a static text is a completion for the SDKs, whole and streamed', async () => {
    const { url, vendor } = await start([CACHED, { static: 'We are busy.' }])
    await vendor.close()
    for (const { create } of SDKS) {
      const client = create(url, undefined, ENV.ANN)
      expect(await client.ask()).toBe('We are busy.')
      expect(await client.stream()).toBe('We are busy.')
    }
    const respond = (stream: boolean) =>
      fetch(`${url}/v1/responses`, {
        method: 'POST',
        headers: { ...ANN.headers, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'gpt', input: 'hi', stream }),
      })
    expect(await (await respond(false)).json()).toMatchObject({
      object: 'response',
      output: [{ type: 'message', content: [{ type: 'output_text', text: 'We are busy.' }] }],
    })
    const events = await (await respond(true)).text()
    expect(events).toMatch(/^event: response\.created\n.*event: response\.completed\n.*\n\n$/s)
    expect(events).toContain('"type":"response.output_text.delta"')
  })

  it('a static body has its status and type, and is no answer to a streamed request', async () => {
    const fallback = { static: { status: 202, json: { queued: true } }, on: ['error'] }
    const { chat, vendor, gateway } = await start([fallback])
    vendor.set({ status: 500 })
    const answer = await chat({}, ANN)
    expect([answer.status, degradedBy(answer)]).toEqual([202, 'static'])
    expect(await answer.json()).toEqual({ queued: true })
    expect((await chat({ stream: true }, ANN)).status).toBe(500)
    const [guard] = gateway.spillway.snapshot().guards.filter(({ name }) => name === 'openai')
    expect(guard?.fallbacks).toEqual([{ step: 'static', reason: 'error', count: 1 }])
  })

  it('a static answer is sent for a shed request, without calling the vendor', async () => {
    const guard = { concurrency: { limit: 50 }, shed: { maxInFlight: 1 } }
    const { chat, vendor } = await start([{ static: 'busy' }], { guard })
    vendor.set({ neverAnswer: true })
    const leave = new AbortController()
    const held = chat({}, { ...ANN, signal: leave.signal }).catch(() => 'left')
    await until('one runs', () => vendor.atOnce === 1)
    const answer = await chat({ stream: true }, ANN)
    expect([answer.status, degradedBy(answer)]).toEqual([200, 'static'])
    expect(answer.headers.get('spillway-decision')).toMatch(/;reason=shed;/)
    expect(answer.headers.get('spillway-vendor')).toBeNull()
    leave.abort()
    await held
  })

  it('a static answer that is an error has the Retry-After of the refusal', async () => {
    const guard = { shed: { maxInFlight: 1 }, concurrency: { limit: 50 } }
    const maintenance = { static: { status: 503, json: { error: 'later' } } }
    const { chat, vendor } = await start([maintenance], { guard })
    vendor.set({ status: 503, retryAfterMs: 7_000 })
    const failed = await chat({}, ANN)
    expect(await failed.json()).toEqual({ error: 'later' })
    expect(failed.headers.get('retry-after')).toBe('7')
    expect(failed.headers.get('x-should-retry')).toBe('false')
    vendor.reset()
    vendor.set({ neverAnswer: true })
    const leave = new AbortController()
    const held = chat({}, { ...ANN, signal: leave.signal }).catch(() => 'left')
    await until('one runs', () => vendor.atOnce === 1)
    const shed = await chat({}, ANN)
    expect([shed.status, degradedBy(shed)]).toEqual([503, 'static'])
    expect(Number(shed.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    expect(Number(shed.headers.get('retry-after'))).toBeLessThanOrEqual(3)
    expect(shed.headers.get('x-should-retry')).toBeNull()
    leave.abort()
    await held
  })

  it('a client that is still sending its body gets the static answer', async () => {
    const gateway = await start([], {
      vendors: { shop: { protocol: 'http', url: 'http://127.0.0.1:1' } },
      routes: [{ path: '/shop', vendor: 'shop', fallbacks: [{ static: 'later' }] }],
      body: { keepBytes: 1 },
    })
    const body = Buffer.alloc(3_000_000)
    const answer = await fetch(`${gateway.url}/shop`, { method: 'POST', body, ...ANN })
    expect([answer.status, degradedBy(answer)]).toEqual([200, 'static'])
    expect(await answer.text()).toBe('later')
  })

  it('a stream that was kept alive goes on with the static answer', async () => {
    const routes = [{ vendor: 'openai', keepAliveMs: 20, fallbacks: [{ static: 'busy' }] }]
    const { chat, vendor } = await start([], { routes, guard: { timeout: { callMs: 200 } } })
    vendor.set({ neverAnswer: true })
    const answer = await chat({ stream: true }, ANN)
    expect(answer.status).toBe(200)
    const text = await answer.text()
    expect(text).toContain(': spillway-degraded: static\n\n')
    expect(text).toContain('"content":"busy"')
    expect(text).toMatch(/data: \[DONE\]\n\n$/)
  })

  it('metrics count degraded answers apart from other answers', async () => {
    const { chat, vendor, adminUrl, records } = await start([{ static: 'busy' }])
    vendor.set({ status: 503 })
    await (await chat({}, ANN)).text()
    await until('it is recorded', () => records.length === 1)
    const metrics = await (await fetch(`${adminUrl}/metrics`)).text()
    expect(metrics).toContain(
      'spillway_degraded_total{vendor="openai",step="static",reason="error"} 1',
    )
    expect(metrics).toMatch(/spillway_requests_total\{[^}]*status="200",reason="DEGRADED"\} 1/)
    expect(metrics).toMatch(/spillway_fallbacks_total\{[^}]*vendor="openai"\} 1/)
  })
})

describe('a smaller model under load', () => {
  it('a smaller model answers while the pressure is high, and the usual one afterwards', async () => {
    const guard = { concurrency: { limit: 5 } }
    const small = { model: 'mini', when: { pressure: 0.8 } }
    const running = await start([small, CACHED], { guard })
    const { chat, vendor, records } = running
    vendor.set({ neverAnswer: true }, 'held')
    const leave = new AbortController()
    const held = Array.from({ length: 4 }, () =>
      chat({ model: 'held' }, { ...ANN, signal: leave.signal }).catch(() => 'left'),
    )
    await until('four requests run', () => vendor.atOnce === 4)
    const answer = await chat({}, ANN)
    expect([answer.status, degradedBy(answer)]).toEqual([200, 'model;name="mini"'])
    expect(answer.headers.get('spillway-decision')).toMatch(/^fallback;vendor="openai";/)
    expect(vendor.calls.at(-1)?.model).toBe('mini')
    vendor.set({ status: 503 }, 'mini')
    const after = await chat({}, ANN)
    expect([after.status, degradedBy(after)]).toEqual([200, '?0'])
    expect(vendor.calls.slice(-2).map(({ model }) => model)).toEqual(['mini', 'gpt'])
    leave.abort()
    await Promise.all(held)
    await expectIdle(running)
    await until('the record', () => records.some(({ degraded }) => degraded !== undefined))
    expect(records.find(({ degraded }) => degraded)?.degraded).toEqual({
      step: 'model',
      reason: 'pressure',
    })
    const usual = await chat({}, ANN)
    expect([usual.status, degradedBy(usual)]).toEqual([200, '?0'])
    expect(vendor.calls.at(-1)?.model).toBe('gpt')
  })

  it('the answer of a smaller model is not kept for later', async () => {
    const guard = { concurrency: { limit: 50 } }
    const small = { model: 'mini', when: { pressure: 0.02 } }
    const { chat, vendor } = await start([small, CACHED], { guard })
    vendor.set({ neverAnswer: true }, 'held')
    const leave = new AbortController()
    const held = chat({ model: 'held' }, { ...ANN, signal: leave.signal }).catch(() => 'left')
    await until('one request runs', () => vendor.atOnce === 1)
    const answer = await chat({}, ANN)
    expect(degradedBy(answer)).toBe('model;name="mini"')
    await answer.text()
    vendor.set({ status: 503 })
    expect((await chat({}, ANN)).status).toBe(503)
    leave.abort()
    await held
  })

  it('a target with `when` is no fallback for failures', async () => {
    const small = { model: 'mini', when: { pressure: 0.8 } }
    const { chat, vendor } = await start([small])
    vendor.set({ status: 503 }, 'gpt')
    expect((await chat({}, ANN)).status).toBe(503)
  })
})

describe('the page about fallbacks', () => {
  it('the documented configuration of fallbacks gives the documented answers', async () => {
    const page = readFileSync(
      new URL('../../../docs/gateway/fallbacks.md', import.meta.url),
      'utf8',
    )
    const [, text = ''] = /```yaml\n(.*?)```/s.exec(page) ?? []
    const config = loadConfig({ file: 'page.yaml', text })
    const admin = { ...config.admin, port: 0 }
    const log = { request() {}, event() {}, failure() {}, close() {} }
    const gateway = await createGateway({ ...config, host: '127.0.0.1', port: 0, admin }, { log })
    onTestFinished(() => gateway.close({ graceMs: 0, delayMs: 0 }))
    const { port } = await gateway.start()
    const ask = async (content: string, mock: object) => {
      const answer = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-mock': JSON.stringify(mock) },
        body: JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content }] }),
      })
      await answer.text()
      return degradedBy(answer)
    }
    expect(await ask('Hello', { latencyMs: 0, tokenMs: 0 })).toBe('?0')
    expect(await ask('Hello', { status: 503 })).toMatch(FROM_CACHE)
    expect(await ask('Another question', { status: 503 })).toBe('static')
  })
})
