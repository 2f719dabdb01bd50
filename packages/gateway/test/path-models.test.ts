// test-group: sockets

/** Gemini and Azure OpenAI name the model in the path, and Gemini clients may send their key in the query. */
import { GoogleGenAI } from '@google/genai'
import { describe, expect, it } from 'vitest'
import { startGateway } from './gateway-kit.js'
import { startRecordingVendor } from './recording-vendor.js'

const CONTENTS = [{ role: 'user', parts: [{ text: 'twelve chars' }] }]
const GENERATE = '/v1beta/models/gemini-2.5-flash:generateContent'
const CHAT = '/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21'
const CALLER = 'gateway-key-of-a-caller'
const callers = [{ user: 'team', key: 'env:CALLER' }]
const env = { CALLER, VENDOR: 'vendor-secret' }

type Init = { headers?: Record<string, string>; body?: object | string | FormData; method?: string }

async function start(protocol: 'gemini' | 'azure', options: object = {}, answer?: string) {
  const recorded = await startRecordingVendor(answer)
  const { vendor = {}, ...rest } = options as { vendor?: object }
  const written = {
    vendors: { llm: { protocol, url: recorded.url, key: 'env:VENDOR', ...vendor } },
    routes: [{ vendor: 'llm' }, { vendor: 'anthropic' }, { vendor: 'openai' }],
    ...rest,
  }
  const gateway = await startGateway(written, {}, env)
  const post = (
    path: string,
    { headers = {}, body = { contents: CONTENTS }, method }: Init = {},
  ) => {
    const isJson = !(body instanceof FormData)
    return fetch(`${gateway.url}${path}`, {
      method: method ?? 'POST',
      headers: { ...(isJson && { 'content-type': 'application/json' }), ...headers },
      body: isJson ? (typeof body === 'string' ? body : JSON.stringify(body)) : body,
    })
  }
  return { ...gateway, seen: recorded.seen, post }
}

