// test-group: sockets

/** The real SDKs against the mock vendor. */
import Anthropic from '@anthropic-ai/sdk'
import type { MockVendorOptions } from '@spillway/mock-vendor'
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { startVendor } from '../../spillway/test/mock-client.js'

const QUESTION = [{ role: 'user' as const, content: 'twelve chars' }]

async function startOpenAI(options?: MockVendorOptions) {
  const { vendor, url } = await startVendor(options)
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'key', maxRetries: 0 })
  const body = { model: 'gpt', messages: QUESTION }
  return { vendor, client, body }
}

async function startAnthropic(options?: MockVendorOptions) {
  const { vendor, url } = await startVendor(options)
  const client = new Anthropic({ baseURL: url, apiKey: 'key', maxRetries: 0 })
  const body = { model: 'claude', max_tokens: 100, messages: QUESTION }
  return { vendor, client, body }
}

/** The error with which a call failed. */
async function errorOf(call: PromiseLike<unknown>): Promise<unknown> {
  try {
    await call
  } catch (error) {
    return error
  }
  throw new Error('it did not fail')
}

describe('OpenAI SDK with the mock vendor', () => {
  it('OpenAI SDK reads an answer that is not streamed', async () => {
    const { vendor, client, body } = await startOpenAI({ knobs: { tokens: 3 } })
    const answer = await client.chat.completions.create(body)
    expect(answer.choices[0]?.message.content).toBe('0 1 2')
    expect(answer.usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 3, total_tokens: 6 })
    expect(answer._request_id).toBe('req_mock1')
    expect(vendor.calls[0]).toMatchObject({ key: 'key', retryCount: 0 })
  })

  it('OpenAI SDK reads a stream and its usage', async () => {
    const { client, body } = await startOpenAI({ knobs: { tokens: 3, tokenMs: 2 } })
    const stream = await client.chat.completions.create({
      ...body,
      stream: true,
      stream_options: { include_usage: true },
    })
    let text = ''
    let usage: OpenAI.CompletionUsage | null | undefined
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? ''
      usage = chunk.usage
    }
    expect(text).toBe('0 1 2')
    expect(usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 3 })
  })

  it('OpenAI SDK assembles a stream with its own helper', async () => {
    const { client, body } = await startOpenAI({ knobs: { tokens: 3 } })
    const answer = await client.chat.completions.stream(body).finalChatCompletion()
    expect(answer.choices[0]).toMatchObject({
      message: { content: '0 1 2' },
      finish_reason: 'stop',
    })
  })

  it('OpenAI SDK lists the models', async () => {
    const { client } = await startOpenAI({ models: { gpt: {} } })
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual(['gpt'])
  })

  it('OpenAI SDK throws its own errors for 429 and 500', async () => {
    const { vendor, client, body } = await startOpenAI({ limits: [{ limit: 1, windowMs: '1m' }] })
    await client.chat.completions.create(body)
    const limited = await errorOf(client.chat.completions.create(body))
    expect(limited).toBeInstanceOf(OpenAI.RateLimitError)
    expect(limited).toMatchObject({ status: 429, type: 'requests', code: 'rate_limit_exceeded' })
    const { headers } = limited as InstanceType<typeof OpenAI.RateLimitError>
    expect(headers?.get('retry-after')).toMatch(/^(60|5\d)$/)
    vendor.setLimits([])
    vendor.set({ status: 500 })
    const failed = await errorOf(client.chat.completions.create({ ...body, stream: true }))
    expect(failed).toBeInstanceOf(OpenAI.InternalServerError)
    expect(failed).toMatchObject({ type: 'server_error', requestID: 'req_mock3' })
    expect(vendor.counts.arrived).toBe(3)
  })

  it('OpenAI SDK retries when allowed and sends the retry count', async () => {
    const { vendor, client, body } = await startOpenAI({
      models: { gpt: { status: 503, retryAfterMs: 1 } },
    })
    await errorOf(client.chat.completions.create(body, { maxRetries: 1 }))
    expect(vendor.calls.map(({ retryCount }) => retryCount)).toEqual([0, 1])
  })

  it('OpenAI SDK fails on a cut stream, on garbage and on an error in the middle', async () => {
    const { vendor, client, body } = await startOpenAI()
    const readAll = async () => {
      const stream = await client.withOptions({ logLevel: 'off' }).chat.completions.create({
        ...body,
        stream: true,
      })
      for await (const _ of stream);
    }
    vendor.set({ cutAfter: 3 })
    expect(await errorOf(readAll())).toBeInstanceOf(Error)
    vendor.set({ cutAfter: false, garbage: 'json' })
    expect(await errorOf(readAll())).toBeInstanceOf(SyntaxError)
    vendor.set({ garbage: false, errorAfter: 3 })
    expect(await errorOf(readAll())).toBeInstanceOf(OpenAI.APIError)
  })

  it('OpenAI SDK disconnects when its caller stops reading', async () => {
    const { vendor, client, body } = await startOpenAI({ knobs: { tokens: 1_000, tokenMs: 5 } })
    const stream = await client.chat.completions.create({ ...body, stream: true })
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content === ' 2') break
    await vendor.waitForIdle()
    expect(vendor.calls[0]?.end).toBe('cancelled')
  })
})

