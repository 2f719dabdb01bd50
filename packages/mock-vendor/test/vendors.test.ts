// test-group: sockets

/** Gemini and Azure OpenAI, the errors of each vendor, quotas and prompt caches over HTTP. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { ERROR_KINDS, type ErrorKind } from '../src/error-kinds.js'
import { createMockVendor, type MockVendorOptions } from '../src/index.js'

const CONTENTS = [{ role: 'user', parts: [{ text: 'twelve chars' }] }]
const MESSAGES = [{ role: 'user', content: 'twelve chars' }]
const VERSION = '?api-version=2024-10-21'

async function start(options: MockVendorOptions = {}) {
  const vendor = createMockVendor({ ...options, knobs: { tokens: 3, ...options.knobs } })
  onTestFinished(() => vendor.close())
  const { url } = await vendor.start()
  const post = (path: string, body: object, headers: Record<string, string> = {}) =>
    fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
  return { vendor, url, post }
}

/** A request to each vendor. */
const REQUESTS = {
  openai: ['/v1/chat/completions', { model: 'm', messages: MESSAGES }, {}],
  anthropic: [
    '/v1/messages',
    { model: 'm', max_tokens: 9, messages: MESSAGES },
    { 'anthropic-version': '2023-06-01' },
  ],
  azure: [`/openai/deployments/m/chat/completions${VERSION}`, { messages: MESSAGES }, {}],
  gemini: ['/v1beta/models/m:generateContent', { contents: CONTENTS }, {}],
} as const
type VendorName = keyof typeof REQUESTS
const NAMES = Object.keys(REQUESTS) as VendorName[]

describe('Gemini', () => {
  const generate = '/v1beta/models/m:generateContent'
  const stream = '/v1beta/models/m:streamGenerateContent'

  it('an answer of Gemini has candidates and usage', async () => {
    const { post, vendor } = await start()
    const answer = await (await post(generate, { contents: CONTENTS })).json()
    expect(answer).toMatchObject({
      candidates: [
        { content: { parts: [{ text: '0 1 2' }], role: 'model' }, finishReason: 'STOP', index: 0 },
      ],
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 3, totalTokenCount: 6 },
      modelVersion: 'm',
    })
    expect(vendor.calls[0]).toMatchObject({ api: 'gemini', model: 'm', promptTokens: 3 })
  })

  it('a stream of Gemini has events with alt=sse, and is an array without', async () => {
    const { post } = await start()
    const text = await (await post(`${stream}?alt=sse`, { contents: CONTENTS })).text()
    const events = text.split('\r\n\r\n').filter(Boolean)
    expect(events).toHaveLength(4)
    expect(JSON.parse(events[3]?.slice(6) ?? '').candidates[0].finishReason).toBe('STOP')
    const array = (await (await post(stream, { contents: CONTENTS })).json()) as unknown[]
    expect(array).toHaveLength(1)
  })

  it('maxOutputTokens ends an answer of Gemini, and a function is called', async () => {
    const { post } = await start()
    const short = { contents: CONTENTS, generationConfig: { maxOutputTokens: 2 } }
    expect(await (await post(generate, short)).json()).toMatchObject({
      candidates: [{ content: { parts: [{ text: '0 1' }] }, finishReason: 'MAX_TOKENS' }],
    })
    const parameters = { type: 'OBJECT', properties: { city: { type: 'STRING' } } }
    const tools = [{ functionDeclarations: [{ name: 'weather', parameters }] }]
    expect(await (await post(generate, { contents: CONTENTS, tools })).json()).toMatchObject({
      candidates: [
        { content: { parts: [{ functionCall: { name: 'weather', args: { city: 'mock' } } }] } },
      ],
    })
  })

  it('Gemini has embeddings, token counts and models', async () => {
    const { post, url } = await start({ models: { m: {} } })
    const content = CONTENTS[0]
    const one = (await (await post('/v1/models/m:embedContent', { content })).json()) as {
      embedding: { values: number[] }
    }
    expect(Math.hypot(...one.embedding.values)).toBeCloseTo(1)
    const requests = [{ model: 'models/m', content, outputDimensionality: 8 }]
    const batch = await (await post('/v1beta/models/m:batchEmbedContents', { requests })).json()
    expect(batch).toMatchObject({ embeddings: [{ values: expect.any(Array) }] })
    const other = await post('/v1beta/models/other:batchEmbedContents', { requests })
    expect(other.status).toBe(400)
    const counted = await post('/v1beta/models/m:countTokens', { contents: CONTENTS })
    expect(await counted.json()).toEqual({ totalTokens: 3 })
    expect(await (await fetch(`${url}/v1beta/models`)).json()).toMatchObject({
      models: [{ name: 'models/m' }],
    })
  })

  it('keys of Gemini come in the header or in the query', async () => {
    const { post } = await start({ keys: ['good'] })
    const body = { contents: CONTENTS }
    expect((await post(`${generate}?key=good`, body)).status).toBe(200)
    expect((await post(generate, body, { 'x-goog-api-key': 'good' })).status).toBe(200)
    const refused = await post(`${generate}?key=bad`, body)
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({
      error: { status: 'INVALID_ARGUMENT', details: [{ reason: 'API_KEY_INVALID' }] },
    })
  })
})

