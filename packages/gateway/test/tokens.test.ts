// test-group: sockets

import { NO_PROMPT, PromptEstimate, Reservations, tokensOf } from 'spillway/internal'
/** Tokens are reserved before a call and settled after it, per model and key. */
import { describe, expect, it } from 'vitest'
import { LIMIT_UNITS } from '../src/config/shapes/limit-units.js'
import { FieldNames } from '../src/protocols/protocol.js'
import { JsonFieldReader } from '../src/request/body/json-fields.js'
import { startGateway } from './gateway-kit.js'
import { startRecordingVendor } from './recording-vendor.js'

const LIMITS = { limits: [{ unit: 'tokens', limit: 1_000, windowMs: '1h' }] }

describe('token reservation', () => {
  it('the prompt and the longest possible answer are reserved and replaced by the actual cost', async () => {
    const { chat, vendor } = await startGateway({ guard: LIMITS }, { knobs: { tokens: 900 } })
    // 500 reserved, 903 used: 97 are left.
    expect((await chat({ max_tokens: 980 })).status).toBe(200)
    expect((await chat({ max_tokens: 300 })).status).toBe(429)
    expect((await chat({ max_tokens: 50 })).status).toBe(200)
    expect(vendor.counts.arrived).toBe(2)
  })

  it.each([{ n: 4 }, { best_of: 4 }, { n: 2, best_of: 4 }, { n: 4, best_of: 2 }])(
    'tokens are reserved for each answer that is generated: %j',
    async (several) => {
      const { chat } = await startGateway({ guard: LIMITS }, { knobs: { tokens: 700 } })
      expect((await chat({ max_tokens: 800 })).status).toBe(200)
      // Less than 300 is left.
      expect((await chat({ max_tokens: 80, ...several })).status).toBe(429)
      expect((await chat({ max_tokens: 60, ...several })).status).toBe(200)
    },
  )

  it('a reservation is for the largest of several limits, because the vendor may obey any', async () => {
    const { chat } = await startGateway({ guard: LIMITS }, { knobs: { tokens: 700 } })
    expect((await chat({ max_tokens: 800 })).status).toBe(200)
    // Less than 300 is left.
    expect((await chat({ max_completion_tokens: 1, max_tokens: 400 })).status).toBe(429)
    expect((await chat({ max_tokens: 1, max_output_tokens: -1 })).status).toBe(429)
    expect((await chat({ max_completion_tokens: 1, max_tokens: 2 })).status).toBe(200)
  })

  it.each([
    ['/v1/messages/count_tokens', { 'anthropic-version': '2023-06-01' }],
    ['/v1/moderations', {}],
  ])('nothing is reserved on %s, which the vendor does not charge', async (path, headers) => {
    const vendor = await startRecordingVendor()
    const { url } = await startGateway({ guard: { ...LIMITS, url: vendor.url } })
    const send = () =>
      fetch(`${url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ model: 'gpt', messages: [], input: 'x'.repeat(4_000) }),
      })
    for (let i = 0; i < 5; i++) expect((await send()).status).toBe(200)
  })

  it('a reservation is at most half of the limit, so a huge max_tokens needs no empty window', async () => {
    const guard = { ...LIMITS, queue: { size: 10, timeoutMs: '2h' } }
    const { chat } = await startGateway({ guard }, { knobs: { tokens: 5 } })
    expect((await chat({ max_tokens: 10 })).status).toBe(200)
    expect((await chat({ max_tokens: 1e12 })).status).toBe(200)
  })

  it('ten sequential requests with max_tokens 128000 pass a limit of 90000 tokens', async () => {
    const guard = { limits: [{ unit: 'tokens', limit: 90_000, windowMs: '1m' }] }
    const { messages } = await startGateway({ guard }, { knobs: { tokens: 100 } })
    for (let i = 0; i < 10; i++) expect((await messages({ max_tokens: 128_000 })).status).toBe(200)
  })

  it('twenty requests with max_tokens 128000 run at once when answers are known to be short', async () => {
    const guard = { limits: [{ unit: 'tokens', limit: 90_000, windowMs: '1m' }] }
    const { messages } = await startGateway({ guard }, { knobs: { tokens: 100, latencyMs: 50 } })
    expect((await messages({ max_tokens: 128_000 })).status).toBe(200)
    const many = Array.from({ length: 20 }, () => messages({ max_tokens: 128_000 }))
    expect((await Promise.all(many)).map(({ status }) => status)).toEqual(Array(20).fill(200))
  })

  it.each([
    '"max_tokens": 0, "n": 1e999',
    '"max_tokens": 1e999',
    '"max_tokens": 1e300, "n": 1e300',
    '"max_tokens": -1e9',
  ])('a request with an uncountable max_tokens reserves a guess: %s', async (field) => {
    const { url, failures } = await startGateway({ guard: LIMITS, body: { keepBytes: 1_000 } })
    for (const bytes of [10, 2_000]) {
      const answer = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: `{${field}, "model": "gpt-${bytes}", "messages": [{"role": "user", "content": "${'x'.repeat(bytes)}"}]}`,
      })
      expect(answer.status).toBe(200)
    }
    expect(failures).toEqual([])
  })

  it('unused tokens are returned and free for other requests', async () => {
    const { chat } = await startGateway({ guard: LIMITS }, { knobs: { tokens: 5 } })
    for (let i = 0; i < 10; i++) expect((await chat({ max_tokens: 900 })).status).toBe(200)
  })

  it('without max_tokens the reservation is learned from earlier answers', async () => {
    const { chat } = await startGateway({ guard: LIMITS }, { knobs: { tokens: 400 } })
    // The first reserves 500 and uses 403. Two more of that size do not fit at once.
    expect((await chat()).status).toBe(200)
    const both = await Promise.all([chat(), chat()])
    expect(both.map(({ status }) => status).sort()).toEqual([200, 429])
  })

  it('tokens are counted per model', async () => {
    const { chat } = await startGateway({ guard: LIMITS }, { knobs: { tokens: 900 } })
    expect((await chat({ model: 'a', max_tokens: 950 })).status).toBe(200)
    expect((await chat({ model: 'a', max_tokens: 950 })).status).toBe(429)
    expect((await chat({ model: 'b', max_tokens: 950 })).status).toBe(200)
  })

  it('input and output tokens are counted separately if the limits are', async () => {
    const guard = {
      limits: [
        { unit: 'inputTokens', limit: 1_000, windowMs: '1h' },
        { unit: 'outputTokens', limit: 100, windowMs: '1h' },
      ],
    }
    const { messages } = await startGateway({ guard }, { knobs: { tokens: 60 } })
    expect((await messages({ max_tokens: 100 })).status).toBe(200)
    expect((await messages({ max_tokens: 100 })).status).toBe(429)
    expect((await messages({ max_tokens: 30 })).status).toBe(200)
  })
})

describe('limit units', () => {
  it.each(LIMIT_UNITS.openai)('a limit on %s in the configuration takes effect', async (unit) => {
    const guard = { limits: [{ unit, limit: 4, windowMs: '1h' }] }
    const { chat } = await startGateway({ guard }, { knobs: { tokens: 4 } })
    const statuses: number[] = []
    for (let i = 0; i < 5; i++) statuses.push((await chat({ max_tokens: 1 })).status)
    expect(statuses.at(0)).toBe(200)
    expect(statuses.at(-1)).toBe(429)
  })
})

describe('vendor limit headers', () => {
  it('remaining units reported by the vendor are respected before it refuses', async () => {
    const guard = { limits: [{ limit: 100, windowMs: '1m' }] }
    const mock = { limits: [{ limit: 3, windowMs: '1m' as const }] }
    const { chat, vendor } = await startGateway({ guard }, mock)
    const statuses: number[] = []
    for (let i = 0; i < 6; i++) statuses.push((await chat()).status)
    expect(statuses).toEqual([200, 200, 200, 429, 429, 429])
    expect(vendor.counts.throttled).toBe(0)
  })

  it('a pause requested by the vendor applies to the next call', async () => {
    const { chat, vendor } = await startGateway(
      {},
      { knobs: { status: 429, retryAfterMs: 20_000 } },
    )
    expect((await chat()).status).toBe(429)
    const refused = await chat()
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(15)
    expect(vendor.counts.arrived).toBe(1)
  })
})

/** The token estimate for these values in a request body. */
function estimateTokens(parts: readonly unknown[]): number {
  const prompt = new PromptEstimate()
  const names = parts.map((_, index) => `part${index}`)
  const reader = new JsonFieldReader(new FieldNames([], names), prompt)
  reader.push(
    Buffer.from(JSON.stringify(Object.fromEntries(names.map((name, i) => [name, parts[i]])))),
  )
  reader.end()
  return tokensOf(prompt, 4)
}

describe('estimateTokens', () => {
  it('a token estimate is a quarter of the bytes of all text, however nested', () => {
    const text = 'x'.repeat(400)
    expect(estimateTokens([text])).toBe(100)
    expect(estimateTokens([[{ role: 'user', content: text }]])).toBeGreaterThanOrEqual(100)
    expect(estimateTokens([[{ role: 'user', content: [{ type: 'text', text }] }]])).toBeLessThan(
      120,
    )
    expect(estimateTokens([undefined, null])).toBe(0)
  })

  it('a token estimate does not count images as text', () => {
    const picture = `data:image/png;base64,${'iVBOR'.repeat(100_000)}`
    const message = { content: [{ type: 'image_url', image_url: { url: picture } }] }
    expect(estimateTokens([[message]])).toBeLessThan(2_000)
    const anthropic = { content: [{ type: 'image', source: { data: 'iVBOR'.repeat(100_000) } }] }
    expect(estimateTokens([[anthropic]])).toBeLessThan(2_000)
  })
})

describe('a reservation', () => {
  const limits = [
    { limit: 500 },
    { unit: 'tokens', limit: 90_000 },
    { unit: 'tokens', limit: 2_000_000 },
    { unit: 'outputTokens', limit: 40_000, burst: 8_000 },
  ]
  const facts = {
    model: 'm',
    streamed: false,
    prompt: NO_PROMPT,
    maxTokens: undefined,
    answers: 1,
  }
  const estimates = (promptTokens = 100) => ({
    prompt: () => ({ promptTokens, cachedTokens: 0 }),
    answer: () => 300,
  })
  const reserve = (more: object, promptTokens?: number) =>
    new Reservations(limits).costOf({ ...facts, ...more }, estimates(promptTokens))

  it('a reservation is the prompt and the usual answer', () => {
    expect(reserve({})).toEqual({ tokens: 400, outputTokens: 300 })
    expect(reserve({ maxTokens: 128_000 })).toEqual({ tokens: 400, outputTokens: 300 })
  })

  it('a reservation is never more than the prompt and max_tokens', () => {
    expect(reserve({ maxTokens: 20 })).toEqual({ tokens: 120, outputTokens: 20 })
    expect(reserve({ maxTokens: 20, answers: 3 })).toEqual({ tokens: 160, outputTokens: 60 })
    expect(reserve({ maxTokens: 0 })).toEqual({ tokens: 100, outputTokens: 0 })
  })

  it('a reservation is at most half of the smallest limit in each unit', () => {
    expect(reserve({ answers: 1e15 })).toEqual({ tokens: 45_000, outputTokens: 4_000 })
    expect(reserve({}, 80_000)?.tokens).toBe(45_000)
  })

  it('nothing is reserved where no limit counts tokens', () => {
    expect(new Reservations([{ limit: 5 }]).costOf(facts, estimates())).toBeUndefined()
  })
})
