// test-group: sockets

import { createMockVendor } from '@spillway/mock-vendor'
import { describe, expect, it } from 'vitest'
import { dataOf, startVendor } from '../../spillway/test/mock-client.js'

describe('mock OpenAI', () => {
  it('mock OpenAI answers a chat completion with its usage', async () => {
    const { chat } = await startVendor({ knobs: { tokens: 3 } })
    const response = await chat()
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('x-request-id')).toBe('req_mock1')
    expect(await response.json()).toMatchObject({
      object: 'chat.completion',
      model: 'gpt',
      choices: [
        { index: 0, message: { role: 'assistant', content: '0 1 2' }, finish_reason: 'stop' },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 3, total_tokens: 6 },
    })
  })

  it('mock OpenAI streams role, tokens and finish reason and ends with [DONE]', async () => {
    const { chat } = await startVendor({ knobs: { tokens: 2 } })
    const response = await chat({ stream: true })
    expect(response.headers.get('content-type')).toMatch('text/event-stream')
    const stream = await response.text()
    expect(stream.endsWith('\n\ndata: [DONE]\n\n')).toBe(true)
    const chunks = dataOf(stream)
    expect(chunks.map(({ choices }) => choices[0].delta)).toEqual([
      { role: 'assistant', content: '', refusal: null },
      { content: '0' },
      { content: ' 1' },
      {},
    ])
    expect(chunks.map(({ choices }) => choices[0].finish_reason)).toEqual([
      null,
      null,
      null,
      'stop',
    ])
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
    expect(chunks.every((chunk) => !('usage' in chunk))).toBe(true)
  })

  it('mock OpenAI sends a usage chunk before [DONE] on request, and null before that', async () => {
    const { chat } = await startVendor({ knobs: { tokens: 2 } })
    const response = await chat({ stream: true, stream_options: { include_usage: true } })
    const chunks = dataOf(await response.text())
    const last = chunks.pop()
    expect(last).toMatchObject({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 2 } })
    expect(chunks.map(({ usage }) => usage)).toEqual([null, null, null, null])
  })

  it('mock OpenAI stops at max_tokens with finish reason length', async () => {
    const { chat } = await startVendor({ knobs: { tokens: 50 } })
    for (const limit of [{ max_tokens: 2 }, { max_completion_tokens: 2 }]) {
      expect(await (await chat(limit)).json()).toMatchObject({
        choices: [{ message: { content: '0 1' }, finish_reason: 'length' }],
        usage: { completion_tokens: 2 },
      })
    }
  })

  it('mock vendor lists its models', async () => {
    const { url } = await startVendor({ models: { fast: {}, slow: { latencyMs: 50 } } })
    const list = (await (await fetch(`${url}/v1/models`)).json()) as { data: { id: string }[] }
    expect(list).toMatchObject({ object: 'list', data: [{ id: 'fast', object: 'model' }, {}] })
    const headers = { 'anthropic-version': '2023-06-01' }
    expect(await (await fetch(`${url}/v1/models`, { headers })).json()).toMatchObject({
      data: [{ id: 'fast', type: 'model', display_name: 'fast' }, { id: 'slow' }],
      has_more: false,
    })
  })

  it('mock OpenAI rejects invalid requests in the format of the API', async () => {
    const { url, chat, post } = await startVendor()
    const broken = await fetch(`${url}/v1/chat/completions`, { method: 'POST', body: '{"model":' })
    expect(broken.status).toBe(400)
    expect(await broken.json()).toMatchObject({ error: { type: 'invalid_request_error' } })
    expect(await (await chat({ messages: undefined })).json()).toMatchObject({
      error: { param: 'messages', code: 'missing_required_parameter' },
    })
    const lost = await post('/v1/unknown', {})
    expect(lost.status).toBe(404)
    expect(await lost.json()).toMatchObject({
      error: { message: 'Invalid URL (POST /v1/unknown)', type: 'invalid_request_error' },
    })
  })

  it('mock vendor checks API keys if it has any', async () => {
    const { chat, messages } = await startVendor({ keys: ['good'] })
    const refused = await chat({}, { headers: { authorization: 'Bearer bad' } })
    expect(refused.status).toBe(401)
    expect(await refused.json()).toMatchObject({ error: { code: 'invalid_api_key' } })
    expect((await chat({}, { headers: { authorization: 'Bearer good' } })).status).toBe(200)
    expect(await (await messages()).json()).toMatchObject({
      error: { type: 'authentication_error', message: 'x-api-key header is required' },
    })
    expect((await messages({}, { headers: { 'x-api-key': 'good' } })).status).toBe(200)
  })
})

