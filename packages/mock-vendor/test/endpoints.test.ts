// test-group: sockets

/** The real SDKs with every endpoint of the mock vendor except plain chat. */
import Anthropic, { toFile as toAnthropicFile } from '@anthropic-ai/sdk'
import type { MockVendorOptions } from '@spillway/mock-vendor'
import OpenAI, { toFile } from 'openai'
import { describe, expect, it } from 'vitest'
import { dataOf, startVendor } from '../../spillway/test/mock-client.js'

const QUESTION = [{ role: 'user' as const, content: 'twelve chars' }]
const SCHEMA = {
  type: 'object' as const,
  properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 2 } },
  required: ['city', 'days'],
  additionalProperties: false,
}
const FITTING = { city: 'mock', days: 2 }

async function start(options: MockVendorOptions = { knobs: { tokens: 3 } }) {
  const { vendor, url } = await startVendor(options)
  const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'key', maxRetries: 0 })
  const anthropic = new Anthropic({ baseURL: url, apiKey: 'key', maxRetries: 0 })
  return { vendor, url, openai, anthropic }
}

describe('responses of the mock vendor', () => {
  it('mock OpenAI answers a response with its usage', async () => {
    const { openai, vendor } = await start()
    const response = await openai.responses.create({ model: 'gpt', input: 'twelve chars' })
    expect(response).toMatchObject({ object: 'response', status: 'completed', model: 'gpt' })
    expect(response.output_text).toBe('0 1 2')
    expect(response.usage).toMatchObject({ input_tokens: 3, output_tokens: 3, total_tokens: 6 })
    expect(vendor.calls[0]).toMatchObject({ model: 'gpt', promptTokens: 3, completionTokens: 3 })
  })

  it('mock OpenAI streams a response as numbered events in the documented order', async () => {
    const { openai } = await start()
    const events: { type: string; sequence_number: number }[] = []
    const stream = openai.responses.stream({ model: 'gpt', input: 'twelve chars' })
    for await (const event of stream) events.push(event)
    expect(events.map(({ type }) => type)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ])
    expect(events.map((event) => event.sequence_number)).toEqual([...events.keys()])
    expect((await stream.finalResponse()).output_text).toBe('0 1 2')
  })

  it('mock OpenAI ends a response early at max_output_tokens', async () => {
    const { openai } = await start()
    const response = await openai.responses.create({
      model: 'gpt',
      input: 'twelve chars',
      max_output_tokens: 2,
    })
    expect(response).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output_text: '0 1',
    })
  })

  it('mock OpenAI reports a failure within a streamed response as an error event', async () => {
    const { url } = await start({ knobs: { errorAfter: 1 } })
    const response = await fetch(`${url}/v1/responses`, {
      method: 'POST',
      body: JSON.stringify({ model: 'gpt', input: 'twelve chars', stream: true }),
    })
    const events = dataOf(await response.text())
    expect(events.at(-1)).toMatchObject({ type: 'error', code: 'server_error', param: null })
  })
})

describe('tool calls of the mock vendor', () => {
  const tools = [
    { type: 'function' as const, function: { name: 'weather', parameters: SCHEMA } },
    { type: 'function' as const, function: { name: 'clock' } },
  ]
  const call = {
    id: 'call_1',
    type: 'function' as const,
    function: { name: 'weather', arguments: '{}' },
  }

  it('mock OpenAI calls the first tool with fitting arguments and then answers', async () => {
    const { openai } = await start()
    const { choices } = await openai.chat.completions.create({
      model: 'gpt',
      messages: QUESTION,
      tools,
    })
    expect(choices[0]).toMatchObject({ finish_reason: 'tool_calls', message: { content: null } })
    const called = choices[0]?.message.tool_calls?.[0]
    if (called?.type !== 'function') throw new Error('no function was called')
    expect(called.function.name).toBe('weather')
    expect(JSON.parse(called.function.arguments)).toEqual(FITTING)
    const done = await openai.chat.completions.create({
      model: 'gpt',
      tools,
      messages: [
        ...QUESTION,
        { role: 'assistant', tool_calls: [call] },
        { role: 'tool', tool_call_id: call.id, content: 'sunny' },
      ],
    })
    expect(done.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: '0 1 2' } })
  })

  it('mock OpenAI follows tool_choice', async () => {
    const { openai } = await start()
    const body = { model: 'gpt', messages: QUESTION, tools }
    const named = await openai.chat.completions.create({
      ...body,
      tool_choice: { type: 'function', function: { name: 'clock' } },
    })
    expect(named.choices[0]?.message.tool_calls).toMatchObject([{ function: { name: 'clock' } }])
    const none = await openai.chat.completions.create({ ...body, tool_choice: 'none' })
    expect(none.choices[0]?.message.content).toBe('0 1 2')
  })

  it('mock OpenAI streams the arguments of a tool call in parts', async () => {
    const { openai } = await start()
    const answer = await openai.chat.completions
      .stream({ model: 'gpt', messages: QUESTION, tools })
      .finalChatCompletion()
    expect(answer.choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: { tool_calls: [{ function: { name: 'weather' } }] },
    })
  })

  it('mock OpenAI calls a tool in a response, plain and streamed', async () => {
    const { openai } = await start()
    const body = {
      model: 'gpt',
      input: 'twelve chars',
      tools: [{ type: 'function' as const, name: 'weather', parameters: SCHEMA, strict: true }],
    }
    const item = { type: 'function_call', name: 'weather', arguments: JSON.stringify(FITTING) }
    expect((await openai.responses.create(body)).output).toMatchObject([item])
    const streamed = await openai.responses.stream(body).finalResponse()
    expect(streamed.output).toMatchObject([item])
    const done = await openai.responses.create({
      ...body,
      input: [{ type: 'function_call_output', call_id: 'call_1', output: 'sunny' }],
    })
    expect(done.output_text).toBe('0 1 2')
  })

  it('mock Anthropic calls a tool, plain and streamed, and then answers', async () => {
    const { anthropic } = await start()
    const body = {
      model: 'claude',
      max_tokens: 100,
      messages: QUESTION,
      tools: [{ name: 'weather', input_schema: SCHEMA }],
    }
    const block = { type: 'tool_use', name: 'weather', input: FITTING }
    const plain = await anthropic.messages.create(body)
    expect(plain).toMatchObject({ stop_reason: 'tool_use', content: [block] })
    const streamed = await anthropic.messages.stream(body).finalMessage()
    expect(streamed).toMatchObject({ stop_reason: 'tool_use', content: [block] })
    const done = await anthropic.messages.create({
      ...body,
      messages: [
        ...QUESTION,
        { role: 'assistant', content: plain.content },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_mock1' }] },
      ],
    })
    expect(done.content).toMatchObject([{ type: 'text', text: '0 1 2' }])
  })
})

