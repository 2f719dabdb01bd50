import { describe, expect, it } from 'vitest'
import { parseDuration } from './duration.js'

describe('parseDuration', () => {
  it.each([
    [250, 250],
    ['100ms', 100],
    ['5s', 5_000],
    ['1.5m', 90_000],
    ['2h', 7_200_000],
    ['1d', 86_400_000],
    [' 10 s ', 10_000],
  ])('parseDuration reads %j as %d ms', (written, ms) => {
    expect(parseDuration(written)).toBe(ms)
  })

  it.each(['', '5', 's', '-5s', '5 sec', '5s5', '1e3s', Number.NaN, null, true, {}])(
    'parseDuration rejects %j',
    (written) => {
      expect(parseDuration(written)).toBeUndefined()
    },
  )
})
