import { describe, expect, it } from 'vitest'
import { fc } from '../../test/fast-check.js'
import { createKeys, escaped, unescaped } from './keys.js'

const anyName = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom('{', '}', ':', '%', ' ', '\n', '\u2028', '0', '0020', 'a') }),
)

describe('escaped', () => {
  it('can be undone, whatever the name', () => {
    fc.assert(fc.property(anyName, (name) => unescaped(escaped(name)) === name))
  })

  it('leaves nothing that ends a hash tag, a name or a word', () => {
    fc.assert(fc.property(anyName, (name) => !/[{}:\s]/.test(escaped(name))))
  })
})

describe('createKeys', () => {
  it('keeps all keys of a guard in one slot, and those of different names apart', () => {
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
