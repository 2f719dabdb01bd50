import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { loadConfig } from './load.js'

const PAGES = [
  'docs/gateway/configuration.md',
  'docs/gateway/index.md',
  'docs/gateway/fallbacks.md',
  'README.md',
]
const text = PAGES.map((page) =>
  readFileSync(new URL(`../../../../${page}`, import.meta.url), 'utf8'),
).join('\n')
const blocks = [...text.matchAll(/```yaml\n(.*?)```/gs)].map(([, block = '']) => block)

/** Sets every variable that the pages refer to. */
const env = Object.fromEntries(
  [...text.matchAll(/env:(\w+)/g)].map(([, name = '']) => [name, name]),
)
const load = (text: string) =>
  loadConfig({
    file: 'docs/gateway/configuration.md',
    text,
    env: { ...env, REDIS_URL: 'redis://cache' },
    readFile: (path) => `from ${path}`.replaceAll(/\W/g, '-'),
  })

describe('configuration examples in the documentation', () => {
  it('every configuration example in the documentation is valid', () => {
    expect(blocks).toHaveLength(9)
    for (const text of blocks) expect(load(text).vendors.length).toBeGreaterThan(0)
  })

  it('the reference example in the documentation sets every option', () => {
    const config = load(blocks[1] ?? '')
    const defaults = ['pod', 'callers', 'redis'] as const
    for (const option of defaults) expect(config[option]).toBeDefined()
    expect(Object.keys(config.vendors[0]?.guard ?? {})).toHaveLength(10)
  })
})