describe('Gemini requests', () => {
  it('a request reaches the vendor unchanged, with the key of the vendor', async () => {
    const { post, seen, records } = await start('gemini')
    const response = await post(`${GENERATE}?$alt=json`, { headers: { 'x-goog-api-key': 'own' } })
    expect(response.status).toBe(200)
    expect(seen[0]?.url).toBe(`${GENERATE}?$alt=json`)
    expect(seen[0]?.head).toContain('x-goog-api-key: vendor-secret')
    expect(seen[0]?.head).not.toContain('own')
    await expect.poll(() => records[0]?.model).toBe('gemini-2.5-flash')
  })

  it('the SDK of Google works with the base URL of the gateway', async () => {
    const text = JSON.stringify({ candidates: [{ content: { parts: [{ text: 'hello' }] } }] })
    const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length}`
    const { url, seen } = await start('gemini', { callers }, `${head}\r\n\r\n${text}`)
    const { models } = new GoogleGenAI({ apiKey: CALLER, httpOptions: { baseUrl: url } })
    const answer = await models.generateContent({ model: 'gemini-2.5-flash', contents: 'hi' })
    expect(answer.text).toBe('hello')
    expect(seen[0]?.url).toBe(GENERATE)
    expect(seen[0]?.head).not.toContain(CALLER)
  })

  it.each([
    [`?key=${CALLER}&alt=sse`, '?alt=sse'],
    [`?alt=sse&key=${CALLER}`, '?alt=sse'],
    [`?%6Bey=${CALLER}`, ''],
    [`?key=${CALLER}&access_token=${CALLER}-2`, ''],
  ])('a key in the query %s identifies the caller and is not forwarded', async (query, rest) => {
    const { post, seen, records } = await start('gemini', { callers })
    expect((await post(GENERATE + query)).status).toBe(200)
    expect(seen[0]?.url).toBe(GENERATE + rest)
    expect(seen[0]?.head).not.toContain(CALLER)
    await expect.poll(() => records[0]?.user).toBe('team')
    expect(JSON.stringify(records)).not.toContain(CALLER)
  })

  it('a wrong key in the query is refused in the format of Gemini', async () => {
    const { post, seen } = await start('gemini', { callers })
    const response = await post(`${GENERATE}?key=wrong-key-of-a-caller`)
    expect(response.status).toBe(401)
    const { error } = (await response.json()) as { error: Record<string, unknown> }
    expect(error).toMatchObject({ code: 401, status: 'UNAUTHENTICATED' })
    expect(error.message).not.toContain('wrong-key')
    expect(seen).toHaveLength(0)
  })

  it('without keys in the configuration, the key of the query is sent as a header', async () => {
    const { post, seen } = await start('gemini', { vendor: { key: undefined } })
    await post(`${GENERATE}?key=a-key-for-google`)
    expect(seen[0]?.url).toBe(GENERATE)
    expect(seen[0]?.head).toContain('x-goog-api-key: a-key-for-google')
  })

  it('the model of a route replaces that of the path', async () => {
    const routes = [{ vendor: 'llm', models: ['gemini-2.5-*'], model: 'gemini-3-pro' }]
    const { post, seen } = await start('gemini', { routes })
    await post('/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse')
    expect(seen[0]?.url).toBe('/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse')
    expect((await post('/v1beta/models/other:generateContent')).status).toBe(404)
  })

  it('the model of a fallback replaces that of the path', async () => {
    const overloaded = 'HTTP/1.1 503 Overloaded\r\ncontent-length: 0\r\n\r\n'
    const routes = [{ vendor: 'llm', fallbacks: [{ model: 'gemini-2.0-flash' }] }]
    const { post, seen } = await start('gemini', { routes }, overloaded)
    await post(GENERATE)
    expect(seen.map(({ url }) => url)).toEqual([
      GENERATE,
      '/v1beta/models/gemini-2.0-flash:generateContent',
    ])
  })

  it('a replaced model is also written into each part of a batch of embeddings', async () => {
    const routes = [{ vendor: 'llm', model: 'gemini-embedding-001' }]
    const { post, seen } = await start('gemini', { routes })
    const parts = { content: { parts: [{ text: 'a' }] } }
    const body = { requests: [{ model: 'models/old', ...parts }, { ...parts }] }
    await post('/v1beta/models/old:batchEmbedContents', { body })
    expect(seen[0]?.url).toBe('/v1beta/models/gemini-embedding-001:batchEmbedContents')
    expect(JSON.parse(seen[0]?.body ?? '')).toEqual({
      requests: [{ model: 'models/gemini-embedding-001', ...parts }, parts],
    })
  })

  it.each([
    '/v1beta/models/gemini%3AgenerateContent',
    '/v1beta/models/gemini:GenerateContent',
    '/v1beta/models%2Fgemini:generateContent',
  ])('the path %s is refused, because a vendor could read another model', async (path) => {
    const { post, seen } = await start('gemini', { routes: [{ vendor: 'llm', path: '/v1beta/*' }] })
    expect((await post(path)).status).toBe(400)
    expect(seen).toHaveLength(0)
  })

  it('the limits in a large generationConfig are read', async () => {
    const { post, seen } = await start('gemini', {
      vendor: { limits: [{ unit: 'tokens', limit: 10_000, windowMs: '1m' }] },
    })
    const responseSchema = { description: 'x'.repeat(20_000) }
    const body = { contents: CONTENTS, generationConfig: { responseSchema, maxOutputTokens: 5 } }
    expect((await post(GENERATE, { body })).status).toBe(200)
    expect(seen).toHaveLength(1)
    const wrong = { contents: CONTENTS, generationConfig: { maxOutputTokens: '5' } }
    const refused = await post(GENERATE, { body: wrong })
    expect(refused.status).toBe(400)
    expect(await refused.text()).toContain('generationConfig.maxOutputTokens: must be a number')
  })

  it('only generating and listing models is allowed by default', async () => {
    const { post, seen, url } = await start('gemini')
    expect((await fetch(`${url}/v1beta/models`)).status).toBe(200)
    expect((await post('/v1beta/models/x:predictLongRunning')).status).toBe(404)
    expect((await post('/v1beta/models/a/b:generateContent')).status).toBe(404)
    const files = await fetch(`${url}/v1beta/files`)
    expect(files.status).toBe(404)
    expect(await files.json()).toMatchObject({ error: { status: 'NOT_FOUND' } })
    expect(seen).toHaveLength(1)
  })
})

describe('Azure OpenAI requests', () => {
  const body = { model: '', messages: [{ role: 'user', content: 'hi' }] }

  it('the deployment is the model, whatever the body names', async () => {
    const { post, seen, records } = await start('azure')
    const response = await post(CHAT, { body, headers: { 'api-key': 'own' } })
    expect(response.status).toBe(200)
    expect(seen[0]?.url).toBe(CHAT)
    expect(seen[0]?.head).toContain('api-key: vendor-secret')
    expect(seen[0]?.head).not.toContain('own')
    await expect.poll(() => records[0]?.model).toBe('gpt-4o')
  })

  it.each([
    ['api-key', CALLER],
    ['authorization', `Bearer ${CALLER}`],
  ])('the header %s identifies the caller', async (name, value) => {
    const { post, seen, records } = await start('azure', { callers })
    expect((await post(CHAT, { body, headers: { [name]: value } })).status).toBe(200)
    expect(seen[0]?.head).not.toContain(CALLER)
    await expect.poll(() => records[0]?.user).toBe('team')
  })

  it('the model of a route replaces the deployment, in the path and in the body', async () => {
    const routes = [{ vendor: 'llm', model: 'large' }]
    const { post, seen } = await start('azure', { routes })
    await post(CHAT, { body: { ...body, model: 'gpt-4o' } })
    await post('/openai/v1/chat/completions', { body: { ...body, model: 'gpt-4o' } })
    expect(seen.map(({ url }) => url)).toEqual([
      '/openai/deployments/large/chat/completions?api-version=2024-10-21',
      '/openai/v1/chat/completions',
    ])
    for (const { body: sent } of seen) expect(JSON.parse(sent).model).toBe('large')
  })

  it('a form is sent to another deployment without reading it', async () => {
    const { post, seen } = await start('azure', { routes: [{ vendor: 'llm', model: 'whisper' }] })
    const form = new FormData()
    form.set('file', new Blob(['sound']), 'a.wav')
    const path = '/openai/deployments/other/audio/transcriptions?api-version=2024-10-21'
    expect((await post(path, { body: form })).status).toBe(200)
    expect(seen[0]?.url).toContain('/openai/deployments/whisper/audio/transcriptions')
  })

  it.each(['/openai/Deployments/a/chat/completions', '/openai/deployments/a%2Fb/chat/completions'])(
    'the path %s is refused, because a vendor could read another deployment',
    async (path) => {
      const { post, seen } = await start('azure', {
        routes: [{ vendor: 'llm', path: '/openai/*' }],
      })
      expect((await post(path, { body })).status).toBe(400)
      expect(seen).toHaveLength(0)
    },
  )
})

it('default routes of four protocols lead each path to its own vendor', async () => {
  const vendors = await Promise.all(['openai', 'anthropic', 'gemini', 'azure'].map(named))
  const gateway = await startGateway({ vendors: Object.fromEntries(vendors) }, {}, env)
  const paths = {
    openai: '/v1/chat/completions',
    anthropic: '/v1/messages',
    gemini: '/v1/models/gemini-2.5-pro:generateContent',
    azure: '/openai/deployments/gpt/embeddings',
  }
  for (const [name, path] of Object.entries(paths)) {
    const body = JSON.stringify({ model: 'm' })
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(gateway.url + path, { method: 'POST', headers, body })
    expect(await response.text()).toBe(`"${name}"`)
  }
})

async function named(protocol: string): Promise<[string, object]> {
  const text = JSON.stringify(protocol)
  const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length}`
  const { url } = await startRecordingVendor(`${head}\r\n\r\n${text}`)
  return [protocol, { protocol, url, key: 'env:VENDOR' }]
}
