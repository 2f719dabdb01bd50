/**
 * Malformed configurations: each is rejected with its reason and has no other effect.
 */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { usualOrLong } from '../../../spillway/test/long-run.js'
import { ConfigError } from '../../src/config/config-error.js'
import { loadConfig } from '../../src/config/load.js'
import { createGateway } from '../../src/gateway.js'
import { type Dice, dice } from './mutate.js'

const MALFORMED = usualOrLong(80, 10_000)
const SEED = 7
const SECRET = 'secret-0123456789abcdef'

const page = readFileSync(
  new URL('../../../../docs/gateway/configuration.md', import.meta.url),
  'utf8',
)
const SAMPLES = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, block = '']) => block)
const env = Object.fromEntries(
  [...page.matchAll(/env:(\w+)/g)].map(([, name = '']) => [name, `${SECRET}-${name}`]),
)
env.REDIS_URL = `redis://:${SECRET}@cache`

/** An alias bomb: nested lists of nine aliases each. */
const BOMB = Array.from({ length: 12 }, (_, i) =>
  i === 0
    ? 'b0: &b0 [x, x, x, x, x, x, x, x, x]'
    : `b${i}: &b${i} [${Array(9)
        .fill(`*b${i - 1}`)
        .join(', ')}]`,
).join('\n')

const PIECES = [
  '__proto__: { polluted: yes }',
  '"__proto__": { polluted: yes }',
  'constructor: { prototype: { polluted: yes } }',
  'prototype: { polluted: yes }',
  'toString: 1',
  'hasOwnProperty: null',
  '<<: { __proto__: { polluted: yes } }',
  '<<: *absent',
  'a: &a [*a]',
  '&a a: *a',
  '!!js/function "() => 1"',
  '!!binary aGVsbG8=',
  '!env KEY',
  '--- {}',
  '%YAML 9.9\n---',
  `key: ${SECRET}`,
  `  key: ${SECRET}`,
  `authorization: Bearer ${SECRET}`,
  `url: http://user:${SECRET}@host`,
  '? [a, b] : c',
  '1: 2',
  '.inf',
  '-1',
  '1e999',
  '0x7fffffff',
  'null',
  '[]',
  '{}',
  '""',
  '\0',
  '\t',
  '\uFEFF',
  '\u2028',
  '\ud800',
  '[ '.repeat(300),
  '{ a: '.repeat(300),
  'x'.repeat(5_000),
  'port: 99999',
  'server: { headersMs: never }',
]

const CHANGES: readonly ((lines: string[], dice: Dice) => string[])[] = [
  (lines, { below, pick }) => lines.toSpliced(below(lines.length + 1), 0, pick(PIECES)),
  (lines, { below, pick }) => {
    const at = below(lines.length)
    const indent = /^\s*/.exec(lines[at] ?? '')?.[0] ?? ''
    return lines.toSpliced(at, 0, indent + pick(PIECES))
  },
  (lines, { below, pick }) => {
    const at = below(lines.length)
    return lines.with(at, (lines[at] ?? '').replace(/:.*$/, `: ${pick(PIECES)}`))
  },
  (lines, { below }) => lines.toSpliced(below(lines.length), 1),
  (lines, { below }) => lines.toSpliced(below(lines.length), 0, lines[below(lines.length)] ?? ''),
  (lines, { below }) => {
    const at = below(lines.length)
    const line = lines[at] ?? ''
    const cut = below(line.length + 1)
    return lines.with(
      at,
      line.slice(0, cut) + String.fromCharCode(below(128)) + line.slice(cut + below(3)),
    )
  },
]

it('a malformed configuration is rejected with a reason and without a secret', async () => {
  const random = dice(SEED)
  const accepted: ReturnType<typeof loadConfig>[] = []
  let malformed = 0
  while (malformed < MALFORMED) {
    let lines = random.pick(SAMPLES).split('\n')
    for (let times = 1 + random.below(3); times > 0; times--)
      lines = random.pick(CHANGES)(lines, random)
    try {
      const config = loadConfig({
        file: 'a.yaml',
        text: lines.join('\n'),
        env,
        readFile: () => SECRET,
      })
      accepted.push(config)
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      malformed++
      expect(error.mistakes.length).toBeGreaterThan(0)
      if (error.message.includes(SECRET)) expect.fail(`${error.message}\n${lines.join('\n')}`)
    }
  }
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  expect(Object.keys(Object.prototype)).toEqual([])
  expect(accepted.length).toBeGreaterThan(MALFORMED / 20)
  // An accepted configuration can be run.
  for (const config of accepted.slice(0, 20)) {
    const gateway = await createGateway({ ...config, redis: undefined })
    await gateway.close({ graceMs: 0, delayMs: 0 })
  }
})

it.each([
  ['as it is', BOMB],
  ['in a vendor', `vendors:\n  openai:\n${BOMB.replace(/^/gm, '    ')}`],
  ['merged', `${BOMB.replaceAll('[', '{ <<: [').replaceAll(']', '] }').replace('[x', '[{}')}`],
  ['without its first anchor', BOMB.replace('&b0', '')],
])('an alias bomb is rejected (%s)', (_, text) => {
  // Expanding it would take hours.
  const load = () => loadConfig({ file: 'a.yaml', text, env })
  expect(load).toThrow(ConfigError)
  expect(load).toThrow(/^.{0,100000}$/s)
})
