// test-group: sockets

/** Other vendors, keys and models take over as long as nothing has been sent. */
import { describe, expect, it } from 'vitest'
import { until } from '../../spillway/test/streams/stream-kit.js'
import { startGateway, startVendor } from './gateway-kit.js'
import { startHttpVendor } from './http1-kit.js'

const ENV = { MAIN: 'main-key', SPARE: 'spare-key' }

async function startTwo(knobs: object, options: { guard?: object; fallbacks?: object[] } = {}) {
  const spare = await startVendor({ knobs: { tokens: 2 } })
  const running = await startGateway(
    {
      guard: options.guard ?? {},
      vendors: { spare: { protocol: 'openai', url: spare.url, concurrency: { limit: 10 } } },
      routes: [{ vendor: 'openai', fallbacks: options.fallbacks ?? [{ vendor: 'spare' }] }],
    },
    { knobs },
  )
  return { ...running, spare: spare.vendor }
}

describe('fallbacks', () => {
  it.each([
    ['an error of the vendor', { status: 500 }, {}],
    ['a 429', { status: 429 }, {}],
    ['no answer in time', { neverAnswer: true }, { timeout: { callMs: 100 } }],
    ['silence before the first byte', { stallBefore: true }, { timeout: { firstByteMs: 100 } }],
    ['a cut before the first byte', { cutAfter: 0 }, {}],
  ])('the fallback is used after %s', async (_, knobs, guard) => {
    const { chat, spare, vendor } = await startTwo(knobs, { guard })
    const answer = await chat({ stream: true })
    expect(answer.headers.get('spillway-vendor')).toBe('spare')
    expect(await answer.text()).toContain('[DONE]')
    expect(vendor.counts.arrived).toBe(1)
    expect(spare.counts.arrived).toBe(1)
  })

  it('the fallback is used while the circuit is open, without calling the vendor', async () => {
    const guard = { breaker: { consecutiveFailures: 1, openMs: '1m' } }
    const { chat, spare, vendor } = await startTwo({ status: 500 }, { guard })
    for (let i = 0; i < 3; i++) expect((await chat()).status).toBe(200)
    expect(vendor.counts.arrived).toBe(1)
    expect(spare.counts.arrived).toBe(3)
  })

  it('the fallback is used for a request that the throttle of the first target refuses', async () => {
    const guard = { throttle: { k: 1, minimumCalls: 1 } }
    const { chat, spare, vendor } = await startTwo({ status: 500 }, { guard })
    // The n-th request passes the throttle with a probability of 1/n, so at least one of 12 is refused.
    for (let i = 0; i < 12; i++) expect((await chat()).status).toBe(200)
    expect(vendor.counts.arrived).toBeLessThan(12)
    expect(spare.counts.arrived).toBe(12)
  })

  it('the fallback is used after all retries of the first target', async () => {
    const guard = { retry: { attempts: 3, budget: 1, baseMs: 1 } }
    const { chat, vendor } = await startTwo({ status: 503 }, { guard })
    expect((await chat()).headers.get('spillway-attempts')).toBe('4')
    expect(vendor.counts.arrived).toBe(3)
  })

  it('a fallback with another key has its own lane', async () => {
    const running = await startGateway(
      {
        guard: {
          keys: { main: 'env:MAIN', spare: 'env:SPARE' },
          limits: [{ limit: 1, windowMs: '1m' }],
        },
        routes: [{ vendor: 'openai', models: ['gpt'], key: 'main', fallbacks: [{ key: 'spare' }] }],
      },
      {},
      ENV,
    )
    const decisions: string[] = []
    for (let i = 0; i < 3; i++) {
      const { headers } = await running.chat()
      decisions.push((headers.get('spillway-decision') ?? '').split(';', 1)[0] as string)
    }
    expect(decisions).toEqual(['admitted', 'fallback', 'refused'])
    expect(running.vendor.calls.map(({ key }) => key)).toEqual(['main-key', 'spare-key'])
  })

  it('a fallback may use another model', async () => {
    const running = await startGateway(
      { routes: [{ vendor: 'openai', fallbacks: [{ model: 'small' }] }] },
      { models: { large: { status: 500 }, small: { tokens: 1 } } },
    )
    const answer = await running.chat({ model: 'large' })
    expect(answer.status).toBe(200)
    expect(running.vendor.calls.map(({ model }) => model)).toEqual(['large', 'small'])
  })
})

