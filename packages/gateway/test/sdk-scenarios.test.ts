// test-group: sockets

/** Chat, responses, messages, Gemini and Azure through the gateway, with the SDK of each: plain, streamed, aborted, refused. */
import Anthropic from '@anthropic-ai/sdk'
import { ApiError, GoogleGenAI } from '@google/genai'
import OpenAI, { AzureOpenAI } from 'openai'
import { describe, expect, it } from 'vitest'
import { errorOf, until } from '../../spillway/test/streams/stream-kit.js'
import { expectIdle, startGateway, type Written } from './gateway-kit.js'

interface Options {
  signal?: AbortSignal
  onText?: (text: string) => void
}

interface Client {
  ask(options?: Options): Promise<string>
  stream(options?: Options): Promise<string>
}

interface Scenario {
  readonly name: string
  readonly protocol: 'openai' | 'anthropic' | 'gemini' | 'azure'
  create(url: string): Client
  /** The SDK's error for status 429 or 503: its class and the status. */
  readonly refusal: new (
    ...args: never[]
  ) => Error
}

const QUESTION = 'twelve chars'
const MESSAGES = [{ role: 'user' as const, content: QUESTION }]
const SETTINGS = { apiKey: 'key', maxRetries: 0, logLevel: 'off' as const }

const SCENARIOS: Scenario[] = [
  {
    name: 'chat',
    protocol: 'openai',
    refusal: OpenAI.APIError,
    create: (url) => chatClient(new OpenAI({ ...SETTINGS, baseURL: `${url}/v1` })),
  },
  {
    name: 'responses',
    protocol: 'openai',
    refusal: OpenAI.APIError,
    create: (url) => responsesClient(new OpenAI({ ...SETTINGS, baseURL: `${url}/v1` })),
  },
  {
    name: 'messages',
    protocol: 'anthropic',
    refusal: Anthropic.APIError,
    create(url) {
      const client = new Anthropic({ ...SETTINGS, baseURL: url })
      const body = { model: 'm', max_tokens: 100, messages: MESSAGES }
      return {
        async ask({ signal } = {}) {
          const { content } = await client.messages.create(body, signal && { signal })
          return content[0]?.type === 'text' ? content[0].text : ''
        },
        async stream({ signal, onText } = {}) {
          const events = await client.messages.create(
            { ...body, stream: true },
            signal && { signal },
          )
          return collect(events, onText, (event) =>
            event.type === 'content_block_delta' && event.delta.type === 'text_delta'
              ? event.delta.text
              : '',
          )
        },
      }
    },
  },
  {
    name: 'Gemini',
    protocol: 'gemini',
    refusal: ApiError,
    create(url) {
      const { models } = new GoogleGenAI({ apiKey: 'key', httpOptions: { baseUrl: url } })
      const requestWith = (signal: AbortSignal | undefined) => ({
        model: 'm',
        contents: QUESTION,
        config: { maxOutputTokens: 100, ...(signal && { abortSignal: signal }) },
      })
      return {
        ask: async ({ signal } = {}) =>
          (await models.generateContent(requestWith(signal))).text ?? '',
        async stream({ signal, onText } = {}) {
          const chunks = await models.generateContentStream(requestWith(signal))
          return collect(chunks, onText, (chunk) => chunk.text ?? '')
        },
      }
    },
  },
  {
    name: 'Azure chat',
    protocol: 'azure',
    refusal: OpenAI.APIError,
    create: (url) => chatClient(azureClient(url)),
  },
  {
    name: 'Azure responses',
    protocol: 'azure',
    refusal: OpenAI.APIError,
    create: (url) => responsesClient(azureClient(url)),
  },
]

function azureClient(url: string): AzureOpenAI {
  return new AzureOpenAI({ ...SETTINGS, endpoint: url, apiVersion: '2025-04-01-preview' })
}

