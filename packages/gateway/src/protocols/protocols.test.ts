import { NO_PROMPT } from 'spillway/internal'
import { describe, expect, it } from 'vitest'
import type { JsonField } from '../request/body/json-object.js'
import { PROTOCOLS } from './index.js'
import { bearer } from './protocol.js'

const { openai, anthropic, gemini, azure, http } = PROTOCOLS

const fieldsOf = (values: object): ReadonlyMap<string, JsonField> =>
  new Map(Object.entries(values).map(([name, value]) => [name, { value, start: 0, end: 0 }]))
const read = (protocol: typeof openai, values: object, path = '/v1/x', query = '') =>
  protocol.format?.read(new Map(Object.entries(values)), NO_PROMPT, { path, query })

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
    expect(gemini.vendorKey('s')).toEqual(['x-goog-api-key', 's'])
    expect(azure.vendorKey('s')).toEqual(['api-key', 's'])
    expect(http.vendorKey('s')).toEqual(['authorization', 'Bearer s'])
  })
})

describe('keys in queries', () => {
  it('Gemini reads its header first, then the query, then authorization', () => {
    const all = { authorization: 'Bearer a', 'x-goog-api-key': 'x' }
    expect(gemini.callerKey(all, '?key=q')).toBe('x')
    expect(gemini.callerKey({ authorization: 'Bearer a' }, '?alt=sse&key=q%2B')).toBe('q+')
    expect(gemini.callerKey({ authorization: 'Bearer a' }, '?alt=sse')).toBe('a')
    expect(gemini.callerKey({}, '?key=')).toBeUndefined()
    expect(openai.callerKey({}, '?key=q')).toBeUndefined()
  })

  it('Azure reads api-key first, then authorization', () => {
    expect(azure.callerKey({ authorization: 'Bearer a', 'api-key': 'k' })).toBe('k')
    expect(azure.callerKey({ authorization: 'Bearer a' })).toBe('a')
  })

  it.each([
    ['', ''],
    ['?alt=sse', '?alt=sse'],
    ['?key=s', ''],
    ['?key=s&alt=sse&key=t', '?alt=sse'],
    ['?k%65y=s&a=%20b', '?a=%20b'],
    ['?access_token=s&oauth_token=s&keys=1', '?keys=1'],
  ])('the query %s is forwarded as %s', (query, forwarded) => {
    expect(gemini.queryWithoutKeys?.(query)).toBe(forwarded)
  })
})

describe('models in paths', () => {
  const gemini25 = '/v1beta/models/gemini-2.5-pro:streamGenerateContent'

  it.each([
    ['gemini', gemini25, 'gemini-2.5-pro', '/v1beta/models/new:streamGenerateContent'],
    [
      'gemini',
      '/v1beta/tunedModels/a:generateContent',
      'a',
      '/v1beta/tunedModels/new:generateContent',
    ],
    ['azure', '/openai/deployments/a/embeddings', 'a', '/openai/deployments/new/embeddings'],
  ] as const)('%s names on %s the model %s', (name, path, model, replaced) => {
    const { format } = PROTOCOLS[name]
    expect(format?.modelIn(path)).toBe(model)
    expect(format?.withModel(path, 'new')).toBe(replaced)
  })

  it.each([
    ['openai', '/v1/models/a'],
    ['gemini', '/v1beta/models/a'],
    ['gemini', '/v1beta/models'],
    ['azure', '/openai/v1/responses'],
    ['azure', '/openai/deployments/a'],
  ] as const)('%s names no model on %s', (name, path) => {
    expect(PROTOCOLS[name].format?.modelIn(path)).toBeUndefined()
  })

  it('a Gemini request is a stream of events depending on its path and its query', () => {
    expect(read(gemini, {}, gemini25, '?alt=sse')).toMatchObject({
      model: 'gemini-2.5-pro',
      streamed: true,
    })
    expect(read(gemini, {}, gemini25, '?x=1&alt=sse')?.streamed).toBe(true)
    expect(read(gemini, {}, gemini25, '?alt=json')?.streamed).toBe(false)
    expect(read(gemini, {}, '/v1beta/models/a:generateContent', '?alt=sse')?.streamed).toBe(false)
  })

  it('the deployment of a path takes precedence over the model of the body', () => {
    const path = '/openai/deployments/d/chat/completions'
    expect(read(azure, { model: 'm' }, path)?.model).toBe('d')
    expect(read(azure, { model: 'm' }, '/openai/v1/chat/completions')?.model).toBe('m')
  })
})

