import { describe, expect, it } from 'vitest'
import { NO_PROMPT } from './estimate/prompt-estimate.js'
import { QuotaModel, quotaOf } from './quota-model.js'
import { Reservations } from './reservation.js'

const REQUEST = { promptTokens: 1_000, cachedTokens: 900, maxTokens: 400, answers: 1 }
/** An answer to it, of which nine tenths of the prompt were cached. */
const USAGE = {
  tokens: 1_300,
  inputTokens: 1_100,
  outputTokens: 200,
  cachedTokens: 900,
  cacheWriteTokens: 100,
}
const USUAL = 250

describe('quota models', () => {
  it.each([
    ['openai', { tokens: 1_000, inputTokens: 1_000, outputTokens: 400 }, 1_100, 1_100],
    ['azure', { tokens: 1_400, inputTokens: 1_000, outputTokens: 400 }, 1_500, 1_100],
    ['anthropic', { tokens: 350, inputTokens: 100, outputTokens: 250 }, 400, 200],
    ['bedrock', { tokens: 2_250, inputTokens: 1_000, outputTokens: 1_250 }, 1_200, 200],
    ['gemini', { tokens: 1_000, inputTokens: 1_000, outputTokens: 250 }, 1_100, 1_100],
    ['reported', { tokens: 1_250, inputTokens: 1_000, outputTokens: 250 }, 1_300, 1_100],
  ] as const)(
    '%s reserves and counts tokens as the vendor does',
    (name, reserved, tokens, inputTokens) => {
      const quota = new QuotaModel(name)
      expect(quota.reserved(REQUEST, USUAL)).toEqual(reserved)
      expect(quota.counted(USAGE, REQUEST)).toMatchObject({ tokens, inputTokens })
    },
  )

  it('single rules of a preset can be replaced', () => {
    const request = { ...REQUEST, maxTokens: 400 }
    const cached = new QuotaModel({ preset: 'anthropic', countCacheReads: true })
    expect(cached.counted(USAGE, request)).toMatchObject({ tokens: 1_300, inputTokens: 1_100 })
    const generous = new QuotaModel({ preset: 'azure', keepReserved: false })
    expect(generous.reserved(request, USUAL)).toMatchObject({ tokens: 1_400 })
    expect(generous.counted(USAGE, request)).toMatchObject({ tokens: 1_300 })
    const doubled = new QuotaModel({ preset: 'gemini', reserve: 'max', outputFactor: 2 })
    expect(doubled.reserved(request, USUAL)).toMatchObject({ tokens: 1_500 })
    expect(doubled.counted(USAGE, request)).toMatchObject({ tokens: 1_500, outputTokens: 400 })
    expect(new QuotaModel({}).counted(USAGE, request)).toMatchObject({ tokens: 1_300 })
  })

  it('openai and azure keep what max_tokens has reserved for all answers', () => {
    const request = { ...REQUEST, maxTokens: 4_000, answers: 2 }
    for (const [name, tokens, counted] of [
      ['openai', 8_000, 8_000],
      ['azure', 9_000, 9_100],
    ] as const) {
      const quota = new QuotaModel(name)
      expect(quota.reserved(request, USUAL).tokens).toBe(tokens)
      expect(quota.counted(USAGE, request).tokens).toBe(counted)
    }
  })

  it('without max_tokens, every vendor reserves what answers usually need', () => {
    const request = { ...REQUEST, cachedTokens: 0, maxTokens: undefined }
    for (const name of ['openai', 'azure', 'anthropic', 'reported'] as const) {
      const quota = new QuotaModel(name)
      expect(quota.reserved(request, USUAL).tokens).toBe(1_250)
    }
    expect(new QuotaModel('openai').counted(USAGE, request).tokens).toBe(1_300)
  })

  it('an incomplete usage leaves unknown units as they were reserved', () => {
    for (const name of ['openai', 'azure', 'anthropic', 'bedrock', 'gemini'] as const) {
      const quota = new QuotaModel(name)
      expect(quota.counted({ outputTokens: 5 }, REQUEST)).toEqual({ outputTokens: 5 })
    }
  })

  it('max_tokens above the limit reserves the limit where the vendor reserves max_tokens', () => {
    const limits = [{ unit: 'tokens', limit: 1_000 }]
    const request = { prompt: NO_PROMPT, maxTokens: 5_000, answers: 1 }
    const estimates = { prompt: () => ({ promptTokens: 10, cachedTokens: 0 }), answer: () => 5_000 }
    expect(new Reservations(limits, 'openai').costOf(request, estimates)).toEqual({ tokens: 1_000 })
    const usual = new Reservations(limits, 'anthropic').costOf(request, estimates)
    expect(usual).toEqual({ tokens: 500 })
  })

  it('max_tokens above the limit counts as the limit, unless the answer was longer', () => {
    const limits = [{ unit: 'tokens', limit: 1_000 }]
    const request = { maxTokens: 1e12, answers: 1 }
    for (const name of ['openai', 'azure'] as const) {
      const reservations = new Reservations(limits, name)
      const short = { tokens: 30, inputTokens: 10, outputTokens: 20 }
      expect(reservations.countedFor(request, short).tokens).toBe(1_000)
      const long = { tokens: 3_000, inputTokens: 1_000, outputTokens: 2_000 }
      expect(reservations.countedFor(request, long).tokens).toBe(3_000)
    }
  })

  it.each([
    ['openai', 'api.openai.com', 'openai'],
    ['openai', 'eu.api.openai.com', 'openai'],
    ['openai', 'api.openai.com.example', 'reported'],
    ['openai', 'openrouter.ai', 'reported'],
    ['anthropic', '127.0.0.1', 'anthropic'],
    ['azure', 'mine.openai.azure.com', 'azure'],
    ['http', 'api.openai.com', 'reported'],
  ] as const)('the default for %s at %s is %s', (protocol, host, quota) => {
    expect(quotaOf(protocol, host)).toBe(quota)
  })
})