describe('structured output of the mock vendor', () => {
  it('mock OpenAI answers JSON that fits the schema, in chat and responses', async () => {
    const { openai } = await start()
    const chat = await openai.chat.completions.create({
      model: 'gpt',
      messages: QUESTION,
      response_format: { type: 'json_schema', json_schema: { name: 'trip', schema: SCHEMA } },
    })
    expect(JSON.parse(chat.choices[0]?.message.content ?? '')).toEqual(FITTING)
    const response = await openai.responses.create({
      model: 'gpt',
      input: 'twelve chars',
      text: { format: { type: 'json_schema', name: 'trip', schema: SCHEMA } },
    })
    expect(JSON.parse(response.output_text)).toEqual(FITTING)
  })

  it('mock OpenAI cuts JSON off at max_tokens', async () => {
    const { openai } = await start()
    const { choices } = await openai.chat.completions.create({
      model: 'gpt',
      messages: QUESTION,
      max_tokens: 2,
      response_format: { type: 'json_object' },
    })
    expect(choices[0]).toMatchObject({ finish_reason: 'length', message: { content: '{"answer' } })
  })

  it('mock Anthropic answers JSON that fits the schema', async () => {
    const { anthropic } = await start()
    const answer = await anthropic.messages.create({
      model: 'claude',
      max_tokens: 100,
      messages: QUESTION,
      output_config: { format: { type: 'json_schema', schema: SCHEMA } },
    })
    const [block] = answer.content
    expect(JSON.parse(block?.type === 'text' ? block.text : '')).toEqual(FITTING)
  })

  it('mock Anthropic sends no citations: null, which some SDKs reject', async () => {
    const { messages } = await startVendor()
    expect(await (await messages()).text()).not.toContain('citations')
    expect(await (await messages({ stream: true })).text()).not.toContain('citations')
  })
})

