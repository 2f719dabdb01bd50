import { availableParallelism } from 'node:os'
import { describe, expect, it } from 'vitest'
import { ConfigError } from '../config-error.js'
import { loadConfig } from '../load.js'

const VENDORS = 'vendors: { openai: { protocol: openai } }\n'
const REDIS = 'redis: redis://cache:6379\n'

const load = (text: string, env: Record<string, string> = {}) =>
  loadConfig({ file: 'a.yaml', text: VENDORS + text, env })

/** `path: message` of every mistake. */
function mistakesIn(text: string): string[] {
  try {
    load(text)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.mistakes.map(({ path, message }) => `${path}: ${message}`)
  }
  return []
}

describe('workers in the configuration', () => {
  it('a configuration with Redis may have any number of workers, or one for each core', () => {
    expect(load('').workers).toBe(1)
    expect(load(`${REDIS}workers: 4`).workers).toBe(4)
    expect(load(`${REDIS}workers: auto`).workers).toBe(availableParallelism())
    expect(load('workers: 4', { REDIS_URL: 'redis://cache:6379' }).workers).toBe(4)
  })

  it.each(['2', 'auto'])('workers: %s without Redis is a mistake that says why', (workers) => {
    expect(mistakesIn(`workers: ${workers}`)).toEqual([
      'workers: needs redis: workers are processes that share limits and breakers only through Redis, ' +
        'so without it each would spend the whole limit; set redis: env:REDIS_URL, or workers: 1',
    ])
    expect(mistakesIn('workers: 1')).toEqual([])
  })

  it.each(['0', '-1', '1.5', '257', 'all', '"2"', '[2]'])('workers: %s is a mistake', (workers) => {
    expect(mistakesIn(`${REDIS}workers: ${workers}`)).toEqual([
      expect.stringMatching(
        /^workers: must be 'auto' \(one for each core\) or an integer from 1 to 256, got /,
      ),
    ])
  })
})
