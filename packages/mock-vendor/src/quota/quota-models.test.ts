import { describe, expect, it } from 'vitest'
import type { LimitUnit } from './contract.js'
import { isExcess, Limits } from './limits.js'
import { sinceMidnightMs } from './pacific-day.js'
import { type QuotaName, quotaModel, type Weight } from './quota-models.js'

const MINUTE_MS = 60_000

interface Contract {
  quota: QuotaName
  unit?: LimitUnit
  limit: number
  windowMs?: number
}

/** One lane of a vendor with one limit. */
function vendorWith({ quota, unit = 'tokens', limit, windowMs = MINUTE_MS }: Contract) {
  const limits = new Limits([{ unit, limit, windowMs }], quotaModel(quota))
  const weigh = (weight: Partial<Weight>): Weight => ({
    promptTokens: 0,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    maxTokens: Number.POSITIVE_INFINITY,
    outputTokens: 0,
    ...weight,
  })
  return {
    /** Time to wait, or undefined if the request was admitted; `then` is the actual usage of its response. */
    ask(nowMs: number, weight: Partial<Weight>, then?: { outputTokens: number; atMs?: number }) {
      const taken = limits.take('lane', nowMs, weigh(weight))
      if (isExcess(taken)) return taken.waitMs
      const { outputTokens = 0, atMs = nowMs } = then ?? {}
      if (then !== undefined) limits.settle(taken, atMs, weigh({ ...weight, outputTokens }))
      return undefined
    },
    used: (nowMs: number) => limits.states('lane', nowMs)[0]?.used,
  }
}

describe('the quota of OpenAI', () => {
  it('a request is charged the larger of its prompt and max_tokens, and nothing afterwards', () => {
    const vendor = vendorWith({ quota: 'openai', limit: 1_000 })
    expect(
      vendor.ask(0, { promptTokens: 100, maxTokens: 300 }, { outputTokens: 9 }),
    ).toBeUndefined()
    expect(vendor.used(0)).toBe(300)
    expect(
      vendor.ask(0, { promptTokens: 400, maxTokens: 300 }, { outputTokens: 9 }),
    ).toBeUndefined()
    expect(vendor.used(0)).toBe(700)
    expect(vendor.ask(0, { promptTokens: 50 }, { outputTokens: 900 })).toBeUndefined()
    expect(vendor.used(0)).toBe(750)
  })

  it('the bucket is refilled all the time', () => {
    const vendor = vendorWith({ quota: 'openai', unit: 'requests', limit: 60 })
    for (let request = 0; request < 60; request++) expect(vendor.ask(0, {})).toBeUndefined()
    expect(vendor.ask(0, {})).toBe(1_000)
    expect(vendor.ask(999, {})).toBe(1)
    expect(vendor.ask(1_000, {})).toBeUndefined()
    expect(vendor.ask(1_000, {})).toBe(1_000)
  })
})

describe('the quota of Anthropic', () => {
  it('cache reads are free, cache writes count as input', () => {
    const vendor = vendorWith({ quota: 'anthropic', unit: 'inputTokens', limit: 1_000 })
    const weight = { promptTokens: 5_000, cachedTokens: 4_600, cacheWriteTokens: 300 }
    expect(vendor.ask(0, weight)).toBeUndefined()
    expect(vendor.used(0)).toBe(400)
  })

  it('the actual output counts, not max_tokens, and may leave a debt', () => {
    const vendor = vendorWith({ quota: 'anthropic', unit: 'outputTokens', limit: 600 })
    const most = { maxTokens: 100_000 }
    expect(vendor.ask(0, most, { outputTokens: 500 })).toBeUndefined()
    expect(vendor.ask(0, most, { outputTokens: 500 })).toBeUndefined()
    // 400 tokens too many, at ten tokens per second, and one for the next request.
    expect(vendor.ask(0, most)).toBe(40_100)
    expect(vendor.ask(40_100, most)).toBeUndefined()
  })
})

describe('the quota of Azure OpenAI', () => {
  it('requests are counted in parts of ten seconds', () => {
    const vendor = vendorWith({ quota: 'azure', unit: 'requests', limit: 60 })
    for (let request = 0; request < 10; request++) expect(vendor.ask(3_000, {})).toBeUndefined()
    expect(vendor.ask(3_000, {})).toBe(7_000)
    expect(vendor.ask(10_000, {})).toBeUndefined()
  })

  it('prompt and max_tokens are charged until the minute ends', () => {
    const vendor = vendorWith({ quota: 'azure', limit: 1_000 })
    const weight = { promptTokens: 100, maxTokens: 500 }
    expect(vendor.ask(50_000, weight, { outputTokens: 1 })).toBeUndefined()
    expect(vendor.used(50_000)).toBe(600)
    expect(vendor.ask(50_000, weight)).toBe(10_000)
    expect(vendor.ask(60_000, weight)).toBeUndefined()
  })
})

describe('the quota of Bedrock', () => {
  it('max_tokens are reserved, and then replaced by five times the output', () => {
    const vendor = vendorWith({ quota: 'bedrock', limit: 10_000 })
    const weight = { promptTokens: 1_000, cachedTokens: 400, maxTokens: 8_000 }
    expect(vendor.ask(0, weight, { outputTokens: 100, atMs: 2_000 })).toBeUndefined()
    expect(vendor.used(2_000)).toBe(600 + 500)
    expect(vendor.ask(2_000, { promptTokens: 1_000, maxTokens: 8_000 })).toBe(58_000)
    expect(
      vendor.ask(2_000, { promptTokens: 900, cachedTokens: 800, maxTokens: 7_500 }),
    ).toBeUndefined()
    expect(vendor.used(2_000)).toBe(1_100 + 900 + 7_500)
  })
})

describe('the quota of Gemini', () => {
  it('only input tokens count', () => {
    const vendor = vendorWith({ quota: 'gemini', limit: 1_000 })
    const weight = { promptTokens: 600, maxTokens: 9_000 }
    expect(vendor.ask(0, weight, { outputTokens: 5_000 })).toBeUndefined()
    expect(vendor.used(0)).toBe(600)
    expect(vendor.ask(0, weight)).toBe(MINUTE_MS)
  })

  it('a limit of a day ends at midnight in California', () => {
    const vendor = vendorWith({
      quota: 'gemini',
      unit: 'requests',
      limit: 1,
      windowMs: 86_400_000,
    })
    const nowMs = 1_000
    expect(vendor.ask(nowMs, {})).toBeUndefined()
    const waitMs = vendor.ask(nowMs, {}) ?? 0
    expect(waitMs).toBeGreaterThan(0)
    expect(waitMs).toBeLessThanOrEqual(86_400_000)
    expect(vendor.ask(nowMs + waitMs, {})).toBeUndefined()
  })

  it('midnight in California is at 8 o’clock UTC in winter and at 7 in summer', () => {
    expect(sinceMidnightMs(Date.parse('2026-01-15T08:00:00.250Z'))).toBe(250)
    expect(sinceMidnightMs(Date.parse('2026-07-15T07:00:00Z'))).toBe(0)
    expect(sinceMidnightMs(Date.parse('2026-07-15T06:59:59Z'))).toBe(86_399_000)
  })
})
