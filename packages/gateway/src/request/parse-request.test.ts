import { type IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { tokensOf } from 'spillway/internal'
import { describe, expect, it } from 'vitest'
import { PROTOCOLS } from '../protocols/index.js'
import { type ParsedRequest, type ParseOptions, parseRequest } from './parse-request.js'

const JSON_TYPE = { 'content-type': 'application/json' }

interface Sent extends Partial<ParseOptions> {
  method?: string
  headers?: IncomingHttpHeaders
  body?: string | Buffer
  chunkBytes?: number
}

async function parse({
  method = 'POST',
  headers = JSON_TYPE,
  body = '',
  chunkBytes = Number.POSITIVE_INFINITY,
  ...options
}: Sent) {
  const bytes = Buffer.from(body)
  const request = new IncomingMessage(new Socket())
  request.method = method
  Object.assign(request.headers, { 'content-length': String(bytes.length), ...headers })
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    request.push(bytes.subarray(at, at + chunkBytes))
  }
  request.push(null)
  return parseRequest(request, {
    protocol: PROTOCOLS.openai,
    path: '/v1/chat/completions',
    query: '',
    contentDecides: false,
    limits: { keepBytes: 1_000, maxBytes: 2_000 },
    onFault() {},
    ...options,
  })
}

const chat = (fields: object) => parse({ body: JSON.stringify({ model: 'gpt', ...fields }) })
const held = ({ body }: ParsedRequest) =>
  body.kind === 'held' ? body.bytes.toBuffer().toString() : body.kind

describe('body of a request that generates', () => {
  it('model, stream, tokens and answers are read, and the body is held as it was', async () => {
    const text = '{ "model":"gpt", "stream":true, "max_tokens":50, "n":3, "prompt":"12345678" }'
    const parsed = await parse({ body: text })
    expect(tokensOf(parsed.facts.prompt, 4)).toBe(2)
    expect(parsed.facts).toMatchObject({
      model: 'gpt',
      streamed: true,
      maxTokens: 50,
      answers: 3,
    })
    expect([held(parsed), parsed.isUnread, parsed.json?.isEmpty]).toEqual([text, false, false])
  })

  it('prefixes of a conversation are the same in any chunks, order of fields and marks for the cache', async () => {
    const [system, question] = ['Be brief. '.repeat(9_000), 'Why? '.repeat(2_000)]
    const cache_control = { type: 'ephemeral', ttl: '1h' }
    const turn = (text: string) => ({ role: 'user', content: text })
    const first = {
      messages: [{ role: 'user', content: [{ type: 'text', text: question, cache_control }] }],
      system: [{ type: 'text', text: system, cache_control }],
    }
    const second = { system, messages: [turn(question), { role: 'assistant', content: 'So.' }] }
    const keysOf = async (body: object, chunkBytes?: number) => {
      const { facts } = await parse({
        body: JSON.stringify({ model: 'a', ...body }),
        path: '/v1/messages',
        protocol: PROTOCOLS.anthropic,
        limits: { keepBytes: 1_000, maxBytes: 1_000_000 },
        ...(chunkBytes && { chunkBytes }),
      })
      return facts.prompt.prefixes().map(({ hash }) => hash.keyFor(0))
    }
    const known = await keysOf(first)
    expect(known).toHaveLength(2)
    for (const bytes of [17_001, 40_000]) expect(await keysOf(first, bytes)).toEqual(known)
    const grown = await keysOf(second, 30_000)
    expect(grown).toHaveLength(3)
    expect(grown.slice(0, 2)).toEqual(known)
    const other = await keysOf({ ...first, system: `X${system.slice(1)}` })
    expect(other.filter((key) => known.includes(key))).toEqual([])
  })

  it('a field that is null counts as not set', async () => {
    const { facts } = await chat({ stream: null, max_tokens: null, n: null })
    expect(facts).toMatchObject({ streamed: false, maxTokens: undefined, answers: 1 })
  })

  it.each([
    [{ model: '' }, 'model: must be a string of 1 to 200 characters'],
    [{ model: 7 }, 'model: must be a string'],
    [{ model: 'm'.repeat(201) }, 'model: must be a string'],
    [{ model: '\ud83d' }, 'model: must be a string'],
    [{ stream: 'true' }, 'stream: must be true or false'],
    [{ max_tokens: '100' }, 'max_tokens: must be a number'],
    [{ n: true }, 'n: must be a number'],
  ])('%j is refused as 400: %s', async (fields, message) => {
    await expect(chat(fields)).rejects.toMatchObject({
      status: 400,
      code: 'INVALID_BODY',
      message: expect.stringContaining(message),
    })
  })

  it('a model name of 200 characters and stream_options of any type are accepted', async () => {
    const model = 'm'.repeat(200)
    expect((await chat({ model, stream_options: 'x' })).facts.model).toBe(model)
  })

  it.each([
    ['an empty body', ''],
    ['text that is not JSON', 'hello'],
    ['JSON that ends early', '{"model":"gpt"'],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22])],
    ['half a character at the end', Buffer.from([0x7b, 0x7d, 0xe2, 0x82])],
  ])('%s is refused as 400', async (_, body) => {
    await expect(parse({ body })).rejects.toMatchObject({ status: 400, code: 'INVALID_BODY' })
  })

  it.each(['POST', 'PUT', 'PATCH'])('an empty body is refused on %s', async (method) => {
    const refusal = { status: 400, message: 'the body is empty' }
    await expect(parse({ method })).rejects.toMatchObject(refusal)
  })

  it('a request without a body is accepted on GET and on a path that takes any body', async () => {
    expect(await parse({ method: 'GET' })).toMatchObject({ isUnread: false, json: undefined })
    expect(await parse({ path: '/v1/models' })).toMatchObject({ isUnread: false })
  })

  it('a body announced as longer than maxBytes is refused before it arrives', async () => {
    const headers = { ...JSON_TYPE, 'content-length': '2001' }
    const refusal = { status: 413, code: 'BODY_TOO_LARGE' }
    await expect(parse({ headers, body: '{' })).rejects.toMatchObject(refusal)
    const file = { path: '/v1/files', headers: { ...headers, 'content-type': 'image/png' } }
    await expect(parse({ ...file, body: 'x' })).rejects.toMatchObject(refusal)
    const most = { ...JSON_TYPE, 'content-length': '2000' }
    expect((await parse({ headers: most, body: '{}' })).json?.isEmpty).toBe(true)
  })

  it('a chunked body is read although it announces no length', async () => {
    const headers = { ...JSON_TYPE, 'content-length': undefined, 'transfer-encoding': 'chunked' }
    expect((await parse({ headers, body: '{"model":"gpt"}' })).facts.model).toBe('gpt')
  })
})

