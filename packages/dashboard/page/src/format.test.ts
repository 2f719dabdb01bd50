import { describe, expect, it } from 'vitest'
import { countOf, formatCount, formatMs, formatSeconds, formatShare, spellOut } from './format'

describe('formatting of figures', () => {
  it.each([
    [0, '0'],
    [0.37, '0.4'],
    [12.4, '12'],
    [1_234, '1,234'],
    [56_700, '56.7K'],
    [Number.POSITIVE_INFINITY, '∞'],
  ])('the count %d is shown as %s', (value, words) => expect(formatCount(value)).toBe(words))

  it.each([
    [0, '0 ms'],
    [0.84, '0.8 ms'],
    [999, '999 ms'],
    [1_240, '1.2 s'],
    [60_000, '1 min'],
    [185_000, '3 min 05 s'],
    [7_800_000, '2 h 10 min'],
    [400_000_000, '4 days'],
  ])('a duration of %d ms is shown as %s', (value, words) => expect(formatMs(value)).toBe(words))

  it('a countdown stops at zero', () => {
    expect(formatSeconds(1)).toBe('1 s')
    expect(formatSeconds(-500)).toBe('0 s')
    expect(formatSeconds(61_000)).toBe('1 min 01 s')
  })

  it('shares, counts and option names are formatted as text', () => {
    expect(formatShare(0.034)).toBe('3.4 %')
    expect(formatShare(Number.NaN)).toBe('0 %')
    expect(countOf(1, 'pod')).toBe('1 pod')
    expect(countOf(2, 'retry', 'retries')).toBe('2 retries')
    expect(spellOut('retryAfterMs')).toBe('retry after')
  })
})