function chatClient(client: OpenAI): Client {
  const body = { model: 'm', messages: MESSAGES }
  return {
    async ask({ signal } = {}) {
      const answer = await client.chat.completions.create(body, signal && { signal })
      return answer.choices[0]?.message.content ?? ''
    },
    async stream({ signal, onText } = {}) {
      const chunks = await client.chat.completions.create(
        { ...body, stream: true },
        signal && { signal },
      )
      return collect(chunks, onText, ({ choices }) => choices[0]?.delta.content ?? '')
    },
  }
}

function responsesClient(client: OpenAI): Client {
  const body = { model: 'm', input: QUESTION }
  return {
    ask: async ({ signal } = {}) =>
      (await client.responses.create(body, signal && { signal })).output_text,
    async stream({ signal, onText } = {}) {
      const events = await client.responses.create({ ...body, stream: true }, signal && { signal })
      return collect(events, onText, (event) =>
        event.type === 'response.output_text.delta' ? event.delta : '',
      )
    },
  }
}

async function collect<T>(
  chunks: AsyncIterable<T>,
  onText: ((text: string) => void) | undefined,
  textOf: (chunk: T) => string,
): Promise<string> {
  let text = ''
  for await (const chunk of chunks) {
    const more = textOf(chunk)
    text += more
    if (more !== '') onText?.(text)
  }
  return text
}

const TEXT = '0 1 2 3 4 5'

async function start({ protocol, create }: Scenario, guard: object = {}, route: object = {}) {
  const written: Written = {
    routes: [{ vendor: 'llm', models: ['m'], ...route }],
    vendors: { llm: { protocol, concurrency: { limit: 50 }, ...guard } },
  }
  const gateway = await startGateway(written, { knobs: { tokens: 6 } })
  return { ...gateway, client: create(gateway.url) }
}

