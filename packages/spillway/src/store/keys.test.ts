import { describe, expect, it } from 'vitest'
import { fc } from '../../test/fast-check.js'
import { createKeys, escaped, unescaped } from './keys.js'

const anyName = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom('{', '}', ':', '%', ' ', '\n', '\u2028', '0', '0020', 'a') }),
)

describe('escaped()', () => {
  it('escaped() can be reversed for any name', () => {
    fc.assert(
      fc.property(anyName, (name) => {
        expect(unescaped(escaped(name))).toBe(name)
      }),
    )
  })

  it('escaped() leaves no brace, colon or white space', () => {
    fc.assert(
      fc.property(anyName, (name) => {
        expect(escaped(name)).not.toMatch(/[{}:\s]/)
      }),
    )
  })
})

describe('createKeys', () => {
  it('all keys of a guard share one slot, and different names never share a key', () => {
    const keys = createKeys('sw')
    const ofOne = (guard: string, lane: string, pod: string) => [
      keys.lane(guard, lane),
      keys.guard(guard),
      keys.sequence(guard, pod),
      keys.reports(guard),
      keys.breaker(guard, lane),
      keys.outcomes(guard, lane, pod),
      keys.pods(guard),
      keys.podSnapshots(guard),
    ]
    const all = ofOne('a}:', 'b', 'c')
    for (const key of all) expect(/\{(.+?)\}/.exec(key)?.[1]).toBe('a%007d%003a')
    expect(new Set(all)).toHaveLength(all.length)
    expect(keys.outcomes('g', 'a:b', 'c')).not.toBe(keys.outcomes('g', 'a', 'b:c'))
  })
})
