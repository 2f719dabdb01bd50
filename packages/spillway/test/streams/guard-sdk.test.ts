// test-group: sockets

/** The real SDKs with the options of `guard.sdk()` against the mock vendor. */
import Anthropic from '@anthropic-ai/sdk'
import type { MockKnobs } from '@spillway/mock-vendor'
import OpenAI, { AzureOpenAI } from 'openai'
import {
  type Guard,
  type GuardOptions,
  llmDefaults,
  onEvent,
  refusalOf,
  type SdkOptions,
} from 'spillway'
import { describe, expect } from 'vitest'
import type { SharedGuard } from '../../src/guard/guard.js'
import { it } from '../concurrent-tests.js'
import { startVendor } from '../mock-client.js'
import { endsOf, errorOf, outcomesOf, QUESTION, startGuard, until } from './stream-kit.js'

const MODEL = 'model-a'
/** The mock vendor counts 3 tokens in the question. */
const PROMPT_TOKENS = 3
const TOKENS = 6
const TEXT = '0 1 2 3 4 5'

interface Client {
  ask(options?: { signal?: AbortSignal; model?: string; maxTokens?: number }): Promise<string>
  stream(options?: { signal?: AbortSignal; onToken?: () => void }): Promise<string>
  /** A request that must not be sent twice. */
  store(): Promise<unknown>
  errors: Record<
    'RateLimitError' | 'InternalServerError' | 'APIUserAbortError' | 'APIConnectionTimeoutError',
    new (
      ...args: never[]
    ) => Error
  >
}

interface Sdk {
  name: string
  create(url: string, guard: Guard, options?: SdkOptions): Client
}

const SDKS: Sdk[] = [
  {
    name: 'openai',
    create(url, guard, options) {
      const own = { baseURL: `${url}/v1`, apiKey: 'key', logLevel: 'off' as const }
      const client = new OpenAI({ ...own, ...guard.sdk(OpenAI, options) })
      return {
        errors: OpenAI as never,
        async ask({ signal, model = MODEL, maxTokens } = {}) {
          const limit = maxTokens === undefined ? {} : { max_tokens: maxTokens }
          const body = { model, messages: QUESTION, ...limit }
          const answer = await client.chat.completions.create(body, signal && { signal })
          return answer.choices[0]?.message.content ?? ''
        },
        async stream({ signal, onToken } = {}) {
          const body = { model: MODEL, messages: QUESTION, stream: true as const }
          let text = ''
          for await (const { choices } of await client.chat.completions.create(
            body,
            signal && { signal },
          )) {
            // As in the SDK's own documentation; an event without choices would throw.
            text += (choices[0] as (typeof choices)[number]).delta.content ?? ''
            onToken?.()
          }
          return text
        },
        store: () => client.batches.create({ input_file_id: 'f' } as never),
      }
    },
  },
  {
    name: 'anthropic',
    create(url, guard, options) {
      const own = { baseURL: url, apiKey: 'key', logLevel: 'off' as const }
      const client = new Anthropic({ ...own, ...guard.sdk(Anthropic, options) })
      return {
        errors: Anthropic as never,
        async ask({ signal, model = MODEL, maxTokens = 100 } = {}) {
          const body = { model, max_tokens: maxTokens, messages: QUESTION }
          const { content } = await client.messages.create(body, signal && { signal })
          return content[0]?.type === 'text' ? content[0].text : ''
        },
        async stream({ signal, onToken } = {}) {
          const body = { model: MODEL, max_tokens: 100, messages: QUESTION, stream: true as const }
          let text = ''
          for await (const event of await client.messages.create(body, signal && { signal })) {
            if (event.type !== 'content_block_delta' || event.delta.type !== 'text_delta') continue
            text += event.delta.text
            onToken?.()
          }
          return text
        },
        store: () => client.messages.batches.create({ requests: [] }),
      }
    },
  },
]

const QUICK_RETRY = { retry: { attempts: 3, baseMs: 1, budget: 1 } }

async function start(
  sdk: Sdk,
  knobs: MockKnobs = {},
  options: GuardOptions = {},
  sdkOptions?: SdkOptions,
) {
  const { vendor, url } = await startVendor({ knobs: { tokens: TOKENS, ...knobs } })
  const limits = llmDefaults({ requestsPerMinute: 100, tokensPerMinute: 100_000 })
  const guard = startGuard({ ...limits, ...QUICK_RETRY, ...options })
  return { vendor, guard, client: sdk.create(url, guard, sdkOptions) }
}

