import { describe, expect, it } from 'vitest'
import { fc } from '../../../test/fast-check.js'
import { NamePattern } from './name-pattern.js'

const matches = (pattern: string, name: string) => new NamePattern(pattern).matches(name)

describe('NamePattern', () => {
  it.each([
    ['gpt-4o', 'gpt-4o', true],
    ['gpt-4o', 'gpt-4o-mini', false],
    ['gpt-4o-mini*', 'gpt-4o-mini', true],
    ['gpt-4o-mini*', 'gpt-4o-mini-2024', true],
    ['*-mini', 'gpt-4o-mini', true],
    ['*-mini', '-min', false],
    ['a*a', 'a', false],
    ['a*a', 'aa', true],
    ['claude-*-4-*', 'claude-opus-4-1', true],
    ['claude-*-4-*', 'claude-opus-4', false],
    ['*', '', true],
    ['a.c', 'abc', false],
    ['**x**', 'x', true],
  ])('pattern %s and name %s: %s', (pattern, name, expected) => {
    expect(matches(pattern, name)).toBe(expected)
  })

  it('pattern decides like a regular expression with .* for each wildcard', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 7 })
    const name = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 9 })
    fc.assert(
      fc.property(word, name, (pattern, each) => {
        const expected = new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(each)
        expect(matches(pattern, each)).toBe(expected)
      }),
      { numRuns: 2_000 },
    )
  })

  it('many wildcards and a long name take as many steps as the name has letters', () => {
    // A pattern that backtracks would take longer than the test may.
    const pattern = new NamePattern(`${'*a'.repeat(90)}*b`)
    for (let times = 0; times < 1_000; times++) {
      expect(pattern.matches('a'.repeat(10_000))).toBe(false)
    }
  })

  it('pattern covers a later one if it matches all names of that', () => {
    expect(new NamePattern('gpt-*').covers(new NamePattern('gpt-4*-mini'))).toBe(true)
    expect(new NamePattern('gpt-4o').covers(new NamePattern('gpt-4o*'))).toBe(false)
    expect(new NamePattern('*').covers(new NamePattern('a*'))).toBe(true)
  })
})
