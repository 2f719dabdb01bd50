import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { assemble, toTypeScript } from './lua-source.mjs'

const from = (files) => (name) => files[name]
const lua = (...lines) => `${lines.join('\n')}\n`

describe('assemble()', () => {
  it('assemble() drops comments, blank lines and indentation but no code', () => {
    const text = lua(
      '-- Adds one.',
      '',
      'local by = tonumber(ARGV[1]) -- stays, it shares a line with code',
      'if by > 0 then',
      '  -- why',
      "  return redis.call('INCRBY', KEYS[1], by)",
      'end',
    )
    expect(assemble('add', from({ add: text }))).toBe(
      [
        'local by = tonumber(ARGV[1]) -- stays, it shares a line with code',
        'if by > 0 then',
        "return redis.call('INCRBY', KEYS[1], by)",
        'end',
      ].join('\n'),
    )
  })

  it('assemble() inserts an include once, however many files use it', () => {
    const files = {
      take: lua('--- @include window', '--- @include now', 'return now()'),
      'include/window': lua('--- @include now', 'local window = 1'),
      'include/now': lua('local now = time'),
    }
    expect(assemble('take', from(files))).toBe('local now = time\nlocal window = 1\nreturn now()')
  })

  it('assemble() inlines number and string constants, but not in strings and fields', () => {
    const text = lua(
      "local STATE, TEXT = 1, 'it is DONE'",
      'local DONE = 3',
      "if job[STATE] == DONE then return TEXT .. ' STATE' .. job.DONE .. NOT_DONE end",
    )
    expect(assemble('finish', from({ finish: text }))).toBe(
      "if job[1] == 3 then return 'it is DONE' .. ' STATE' .. job.DONE .. NOT_DONE end",
    )
  })

  it('assemble() leaves computed, negative and partly constant values alone', () => {
    const text = lua('local NOW = time()', 'local LESS = -1', 'local A, B = 1, two()', 'return NOW')
    expect(assemble('now', from({ now: text }))).toBe(text.trim())
  })

  it.each([
    ['a script that is not there', {}, 'no take.lua'],
    [
      'an include that is not there',
      { take: '--- @include now' },
      'take.lua: there is no include/now.lua',
    ],
    [
      'includes that go in a circle',
      { take: '--- @include a', 'include/a': '--- @include b', 'include/b': '--- @include a' },
      'includes go in a circle: take > include/a > include/b > include/a',
    ],
    [
      'an include of itself',
      { take: '--- @include a', 'include/a': '--- @include a' },
      'includes go in a circle: take > include/a > include/a',
    ],
    [
      'a name for two numbers',
      { take: lua('local OPEN = 1', '--- @include a'), 'include/a': 'local OPEN = 2' },
      'take.lua: OPEN is both 1 and 2',
    ],
    [
      'a long comment',
      { take: lua('return 1', '--[[ two', 'lines ]]') },
      'take.lua:2: long strings and long comments cannot be shortened',
    ],
  ])('assemble() rejects %s', (_, files, message) => {
    expect(() => assemble('take', from(files))).toThrow(message)
  })
})

describe('toTypeScript()', () => {
  it('toTypeScript() keeps each text exactly, with its SHA-1', async () => {
    const text = `return '\`' .. '\\n' .. '$\{x}' .. "\\\\"\nreturn 2`
    const source = toTypeScript([{ name: 'take-permits', text }])
    const withoutTypes = source
      .replace(/^interface [^}]*\}/m, '')
      .replace(/SCRIPTS: .* =/, 'SCRIPTS =')
    const module = `data:text/javascript,${encodeURIComponent(withoutTypes)}`
    const { SCRIPTS } = await import(/* @vite-ignore */ module)
    const sha = createHash('sha1').update(text).digest('hex')
    expect(SCRIPTS).toEqual({ takePermits: { name: 'takePermits', sha, text } })
  })
})