describe('Azure OpenAI', () => {
  it('the deployment is the model, and the path needs a version', async () => {
    const { post, vendor } = await start({ keys: ['good'] })
    const headers = { 'api-key': 'good' }
    const path = '/openai/deployments/d/chat/completions'
    const answer = await post(path + VERSION, { model: '', messages: MESSAGES }, headers)
    expect(await answer.json()).toMatchObject({ model: 'd', choices: [{ finish_reason: 'stop' }] })
    expect(vendor.calls[0]).toMatchObject({ api: 'azure', model: 'd' })
    expect((await post(path, { messages: MESSAGES }, headers)).status).toBe(404)
    expect((await post(path + VERSION, { messages: MESSAGES })).status).toBe(401)
  })

  it.each([`/openai/responses${VERSION}`, '/openai/v1/responses'])(
    'responses on %s have the model in the body',
    async (path) => {
      const { post } = await start()
      const answer = await post(path, { model: 'd', input: 'hi' })
      expect(await answer.json()).toMatchObject({ object: 'response', model: 'd' })
    },
  )
})

/** Status and a part of the body of each error, as the vendor's documentation has it. */
const ERRORS: Readonly<Record<VendorName, Readonly<Record<ErrorKind, [number, string]>>>> = {
  openai: {
    'rate-limited': [429, '"code":"rate_limit_exceeded"'],
    'quota-exhausted': [429, '"type":"insufficient_quota"'],
    'invalid-key': [401, '"code":"invalid_api_key"'],
    'context-window': [400, '"code":"context_length_exceeded"'],
    'content-filter': [400, '"code":"invalid_prompt"'],
    overloaded: [503, 'overloaded'],
    'bad-request': [400, '"type":"invalid_request_error"'],
    server: [500, '"type":"server_error"'],
  },
  anthropic: {
    'rate-limited': [429, '"type":"rate_limit_error"'],
    'quota-exhausted': [400, 'credit balance is too low'],
    'invalid-key': [401, '"type":"authentication_error"'],
    'context-window': [400, 'prompt is too long'],
    'content-filter': [400, 'content filtering policy'],
    overloaded: [529, '"type":"overloaded_error"'],
    'bad-request': [400, '"type":"invalid_request_error"'],
    server: [500, '"type":"api_error"'],
  },
  azure: {
    'rate-limited': [429, '"code":"429"'],
    'quota-exhausted': [403, 'Out of call volume quota'],
    'invalid-key': [401, 'invalid subscription key'],
    'context-window': [400, '"code":"context_length_exceeded"'],
    'content-filter': [400, '"innererror":{"code":"ResponsibleAIPolicyViolation"'],
    overloaded: [503, '"code":"503"'],
    'bad-request': [400, '"code":"400"'],
    server: [500, '"code":"500"'],
  },
  gemini: {
    'rate-limited': [429, 'PerMinutePerProjectPerModel'],
    'quota-exhausted': [429, 'PerDayPerProjectPerModel'],
    'invalid-key': [400, '"reason":"API_KEY_INVALID"'],
    'context-window': [400, 'exceeds the maximum number of tokens allowed'],
    'content-filter': [200, '"blockReason":"PROHIBITED_CONTENT"'],
    overloaded: [503, '"status":"UNAVAILABLE"'],
    'bad-request': [400, '"status":"INVALID_ARGUMENT"'],
    server: [500, '"status":"INTERNAL"'],
  },
}

describe.each(NAMES)('errors of %s', (name) => {
  const [path, body, headers] = REQUESTS[name]

  it.each(ERROR_KINDS)('the knob error: %s answers as the vendor does', async (kind) => {
    const { post } = await start({ knobs: { error: kind } })
    const response = await post(path, body, headers)
    const [status, text] = ERRORS[name][kind]
    expect(response.status).toBe(status)
    expect(await response.text()).toContain(text)
  })

  it('a prompt beyond contextTokens is refused', async () => {
    const { post, vendor } = await start({ knobs: { contextTokens: 2 } })
    expect((await post(path, body, headers)).status).toBe(400)
    vendor.set({ contextTokens: 3 })
    expect((await post(path, body, headers)).status).toBe(200)
  })
})