describe('mock Anthropic', () => {
  it('mock Anthropic answers a message with its usage', async () => {
    const { messages } = await startVendor({ knobs: { tokens: 3 } })
    const response = await messages()
    expect(response.headers.get('request-id')).toBe('req_mock1')
    expect(await response.json()).toMatchObject({
      type: 'message',
      role: 'assistant',
      model: 'claude',
      content: [{ type: 'text', text: '0 1 2' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 3, output_tokens: 3 },
    })
  })

  it('mock Anthropic streams named events in order, with usage at both ends', async () => {
    const { messages } = await startVendor({ knobs: { tokens: 2 } })
    const stream = await (await messages({ stream: true, max_tokens: 2 })).text()
    const names = Array.from(stream.matchAll(/^event: (\w+)$/gm), ([, name]) => name)
    expect(names).toEqual([
      'message_start',
      'content_block_start',
      'ping',
      'content_block_delta',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ])
    const events = dataOf(stream)
    expect(events.map(({ type }) => type)).toEqual(names)
    expect(events[0].message).toMatchObject({ content: [], usage: { input_tokens: 3 } })
    expect(events[3]).toMatchObject({ index: 0, delta: { type: 'text_delta', text: '0' } })
    expect(events[6]).toMatchObject({
      delta: { stop_reason: 'max_tokens' },
      usage: { output_tokens: 2 },
    })
  })

  it('mock Anthropic requires max_tokens and anthropic-version', async () => {
    const { messages, post } = await startVendor()
    const refused = await messages({ max_tokens: undefined })
    expect(refused.status).toBe(400)
    expect(await refused.json()).toEqual({
      type: 'error',
      error: { type: 'invalid_request_error', message: 'max_tokens: Field required' },
      request_id: 'req_mock1',
    })
    expect(await (await post('/v1/messages', {})).json()).toMatchObject({
      error: { message: 'anthropic-version: header is required' },
    })
  })

  it('mock Anthropic counts the system prompt and all text parts', async () => {
    const { messages } = await startVendor()
    const parts = [{ type: 'text', text: 'a'.repeat(40) }, { type: 'image' }]
    const body = { system: 'b'.repeat(20), messages: [{ role: 'user', content: parts }] }
    expect(await (await messages(body)).json()).toMatchObject({ usage: { input_tokens: 15 } })
  })
})

describe('mock vendor', () => {
  it('mock vendor names every mistake in its options and knobs', async () => {
    expect(() =>
      createMockVendor({
        knobs: { latencyMs: [50, 10], tokens: -1 },
        models: { gpt: { stat: 500 } as object },
      }),
    ).toThrow(
      [
        "mockVendor.knobs.latencyMs: must be a duration of at least 0 ms, such as 250 or '5s', or a pair with the smaller one first, got [50,10]",
        'mockVendor.knobs.tokens: must be an integer of at least 0, or a pair such as [10, 50], got -1',
        "mockVendor.models.gpt.stat: unknown option; did you mean 'status'?",
      ].join('\n'),
    )
    const { vendor } = await startVendor()
    expect(() => vendor.set({ status: 200 })).toThrow('knobs.status: must be an integer from 400')
  })

  it('mock vendor starts once, and again on the same port after close()', async () => {
    const vendor = createMockVendor()
    const [first, second] = await Promise.all([vendor.start(), vendor.start()])
    expect(second).toEqual(first)
    await vendor.close()
    await expect(fetch(first.url)).rejects.toThrow()
    expect(await vendor.start()).toEqual(first)
    expect((await fetch(`${first.url}/v1/models`)).status).toBe(200)
    await vendor.close()
    await vendor.close()
  })

  it('start() rejects when the port is in use and can be repeated', async () => {
    const { vendor: other, port } = await startVendor()
    const vendor = createMockVendor({ port })
    await expect(vendor.start()).rejects.toThrow('EADDRINUSE')
    await vendor.close()
    await other.close()
    expect((await vendor.start()).port).toBe(port)
    await vendor.close()
  })
})