describe('paths of protocols', () => {
  it.each([
    ['/v1beta/models/a:generateContent', 'json'],
    ['/v1beta/models/a:predict', 'json'],
    ['/upload/v1beta/files', 'file'],
    ['/v1beta/models', 'any'],
  ])('Gemini takes on %s a body of the kind %s', (path, kind) => {
    expect(gemini.format?.bodyOn(path)).toBe(kind)
  })

  it('counting tokens is free and may be repeated', () => {
    for (const [protocol, path] of [
      [gemini, '/v1beta/models/a:countTokens'],
      [openai, '/v1/responses/input_tokens'],
    ] as const) {
      expect(protocol.format?.isFree(path)).toBe(true)
      expect(protocol.repeatable(path)).toBe(true)
    }
    expect(gemini.format?.isFree('/v1beta/models/a:embedContent')).toBe(false)
  })

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
      prompt: NO_PROMPT,
      maxTokens: 9,
      answers: 2,
    })
    expect(read(openai, { n: 2, best_of: 5 })?.answers).toBe(5)
    expect(read(openai, { n: -2 })?.answers).toBe(1)
    expect(read(openai, { n: 0 })?.answers).toBe(1)
    expect(read(openai, { max_tokens: 5, max_output_tokens: -1 })?.maxTokens).toBeUndefined()
  })

  it('a Gemini request has its limits in generationConfig, in either spelling', () => {
    const limits = { 'generationConfig.maxOutputTokens': 9, 'generation_config.candidate_count': 3 }
    expect(read(gemini, limits, '/v1beta/models/a:generateContent')).toEqual({
      model: 'a',
      streamed: false,
      prompt: NO_PROMPT,
      maxTokens: 9,
      answers: 3,
    })
  })

  it.each([
    ['openai', '/v1/embeddings'],
    ['azure', '/openai/deployments/a/embeddings'],
    ['gemini', '/v1beta/models/a:embedContent'],
    ['gemini', '/v1beta/models/a:batchEmbedContents'],
  ] as const)('embeddings of %s on %s have no output tokens', (name, path) => {
    expect(read(PROTOCOLS[name], {}, path)?.maxTokens).toBe(0)
  })

  it('an Anthropic request has one answer', () => {
    expect(read(anthropic, { stream: true, max_tokens: 5 })).toEqual({
      model: undefined,
      streamed: true,
      prompt: NO_PROMPT,
      maxTokens: 5,
      answers: 1,
    })
  })
})

