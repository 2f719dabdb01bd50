// test-group: sockets

import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { systemClock } from '../../spillway/src/core/time/clock.js'
import { readVendorHeaders } from '../../spillway/src/shared/rate-limiter/vendor-headers.js'
import { startVendor } from '../../spillway/test/mock-client.js'
import { goDuration } from '../src/openai/openai.js'

const MINUTE = { limit: 2, windowMs: 60_000 }
const key = (name: string) => ({
  headers: { authorization: `Bearer ${name}`, 'x-api-key': name },
})

describe('mock vendor limits', () => {
  it('limits count each key and model separately', async () => {
    const { chat, vendor } = await startVendor({ limits: [MINUTE] })
    const statuses: number[] = []
    const ask = async (name: string, model: string) => {
      statuses.push((await chat({ model }, key(name))).status)
    }
    for (let i = 0; i < 3; i++) await ask('a', 'x')
    await ask('b', 'x')
    await ask('a', 'y')
    expect(statuses).toEqual([200, 200, 429, 200, 200])
    expect(vendor.counts).toMatchObject({ arrived: 5, succeeded: 4, throttled: 1 })
  })

  it('OpenAI headers have the remaining units, and a refusal the time to wait', async () => {
    const { chat } = await startVendor({
      limits: [MINUTE, { unit: 'tokens', limit: 100, windowMs: 60_000 }],
      knobs: { tokens: 7 },
    })
    const first = await chat()
    expect(first.headers.get('x-ratelimit-limit-requests')).toBe('2')
    expect(first.headers.get('x-ratelimit-remaining-requests')).toBe('1')
    expect(first.headers.get('x-ratelimit-limit-tokens')).toBe('100')
    expect(first.headers.get('x-ratelimit-remaining-tokens')).toBe('90')
    expect(first.headers.get('x-ratelimit-reset-requests')).toMatch(/^(1m0s|59\.\d+s)$/)
    expect(first.headers.get('retry-after')).toBeNull()
    await chat()
    const refused = await chat()
    expect(refused.headers.get('x-ratelimit-remaining-requests')).toBe('0')
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(50)
    expect(await refused.json()).toMatchObject({
      error: {
        message: expect.stringMatching(
          /^Rate limit reached for gpt .* on requests per min: Limit 2, Used 2, Requested 1\. Please try again in /,
        ),
        type: 'requests',
        param: null,
        code: 'rate_limit_exceeded',
      },
    })
  })

  it('Anthropic headers have the remaining units', async () => {
    const { messages } = await startVendor({
      limits: [MINUTE, { unit: 'outputTokens', limit: 30, windowMs: 60_000 }],
      knobs: { tokens: 16 },
    })
    const { headers } = await messages()
    expect(headers.get('anthropic-ratelimit-requests-remaining')).toBe('1')
    expect(headers.get('anthropic-ratelimit-output-tokens-remaining')).toBe('14')
    expect(headers.get('anthropic-ratelimit-requests-reset')).toMatch(/^\d{4}-.*:\d\dZ$/)
    const refused = await messages()
    expect(refused.status).toBe(429)
    expect(await refused.json()).toMatchObject({
      error: {
        type: 'rate_limit_error',
        message: expect.stringMatching('30 output tokens per minute'),
      },
    })
  })

  it("Spillway's limiter understands the headers of the mock vendor", async () => {
    const { chat, messages } = await startVendor({ limits: [MINUTE] })
    for (const ask of [chat, messages]) {
      const { headers } = await ask()
      const { left } = readVendorHeaders(headers, Date.now())
      expect(left).toMatchObject([{ unit: 'requests', remaining: 1 }])
      expect(left[0]!.resetMs).toBeGreaterThan(50_000)
      expect(left[0]!.resetMs).toBeLessThanOrEqual(61_000)
    }
  })

  it('a request after Retry-After is accepted again', async () => {
    const startMs = systemClock.now()
    const now = vi.spyOn(systemClock, 'now').mockReturnValue(startMs)
    onTestFinished(() => now.mockRestore())
    const { chat } = await startVendor({ limits: [{ limit: 1, windowMs: 2_500 }] })
    expect((await chat()).status).toBe(200)
    const refused = await chat()
    expect(refused.status).toBe(429)
    const seconds = Number(refused.headers.get('retry-after'))
    expect(seconds).toBe(3)
    now.mockReturnValue(startMs + 2_499)
    expect((await chat()).status).toBe(429)
    now.mockReturnValue(startMs + seconds * 1_000)
    expect((await chat()).status).toBe(200)
  })

  it('setLimits() changes the limits and reset() restores them', async () => {
    const { chat, vendor } = await startVendor({ limits: [MINUTE] })
    vendor.setLimits([{ limit: 1, windowMs: '1m' }])
    expect((await chat()).status).toBe(200)
    expect((await chat()).status).toBe(429)
    vendor.reset()
    expect((await chat()).status).toBe(200)
  })
})

describe('reset times in OpenAI format', () => {
  it.each([
    [11.2, '12ms'],
    [1_500, '1.5s'],
    [360_000, '6m0s'],
    [3_661_000, '1h1m1s'],
  ])('a reset in %d ms is written as %s', (ms, text) => {
    expect(goDuration(ms)).toBe(text)
  })
})
