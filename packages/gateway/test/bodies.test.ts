// test-group: sockets

/** Bodies of requests: which are read, held, streamed or refused. */
import { once } from 'node:events'
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, it, onTestFinished } from 'vitest'
import { until } from '../../spillway/test/streams/stream-kit.js'
import { startGateway, startVendor } from './gateway-kit.js'

/** A service that reports what it received and fails `failures` times. */
async function startEcho(failures = 0) {
  let left = failures
  let requestCount = 0
  const server = createServer(async (request, response) => {
    requestCount++
    let bytes = 0
    try {
      for await (const chunk of request) bytes += (chunk as Buffer).length
    } catch {
      return
    }
    const fails = left-- > 0
    response.writeHead(fails ? 503 : 200, { 'content-type': 'application/json' })
    const { method, url, headers } = request
    response.end(JSON.stringify({ method, url, bytes, headers }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close().closeAllConnections())
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, requestCount: () => requestCount }
}

async function startWith(
  failures: number,
  body: object = { keepBytes: '10kb', maxBytes: '100kb' },
) {
  const echo = await startEcho(failures)
  const running = await startGateway({
    vendors: {
      echo: {
        protocol: 'http',
        url: `${echo.url}/base`,
        retry: { attempts: 3, budget: 1, baseMs: 1 },
      },
    },
    routes: [{ path: '/echo*', vendor: 'echo', stripPrefix: '/echo' }],
    body,
  })
  const send = (bytes: number, init: RequestInit = {}) =>
    fetch(`${running.url}/echo/x?y=1`, { method: 'PUT', body: Buffer.alloc(bytes, 'x'), ...init })
  return { ...running, send, requestCount: echo.requestCount }
}

describe('request bodies', () => {
  it('a small body is sent again on a retry', async () => {
    const { send, requestCount } = await startWith(2)
    const answer = await send(5_000)
    expect(await answer.json()).toMatchObject({ method: 'PUT', url: '/base/x?y=1', bytes: 5_000 })
    expect(requestCount()).toBe(3)
  })

  it('stripPrefix takes off whole parts of a path only', async () => {
    const { url } = await startWith(0)
    const paths = ['/echo/x', '/echo', '/echo?y=1', '/echoes/x']
    const answers = await Promise.all(paths.map((path) => fetch(`${url}${path}`)))
    const urls = await Promise.all(
      answers.map(async (each) => ((await each.json()) as { url: string }).url),
    )
    expect(urls).toEqual(['/base/x', '/base/', '/base/?y=1', '/base/echoes/x'])
  })

  it('a large body is streamed and sent only once', async () => {
    const { send, requestCount } = await startWith(1)
    const answer = await send(60_000)
    expect(answer.status).toBe(503)
    expect(await answer.json()).toMatchObject({ bytes: 60_000 })
    expect(requestCount()).toBe(1)
  })

  it('a body above maxBytes is refused, with or without Content-Length', async () => {
    const { send, requestCount } = await startWith(0)
    expect((await send(200_000)).status).toBe(413)
    expect(requestCount()).toBe(0)
    async function* unannounced() {
      for (let i = 0; i < 20; i++) yield Buffer.alloc(10_000, 'x')
    }
    const stream = ReadableStream.from(unannounced())
    const answer = await send(0, { body: stream, duplex: 'half' } as RequestInit)
    expect(answer.status).toBe(413)
  })

  it('a body of a POST is sent once unless it has an idempotency key', async () => {
    const { send, requestCount } = await startWith(1)
    expect((await send(10, { method: 'POST' })).status).toBe(503)
    expect(requestCount()).toBe(1)
    const again = await startWith(1)
    const keyed = { method: 'POST', headers: { 'idempotency-key': 'k' } }
    expect((await again.send(10, keyed)).status).toBe(200)
    expect(again.requestCount()).toBe(2)
  })

  it('a request without a body is passed on', async () => {
    const { url } = await startWith(0)
    const answer = await fetch(`${url}/echo/x`)
    expect(await answer.json()).toMatchObject({ method: 'GET', bytes: 0 })
  })
})

const CHAT = '/v1/chat/completions'
const JSON_TEXT = '{"messages":[{"role":"user","content":"hi"}],"model":"gpt","stream":false}'

/** Sends bytes to a path of a gateway that replaces every model, and returns the status and what the vendor received. */
async function sendReplaced(
  body: Buffer | string,
  headers: Record<string, string>,
  { path = CHAT, written = {} }: { path?: string; written?: object } = {},
) {
  const running = await startGateway({
    routes: [{ vendor: 'openai', model: 'replaced' }],
    ...written,
  })
  const request = httpRequest(new URL(path, running.url), { method: 'POST', headers })
  const answered = once(request, 'response')
  request.end(body)
  const [response] = (await answered) as [IncomingMessage]
  let text = ''
  for await (const chunk of response) text += chunk
  const code = text.includes('"code"') ? JSON.parse(text).error.code : undefined
  const models = running.vendor.calls.map(({ model }) => model)
  return { status: response.statusCode, code, models, ...running }
}

describe('replacing the model of a body', () => {
  it.each([
    ['with a type in capitals', JSON_TEXT, { 'content-type': 'Application/JSON' }],
    ['with a blank before it', ` ${JSON_TEXT}`, { 'content-type': 'application/json' }],
    ['without a type and with a newline before it', `\n${JSON_TEXT}`, {}],
    ['with the type text/plain', JSON_TEXT, { 'content-type': 'text/plain' }],
    ['with a quoted charset', JSON_TEXT, { 'content-type': 'application/json; charset="UTF-8"' }],
    ['in gzip', gzipSync(JSON_TEXT), { 'content-encoding': 'gzip' }],
    ['in deflate', deflateSync(JSON_TEXT), { 'content-encoding': 'Deflate' }],
    ['in brotli', brotliCompressSync(JSON_TEXT), { 'content-encoding': 'br' }],
    ['with an escaped name', JSON_TEXT.replace('"model"', '"mod\\u0065l"'), {}],
    ['even if it is missing', '{"messages":[{"role":"user","content":"hi"}]}', {}],
  ])('the model of a body is replaced %s', async (_, body, headers) => {
    const { status, models } = await sendReplaced(body, headers)
    expect([status, models]).toEqual([200, ['replaced']])
  })
})

describe('unreadable bodies', () => {
  const json = { 'content-type': 'application/json' }
  const gzip = { ...json, 'content-encoding': 'gzip' }
  it.each<[string, Buffer | string, Record<string, string>, number, string]>([
    [
      'another type',
      JSON_TEXT,
      { 'content-type': 'application/octet-stream' },
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    [
      'a form',
      '--x--',
      { 'content-type': 'multipart/form-data; boundary=x' },
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    [
      'another charset',
      JSON_TEXT,
      { 'content-type': 'application/json; charset=utf-16' },
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    [
      'another encoding',
      JSON_TEXT,
      { ...json, 'content-encoding': 'zstd' },
      415,
      'UNSUPPORTED_ENCODING',
    ],
    [
      'two encodings',
      gzipSync(gzipSync(JSON_TEXT)),
      { ...json, 'content-encoding': 'gzip, gzip' },
      415,
      'UNSUPPORTED_ENCODING',
    ],
    ['UTF-16', Buffer.from(JSON_TEXT, 'utf16le'), json, 400, 'INVALID_BODY'],
    ['a byte order mark', `\ufeff${JSON_TEXT}`, json, 400, 'INVALID_BODY'],
    [
      'invalid UTF-8',
      Buffer.from(JSON_TEXT.replace('hi', '\xff'), 'latin1'),
      json,
      400,
      'INVALID_BODY',
    ],
    ['text that is not JSON', 'hello', {}, 400, 'INVALID_BODY'],
    ['an array', '[]', json, 400, 'INVALID_BODY'],
    ['nothing', '', json, 400, 'INVALID_BODY'],
    ['two models', '{"model":"gpt","messages":[],"model":"gpt"}', json, 400, 'INVALID_BODY'],
    ['two models, one escaped', '{"model":"gpt","mod\\u0065l":"x"}', json, 400, 'INVALID_BODY'],
    ['two models, one in capitals', '{"model":"gpt","MODEL":"x"}', json, 400, 'INVALID_BODY'],
    ['two limits', '{"model":"gpt","max_tokens":1,"max_tokens":2}', json, 400, 'INVALID_BODY'],
    ['two prompts', '{"model":"gpt","messages":[],"messages":[]}', json, 400, 'INVALID_BODY'],
    ['a model that is no string', '{"model":["gpt"]}', json, 400, 'INVALID_BODY'],
    ['a stream that is no boolean', '{"model":"gpt","stream":"true"}', json, 400, 'INVALID_BODY'],
    [
      '201 levels',
      `{"model":"gpt","a":${'['.repeat(200)}${']'.repeat(200)}}`,
      json,
      400,
      'INVALID_BODY',
    ],
    ['gzip that is cut off', gzipSync(JSON_TEXT).subarray(0, 40), gzip, 400, 'INVALID_BODY'],
    ['text sent as gzip', JSON_TEXT, gzip, 400, 'INVALID_BODY'],
    [
      'a charset with a blank before its equals sign',
      JSON_TEXT,
      { 'content-type': 'application/json; charset =utf-7' },
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    [
      'an extended charset',
      JSON_TEXT,
      { 'content-type': "application/json; charset*=us-ascii''utf-7" },
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    [
      'a second charset inside a quoted parameter',
      JSON_TEXT,
      { 'content-type': 'application/json; a="; charset=utf-7"; charset=utf-8' },
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    [
      'brotli that grows 10,000 times, though it stays below maxBytes',
      brotliCompressSync(`{"model":"gpt","messages":[]${' '.repeat(1_000_000)}}`),
      { ...json, 'content-encoding': 'br' },
      413,
      'BODY_TOO_LARGE',
    ],
    ['a compression bomb', gzipSync(Buffer.alloc(40_000_000, ' ')), gzip, 413, 'BODY_TOO_LARGE'],
  ])('an unreadable body is refused: %s', async (_, body, headers, status, code) => {
    const found = await sendReplaced(body, headers)
    expect([found.status, found.code, found.models]).toEqual([status, code, []])
    expect(found.failures).toEqual([])
  })

  it('a compressed body of repeated prose is read, though it becomes 30 times larger', async () => {
    const prose = Array.from({ length: 6_000 }, (_, i) => `Line ${i % 400} of a log file. `).join(
      '',
    )
    const text = `{"model":"gpt","messages":[{"role":"user","content":"${prose}"}]}`
    const body = gzipSync(text)
    expect(text.length / body.length).toBeGreaterThan(30)
    const found = await sendReplaced(body, gzip)
    expect([found.status, found.models]).toEqual([200, ['replaced']])
  })

  it('a body of 200 nested levels is read', async () => {
    const deep = `{"model":"gpt","messages":[{"role":"user","content":"hi"}],"a":${'['.repeat(199)}${']'.repeat(199)}}`
    expect((await sendReplaced(deep, {})).status).toBe(200)
  })
})

describe('a body larger than keepBytes', () => {
  const large = { role: 'user', content: 'x'.repeat(3_000_000) }

  it('a body larger than keepBytes is routed by its model, which is replaced even if it comes last', async () => {
    const routes = [{ vendor: 'openai', models: ['last'], model: 'replaced' }]
    const body = JSON.stringify({ messages: [large], model: 'last' })
    const headers = { 'content-type': 'application/json' }
    const { status, models, records } = await sendReplaced(body, headers, { written: { routes } })
    expect([status, models]).toEqual([200, ['replaced']])
    await until('it is recorded', () => records.length === 1)
    expect(records[0]).toMatchObject({ model: 'last', vendor: 'openai' })
  })

  it('a body larger than keepBytes is sent again complete to the same vendor after a 503', async () => {
    const echo = await startEcho(1)
    const { chat } = await startGateway({
      guard: { url: echo.url, retry: { attempts: 2, budget: 1, baseMs: 1 } },
    })
    const body = { model: 'gpt', messages: [large] }
    const answer = await chat(body)
    expect(await answer.json()).toMatchObject({ bytes: JSON.stringify(body).length })
    expect(echo.requestCount()).toBe(2)
  })

  it('a body larger than keepBytes reaches a fallback that replaces its model after a vendor error', async () => {
    const spare = await startVendor()
    const { chat, vendor } = await startGateway(
      {
        vendors: { spare: { protocol: 'openai', url: spare.url } },
        routes: [{ vendor: 'openai', fallbacks: [{ vendor: 'spare', model: 'other' }] }],
      },
      { knobs: { status: 503 } },
    )
    const answer = await chat({ messages: [large] })
    expect([answer.status, answer.headers.get('spillway-vendor')]).toEqual([200, 'spare'])
    expect(spare.vendor.calls.map(({ model }) => model)).toEqual(['other'])
    expect(vendor.counts.arrived).toBe(1)
  })
})

describe('a form with files', () => {
  const headers = { 'content-type': 'multipart/form-data; boundary=x' }
  const form = '--x\r\ncontent-disposition: form-data; name="model"\r\n\r\nwhisper\r\n--x--\r\n'
  const echo = async (routes: object[]) => {
    const { url } = await startEcho()
    const vendors = { forms: { protocol: 'openai', url } }
    return startGateway({ vendors, routes })
  }
  const post = (url: string, path: string) =>
    fetch(`${url}${path}`, { method: 'POST', headers, body: form })

  it.each([
    '/v1/audio/transcriptions',
    '/v1/audio/translations',
    '/v1/images/edits',
    '/v1/files',
    '/v1/uploads/u1/parts',
  ])('a form with files is forwarded unchanged on %s', async (path) => {
    const { url } = await echo([{ path: '/v1/*', vendor: 'forms' }])
    const answer = await post(url, path)
    expect(await answer.json()).toMatchObject({ bytes: form.length, headers })
  })

  it('a form with files is answered with 415 where its model would have to be replaced', async () => {
    const { url } = await echo([{ vendor: 'forms', model: 'other' }])
    expect((await post(url, '/v1/audio/transcriptions')).status).toBe(415)
  })

  it('a form with files skips a fallback that would have to replace its model', async () => {
    const failing = await startEcho(9)
    const { url: spare } = await startEcho()
    const { url } = await startGateway({
      vendors: {
        forms: { protocol: 'openai', url: failing.url },
        spare: { protocol: 'openai', url: spare },
      },
      routes: [{ vendor: 'forms', fallbacks: [{ vendor: 'spare', model: 'other' }] }],
    })
    const answer = await post(url, '/v1/audio/transcriptions')
    expect([answer.status, answer.headers.get('spillway-vendor')]).toEqual([503, 'forms'])
  })
})

describe('a body of unknown kind', () => {
  // The path is no default path.
  const routes = [{ path: '/v1/*', vendor: 'openai' }]
  const put = (url: string) =>
    fetch(`${url}/v1/other`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-ndjson' },
      body: 'one\ntwo',
    })

  it('a body of unknown kind is forwarded unchanged on a path that is not known to generate', async () => {
    const { url: echo } = await startEcho()
    const { url } = await startGateway({ guard: { url: echo }, routes })
    expect(await (await put(url)).json()).toMatchObject({ bytes: 7 })
  })

  it('a body of unknown kind is answered with 415 where a limit counts tokens', async () => {
    const guard = { limits: [{ unit: 'inputTokens', limit: 1_000, windowMs: '1h' }] }
    const { url, vendor } = await startGateway({ guard, routes })
    expect((await put(url)).status).toBe(415)
    expect(vendor.counts.arrived).toBe(0)
  })
})

describe('hop-by-hop headers', () => {
  it('hop-by-hop headers are not passed on', async () => {
    const { url } = await startWith(0)
    const answer = await fetch(`${url}/echo/x`, {
      headers: { cookie: 'a=b', 'x-own': '1', te: 'trailers' },
    })
    const { headers } = (await answer.json()) as { headers: Record<string, string> }
    expect(headers['x-own']).toBe('1')
    for (const name of ['cookie', 'te']) expect(headers).not.toHaveProperty(name)
  })
})