/** Units that the lane has used of each limit. */
async function usedIn(guard: Guard, lane = MODEL): Promise<Record<string, number>> {
  const { limits } = await (guard as SharedGuard).readFleet([lane])
  const own = limits.filter((each) => each.lane === lane)
  return Object.fromEntries(own.map(({ id, used }) => [id.split('-')[0], used]))
}

async function tokensIn(guard: Guard): Promise<number | undefined> {
  return (await usedIn(guard)).tokens
}

describe.each(SDKS)('$name SDK with guard.sdk()', (sdk) => {
  for (const way of ['ask', 'stream'] as const) {
    it(`${way}: the SDK gets the answer, in the lane of its model, with its usage settled`, async () => {
      const { vendor, guard, client } = await start(sdk, { tokenMs: 1 })
      expect(await client[way]()).toBe(TEXT)
      await until('it is settled', () => guard.snapshot().active === 0)
      await expect
        .poll(() => usedIn(guard))
        .toEqual({ requests: 1, tokens: PROMPT_TOKENS + TOKENS })
      expect(outcomesOf(guard)).toEqual({ success: 1 })
      expect(endsOf(guard)).toEqual({ complete: 1 })
      expect(vendor.calls[0]).toMatchObject({ retryCount: 0 })
    })

    it(`${way}: a 500 is retried with one idempotency key, and the SDK does not notice`, async () => {
      const { vendor, client } = await start(sdk, { status: 500 })
      const stop = onEvent(({ type }) => {
        if (type === 'retry.scheduled') vendor.set({ errorRate: 0 })
      })
      expect(await client[way]().finally(stop)).toBe(TEXT)
      expect(vendor.counts.arrived).toBe(2)
      const keys = vendor.calls.map(({ idempotencyKey }) => idempotencyKey)
      expect(new Set(keys).size).toBe(1)
      expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/)
    })

    it(`${way}: a refusal by a limit becomes a RateLimitError with Retry-After`, async () => {
      const limits = [{ unit: 'requests', limit: 1, windowMs: '1h' as const }]
      const { vendor, client } = await start(sdk, {}, { limits })
      await client[way]()
      const error = (await errorOf(client[way]())) as Error & { headers: Headers; status: number }
      expect(error).toBeInstanceOf(client.errors.RateLimitError)
      expect(Number(error.headers.get('retry-after'))).toBeGreaterThan(60)
      expect(error.headers.get('x-should-retry')).toBe('false')
      expect(error.message).toContain('429')
      expect(refusalOf(error)).toMatchObject({ code: 'VENDOR_LIMITED', status: error.status })
      expect(vendor.counts.arrived).toBe(1)
    })

    it(`${way}: an open circuit becomes an InternalServerError with status 503`, async () => {
      const { vendor, guard, client } = await start(sdk)
      await guard.breaker?.isolate('1m', { lane: MODEL })
      const error = await errorOf(client[way]())
      expect(error).toBeInstanceOf(client.errors.InternalServerError)
      expect(error).toMatchObject({ status: 503 })
      expect(JSON.stringify(error)).toContain('CIRCUIT_OPEN')
      expect(refusalOf(error)).toMatchObject({ code: 'CIRCUIT_OPEN', stage: 'breaker' })
      expect(vendor.counts.arrived).toBe(0)
    })
  }

  it('an abort before the answer reaches the vendor and becomes an APIUserAbortError', async () => {
    const { vendor, guard, client } = await start(sdk, { neverAnswer: true })
    const leave = new AbortController()
    const call = client.ask({ signal: leave.signal })
    await until('it arrived', () => vendor.counts.arrived === 1)
    leave.abort()
    expect(await errorOf(call)).toBeInstanceOf(client.errors.APIUserAbortError)
    await until('the vendor is idle', () => vendor.atOnce === 0)
    await until('every slot is free', () => guard.snapshot().active === 0)
    expect(outcomesOf(guard)).toEqual({ ignored: 1 })
  })

  it('an abort during a stream reaches the vendor and frees the slot', async () => {
    const { vendor, guard, client } = await start(sdk, { stallAfter: 3, tokenMs: 2 })
    const leave = new AbortController()
    const text = await client.stream({ signal: leave.signal, onToken: () => leave.abort() })
    expect(TEXT.startsWith(text) && text !== TEXT).toBe(true)
    await until('the vendor is idle', () => vendor.atOnce === 0)
    await until('every slot is free', () => guard.snapshot().active === 0)
    expect(vendor.calls[0]?.end).toBe('cancelled')
  })

  it('a silent stream ends with the timeout error of the SDK', async () => {
    const timeout = { callMs: 10_000, idleMs: 150 }
    const { client } = await start(sdk, { stallAfter: 3 }, { timeout })
    const error = await errorOf(client.stream())
    expect(error).toBeInstanceOf(client.errors.APIConnectionTimeoutError)
    expect(refusalOf(error)).toMatchObject({ code: 'CALL_TIMEOUT' })
  })

  it('a cut stream ends with an error and keeps the estimated cost', async () => {
    const { guard, client } = await start(sdk, { cutAfter: 3, tokenMs: 2 })
    expect(await errorOf(client.stream())).toBeInstanceOf(Error)
    expect(outcomesOf(guard)).toEqual({ failure: 1 })
    expect(await tokensIn(guard)).toBeGreaterThan(PROMPT_TOKENS + TOKENS)
  })

  it('a request that creates an object is sent once', async () => {
    const { vendor, client } = await start(sdk, { status: 500 })
    expect(await errorOf(client.store())).toBeInstanceOf(Error)
    expect(vendor.counts.arrived).toBe(1)
    expect(vendor.calls[0]?.idempotencyKey).toBeUndefined()
  })

  it('an answer with an error status costs no tokens', async () => {
    const { guard, client } = await start(sdk, { status: 400 })
    expect(await errorOf(client.ask())).toMatchObject({ status: 400 })
    await expect.poll(() => usedIn(guard)).toEqual({ requests: 1, tokens: 0 })
  })

  it('each model has its own limits', async () => {
    const limits = [{ unit: 'requests', limit: 1, windowMs: '1h' as const }]
    const { client } = await start(sdk, {}, { limits })
    await client.ask({ model: 'a' })
    await client.ask({ model: 'b' })
    expect(await errorOf(client.ask({ model: 'a' }))).toBeInstanceOf(client.errors.RateLimitError)
  })

  it('a request reserves its prompt and at most max_tokens until it is answered', async () => {
    const { vendor, guard, client } = await start(sdk, { neverAnswer: true })
    const leave = new AbortController()
    const call = errorOf(client.ask({ maxTokens: 50, signal: leave.signal }))
    await until('it arrived', () => vendor.counts.arrived === 1)
    const tokens = await tokensIn(guard)
    expect(tokens).toBeGreaterThan(50)
    expect(tokens).toBeLessThan(70)
    leave.abort()
    await call
  })

  it('a request that could cost more than the limit reserves half of it and is sent', async () => {
    const limits = [{ unit: 'tokens', limit: 100, windowMs: '1h' as const }]
    const { client } = await start(sdk, {}, { limits })
    expect(await client.ask({ maxTokens: 20_000 })).toBe(TEXT)
  })

  it('requests reserve tokens of the limits of their lane and its pool', async () => {
    const pools = { small: { limits: [{ unit: 'tokens', limit: 100, windowMs: '1h' as const }] } }
    const lanes = [{ match: 'model-*', pool: 'small' }]
    const limits = [{ unit: 'requests', limit: 100, windowMs: '1h' as const }]
    const { vendor, client } = await start(sdk, { neverAnswer: true }, { limits, lanes, pools })
    const leave = new AbortController()
    const ask = (model: string) =>
      errorOf(client.ask({ model, maxTokens: 50, signal: leave.signal }))
    const calls = [ask('model-a'), ask('model-b')]
    await until('both arrived', () => vendor.counts.arrived === 2)
    expect(await ask('model-c')).toBeInstanceOf(client.errors.RateLimitError)
    leave.abort()
    await Promise.all(calls)
  })

  it('later reservations follow the length of earlier answers', async () => {
    const { vendor, guard, client } = await start(sdk)
    const ask = () => client.ask({ maxTokens: 5_000 })
    await Promise.all(Array.from({ length: 20 }, ask))
    const used = 20 * (PROMPT_TOKENS + TOKENS)
    await expect.poll(() => tokensIn(guard)).toBe(used)
    vendor.set({ neverAnswer: true })
    const leave = new AbortController()
    const call = errorOf(client.ask({ maxTokens: 5_000, signal: leave.signal }))
    await until('it arrived', () => vendor.counts.arrived === 21)
    // The first ones reserved 1,000 tokens for their answers.
    expect(await tokensIn(guard)).toBeLessThan(used + 100)
    leave.abort()
    await call
  })

  it('options of `call` apply to every request of the client', async () => {
    const userLimits = [{ per: 'user' as const, limit: 1, windowMs: '1h' as const }]
    const usages: unknown[] = []
    const call = { user: 'ann', lane: 'mine', onUsage: (usage: object) => void usages.push(usage) }
    const { guard, client } = await start(sdk, {}, { userLimits }, { call })
    await client.ask()
    expect(refusalOf(await errorOf(client.ask()))).toMatchObject({ code: 'USER_LIMITED' })
    expect(guard.snapshot().lanes).toEqual(['mine'])
    await expect.poll(() => usages).toHaveLength(1)
    expect(usages[0]).toMatchObject({ outputTokens: TOKENS })
  })
})

