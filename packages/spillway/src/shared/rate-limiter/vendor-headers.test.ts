import { describe, expect, it } from 'vitest'
import { readVendorHeaders } from './vendor-headers.js'

const NOON = Date.UTC(2030, 0, 1, 12)
const left = (headers: object) => readVendorHeaders(headers, NOON).left

describe('vendor rate limit headers', () => {
  it('rate limit headers of OpenAI are read', () => {
    expect(
      left({
        'x-ratelimit-limit-requests': '60',
        'x-ratelimit-remaining-requests': '59',
        'x-ratelimit-reset-requests': '1s',
        'x-ratelimit-remaining-tokens': '149984',
        'x-ratelimit-reset-tokens': '6m0.5s',
      }),
    ).toEqual([
      { unit: 'requests', remaining: 59, resetMs: 1_000 },
      { unit: 'tokens', remaining: 149_984, resetMs: 360_500 },
    ])
    expect(
      left({ 'x-ratelimit-remaining-tokens': '0', 'x-ratelimit-reset-tokens': '20ms' }),
    ).toEqual([{ unit: 'tokens', remaining: 0, resetMs: 20 }])
  })

  it('rate limit headers of Anthropic are read', () => {
    expect(
      left(
        new Headers({
          'anthropic-ratelimit-requests-remaining': '3',
          'anthropic-ratelimit-requests-reset': '2030-01-01T12:00:30Z',
          'anthropic-ratelimit-input-tokens-remaining': '9000',
          'anthropic-ratelimit-input-tokens-reset': '2030-01-01T11:59:00Z',
        }),
      ),
    ).toEqual([
      { unit: 'requests', remaining: 3, resetMs: 30_000 },
      { unit: 'inputTokens', remaining: 9_000, resetMs: 0 },
    ])
  })

  it('rate limit headers of the IETF drafts and common practice are read', () => {
    const requests = (remaining: number, resetMs: number) => [
      { unit: 'requests', remaining, resetMs },
    ]
    expect(left({ RateLimit: '"default";r=50;t=30' })).toEqual(requests(50, 30_000))
    expect(left({ RateLimit: 'limit=100, remaining=50, reset=5' })).toEqual(requests(50, 5_000))
    expect(left({ 'RateLimit-Remaining': '7', 'RateLimit-Reset': '3' })).toEqual(requests(7, 3_000))
    const epoch = String(NOON / 1_000 + 9)
    expect(left({ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': epoch })).toEqual(
      requests(0, 9_000),
    )
  })

  it('missing or invalid rate limit headers are ignored', () => {
    expect(left({})).toEqual([])
    expect(left({ 'x-ratelimit-remaining-requests': 'many' })).toEqual([])
    expect(readVendorHeaders({ 'retry-after': '7' }, NOON).retryAfterMs).toBe(7_000)
  })

  it.each(['1e3', '0x10', 'Infinity', '-1', '+1', '1_0', '9'.repeat(400), ' ', 'true'])(
    'the invalid remaining amount %j is ignored',
    (value) => {
      expect(left({ 'x-ratelimit-remaining-requests': value })).toEqual([])
      expect(left({ 'anthropic-ratelimit-tokens-remaining': value })).toEqual([])
      expect(left({ 'ratelimit-remaining': value })).toEqual([])
    },
  )

  it.each(['1e3', '0x10', 'Infinity', 'soon 2099', 'May 2099', '2099', '9'.repeat(400), '-5s'])(
    'the invalid reset time %j is ignored',
    (value) => {
      const [known] = left({
        'x-ratelimit-remaining-requests': '1',
        'x-ratelimit-reset-requests': value,
      })
      // A plain number is seconds; everything else here is unknown.
      expect(known?.resetMs).toBe(value === '2099' ? 2_099_000 : 0)
    },
  )
})
