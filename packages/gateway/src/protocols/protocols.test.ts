import { describe, expect, it } from 'vitest'
import type { JsonField } from '../request/body/json-fields.js'
import { PROTOCOLS } from './index.js'
import { bearer } from './protocol.js'

const { openai, anthropic, http } = PROTOCOLS

const fieldsOf = (values: object): ReadonlyMap<string, JsonField> =>
  new Map(Object.entries(values).map(([name, value]) => [name, { value, start: 0, end: 0 }]))
const read = (protocol: typeof openai, values: object) =>
  protocol.format?.read(new Map(Object.entries(values)), 7)

describe('keys of callers', () => {
  it.each([
    ['Bearer abc', 'abc'],
    ['bEaReR  abc ', 'abc'],
    ['Basic abc', undefined],
    ['Bearerabc', undefined],
    [undefined, undefined],
  ])('authorization %j has the bearer key %s', (authorization, key) => {
    expect(bearer(authorization === undefined ? {} : { authorization })).toBe(key)
  })

  it('OpenAI reads authorization, Anthropic x-api-key first, and others authorization first', () => {
    const both = { authorization: 'Bearer a', 'x-api-key': 'x' }
    expect([openai, anthropic, http].map(({ callerKey }) => callerKey(both))).toEqual([
      'a',
      'x',
      'a',
    ])
    const one = { 'x-api-key': 'x' }
    expect([openai, anthropic, http].map(({ callerKey }) => callerKey(one))).toEqual([
      undefined,
      'x',
      'x',
    ])
    expect(anthropic.callerKey({ authorization: 'Bearer a' })).toBe('a')
    expect(http.callerKey({ 'x-api-key': ['x', 'y'] } as never)).toBeUndefined()
  })

  it('the key of the vendor is sent in the header of its protocol', () => {
    expect(openai.vendorKey('s')).toEqual(['authorization', 'Bearer s'])
    expect(anthropic.vendorKey('s')).toEqual(['x-api-key', 's'])
    expect(http.vendorKey('s')).toEqual(['authorization', 'Bearer s'])
  })
})

describe('paths of protocols', () => {
  it.each([
    ['/v1/chat/completions', 'json'],
    ['/v1/audio/speech', 'json'],
    ['/v1/threads/a/runs', 'json'],
    ['/v1/audio/transcriptions', 'form'],
    ['/v1/videos', 'form'],
    ['/v1/files', 'file'],
    ['/v1/uploads/u/parts', 'file'],
    ['/v1/models', 'any'],
  ])('OpenAI takes on %s a body of the kind %s', (path, kind) => {
    expect(openai.format?.bodyOn(path)).toBe(kind)
  })

  it.each([
    ['/v1/messages', 'json'],
    ['/v1/messages/count_tokens', 'json'],
    ['/v1/skills/a/versions', 'file'],
    ['/v1/messages/batches', 'any'],
  ])('Anthropic takes on %s a body of the kind %s', (path, kind) => {
    expect(anthropic.format?.bodyOn(path)).toBe(kind)
  })

  it('moderations and token counts are free', () => {
    expect(openai.format?.isFree('/v1/moderations')).toBe(true)
    expect(openai.format?.isFree('/v1/embeddings')).toBe(false)
    expect(anthropic.format?.isFree('/v1/messages/count_tokens')).toBe(true)
    expect(anthropic.format?.isFree('/v1/messages')).toBe(false)
  })

  it('only requests that generate may be repeated', () => {
    expect(openai.repeatable('/v1/chat/completions')).toBe(true)
    expect(openai.repeatable('/v1/files')).toBe(false)
    expect(anthropic.repeatable('/v1/messages')).toBe(true)
    expect(anthropic.repeatable('/v1/messages/batches')).toBe(false)
    expect(http.repeatable('/v1/chat/completions')).toBe(false)
  })
})

describe('costs of a request', () => {
  it('the largest token limit of an OpenAI request counts, for each of its answers', () => {
    expect(read(openai, { model: 'gpt', max_tokens: 5, max_completion_tokens: 9, n: 2 })).toEqual({
      model: 'gpt',
      streamed: false,
      promptTokens: 7,
      maxTokens: 9,
      answers: 2,
    })
    expect(read(openai, { n: 2, best_of: 5 })?.answers).toBe(5)
    expect(read(openai, { n: -2 })?.answers).toBe(1)
    expect(read(openai, { n: 0 })?.answers).toBe(1)
    expect(read(openai, { max_tokens: 5, max_output_tokens: -1 })?.maxTokens).toBeUndefined()
  })

  it('an Anthropic request has one answer', () => {
    expect(read(anthropic, { stream: true, max_tokens: 5 })).toEqual({
      model: undefined,
      streamed: true,
      promptTokens: 7,
      maxTokens: 5,
      answers: 1,
    })
  })
})