describe('guard.sdk() and quotas', () => {
  it('the rules of OpenAI hold at its public API, and not at other hosts with its protocol', async () => {
    const usage = { prompt_tokens: 3, completion_tokens: 6, total_tokens: 9 }
    const fetch = async () => Response.json({ choices: [], usage })
    const limits = llmDefaults({ tokensPerMinute: 10_000 })
    const startAt = async (baseURL: string, options: SdkOptions = {}) => {
      const guard = startGuard({ ...limits, fetch: { fetch } })
      const client = new OpenAI({ baseURL, apiKey: 'key', ...guard.sdk(OpenAI, options) })
      const body = { model: MODEL, messages: QUESTION, max_tokens: 500 }
      await client.chat.completions.create(body)
      return guard
    }
    for (const [baseURL, tokens, options] of [
      ['https://api.openai.com/v1', 500],
      ['https://eu.api.openai.com/v1', 500],
      ['https://vendor.example/v1', 9],
      ['https://api.openai.com/v1', 9, { quota: 'reported' }],
    ] as const) {
      const guard = await startAt(baseURL, options)
      await expect.poll(() => tokensIn(guard)).toBe(tokens)
    }
  })
})

describe('guard.sdk() and streamed usage', () => {
  const body = { model: MODEL, messages: QUESTION, stream: true as const }
  const limits = llmDefaults({ tokensPerMinute: 10_000 })

  async function startOpenAI(options: GuardOptions, sdkOptions?: SdkOptions) {
    const { url } = await startVendor({ knobs: { tokens: TOKENS } })
    const guard = startGuard(options)
    const settings = guard.sdk(OpenAI, sdkOptions)
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'key', ...settings })
    return { guard, client }
  }

  const chunksOf = async (stream: AsyncIterable<{ choices: unknown[]; usage?: unknown }>) => {
    const chunks: { choices: unknown[]; usage?: unknown }[] = []
    for await (const chunk of stream) chunks.push(chunk)
    return chunks
  }

  it('an application that asks for the usage itself gets it', async () => {
    const { guard, client } = await startOpenAI(limits)
    const bodyWithOptions = { ...body, stream_options: { include_usage: true } }
    const chunks = await chunksOf(await client.chat.completions.create(bodyWithOptions))
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: TOKENS } })
    await expect.poll(() => tokensIn(guard)).toBe(PROMPT_TOKENS + TOKENS)
  })

  it('other stream options are kept when the usage is asked for', async () => {
    const { guard, client } = await startOpenAI(limits)
    const bodyWithOptions = { ...body, stream_options: { include_usage: false } }
    const chunks = await chunksOf(await client.chat.completions.create(bodyWithOptions))
    expect(chunks.every(({ choices }) => choices.length === 1)).toBe(true)
    await expect.poll(() => tokensIn(guard)).toBe(PROMPT_TOKENS + TOKENS)
  })

  it('with `streamUsage: false` the request is not changed and the estimate stays', async () => {
    const { guard, client } = await startOpenAI(limits, { streamUsage: false })
    await chunksOf(await client.chat.completions.create(body))
    expect(await tokensIn(guard)).toBeGreaterThan(PROMPT_TOKENS + TOKENS)
  })

  it('the helper methods of the SDK assemble a guarded stream', async () => {
    const { client } = await startOpenAI(limits)
    const answer = await client.chat.completions.stream(body).finalChatCompletion()
    expect(answer.choices[0]).toMatchObject({ message: { content: TEXT }, finish_reason: 'stop' })
  })
})

