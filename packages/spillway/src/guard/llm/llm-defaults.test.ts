import { describe, expect, it } from 'vitest'
import { createSpillway } from '../spillway.js'
import { llmDefaults } from './llm-defaults.js'

describe('llmDefaults', () => {
  it('llmDefaults turns limits per minute into shared limits by unit', () => {
    const { limits } = llmDefaults({
      requestsPerMinute: 500,
      tokensPerMinute: 90_000,
      inputTokensPerMinute: 60_000,
      outputTokensPerMinute: 30_000,
    })
    expect(limits).toEqual([
      { unit: 'requests', limit: 500, windowMs: '1m' },
      { unit: 'tokens', limit: 90_000, windowMs: '1m' },
      { unit: 'inputTokens', limit: 60_000, windowMs: '1m' },
      { unit: 'outputTokens', limit: 30_000, windowMs: '1m' },
    ])
    expect(llmDefaults()).not.toHaveProperty('limits')
  })

  it('llmDefaults sets shedding, queue, breaker, concurrency, every timeout and retries', () => {
    const options = llmDefaults({ requestsPerMinute: 500 })
    expect(options).toMatchObject({
      shed: { maxQueue: expect.any(Number) },
      queue: { size: expect.any(Number), timeoutMs: 10_000 },
      breaker: { failureRate: 0.5 },
      concurrency: { limit: 250 },
      timeout: { callMs: '2m', firstByteMs: '2m', idleMs: '1m' },
      retry: { attempts: 3, budget: 0.2 },
    })
    expect(options.shed.maxQueue).toBeLessThan(options.queue.size)
  })

  it.each([
    [1, 50],
    [500, 250],
    [1_000_000, 1_000],
  ])(
    'llmDefaults for %i requests per minute allows %i calls at once',
    (requestsPerMinute, limit) => {
      expect(llmDefaults({ requestsPerMinute }).concurrency).toEqual({ limit })
    },
  )

  it('llmDefaults takes the number of calls at once from its options', () => {
    expect(llmDefaults({ requestsPerMinute: 500, concurrency: 7 }).concurrency.limit).toBe(7)
  })

  it('a guard accepts what llmDefaults returns, spread and changed', async () => {
    const spillway = createSpillway()
    const options = llmDefaults({ requestsPerMinute: 1, tokensPerMinute: 1 })
    const queue = { ...options.queue, size: 5 }
    const guard = spillway.guard('vendor', { ...options, queue })
    expect(await guard.run(() => 'answer')).toBe('answer')
    // Each call returns an object of its own.
    expect(llmDefaults()).not.toBe(llmDefaults())
    await spillway.close()
  })

  it.each([
    [
      { requestPerMinute: 1 },
      "llmDefaults.requestPerMinute: unknown option; did you mean 'requestsPerMinute'?",
    ],
    [{ requestsPerMinute: 0 }, 'llmDefaults.requestsPerMinute: must be a positive integer, got 0'],
    [
      { tokensPerMinute: '90000' },
      'llmDefaults.tokensPerMinute: must be a positive integer, got "90000"',
    ],
    [{ tokensPerMinute: 1.5 }, 'llmDefaults.tokensPerMinute: must be a positive integer, got 1.5'],
    [
      { tokensPerMinute: undefined },
      'llmDefaults.tokensPerMinute: must be a positive integer, got undefined; set the variable that it comes from, or leave the option out for no limit',
    ],
    [
      { requestsPerMinute: Number.NaN },
      'llmDefaults.requestsPerMinute: must be a positive integer, got NaN; set the variable that it comes from, or leave the option out for no limit',
    ],
    [{ concurrency: -1 }, 'llmDefaults.concurrency: must be a positive integer, got -1'],
    [null, 'llmDefaults: must be an object, got null'],
  ])('llmDefaults rejects %j with its path', (options, message) => {
    expect(() => llmDefaults(options as never)).toThrow(message)
  })
})