describe('other endpoints of the mock vendor', () => {
  it('mock OpenAI embeds texts as stable vectors of length 1', async () => {
    const { openai, vendor } = await start()
    const input = ['one', 'two', 'one']
    const { data, usage } = await openai.embeddings.create({ model: 'embed', input, dimensions: 8 })
    expect(data.map(({ index, embedding }) => [index, embedding.length])).toEqual([
      [0, 8],
      [1, 8],
      [2, 8],
    ])
    expect(data[0]?.embedding).toEqual(data[2]?.embedding)
    expect(data[0]?.embedding).not.toEqual(data[1]?.embedding)
    expect(Math.hypot(...(data[0]?.embedding ?? []))).toBeCloseTo(1)
    expect(usage.prompt_tokens).toBe(3)
    const floats = await openai.embeddings.create({
      model: 'embed',
      input: 'one',
      dimensions: 8,
      encoding_format: 'float',
    })
    expect(floats.data[0]?.embedding.map(Math.fround)).toEqual(data[0]?.embedding)
    expect(vendor.calls[0]).toMatchObject({ model: 'embed', completionTokens: 0 })
  })

  it('mock OpenAI generates, edits and varies images', async () => {
    const { openai } = await start()
    const made = await openai.images.generate({ model: 'image', prompt: 'a pixel', n: 2 })
    const png = Buffer.from(made.data?.[1]?.b64_json ?? '', 'base64')
    expect(png.subarray(1, 4).toString()).toBe('PNG')
    const image = await toFile(png, 'pixel.png', { type: 'image/png' })
    const edited = await openai.images.edit({ model: 'image', image, prompt: 'a blue one' })
    expect(edited.data).toHaveLength(1)
    const varied = await openai.images.createVariation({ image, n: 2, response_format: 'url' })
    expect(varied.data?.[1]?.url).toMatch(/^data:image\/png/)
  })

  it('mock OpenAI transcribes audio in every format and as a stream', async () => {
    const { openai } = await start()
    const file = await toFile(Buffer.from('RIFF'), 'speech.wav', { type: 'audio/wav' })
    const body = { model: 'whisper', file }
    expect((await openai.audio.transcriptions.create(body)).text).toBe('0 1 2')
    const srt = await openai.audio.transcriptions.create({ ...body, response_format: 'srt' })
    expect(srt).toContain('-->')
    const verbose = await openai.audio.transcriptions.create({
      ...body,
      response_format: 'verbose_json',
    })
    expect(verbose).toMatchObject({ text: '0 1 2', duration: 2, segments: [{ id: 0 }] })
    const types: string[] = []
    const stream = await openai.audio.transcriptions.create({ ...body, stream: true })
    for await (const event of stream) types.push(event.type)
    expect(types).toEqual([...Array(3).fill('transcript.text.delta'), 'transcript.text.done'])
    expect((await openai.audio.translations.create(body)).text).toBe('0 1 2')
  })

  it('mock OpenAI stores, lists, returns and deletes files', async () => {
    const { openai } = await start()
    const file = await openai.files.create({
      file: await toFile(Buffer.from('{"a":1}\n'), 'batch.jsonl'),
      purpose: 'batch',
    })
    expect(file).toMatchObject({ object: 'file', filename: 'batch.jsonl', bytes: 8 })
    expect(await openai.files.retrieve(file.id)).toEqual(file)
    expect((await openai.files.list()).data).toEqual([file])
    expect(await (await openai.files.content(file.id)).text()).toBe('{"a":1}\n')
    expect(await openai.files.delete(file.id)).toMatchObject({ deleted: true })
    await expect(openai.files.retrieve(file.id)).rejects.toMatchObject({ status: 404 })
  })

  it('mock Anthropic stores, lists and deletes files', async () => {
    const { anthropic } = await start()
    const file = await anthropic.beta.files.upload({
      file: await toAnthropicFile(Buffer.from('text'), 'note.txt', { type: 'text/plain' }),
    })
    expect(file).toMatchObject({ type: 'file', filename: 'note.txt', mime_type: 'text/plain' })
    expect((await anthropic.beta.files.list()).data).toMatchObject([{ id: file.id, size_bytes: 4 }])
    expect(await (await anthropic.beta.files.download(file.id)).text()).toBe('text')
    expect(await anthropic.beta.files.delete(file.id)).toMatchObject({ type: 'file_deleted' })
  })

  it('mock vendor lists and describes its models to both SDKs', async () => {
    const { openai, anthropic } = await start({ models: { fast: {}, slow: {} } })
    expect((await openai.models.list()).data.map(({ id }) => id)).toEqual(['fast', 'slow'])
    expect((await anthropic.models.list()).data.map(({ id }) => id)).toEqual(['fast', 'slow'])
    expect(await openai.models.retrieve('slow')).toMatchObject({ object: 'model', id: 'slow' })
    expect(await anthropic.models.retrieve('slow')).toMatchObject({ type: 'model', id: 'slow' })
    await expect(openai.models.retrieve('none')).rejects.toMatchObject({ code: 'model_not_found' })
  })

  it('mock Anthropic counts tokens before a message', async () => {
    const { anthropic } = await start()
    const counted = await anthropic.messages.countTokens({ model: 'claude', messages: QUESTION })
    expect(counted.input_tokens).toBe(3)
  })

  it('knobs and limits apply to embeddings, but limits not to files', async () => {
    const { openai, vendor } = await start({ limits: [{ limit: 1, windowMs: '1m' }] })
    const body = { model: 'embed', input: 'one' }
    await openai.embeddings.create(body)
    await expect(openai.embeddings.create(body)).rejects.toMatchObject({ status: 429 })
    vendor.set({ status: 503 })
    await expect(openai.files.list()).rejects.toMatchObject({ status: 503 })
    vendor.reset()
    for (let round = 0; round < 3; round++) expect((await openai.files.list()).data).toEqual([])
  })

  it('mock OpenAI names the missing field of a multipart request', async () => {
    const { url } = await start()
    const form = new FormData()
    form.set('model', 'whisper')
    const post = (body: FormData | string) =>
      fetch(`${url}/v1/audio/transcriptions`, { method: 'POST', body })
    expect(await (await post(form)).json()).toMatchObject({ error: { param: 'file' } })
    expect((await post('{}')).status).toBe(400)
  })
})