describe('content type of a request', () => {
  const typed = (contentType: string | undefined, sent: Sent = {}) =>
    parse({ body: '{"model":"gpt"}', headers: { 'content-type': contentType }, ...sent })
  const unsupported = { status: 415, code: 'UNSUPPORTED_MEDIA_TYPE' }

  it.each([undefined, ' ', 'text/plain', 'text/plain;charset=UTF-8', 'application/x+json'])(
    'a body of type %s is read as JSON where JSON is expected',
    async (type) => {
      expect((await typed(type)).facts.model).toBe('gpt')
    },
  )

  it.each([
    'image/png',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/json; charset=utf-16',
    'application/json; charset=utf-8; charset=utf-16',
    'nonsense',
  ])('a body of type %s is refused as 415 where JSON is expected', async (type) => {
    await expect(typed(type)).rejects.toMatchObject(unsupported)
  })

  it('a form is forwarded unread where a form or a file is expected', async () => {
    const type = 'multipart/form-data; boundary=x'
    for (const path of ['/v1/audio/transcriptions', '/v1/files']) {
      for (const contentDecides of [false, true]) {
        const parsed = await typed(type, { path, contentDecides })
        expect([parsed.isUnread, parsed.json, parsed.facts.model]).toEqual([
          true,
          undefined,
          undefined,
        ])
      }
    }
  })

  it('other types are forwarded unread on other paths, unless the content decides', async () => {
    const path = '/v1/other'
    expect(await typed('image/png', { path })).toMatchObject({ isUnread: true })
    await expect(typed('image/png', { path, contentDecides: true })).rejects.toMatchObject({
      ...unsupported,
      message: 'content-type: must be application/json on this path',
    })
    const form = { path: '/v1/files', contentDecides: true }
    await expect(typed('image/png', form)).rejects.toMatchObject({
      message: 'content-type: must be application/json or multipart/form-data on this path',
    })
  })

  it('JSON is read on every path, and its model decides', async () => {
    expect((await typed('application/json', { path: '/v1/other' })).facts.model).toBe('gpt')
  })

  it('the bodies of other HTTP services are forwarded unread', async () => {
    const protocol = PROTOCOLS.http
    const parsed = await typed('application/json', { protocol })
    expect([parsed.isUnread, parsed.json, held(parsed)]).toEqual([
      false,
      undefined,
      '{"model":"gpt"}',
    ])
  })

  it('an unread body over keepBytes is streamed', async () => {
    const parsed = await typed('image/png', { path: '/v1/other', body: 'x'.repeat(1_001) })
    expect(parsed.body.kind).toBe('streamed')
  })
})
