// test-group: io

/** Tokens are reserved before a call and settled after it, per model and key. */
import { describe, expect, it } from 'vitest'
import { LIMIT_UNITS } from '../src/config/limit-units.js'
import { estimateTokens } from '../src/tokens/estimate.js'
import { AnswerPrior } from '../src/tokens/prior.js'
import { startGateway } from './gateway-kit.js'

const LIMITS = { limits: [{ unit: 'tokens', limit: 1_000, windowMs: '1h' }] }

describe('reserved tokens', () => {
  it('a request reserves its prompt and its max_tokens', async () => {
    const { chat, vendor } = await startGateway({ guard: LIMITS }, { knobs: { tokens: 900 } })
    // 999 reserved, 903 used: 97 are left.
    expect((await chat({ max_tokens: 980 })).status).toBe(200)
    expect((await chat({ max_tokens: 300 })).status).toBe(429)
    expect((await chat({ max_tokens: 50 })).status).toBe(200)
    expect(vendor.counts.arrived).toBe(2)
  })

  it.each([{ n: 4 }, { best_of: 4 }, { n: 2, best_of: 4 }, { n: 4, best_of: 2 }])(
    'a request reserves tokens for each generated answer: %j',
    async (several) => {
      const { chat } = await startGateway({ guard: LIMITS })
      // A single request may exceed the remaining units.
      expect((await chat({ max_tokens: 10 })).status).toBe(200)
      expect((await chat({ max_tokens: 260, ...several })).status).toBe(429)
      expect((await chat({ max_tokens: 240, ...several })).status).toBe(200)
    },
  )

  it.each([
    '"max_tokens": 0, "n": 1e999',
    '"max_tokens": 1e999',
    '"max_tokens": 1e300, "n": 1e300',
    '"max_tokens": -1e9',
  ])('a request with an uncountable max_tokens reserves a guess: %s', async (said) => {
    const { url, failures } = await startGateway({ guard: LIMITS, body: { keepBytes: 1_000 } })
    for (const bytes of [10, 2_000]) {
      const answer = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: `{${said}, "model": "gpt-${bytes}", "messages": [{"role": "user", "content": "${'x'.repeat(bytes)}"}]}`,
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
    const { chat } = await startGateway({ guard: LIMITS }, { knobs: { tokens: 300 } })
    // The first reserves 512 and uses 303; from then on two more are known not to fit at once.
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

describe('AnswerPrior', () => {
  it('the prior covers most answers once it has seen some', () => {
    const prior = new AnswerPrior()
    let state = 7
    const next = () => {
      state = (state * 48_271) % 2_147_483_647
      return 100 + (state % 200)
    }
    for (let i = 0; i < 200; i++) prior.learn(next())
    let covered = 0
    for (let i = 0; i < 1_000; i++) {
      const tokens = next()
      if (tokens <= prior.guess()) covered++
      prior.learn(tokens)
    }
    expect(covered).toBeGreaterThan(900)
    expect(prior.guess()).toBeLessThan(500)
  })
})