describe('fallbacks that are not used', () => {
  it.each([
    ['an invalid request', { status: 400 }, 400],
    ['a key the vendor does not know', { status: 401 }, 401],
  ])('the fallback is not used after %s', async (_, knobs, status) => {
    const { chat, spare } = await startTwo(knobs)
    expect((await chat()).status).toBe(status)
    expect(spare.counts.arrived).toBe(0)
  })

  it('the fallback is not used for a user over the limit, who is charged once for all targets', async () => {
    const guard = { userLimits: [{ per: 'user', limit: 2, windowMs: '1m' }] }
    const { chat, spare } = await startTwo({ status: 500 }, { guard })
    const statuses = [await chat(), await chat(), await chat()].map(({ status }) => status)
    expect(statuses).toEqual([200, 200, 429])
    expect(spare.counts.arrived).toBe(2)
  })

  it('a user is charged once for two models of the same vendor', async () => {
    const running = await startGateway(
      {
        guard: { userLimits: [{ per: 'user', limit: 2, windowMs: '1m' }] },
        routes: [{ vendor: 'openai', fallbacks: [{ model: 'small' }] }],
      },
      { models: { large: { status: 500 }, small: { tokens: 1 } } },
    )
    const statuses: number[] = []
    for (let i = 0; i < 3; i++) statuses.push((await running.chat({ model: 'large' })).status)
    expect(statuses).toEqual([200, 200, 429])
    expect(running.vendor.counts.arrived).toBe(4)
  })

  it('a body that the first target has begun to read is not sent to the fallback', async () => {
    const files = await startHttpVendor((_, response) => void response.writeHead(429).end())
    const spare = await startHttpVendor()
    const { url } = await startGateway({
      body: { keepBytes: 10 },
      vendors: {
        files: { protocol: 'http', url: files.url },
        spare: { protocol: 'http', url: spare.url },
      },
      routes: [{ path: '/files', vendor: 'files', fallbacks: [{ vendor: 'spare' }] }],
    })
    const post = (body: string) => fetch(`${url}/files`, { method: 'POST', body })
    expect((await post('x'.repeat(50_000))).status).toBe(429)
    expect([files.requests.length, spare.requests.length]).toEqual([1, 0])
    // A body that is held could be.
    expect((await post('x')).status).toBe(200)
    expect(spare.requests).toHaveLength(1)
  })

  it("the client's own key is sent to the vendor of the first target only", async () => {
    const { chat, spare, vendor } = await startTwo({ status: 500 })
    const answer = await chat({}, { headers: { authorization: 'Bearer of-the-client' } })
    expect(answer.status).toBe(200)
    expect(vendor.calls.map(({ key }) => key)).toEqual(['of-the-client'])
    expect(spare.calls.map(({ key }) => key)).toEqual([''])
  })

  it('the fallback is not used once the answer has begun', async () => {
    const { chat, spare } = await startTwo({ cutAfter: 2, tokenMs: 2 })
    const answer = await chat({ stream: true })
    expect(await answer.text()).toMatch(/data: {"error":.*VENDOR_ERROR.*\n\n$/)
    expect(spare.counts.arrived).toBe(0)
  })

  it('the fallback is not used for a client that has disconnected', async () => {
    const { chat, spare, vendor, records } = await startTwo({ neverAnswer: true })
    const leave = new AbortController()
    const call = chat({}, { signal: leave.signal }).catch(() => 'left')
    await until('it arrived', () => vendor.counts.arrived === 1)
    leave.abort()
    expect(await call).toBe('left')
    await until('the vendor is idle', () => vendor.atOnce === 0)
    await until('it is recorded', () => records.length === 1)
    expect(records[0]?.vendorAttempts).toEqual([{ vendor: 'openai', attempts: 1 }])
    expect(spare.counts.arrived).toBe(0)
  })
})

describe('fallbacks after errors of a kind', () => {
  const ERRORS: Record<string, [status: number, code: string]> = {
    'context-window': [400, 'context_length_exceeded'],
    'content-filter': [400, 'content_filter'],
    'quota-exhausted': [400, 'billing_hard_limit_reached'],
    'invalid-key': [401, 'invalid_api_key'],
    'bad-request': [400, 'unknown_parameter'],
  }

  /** A vendor whose model `small` answers with an error of this kind, and all others well. */
  async function startModels(kind: string, fallbacks: object[]) {
    const [status, code] = ERRORS[kind] as [number, string]
    const vendor = await startHttpVendor(({ body }, response) => {
      const { model } = JSON.parse(body) as { model: string }
      response.setHeader('content-type', 'application/json')
      if (model !== 'small') return void response.end(JSON.stringify({ model }))
      response.writeHead(status).end(JSON.stringify({ error: { message: 'no', code } }))
    })
    const { url } = await startGateway({
      vendors: {
        models: { protocol: 'openai', url: vendor.url, breaker: { consecutiveFailures: 1 } },
      },
      routes: [{ path: '/v1/chat/completions', vendor: 'models', fallbacks }],
    })
    const body = JSON.stringify({ model: 'small', messages: [] })
    const headers = { 'content-type': 'application/json' }
    return async () => {
      const answer = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body })
      const { model } = (await answer.json()) as { model?: string }
      return model ?? answer.status
    }
  }

  it('a context-window error leads to the larger model that is configured for it', async () => {
    const large = { model: 'large', on: ['context-window'] }
    const ask = await startModels('context-window', [{ model: 'spare' }, large])
    expect(await ask()).toBe('large')
    // The error does not indicate a failure of the vendor, so its breaker stays closed.
    expect(await ask()).toBe('large')
  })

  it.each([
    ['context-window', 400],
    ['content-filter', 400],
    ['invalid-key', 401],
    ['bad-request', 400],
    ['quota-exhausted', 'spare'],
  ])('without on, a fallback after %s answers %s', async (kind, expected) => {
    expect(await (await startModels(kind, [{ model: 'spare' }]))()).toBe(expected)
  })

  it('a content-filter error leads to another model only if that is configured', async () => {
    const on = ['content-filter']
    expect(await (await startModels('content-filter', [{ model: 'other', on }]))()).toBe('other')
    expect(await (await startModels('context-window', [{ model: 'other', on }]))()).toBe(400)
  })
})