describe('usage in streams', () => {
  const path = '/v1/chat/completions'

  it('an OpenAI stream has no usage unless the request enables it', () => {
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
    'an error body and an error event of %s have the time until a retry',
    (name) => {
      const { errorBody, errorEvent } = PROTOCOLS[name]
      expect(errorBody(complaint(503, 1_500))).toContain('"retry_after_ms":1500')
      expect(errorEvent(complaint(503, 1_500), '/')).toContain('"retry_after_ms":1500')
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

  it.each(['openai', 'anthropic', 'azure', 'http'] as const)(
    'an error event of %s has the body as its data',
    (name) => {
      const { errorBody, errorEvent } = PROTOCOLS[name]
      const event = errorEvent(complaint(500), '/v1/chat/completions')
      expect(event.endsWith(`data: ${errorBody(complaint(500))}\n\n`)).toBe(true)
      expect(event.startsWith('event: error\n')).toBe(name === 'anthropic' || name === 'http')
    },
  )

  it.each([
    [400, 'INVALID_ARGUMENT'],
    [401, 'UNAUTHENTICATED'],
    [404, 'NOT_FOUND'],
    [413, 'INVALID_ARGUMENT'],
    [429, 'RESOURCE_EXHAUSTED'],
    [500, 'INTERNAL'],
    [503, 'UNAVAILABLE'],
    [504, 'DEADLINE_EXCEEDED'],
  ])('status %i is the Gemini status %s', (status, name) => {
    expect(JSON.parse(gemini.errorBody(complaint(status, 1_500)))).toEqual({
      error: {
        code: status,
        message: 'm',
        status: name,
        details: [
          {
            '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
            reason: 'C',
            domain: 'spillway',
            metadata: { requestId: 'r' },
          },
          { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '1.5s' },
        ],
      },
    })
    expect(gemini.errorBody(complaint(status))).not.toContain('RetryInfo')
  })

  it('an error in a Gemini stream is nothing but the JSON of the error', () => {
    const text = gemini.errorEvent(complaint(503), '/')
    expect(JSON.parse(text)).toEqual(JSON.parse(gemini.errorBody(complaint(503))))
  })

  it('an error in a stream of responses is an event of the type error', () => {
    const event = openai.errorEvent(complaint(503), '/v1/responses')
    const [head, data = ''] = event.split('\n')
    expect(head).toBe('event: error')
    expect(JSON.parse(data.slice(6))).toEqual({
      type: 'error',
      sequence_number: 0,
      code: 'C',
      message: 'm',
      param: null,
      ...JSON.parse(openai.errorBody(complaint(503))),
    })
  })
})

describe('ends of Gemini streams', () => {
  const event = (candidate: object) =>
    `data: ${JSON.stringify({ candidates: [candidate] })}\r\n\r\n`
  const content = { parts: [{ text: 'a' }] }

  it('a stream without a finish reason is cut off', () => {
    expect(gemini.isCutOff?.(event({ content }))).toBe(true)
    expect(gemini.isCutOff?.(event({ content }) + event({ finishReason: 'STOP' }))).toBe(false)
    expect(gemini.isCutOff?.(event({ finishReason: 'SAFETY' }))).toBe(false)
    expect(gemini.isCutOff?.('data: {"promptFeedback":{"blockReason":"SAFETY"}}\n\n')).toBe(false)
    expect(gemini.isCutOff?.(`${event({ content })}{"error":{"code":503}}`)).toBe(false)
  })
})

describe('texts of static fallbacks', () => {
  const request = { text: 'sorry', model: 'm', id: 'i', createdMs: 0, fields: new Map() }

  it('a static text for Gemini is a whole answer, an event, or an array', () => {
    const whole = gemini.textAnswer('/m:generateContent', { ...request, streamed: false })
    const answer = JSON.parse(whole?.body ?? '')
    expect(answer.candidates[0]).toEqual({
      content: { parts: [{ text: 'sorry' }], role: 'model' },
      finishReason: 'STOP',
      index: 0,
    })
    const stream = '/m:streamGenerateContent'
    const events = gemini.textAnswer(stream, { ...request, streamed: true })
    expect(events?.type).toBe('text/event-stream')
    expect(JSON.parse((events?.body ?? '').slice(6))).toEqual(answer)
    expect(gemini.isCutOff?.(events?.body ?? '')).toBe(false)
    const array = gemini.textAnswer(stream, { ...request, streamed: false })
    expect(JSON.parse(array?.body ?? '')).toEqual([answer])
    expect(gemini.textAnswer('/m:embedContent', { ...request, streamed: false })).toBeUndefined()
  })

  it('a static text for Azure has the form of one for OpenAI', () => {
    const path = '/openai/deployments/d/chat/completions'
    const { body = '' } = azure.textAnswer(path, { ...request, streamed: false }) ?? {}
    expect(JSON.parse(body).choices[0].message.content).toBe('sorry')
  })
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
