import { describe, expect, it } from 'vitest'
import { canonicalJson } from './canonical-json.js'

const none = () => false

describe('canonical JSON', () => {
  it.each([
    ['{ "b" : [1, {"d":2,"c":true}],\n"a":null }', '{"a":null,"b":[1,{"c":true,"d":2}]}'],
    [String.raw`{"a":"\u0041\/\"\\"}`, String.raw`{"a":"A/\"\\"}`],
    ['[]', '[]'],
    [' "a" ', '"a"'],
  ])('%s has one spelling', (text, canonical) => {
    expect(canonicalJson(text, none)).toBe(canonical)
  })

  it('ignored fields are left out at the top only', () => {
    const text = '{"user":"a","messages":[{"user":"b"}],"model":"gpt"}'
    const canonical = canonicalJson(text, (name) => name === 'user')
    expect(canonical).toBe('{"messages":[{"user":"b"}],"model":"gpt"}')
  })

  it('numbers that parsing would make equal stay different', () => {
    const seeds = ['12345678901234567890', '12345678901234567891', '1', '1.0', '1e400']
    const spellings = seeds.map((seed) => canonicalJson(`{"seed":${seed}}`, none))
    expect(new Set(spellings).size).toBe(seeds.length)
  })

  it('a key that occurs twice is refused at any depth, also if it is escaped once', () => {
    expect(canonicalJson('[{"a":1,"a":2}]', none)).toBeUndefined()
    expect(canonicalJson(String.raw`{"m":[{"a":1,"\u0061":2}]}`, none)).toBeUndefined()
  })

  it('`__proto__` is a field as any other', () => {
    const one = canonicalJson('{"__proto__":{"a":1}}', none)
    expect(one).toBe('{"__proto__":{"a":1}}')
  })

  it.each(['', '{', '{"a"}', '[1 2]', '{"a":1}x', '"a', 'nul', '{"a":"\n"}', '[1,]x'])(
    'the text %j is refused',
    (text) => expect(canonicalJson(text, none)).toBeUndefined(),
  )

  it('a text that is nested too deeply is refused', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
    expect(canonicalJson(nested(50), none)).toBe(nested(50))
    expect(canonicalJson(nested(100_000), none)).toBeUndefined()
  })
})
