import { describe, expect, it } from 'vitest'
import { ConfigError } from '../config-error.js'
import { loadConfig } from '../load.js'

const VENDORS = `vendors:
  openai: { protocol: openai, keys: { main: env:KEY, spare: env:KEY2 } }
  weather: { protocol: http, url: 'https://weather.example' }
routes:
  - { vendor: openai }
  - { path: /weather/*, vendor: weather }
`
const env = { KEY: 'sk-one', KEY2: 'sk-two' }
const load = (queues: string) =>
  loadConfig({ file: 'a.yaml', text: `${VENDORS}jobQueues:\n${queues}`, env })

function mistakesIn(queues: string): string[] {
  try {
    load(queues)
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    const { mistakes } = error as ConfigError
    return mistakes.map(({ path, message, line }) => `${line} ${path}: ${message}`)
  }
  throw new Error('no mistake was found')
}

describe('job queues in the configuration', () => {
  it('the former option queues is rejected and jobQueues suggested', () => {
    const text = `${VENDORS}queues:\n  night: { vendor: openai, model: gpt }\n`
    expect(() => loadConfig({ file: 'a.yaml', text, env })).toThrow(
      "queues: was renamed; use 'jobQueues'",
    )
  })

  it('the error for a renamed option points at its key', () => {
    const text = `${VENDORS}queues:\n  night: { vendor: openai, model: gpt }\n`
    const line = VENDORS.split('\n').length
    expect(() => loadConfig({ file: 'a.yaml', text, env })).toThrow(`a.yaml:${line}:1  queues:`)
  })

  it('a job queue needs only a vendor and a model', () => {
    expect(load('  night: { vendor: openai, model: gpt }\n').jobQueues).toEqual([
      {
        name: 'night',
        vendor: 'openai',
        key: undefined,
        model: 'gpt',
        settings: expect.objectContaining({ maxSize: 10_000, attempts: 3, resultMs: 3_600_000 }),
        timeoutMs: 86_400_000,
        concurrency: 10,
        priorities: {},
        maxRequestBytes: 262_144,
        maxAnswerBytes: 1_048_576,
      },
    ])
    expect(
      load('  rain: { vendor: weather, priorities: { free: low } }\n').jobQueues,
    ).toMatchObject([{ vendor: 'weather', model: undefined, priorities: { free: 'low' } }])
  })

  it('mistakes of a job queue are reported with their line and a suggestion', () => {
    expect(mistakesIn('  night: { vendor: opnai, model: gpt }\n')).toEqual([
      `8 jobQueues.night.vendor: there is no vendor of this name; did you mean 'openai'?`,
    ])
    expect(mistakesIn('  night: { vendor: openai }\n')).toEqual([
      '8 jobQueues.night.model: must be given: vendors of protocol openai count each model apart',
    ])
    expect(mistakesIn('  rain: { vendor: weather, model: gpt }\n')).toEqual([
      '8 jobQueues.rain.model: has no meaning with protocol http',
    ])
    expect(mistakesIn('  night: { vendor: openai, model: gpt, key: sprae }\n')).toEqual([
      `8 jobQueues.night.key: vendor 'openai' has no key of this name; did you mean 'spare'?`,
    ])
    expect(
      mistakesIn(
        '  a: { vendor: openai, model: gpt }\n  b: { vendor: openai, model: gpt, key: main }\n',
      ),
    ).toEqual(['9 jobQueues.b: is for what jobQueues.a is for: another vendor, key or model'])
    expect(mistakesIn('  night: { vendor: openai, model: gpt, leasMs: 3s }\n')).toEqual([
      `8 jobQueues.night.leasMs: unknown option; did you mean 'leaseMs'?`,
    ])
    expect(
      mistakesIn('  night: { vendor: openai, model: gpt, priorities: { pro: hihg } }\n')[0],
    ).toContain('8 jobQueues.night.priorities.pro: must be')
    expect(
      mistakesIn('  night: { vendor: openai, model: gpt, maxAnswerBytes: big }\n')[0],
    ).toContain(
      `8 jobQueues.night.maxAnswerBytes: must be a size of at least 1 bytes, such as 65536 or '64kb'`,
    )
  })
})