describe('guard.sdk() and models in paths', () => {
  it('the lane of AzureOpenAI is the deployment, whatever the request names', async () => {
    const { url, vendor } = await startVendor({ knobs: { tokens: TOKENS } })
    const guard = startGuard(llmDefaults({ tokensPerMinute: 10_000 }))
    const client = new AzureOpenAI({
      endpoint: url,
      apiKey: 'key',
      apiVersion: '2024-10-21',
      deployment: 'deployed',
      ...guard.sdk(AzureOpenAI),
    })
    await client.chat.completions.create({ model: 'named', messages: QUESTION })
    expect(vendor.calls[0]).toMatchObject({ api: 'azure', model: 'deployed', status: 200 })
    expect(guard.snapshot().lanes).toEqual(['deployed'])
  })

  it('a client of Gemini has lanes and refusals with the protocol gemini', async () => {
    const { url, vendor } = await startVendor({ knobs: { tokens: TOKENS } })
    const guard = startGuard({ limits: [{ limit: 1, windowMs: '1h' }] })
    const { fetch } = guard.sdk(undefined as never, { protocol: 'gemini' })
    const ask = () =>
      fetch(`${url}/v1beta/models/m:generateContent`, {
        method: 'POST',
        body: JSON.stringify({ contents: [{ parts: [{ text: 'twelve chars' }] }] }),
      })
    expect((await ask()).status).toBe(200)
    const refused = await ask()
    expect(refused.status).toBe(429)
    expect(await refused.json()).toMatchObject({
      error: { code: 429, status: 'RESOURCE_EXHAUSTED' },
    })
    expect(vendor.calls.map(({ model }) => model)).toEqual(['m'])
  })
})

