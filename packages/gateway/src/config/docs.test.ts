import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { loadConfig } from './load.js'

const page = readFileSync(new URL('../../../../docs/gateway-config.md', import.meta.url), 'utf8')
const blocks = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, text = '']) => text)

/** Whatever the page refers to is there. */
const env = Object.fromEntries(
  [...page.matchAll(/env:(\w+)/g)].map(([, name = '']) => [name, name]),
)
const load = (text: string) =>
  loadConfig({
    file: 'docs/gateway-config.md',
    text,
    env: { ...env, REDIS_URL: 'redis://cache' },
    readFile: (path) => `from ${path}`.replaceAll(/\W/g, '-'),
  })

describe('the examples in the documentation', () => {
  it('are right', () => {
    expect(blocks).toHaveLength(2)
    for (const text of blocks) expect(load(text).vendors.length).toBeGreaterThan(0)
  })

  it('say all there is to say', () => {
    const config = load(blocks[1] ?? '')
    const defaults = ['pod', 'callers', 'redis'] as const
    for (const option of defaults) expect(config[option]).toBeDefined()
    expect(Object.keys(config.vendors[0]?.guard ?? {})).toHaveLength(9)
  })
})
