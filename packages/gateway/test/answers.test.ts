// test-group: sockets

/** Every answer explains itself in headers and in the format of its protocol. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { until } from '../../spillway/test/streams/stream-kit.js'
import { startGateway, startVendor } from './gateway-kit.js'
import { parseItem } from './structured-field.js'

const USER_LIMITS = [{ per: 'user', limit: 2, windowMs: '1m' }]

describe('answer headers', () => {
  it('an answer names its vendor, the number of attempts and the remaining limit', async () => {
    const { chat } = await startGateway({ guard: { userLimits: USER_LIMITS } })
    const { status, headers } = await chat()
    expect(status).toBe(200)
    expect(headers.get('spillway-decision')).toMatch(
      /^admitted;vendor="openai";lane="gpt";waited-ms=\d+$/,
    )
    expect(headers.get('spillway-vendor')).toBe('openai')
    expect(headers.get('spillway-attempts')).toBe('1')
    expect(headers.get('spillway-degraded')).toBe('?0')
    expect(headers.get('ratelimit-policy')).toBe('"user";q=2;w=60')
    expect(headers.get('ratelimit')).toMatch(/^"user";r=1;t=\d+$/)
    expect(headers.get('spillway-request-id')).toMatch(/./)
  })

  it('an answer keeps the headers of the vendor', async () => {
    const limits = [{ limit: 100, windowMs: '1m' as const }]
    const { chat } = await startGateway({}, { limits })
    const { headers } = await chat()
    expect(headers.get('x-ratelimit-limit-requests')).toBe('100')
    expect(headers.get('x-request-id')).toMatch(/^req_/)
  })

  it('an answer of a fallback names that target', async () => {
    const { url } = await startVendor({ knobs: { tokens: 1 } })
    const { chat } = await startGateway(
      {
        vendors: { spare: { protocol: 'openai', url } },
        routes: [{ vendor: 'openai', fallbacks: [{ vendor: 'spare' }] }],
      },
      { knobs: { status: 500 } },
    )
    const { status, headers } = await chat()
    expect(status).toBe(200)
    expect(headers.get('spillway-degraded')).toBe('?1')
    expect(headers.get('spillway-vendor')).toBe('spare')
    expect(headers.get('spillway-decision')).toMatch(/^fallback;vendor="spare".*;step=1$/)
    expect(headers.get('spillway-attempts')).toBe('2')
  })

  it('the answer after the last failed attempt has x-should-retry: false', async () => {
    const { chat } = await startGateway(
      { guard: { retry: { attempts: 2, budget: 1, baseMs: 1 } } },
      { knobs: { status: 503 } },
    )
    const { status, headers } = await chat()
    expect(status).toBe(503)
    expect(headers.get('x-should-retry')).toBe('false')
    expect(headers.get('spillway-attempts')).toBe('2')
  })
})

describe('vendor redirects', () => {
  it('a redirect to the vendor itself stays on the gateway, and others pass unchanged', async () => {
    const server = createServer((request, response) => {
      const { host = '' } = request.headers
      if (request.url !== '/base/old?a=1') return void response.end(`here is ${request.url}`)
      response.writeHead(307, {
        location: `http://${host}/base/new?a=1`,
        'content-location': 'http://elsewhere.example/base/new',
      })
      response.end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close().closeAllConnections())
    const { port } = server.address() as AddressInfo
    const { url } = await startGateway({
      vendors: { weather: { protocol: 'http', url: `http://127.0.0.1:${port}/base` } },
      routes: [{ path: '/weather/*', vendor: 'weather', stripPrefix: '/weather' }],
    })
    const { status, headers } = await fetch(`${url}/weather/old?a=1`, { redirect: 'manual' })
    expect(status).toBe(307)
    expect(headers.get('location')).toBe('/weather/new?a=1')
    expect(headers.get('content-location')).toBe('http://elsewhere.example/base/new')
    const followed = await fetch(`${url}/weather/old?a=1`)
    expect(followed.url).toBe(`${url}/weather/new?a=1`)
    expect(await followed.text()).toBe('here is /base/new?a=1')
  })
})

describe('gateway refusals', () => {
  it('a refusal states stage, reason, scope, numbers and Retry-After', async () => {
    const { chat, messages } = await startGateway({ guard: { userLimits: USER_LIMITS } })
    await chat()
    await chat()
    const { status, headers } = await chat()
    expect(status).toBe(429)
    expect(headers.get('spillway-decision')).toMatch(
      /^refused;stage=user-limit;reason=USER_LIMITED;scope=shared;name="openai";level="user";limit=2;window-ms=60000;remaining=0/,
    )
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    expect(Number(headers.get('retry-after-ms'))).toBeLessThanOrEqual(30_000)
    expect(headers.get('ratelimit-policy')).toBe('"user";q=2;w=60')
    expect(headers.get('ratelimit')).toMatch(/^"user";r=0;t=\d+$/)
    expect(headers.get('spillway-attempts')).toBe('0')
    // Anthropic's guard has its own limits.
    expect((await messages()).status).toBe(200)
  })

  it('a refusal names the vendor that was called, if any', async () => {
    const guard = {
      timeout: { firstByteMs: 50 },
      breaker: { consecutiveFailures: 1, openMs: '1m' },
    }
    const { chat, url } = await startGateway({
      guard,
      vendors: { gone: { protocol: 'http', url: 'http://127.0.0.1:9' } },
      routes: [{ path: '/gone/*', vendor: 'gone' }, { vendor: 'openai' }],
    })
    const decisionOf = ({ status, headers }: Response) => [
      status,
      /reason=(\w+)/.exec(headers.get('spillway-decision') ?? '')?.[1],
      headers.get('spillway-vendor'),
      headers.get('spillway-attempts'),
    ]
    expect(decisionOf(await fetch(`${url}/gone/x`))).toEqual([502, 'VENDOR_ERROR', 'gone', '1'])
    const slow = { headers: { 'x-mock': '{"latencyMs": 5000}' } }
    expect(decisionOf(await chat({}, slow))).toEqual([504, 'CALL_TIMEOUT', 'openai', '1'])
    expect(decisionOf(await chat())).toEqual([503, 'CIRCUIT_OPEN', null, '0'])
  })

  it('a refusal names the vendor that was called and not one that was skipped', async () => {
    const { url } = await startVendor()
    const two = { protocol: 'openai', url, concurrency: { limit: 1 } }
    const { chat } = await startGateway({
      guard: { url: 'http://127.0.0.1:9' },
      vendors: { two },
      routes: [
        { vendor: 'two', models: ['two'] },
        { vendor: 'openai', fallbacks: [{ vendor: 'two' }] },
      ],
    })
    const running = await chat(
      { model: 'two', stream: true },
      { headers: { 'x-mock': '{"stallAfter": 1}' } },
    )
    const { headers } = await chat()
    expect(headers.get('spillway-decision')).toContain('name="two"')
    expect(headers.get('spillway-vendor')).toBe('openai')
    await running.body?.cancel()
  })

  it('a refusal has the error format of OpenAI', async () => {
    const { chat } = await startGateway(
      { guard: { breaker: { consecutiveFailures: 1, openMs: '1m' } } },
      { knobs: { status: 500 } },
    )
    await chat()
    const answer = await chat()
    expect(answer.status).toBe(503)
    expect(answer.headers.get('content-type')).toBe('application/json')
    expect(await answer.json()).toEqual({
      error: {
        message: expect.stringMatching(
          /^Spillway gateway: openai: the circuit is open \(1 failure in a row\), .*; retry in \d+ s$/,
        ),
        type: 'server_error',
        param: null,
        code: 'CIRCUIT_OPEN',
        request_id: answer.headers.get('x-request-id'),
        retry_after_ms: Number(answer.headers.get('retry-after-ms')),
      },
    })
    const waitMs = Number(answer.headers.get('retry-after-ms'))
    expect(waitMs).toBeGreaterThan(0)
    expect(answer.headers.get('retry-after')).toBe(String(Math.ceil(waitMs / 1_000)))
    expect(parseItem(answer.headers.get('spillway-decision') ?? '').parameters).toMatchObject({
      stage: { token: 'breaker' },
      reason: { token: 'CIRCUIT_OPEN' },
      lane: 'gpt',
    })
  })

  it('a refusal has the error format of Anthropic', async () => {
    const { messages } = await startGateway(
      { guard: { breaker: { consecutiveFailures: 1, openMs: '1m' } } },
      { knobs: { status: 500 } },
    )
    await messages()
    const answer = await messages()
    expect(await answer.json()).toEqual({
      type: 'error',
      error: {
        type: 'overloaded_error',
        message: expect.stringContaining('the circuit is open'),
        code: 'CIRCUIT_OPEN',
        retry_after_ms: Number(answer.headers.get('retry-after-ms')),
      },
      request_id: answer.headers.get('x-request-id'),
    })
    // Anthropic's SDKs read this one.
    expect(answer.headers.get('request-id')).toBe(answer.headers.get('x-request-id'))
  })

  it('a refusal of an http vendor is a problem document', async () => {
    const { url } = await startGateway({
      vendors: { weather: { protocol: 'http', url: 'http://127.0.0.1:9' } },
      routes: [{ path: '/weather/*', vendor: 'weather', stripPrefix: '/weather' }],
    })
    const answer = await fetch(`${url}/weather/today`)
    expect(answer.status).toBe(502)
    expect(answer.headers.get('content-type')).toBe('application/problem+json')
    expect(await answer.json()).toMatchObject({ title: 'VENDOR_ERROR', status: 502 })
  })

  it('an unknown path or model is answered with 404', async () => {
    const { url, chat } = await startGateway({ routes: [{ vendor: 'openai', models: ['gpt-4*'] }] })
    expect((await fetch(`${url}/nowhere`)).status).toBe(404)
    const answer = await chat({ model: 'other' })
    expect(answer.status).toBe(404)
    expect(await answer.text()).toContain('no route takes the model other')
    expect((await chat({ model: 'gpt-4o' })).status).toBe(200)
  })

  it('a body that is not JSON is answered with 400', async () => {
    const { url } = await startGateway()
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"model": ',
    })
    expect(answer.status).toBe(400)
    expect(await answer.text()).toContain('INVALID_BODY')
  })

  it('an invalid deadline is answered with 400 and an expired one with 504', async () => {
    const { chat, vendor } = await startGateway()
    const within = (ms: string) => chat({}, { headers: { 'spillway-deadline-ms': ms } })
    const answer = await within('soon')
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({
      error: {
        code: 'INVALID_DEADLINE',
        message:
          'Spillway gateway: spillway-deadline-ms: must be a number of milliseconds, such as 1500',
      },
    })
    expect((await within('-5')).status).toBe(504)
    expect(vendor.counts.arrived).toBe(0)
    expect((await within('')).status).toBe(200)
    expect((await within('8000.5')).status).toBe(200)
  })

  it('a model name with quotes or non-ASCII characters gives a valid header', async () => {
    const { chat } = await startGateway()
    const { headers } = await chat({ model: 'a"b\\c' })
    expect(headers.get('spillway-decision')).toContain('lane="a\\"b\\\\c"')
    const odd = await chat({ model: 'a"b\\c\u00e9\r\nx: y' })
    expect(odd.headers.get('spillway-decision')).toContain('lane="(other)"')
  })
})

describe('callers', () => {
  const callers = [
    { key: 'env:ANN', user: 'ann', tier: 'pro', priority: 'high' },
    { key: 'env:BOB', user: 'bob' },
  ]
  const env = { ANN: 'ann-secret', BOB: 'bob-secret', VENDOR: 'vendor-secret' }
  const as = (secret: string) => ({ headers: { authorization: `Bearer ${secret}` } })

  it('callers are identified by their key, which the vendor never sees', async () => {
    const running = await startGateway(
      {
        callers,
        guard: { key: 'env:VENDOR', userLimits: [{ per: 'user', limit: 1, windowMs: '1m' }] },
      },
      {},
      env,
    )
    const { chat, vendor, records } = running
    expect((await chat({}, as('ann-secret'))).status).toBe(200)
    expect((await chat({}, as('ann-secret'))).status).toBe(429)
    expect((await chat({}, as('bob-secret'))).status).toBe(200)
    expect((await chat({}, as('unknown'))).status).toBe(401)
    expect((await chat()).status).toBe(401)
    expect(vendor.calls.map(({ key }) => key)).toEqual(['vendor-secret', 'vendor-secret'])
    expect(JSON.stringify(vendor.calls)).not.toContain('ann-secret')
    await until('all are recorded', () => records.length === 5)
    expect(records[0]).toMatchObject({ user: 'ann', tier: 'pro', priority: 'high' })
    expect(JSON.stringify(records)).not.toMatch(/secret/)
  })

  it('a caller cannot pretend to be another user', async () => {
    const { chat, records } = await startGateway({ callers }, {}, env)
    await chat({}, { headers: { ...as('bob-secret').headers, 'spillway-user': 'ann' } })
    await until('it is recorded', () => records.length === 1)
    expect(records[0]?.user).toBe('bob')
  })

  it("without a list of callers the gateway trusts spillway-user and passes the client's key on", async () => {
    const { chat, vendor, records } = await startGateway()
    const headers = {
      ...as('their-own').headers,
      'spillway-user': 'ann',
      'spillway-priority': 'low',
    }
    await chat({}, { headers })
    expect(vendor.calls[0]?.key).toBe('their-own')
    expect(vendor.calls[0]?.headers).not.toHaveProperty('spillway-user')
    await until('it is recorded', () => records.length === 1)
    expect(records[0]).toMatchObject({ user: 'ann', priority: 'low' })
  })
})