describe.each(SCENARIOS)('$name', (scenario) => {
  const { refusal } = scenario

  it('a plain request is answered, and its tokens are settled', async () => {
    const limits = [{ unit: 'tokens', limit: 10_000, windowMs: '1h' }]
    const gateway = await start(scenario, { limits })
    expect(await gateway.client.ask()).toBe(TEXT)
    await until('the record is there', () => gateway.records.length === 1)
    const [record] = gateway.records
    expect(record).toMatchObject({ status: 200, model: 'm', streamed: false, attempts: 1 })
    expect(record?.usage).toMatchObject({ inputTokens: 3, outputTokens: 6, tokens: 9 })
    await expectIdle(gateway)
  })

  it('a stream arrives token by token, and its tokens are settled', async () => {
    const limits = [{ unit: 'tokens', limit: 10_000, windowMs: '1h' }]
    const gateway = await start(scenario, { limits })
    const texts: string[] = []
    expect(await gateway.client.stream({ onText: (text) => texts.push(text) })).toBe(TEXT)
    expect(texts).toHaveLength(6)
    await until('the record is there', () => gateway.records.length === 1)
    const [record] = gateway.records
    expect(record).toMatchObject({ status: 200, streamed: true, end: 'complete' })
    expect(record?.usage).toMatchObject({ inputTokens: 3, outputTokens: 6, tokens: 9 })
    await expectIdle(gateway)
  })

  it('an aborted plain request ends the call at the vendor', async () => {
    const gateway = await start(scenario)
    gateway.vendor.set({ neverAnswer: true })
    const abort = new AbortController()
    const failure = errorOf(gateway.client.ask({ signal: abort.signal }))
    await until('the vendor has the request', () => gateway.vendor.atOnce === 1)
    abort.abort()
    expect(String(await failure)).toMatch(/abort/i)
    await until('the vendor sees it leave', () => gateway.vendor.counts.cancelled === 1)
    await expectIdle(gateway)
  })

  it('an aborted stream ends the call at the vendor', async () => {
    const gateway = await start(scenario)
    gateway.vendor.set({ stallAfter: 3 })
    const abort = new AbortController()
    const onText = (text: string) => {
      if (text === '0 1 2') abort.abort()
    }
    // Some SDKs end the iteration, others throw.
    await gateway.client.stream({ signal: abort.signal, onText }).catch(() => undefined)
    await expect.poll(() => gateway.vendor.counts.cancelled).toBe(1)
    await expectIdle(gateway)
  })

  it.each(['ask', 'stream'] as const)(
    'a refusal of the gateway is the error of the SDK (%s)',
    async (method) => {
      const limits = [{ unit: 'requests', limit: 1, windowMs: '1h' }]
      const { client, vendor } = await start(scenario, { limits })
      await client.ask()
      const error = (await errorOf(client[method]())) as Error & { status?: number }
      expect(error).toBeInstanceOf(refusal)
      expect(error.status).toBe(429)
      expect(error.message).toContain('Spillway gateway: llm')
      expect(vendor.counts.arrived).toBe(1)
    },
  )

  it.each(['ask', 'stream'] as const)(
    'a refusal of the vendor is the error of the SDK (%s)',
    async (method) => {
      const { client, vendor } = await start(scenario)
      vendor.set({ status: 503 })
      const error = (await errorOf(client[method]())) as Error & { status?: number }
      expect(error).toBeInstanceOf(refusal)
      expect(error.status).toBe(503)
      expect(error.message).not.toContain('Spillway')
    },
  )

  it('a stream that the gateway breaks off is the error of the SDK', async () => {
    const gateway = await start(scenario, { timeout: { idleMs: 150 } })
    gateway.vendor.set({ stallAfter: 3 })
    const error = (await errorOf(gateway.client.stream())) as Error
    expect(error).toBeInstanceOf(refusal)
    expect(error.message).toContain('Spillway gateway: llm')
    await expectIdle(gateway)
  })

  it('a stream that is cut off ends with an error', async () => {
    const gateway = await start(scenario)
    gateway.vendor.set({ cutAfter: 4, tokenMs: 2 })
    expect(await errorOf(gateway.client.stream())).toBeInstanceOf(Error)
    await until('the record is there', () => gateway.records.length === 1)
    expect(gateway.records[0]).toMatchObject({ end: 'truncated', code: 'VENDOR_ERROR' })
    await expectIdle(gateway)
  })

  it.each(['ask', 'stream'] as const)(
    'a static fallback answers with its text (%s)',
    async (method) => {
      const fallbacks = [{ static: 'try again later' }]
      const { client, vendor } = await start(scenario, {}, { fallbacks })
      vendor.set({ status: 503 })
      expect(await client[method]()).toBe('try again later')
    },
  )
})

describe('embeddings', () => {
  it.each(['openai', 'azure', 'gemini'] as const)(
    'embeddings of %s have a lane, and only their input counts',
    async (protocol) => {
      // The estimate of Gemini's prompts is higher, because they have more objects around the text.
      const limit = protocol === 'gemini' ? 60 : 40
      const limits = [{ unit: 'tokens', limit, windowMs: '1h' }]
      const scenario = SCENARIOS.find((each) => each.protocol === protocol) as Scenario
      const { url, records, vendor } = await start(scenario, { limits })
      for (let request = 0; request < 10; request++) {
        expect(await embed(protocol, url)).toHaveLength(protocol === 'gemini' ? 3_072 : 1_536)
      }
      expect(vendor.counts.succeeded).toBe(10)
      await until('the records are there', () => records.length === 10)
      expect(records[9]).toMatchObject({ model: 'm', usage: { inputTokens: 3, tokens: 3 } })
    },
  )
})

async function embed(protocol: 'openai' | 'azure' | 'gemini', url: string) {
  if (protocol === 'gemini') {
    const { models } = new GoogleGenAI({ apiKey: 'key', httpOptions: { baseUrl: url } })
    const { embeddings } = await models.embedContent({ model: 'm', contents: QUESTION })
    return embeddings?.[0]?.values
  }
  const client =
    protocol === 'azure' ? azureClient(url) : new OpenAI({ ...SETTINGS, baseURL: `${url}/v1` })
  const { data } = await client.embeddings.create({ model: 'm', input: QUESTION })
  return data[0]?.embedding
}
