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

  const requests = (remaining: number, resetMs: number) => [
    { unit: 'requests', remaining, resetMs },
  ]

  it.each([
    ['r=50;t=30', 50, 30],
    ['t=30;r=50', 50, 30],
    ['remaining=50, reset=30', 50, 30],
    ['"a";pr=7;r=50;pt=8;t=30', 50, 30],
    ['limit=100\tr=50\tt=30', 50, 30],
    ['"default";r=50', 50, 0],
  ])('the header RateLimit: %s is read', (value, remaining, seconds) => {
    expect(left({ ratelimit: value })).toEqual(requests(remaining, seconds * 1_000))
  })

  it('a RateLimit header without a remaining amount is ignored', () => {
    const separate = { 'ratelimit-remaining': '7', 'ratelimit-reset': '3' }
    expect(left({ ratelimit: '"default";t=30', ...separate })).toEqual([])
    expect(left({ ratelimit: 5, ...separate })).toEqual(requests(7, 3_000))
    expect(left({ 'ratelimit-reset': '3' })).toEqual([])
    expect(left({ 'x-ratelimit-remaining': '7', 'ratelimit-reset': '3' })).toEqual(
      requests(7, 3_000),
    )
  })

  it('a fraction of a remaining unit is not counted', () => {
    expect(left({ 'ratelimit-remaining': '7.9' })).toEqual(requests(7, 0))
  })

  it.each([
    ['999999999', 999_999_999_000],
    ['1000000000', 0],
    [String(NOON / 1_000 - 5), 0],
    ['', 0],
    ['1d2h3m4s5ms', 93_784_005],
    ['Tue, 01 Jan 2030 12:00:30 GMT', 30_000],
    ['Tue, 01 Jan 2030 11:00:30 GMT', 0],
    ['2030-01-01T13:00:30+01:00', 30_000],
    ['2030-13-01T12:00:30Z', 0],
  ])('the reset time %j is %d ms away', (value, resetMs) => {
    const headers = { 'x-ratelimit-remaining-requests': '1', 'x-ratelimit-reset-requests': value }
    expect(left(headers)).toEqual(requests(1, resetMs))
  })

  it("dates are compared with the vendor's own Date header", () => {
    const anHourAhead = { date: 'Tue, 01 Jan 2030 13:00:00 GMT' }
    const headers = { ...anHourAhead, 'retry-after': 'Tue, 01 Jan 2030 13:00:07 GMT' }
    expect(readVendorHeaders(headers, NOON)).toEqual({ retryAfterMs: 7_000, left: [] })
    const reset = '2030-01-01T13:00:09Z'
    expect(left({ ...anHourAhead, 'ratelimit-remaining': '1', 'ratelimit-reset': reset })).toEqual(
      requests(1, 9_000),
    )
  })

  it('a pause in milliseconds is read, and its absence is no pause', () => {
    expect(readVendorHeaders({ 'retry-after-ms': '250' }, NOON).retryAfterMs).toBe(250)
    const both = { 'retry-after': '1', 'retry-after-ms': '250' }
    expect(readVendorHeaders(both, NOON).retryAfterMs).toBe(250)
    expect(readVendorHeaders({}, NOON).retryAfterMs).toBeUndefined()
  })
})
