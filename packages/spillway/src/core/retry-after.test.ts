import { describe, expect, it } from 'vitest'
import { parseRetryAfter, retryAfterFromHeaders } from './retry-after.js'

const NOON = Date.UTC(2030, 0, 1, 12)

describe('Retry-After', () => {
  it.each([
    ['120', 120_000],
    ['0', 0],
    ['1.5', 1_500],
    [3, 3_000],
    ['Tue, 01 Jan 2030 12:00:30 GMT', 30_000],
    ['Tue, 01 Jan 2030 11:59:00 GMT', 0],
  ])('Retry-After %j means %d ms', (value, ms) => {
    expect(parseRetryAfter(value, NOON)).toBe(ms)
  })

  it.each(['', 'soon', '-5', '2030-01-01', undefined, null, 'Infinity'])(
    'Retry-After %j is ignored',
    (value) => {
      expect(parseRetryAfter(value, NOON)).toBeUndefined()
    },
  )

  it('Retry-After is read from Headers and plain objects in any case', () => {
    expect(retryAfterFromHeaders(new Headers({ 'Retry-After': '2' }), NOON)).toBe(2_000)
    expect(retryAfterFromHeaders({ 'RETRY-AFTER': ['2', '9'] }, NOON)).toBe(2_000)
    expect(retryAfterFromHeaders({}, NOON)).toBeUndefined()
    expect(retryAfterFromHeaders('retry-after: 2', NOON)).toBeUndefined()
  })

  it('retry-after-ms takes precedence over retry-after, because it is more exact', () => {
    const headers = { 'retry-after': '1', 'retry-after-ms': '640' }
    expect(retryAfterFromHeaders(headers, NOON)).toBe(640)
    expect(retryAfterFromHeaders({ 'x-ms-retry-after-ms': '90' }, NOON)).toBe(90)
  })
})