describe('usage in streams', () => {
  const path = '/v1/chat/completions'

  it('an OpenAI stream hides its usage unless the request asks for it', () => {
    const hides = (values: object, on = path) => openai.hidesUsage(on, fieldsOf(values))
    expect(hides({ stream: true })).toBe(true)
    expect(hides({ stream: true, stream_options: null })).toBe(true)
    expect(hides({ stream: true, stream_options: { include_usage: false } })).toBe(true)
    expect(hides({ stream: true, stream_options: { include_usage: true } })).toBe(false)
    expect(hides({ stream: false })).toBe(false)
    expect(hides({})).toBe(false)
    expect(hides({ stream: true }, '/v1/responses')).toBe(false)
    expect(anthropic.hidesUsage(path, fieldsOf({ stream: true }))).toBe(false)
    expect(http.hidesUsage(path, fieldsOf({ stream: true }))).toBe(false)
  })

  it('usage is requested without losing other stream options', () => {
    const options = { include_obfuscation: false, include_usage: false }
    expect(openai.usageFields?.(fieldsOf({ stream_options: options }))).toEqual({
      stream_options: { include_obfuscation: false, include_usage: true },
    })
    expect(openai.usageFields?.(fieldsOf({ stream_options: 'x' }))).toEqual({
      stream_options: { include_usage: true },
    })
  })

  it('the usage event has no choices', () => {
    expect(openai.isUsageEvent('data: {"choices": [ ],"usage": {"total_tokens":1}}')).toBe(true)
    expect(openai.isUsageEvent('data: {"choices":[{}],"usage":{"total_tokens":1}}')).toBe(false)
    expect(openai.isUsageEvent('data: {"choices":[],"usage":null}')).toBe(false)
    expect(anthropic.isUsageEvent('data: {"choices":[],"usage":{}}')).toBe(false)
    expect(http.isUsageEvent('data: {"choices":[],"usage":{}}')).toBe(false)
  })
})

describe('errors in the format of each protocol', () => {
  const complaint = (status: number, retryAfterMs?: number) => ({
    status,
    code: 'C',
    message: 'm',
    requestId: 'r',
    retryAfterMs,
  })

  it.each([
    [400, 'invalid_request_error', 'invalid_request_error'],
    [401, 'authentication_error', 'authentication_error'],
    [404, 'invalid_request_error', 'not_found_error'],
    [413, 'invalid_request_error', 'request_too_large'],
    [429, 'rate_limit_error', 'rate_limit_error'],
    [499, 'invalid_request_error', 'invalid_request_error'],
    [500, 'server_error', 'api_error'],
    [503, 'server_error', 'overloaded_error'],
    [504, 'server_error', 'timeout_error'],
  ])('status %i is the OpenAI type %s and the Anthropic type %s', (status, one, other) => {
    expect(JSON.parse(openai.errorBody(complaint(status)))).toEqual({
      error: { message: 'm', type: one, param: null, code: 'C', request_id: 'r' },
    })
    expect(JSON.parse(anthropic.errorBody(complaint(status)))).toEqual({
      type: 'error',
      error: { type: other, message: 'm', code: 'C' },
      request_id: 'r',
    })
  })

  it.each(['openai', 'anthropic', 'http'] as const)(
    'an error body and an error event of %s say after how long to retry',
    (name) => {
      const { errorBody, errorEvent } = PROTOCOLS[name]
      expect(errorBody(complaint(503, 1_500))).toContain('"retry_after_ms":1500')
      expect(errorEvent(complaint(503, 1_500))).toContain('"retry_after_ms":1500')
      expect(errorBody(complaint(503))).not.toContain('retry_after_ms')
    },
  )

  it('an error of another HTTP service is a problem document', () => {
    expect(JSON.parse(http.errorBody(complaint(503)))).toEqual({
      title: 'C',
      status: 503,
      detail: 'm',
      instance: 'r',
    })
    expect(http.errorType).toBe('application/problem+json')
  })

  it.each(['openai', 'anthropic', 'http'] as const)(
    'an error event of %s has the body as its data',
    (name) => {
      const { errorBody, errorEvent } = PROTOCOLS[name]
      const event = errorEvent(complaint(500))
      expect(event.endsWith(`data: ${errorBody(complaint(500))}\n\n`)).toBe(true)
      expect(event.startsWith('event: error\n')).toBe(name !== 'openai')
    },
  )
})

describe('texts of static answers', () => {
  it.each([
    ['/v1/chat/completions', 'created'],
    ['/v1/completions', 'created'],
    ['/v1/responses', 'created_at'],
  ])('an answer on %s carries the given time as %s, in seconds', (path, field) => {
    const request = { text: 'later', model: 'gpt', streamed: false, id: '1', createdMs: 5_999 }
    const answer = openai.textAnswer(path, { ...request, fields: new Map() })
    expect(JSON.parse(answer?.body ?? '')).toMatchObject({ [field]: 5 })
  })
})