describe('guard.sdk() and the class of the SDK', () => {
  const guard = () => startGuard(llmDefaults())

  it('a class derived from the SDK is recognised', async () => {
    class Mine extends OpenAI {}
    for (const each of [Mine, AzureOpenAI, class extends Anthropic {}]) {
      expect(guard().sdk(each)).toEqual({ fetch: expect.any(Function), maxRetries: 0 })
    }
  })

  it('an unknown SDK is rejected with a hint, and accepted with `protocol`', async () => {
    class Groq {}
    expect(() => guard().sdk(Groq)).toThrow(
      "guard(vendor).sdk: must be the class OpenAI, AzureOpenAI or Anthropic, got the class Groq; for another SDK with one of these APIs pass { protocol: 'openai' }",
    )
    expect(guard().sdk(Groq, { protocol: 'openai' }).maxRetries).toBe(0)
  })

  it.each([
    [undefined, 'guard(vendor).sdk: must be the class'],
    [null, 'guard(vendor).sdk: must be the class'],
    [{}, 'guard(vendor).sdk: must be the class'],
  ])('%s in place of a class is rejected', async (value, message) => {
    expect(() => guard().sdk(value as never)).toThrow(message)
  })

  it.each([
    [
      { protocoll: 'openai' },
      "guard(vendor).sdk.protocoll: unknown option; did you mean 'protocol'?",
    ],
    [{ protocol: 'openia' }, 'got "openia"; did you mean \'openai\'?'],
    [{ streamUsage: 1 }, 'guard(vendor).sdk.streamUsage: must be true or false'],
    [{ call: { usr: 'ann' } }, "run.usr: unknown option; did you mean 'user'?"],
    [{ call: 1 }, 'guard(vendor).sdk.call: must be an object'],
  ])('invalid options %j are rejected with their path', async (options, message) => {
    expect(() => guard().sdk(OpenAI, options as never)).toThrow(message)
  })
})