describe('quotas over HTTP', () => {
  it.each(NAMES)('%s refuses requests beyond the contract in its own format', async (name) => {
    const limit = name === 'azure' ? 6 : 1
    const limits = [{ unit: 'requests', limit, windowMs: '1h' }] as const
    const { post, vendor } = await start({ quota: name, limits })
    const [path, body, headers] = REQUESTS[name]
    expect((await post(path, body, headers)).status).toBe(200)
    const refused = await post(path, body, headers)
    expect(refused.status).toBe(429)
    const text = await refused.text()
    expect(text).toContain(ERRORS[name]['rate-limited'][1])
    if (name === 'gemini') expect(text).toMatch(/"retryDelay":"\d+s"/)
    else expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(refused.headers.has('retry-after-ms')).toBe(name === 'azure')
    expect(vendor.mostInAnyWindow('1h')).toBe(2)
    expect(vendor.mostInAnyWindow('1h', { accepted: true })).toBe(1)
  })

  it('the vendor counts accepted requests in the units of its quota', async () => {
    const limits = [{ unit: 'tokens', limit: 10_000, windowMs: '1m' }] as const
    const { post, vendor } = await start({ quota: 'bedrock', limits })
    const [path, body, headers] = REQUESTS.anthropic
    await (await post(path, { ...body, max_tokens: 1_000 }, headers)).text()
    const most = (unit: 'tokens' | 'inputTokens' | 'outputTokens') =>
      vendor.mostInAnyWindow('1m', { accepted: true, unit })
    await expect.poll(() => most('tokens')).toBe(3 + 5 * 3)
    expect([most('inputTokens'), most('outputTokens')]).toEqual([3, 15])
  })

  it('with the quota of Bedrock, answers have no headers about limits', async () => {
    const limits = [{ unit: 'tokens', limit: 10_000, windowMs: '1m' }] as const
    const [path, body, headers] = REQUESTS.anthropic
    const namesFor = async (quota: 'anthropic' | 'bedrock') => {
      const { post } = await start({ quota, limits })
      const answer = await post(path, body, headers)
      await answer.text()
      return [...answer.headers.keys()].filter((name) => name.includes('ratelimit'))
    }
    expect(await namesFor('anthropic')).toContain('anthropic-ratelimit-tokens-remaining')
    expect(await namesFor('bedrock')).toEqual([])
  })
})

describe('prompt caches over HTTP', () => {
  const long = 'x'.repeat(8_192)

  it('OpenAI, Gemini and Anthropic report tokens read from the cache', async () => {
    const { post, vendor } = await start({ promptCache: true })
    const usages: unknown[] = []
    for (let turn = 0; turn < 2; turn++) {
      const messages = [{ role: 'user', content: long }]
      const chat = await post('/v1/chat/completions', { model: 'chat', messages })
      const [path, body, headers] = REQUESTS.anthropic
      const text = { type: 'text', text: long, cache_control: { type: 'ephemeral' } }
      const marked = { ...body, messages: [{ role: 'user', content: [text] }] }
      const message = await post(path, marked, headers)
      const contents = [{ role: 'user', parts: [{ text: long }] }]
      const content = await post('/v1beta/models/gemini:generateContent', { contents })
      usages.push(
        ((await chat.json()) as { usage: unknown }).usage,
        ((await message.json()) as { usage: unknown }).usage,
        ((await content.json()) as { usageMetadata: unknown }).usageMetadata,
      )
    }
    expect(usages).toMatchObject([
      { prompt_tokens: 2_048, prompt_tokens_details: { cached_tokens: 0 } },
      { input_tokens: 0, cache_creation_input_tokens: 2_048, cache_read_input_tokens: 0 },
      { promptTokenCount: 2_048 },
      { prompt_tokens: 2_048, prompt_tokens_details: { cached_tokens: 2_048 } },
      { input_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 2_048 },
      { promptTokenCount: 2_048, cachedContentTokenCount: 2_048 },
    ])
    expect(vendor.calls.at(-1)).toMatchObject({ cachedTokens: 2_048 })
  })

  it('the log has the charge of each call, and none for refused calls', async () => {
    const limits = [{ unit: 'tokens' as const, limit: 500, windowMs: '1h' as const }]
    const { post, vendor } = await start({ quota: 'bedrock', limits, knobs: { tokens: 10 } })
    const ask = async () => (await post('/v1/chat/completions', body)).text()
    const body = { model: 'm', max_tokens: 400, messages: [{ role: 'user', content: 'Hi!!' }] }
    await ask()
    // One input token, and ten output tokens that Bedrock counts five times, instead of `max_tokens`.
    expect(vendor.calls[0]?.reserved).toMatchObject({ requests: 1, tokens: 401 })
    expect(vendor.calls[0]?.charged).toMatchObject({ requests: 1, tokens: 51 })
    await Promise.all([ask(), ask()])
    expect(vendor.calls.map(({ charged }) => charged?.tokens)).toEqual([51, 51, undefined])
  })
})
