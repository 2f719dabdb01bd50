// test-group: sockets

/** Calls are settled from the `usage` in the answer, wherever the vendor puts it. */
import Anthropic from '@anthropic-ai/sdk'
import type { MockKnobs } from '@spillway/mock-vendor'
import OpenAI from 'openai'
import { createSpillway, type GuardOptions } from 'spillway'
import { createSharedRateLimiter } from 'spillway/shared'
import { describe, expect, it, onTestFinished } from 'vitest'
import { memoryStore } from '../../src/store/memory/memory-store.js'
import { startVendor } from '../mock-client.js'
import { QUESTION, question, readAll, until } from './stream-kit.js'

const LIMITS = [{ unit: 'tokens', limit: 10_000, windowMs: 60_000 }]
/** The question has three tokens. */
const TOKENS = 40
const REAL = 3 + TOKENS
const BOOKED = 900

async function start(knobs: MockKnobs = {}, options: GuardOptions = {}) {
  const { vendor, url } = await startVendor({ knobs: { tokens: TOKENS, ...knobs } })
  const store = memoryStore()
  const spillway = createSpillway({ store })
  onTestFinished(() => spillway.close({ graceMs: 0 }))
  const guard = spillway.guard('vendor', { limits: LIMITS, ...options })
  const books = createSharedRateLimiter({ name: 'vendor', store, limits: LIMITS })
  onTestFinished(() => books.close())
  const fetch = guard.fetchFor({ cost: { tokens: BOOKED } })
  /** Tokens charged in the shared limit. */
  const used = async () => {
    const [limit] = (await books.figures({ lane: 'default' })).limits
    return limit?.used
  }
  const expectUsed = async (tokens: number) => {
    let last: number | undefined
    const endMs = performance.now() + 5_000
    do {
      last = await used()
    } while (last !== tokens && performance.now() < endMs)
    expect(last).toBe(tokens)
  }
  return { vendor, url, guard, fetch, used, expectUsed }
}

describe('settlement from the answer', () => {
  it('guard settles from the usage of an OpenAI answer', async () => {
    const { url, fetch, expectUsed } = await start()
    const response = await fetch(`${url}/v1/chat/completions`, question({ stream: false }))
    await expectUsed(BOOKED)
    expect(await response.json()).toMatchObject({ usage: { total_tokens: REAL } })
    await expectUsed(REAL)
  })

  it('guard settles from the usage in the last chunk of an OpenAI stream', async () => {
    const { url, fetch, expectUsed } = await start({ tokenMs: 1 })
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'key', maxRetries: 0, fetch })
    const stream = await client.chat.completions.create({
      model: 'gpt',
      messages: QUESTION,
      stream: true,
      stream_options: { include_usage: true },
    })
    await expectUsed(BOOKED)
    expect((await readAll(stream)).error).toBeUndefined()
    await expectUsed(REAL)
  })

  it('a stream without usage keeps the estimated cost', async () => {
    const { url, fetch, expectUsed } = await start()
    await (await fetch(`${url}/v1/chat/completions`, question())).text()
    await expectUsed(BOOKED)
  })

  it.each([true, false])('guard settles Anthropic usage, streamed: %s', async (streamed) => {
    const { url, fetch, expectUsed } = await start({ tokenMs: 1 })
    const client = new Anthropic({ baseURL: url, apiKey: 'key', maxRetries: 0, fetch })
    const body = { model: 'claude', max_tokens: 1_000, messages: QUESTION }
    if (streamed) await readAll(await client.messages.create({ ...body, stream: true }))
    else await client.messages.create(body)
    await expectUsed(REAL)
  })

  it('a stream that breaks off keeps the estimated cost although it began with a usage', async () => {
    const { url, fetch, expectUsed } = await start({ cutAfter: 20, tokenMs: 1 })
    const client = new Anthropic({ baseURL: url, apiKey: 'key', maxRetries: 0, fetch })
    const body = { model: 'claude', max_tokens: 1_000, messages: QUESTION, stream: true as const }
    expect((await readAll(await client.messages.create(body))).error).toBeInstanceOf(Error)
    await expectUsed(BOOKED)
  })

  it.each(['openai', 'anthropic'])(
    'guard settles from an SDK stream with its own fetch: %s',
    async (api) => {
      const { url, guard, expectUsed } = await start({ tokenMs: 1 })
      const cost = { tokens: BOOKED }
      const stream = await guard.run(
        (): Promise<AsyncIterable<unknown>> => {
          if (api === 'openai') {
            const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'key', maxRetries: 0 })
            return client.chat.completions.create({
              model: 'gpt',
              messages: QUESTION,
              stream: true,
              stream_options: { include_usage: true },
            })
          }
          const client = new Anthropic({ baseURL: url, apiKey: 'key', maxRetries: 0 })
          return client.messages.create({
            model: 'claude',
            max_tokens: 1_000,
            messages: QUESTION,
            stream: true,
          })
        },
        { cost },
      )
      await readAll(stream)
      await expectUsed(REAL)
    },
  )

  it('a call is settled from its answer although the reader transfers its chunks', async () => {
    const { url, fetch, guard, expectUsed } = await start()
    const body = question({ stream: false })
    const response = await fetch(`${url}/v1/chat/completions`, body)
    const source = (response.body as ReadableStream<Uint8Array>).getReader()
    const passedOn = new ReadableStream({
      type: 'bytes',
      async pull(controller) {
        const { done, value } = await source.read()
        if (done) controller.close()
        else controller.enqueue(value)
      },
    })
    expect(await new Response(passedOn).json()).toMatchObject({ usage: { total_tokens: REAL } })
    expect(guard.snapshot().active).toBe(0)
    await expectUsed(REAL)
  })

  it('cost beyond the estimate is charged', async () => {
    const { url, guard, expectUsed } = await start()
    const fetch = guard.fetchFor({ cost: { tokens: 5 } })
    await (await fetch(`${url}/v1/chat/completions`, question({ stream: false }))).text()
    await expectUsed(REAL)
  })

  it('settling below the estimate lets the next call start', async () => {
    const { vendor, url, guard } = await start(
      {},
      { limits: [{ unit: 'tokens', limit: 1_000, windowMs: 60_000 }] },
    )
    const fetch = guard.fetchFor({ cost: { tokens: BOOKED } })
    for (let each = 0; each < 2; each++) {
      await (await fetch(`${url}/v1/chat/completions`, question({ stream: false }))).text()
      await until('it is settled', () => guard.snapshot().active === 0)
    }
    expect(vendor.counts.succeeded).toBe(2)
  })
})