describe('Anthropic SDK with the mock vendor', () => {
  it('Anthropic SDK reads an answer that is not streamed', async () => {
    const { vendor, client, body } = await startAnthropic({ knobs: { tokens: 3 } })
    const answer = await client.messages.create(body)
    expect(answer.content).toMatchObject([{ type: 'text', text: '0 1 2' }])
    expect(answer.usage).toMatchObject({ input_tokens: 3, output_tokens: 3 })
    expect(answer._request_id).toBe('req_mock1')
    expect(vendor.calls[0]).toMatchObject({ key: 'key', retryCount: 0 })
  })

  it('Anthropic SDK reads a stream event by event', async () => {
    const { client, body } = await startAnthropic({ knobs: { tokens: 2, tokenMs: 2 } })
    const types: string[] = []
    for await (const event of await client.messages.create({ ...body, stream: true })) {
      types.push(event.type)
    }
    expect(types).toEqual([
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ])
  })

  it('Anthropic SDK assembles a stream with its own helper, including the usage', async () => {
    const { client, body } = await startAnthropic({ knobs: { tokens: 3 } })
    const answer = await client.messages.stream(body).finalMessage()
    expect(answer.content).toMatchObject([{ type: 'text', text: '0 1 2' }])
    expect(answer.stop_reason).toBe('end_turn')
    expect(answer.usage).toMatchObject({ input_tokens: 3, output_tokens: 3 })
  })

  it('Anthropic SDK throws its own errors for 429, 500 and 529', async () => {
    const { vendor, client, body } = await startAnthropic({
      limits: [{ limit: 1, windowMs: '1m' }],
    })
    await client.messages.create(body)
    const limited = await errorOf(client.messages.create(body))
    expect(limited).toBeInstanceOf(Anthropic.RateLimitError)
    expect(limited).toMatchObject({ status: 429, type: 'rate_limit_error' })
    vendor.setLimits([])
    vendor.set({ status: 500 })
    const failed = await errorOf(client.messages.create({ ...body, stream: true }))
    expect(failed).toBeInstanceOf(Anthropic.InternalServerError)
    expect(failed).toMatchObject({ type: 'api_error', requestID: 'req_mock3' })
    vendor.set({ status: 529 })
    expect(await errorOf(client.messages.create(body))).toMatchObject({
      status: 529,
      type: 'overloaded_error',
    })
    expect(vendor.counts.arrived).toBe(4)
  })

  it('Anthropic SDK throws the error that a stream reports', async () => {
    const { client, body } = await startAnthropic({ knobs: { errorAfter: 2 } })
    const error = await errorOf(client.messages.stream(body).finalMessage())
    expect(error).toBeInstanceOf(Anthropic.APIError)
    expect(error).toMatchObject({ type: 'overloaded_error' })
  })

  it('Anthropic SDK disconnects when its caller stops reading', async () => {
    const { vendor, client, body } = await startAnthropic({ knobs: { tokens: 1_000, tokenMs: 5 } })
    for await (const event of await client.messages.create({ ...body, stream: true })) {
      if (event.type === 'content_block_delta') break
    }
    await vendor.waitForIdle()
    expect(vendor.calls[0]?.end).toBe('cancelled')
  })
})
