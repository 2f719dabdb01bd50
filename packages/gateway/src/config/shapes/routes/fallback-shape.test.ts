import { describe, expect, it } from 'vitest'
import { ConfigError } from '../../config-error.js'
import { loadConfig } from '../../load.js'

const load = (fallbacks: string, vendor = 'concurrency: { limit: 5 }') =>
  loadConfig({
    file: 'a.yaml',
    text: `vendors:
  openai: { protocol: openai, ${vendor} }
  azure: { protocol: openai }
routes: [{ vendor: openai, fallbacks: [${fallbacks}] }]`,
    env: {},
  }).routes[0]

function mistakesIn(fallbacks: string, vendor?: string): string[] {
  try {
    load(fallbacks, vendor)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.mistakes.map(({ path, message }) => `${path}: ${message}`)
  }
  return []
}

describe('fallbacks without a vendor', () => {
  it('targets, a smaller model under load, a cached and a static answer can be combined', () => {
    const route = load(
      `{ vendor: azure }, { model: mini, when: { pressure: 0.8 } },
       { cached: { maxAgeMs: 5m, shared: true, maxBytes: 1mb, ignoreHeaders: [X-Trace] } },
       { static: busy, on: [shed] }`,
    )
    expect(route?.targets).toEqual([
      { vendor: 'openai', key: undefined, model: undefined },
      { vendor: 'azure', key: undefined, model: undefined },
      { vendor: 'openai', key: undefined, model: 'mini', when: { pressure: 0.8 } },
    ])
    expect(route?.fallbackAnswers).toMatchObject([
      {
        kind: 'cached',
        on: ['timeout', 'error', 'circuit-open', 'shed'],
        maxAgeMs: 300_000,
        shared: true,
        maxEntries: 1_000,
        maxBytes: 1_048_576,
        maxAnswerBytes: 1_048_576,
        ignoreHeaders: ['x-trace'],
      },
      { kind: 'static', on: ['shed'], status: 200, text: 'busy' },
    ])
  })

  it('cached answers are of one caller, and an hour old at most, by default', () => {
    const [cached] = load('{ cached: {} }')?.fallbackAnswers ?? []
    expect(cached).toMatchObject({ shared: false, maxAgeMs: 3_600_000 })
    expect(cached).toHaveProperty('ignoreFields', expect.arrayContaining(['user', 'metadata']))
  })

  it('a static answer is text, JSON, or a body with its type', () => {
    const answers = (line: string) => load(line)?.fallbackAnswers
    expect(answers('{ static: { json: { a: [1] }, status: 503 } }')).toMatchObject([
      { status: 503, body: '{"a":[1]}', contentType: 'application/json' },
    ])
    expect(answers('{ static: { body: <p>, contentType: text/html } }')).toMatchObject([
      { status: 200, body: '<p>', contentType: 'text/html' },
    ])
  })

  it('a target may be a fallback for failures and one for times of pressure', () => {
    const under = (pressure: number) => `{ model: mini, when: { pressure: ${pressure} } }`
    expect(load(`{ model: mini }, ${under(0.8)}`)?.targets).toHaveLength(3)
    expect(mistakesIn(`${under(0.8)}, ${under(0.9)}`)).toHaveLength(1)
    expect(mistakesIn('{ vendor: openai, when: { pressure: 0.8 } }')).toHaveLength(1)
  })

  it.each([
    ['{ static: a }, { vendor: azure }', '[1]: a vendor, key or model must come before static'],
    ['{ cached: {} }, { model: m }', '[1]: a vendor, key or model must come before cached'],
    ['{ static: a }, { cached: {} }', '[1]: cached must come before static'],
    ['{ cached: {} }, { cached: {} }', '[1]: must be the only fallback with cached'],
    ['{ cached: {}, static: a }', '[0].static: must not come together with cached'],
    ['{ cached: {}, model: m }', '[0].model: must not come together with cached'],
    ['{ static: a, when: { pressure: 1 } }', '[0].when: must not come together with static'],
    ['{ cachd: {} }', "[0].cachd: unknown option; did you mean 'cached'?"],
    ['{ cached: { maxAge: 1h } }', "[0].cached.maxAge: unknown option; did you mean 'maxAgeMs'?"],
    ['{ cached: {}, on: [eror] }', '[0].on[0]: must be one of'],
    ['{ cached: {}, on: [] }', '[0].on: must have at least one reason'],
    ['{ model: m, on: [error] }', "[0].on: has 'error', which is for cached and static"],
    ['{ model: m, on: [] }', '[0].on: must have at least one kind of error'],
    ['{ static: a, on: [server] }', "[0].on: has 'server', which is for targets"],
    [
      '{ model: m, on: [server], when: { pressure: 0.5 } }',
      '[0].on: must not come together with when',
    ],
    ['{ static: {} }', '[0].static: must have text, json or body'],
    ['{ static: { text: a, json: 1 } }', '[0].static.json: must not come together with text'],
    ['{ static: { text: a, status: 503 } }', '[0].static.status: must be 200 with text'],
    ['{ static: { text: a, contentType: b } }', '[0].static.contentType: has no meaning with text'],
    ['{ static: { body: a, status: 204 } }', '[0].static.status: must not be 204'],
    [
      '{ model: m, when: { pressur: 1 } }',
      "[0].when.pressur: unknown option; did you mean 'pressure'?",
    ],
    ['{ model: m, when: { pressure: 0 } }', '[0].when.pressure: must be a number of at least 0.01'],
  ])('the fallbacks %s are a mistake', (line, mistake) => {
    const found = mistakesIn(line).filter((each) =>
      each.startsWith(`routes[0].fallbacks${mistake}`),
    )
    expect(found, mistakesIn(line).join('\n')).toHaveLength(1)
  })

  it('`when` needs a vendor with concurrency or shed, because others have no pressure', () => {
    const line = '{ model: m, when: { pressure: 0.8 } }'
    expect(mistakesIn(line, 'connectMs: 1s')).toEqual([
      "routes[0].fallbacks[0].when: needs concurrency.limit or shed of vendor 'openai', of which pressure is a fraction",
    ])
    expect(mistakesIn(line, 'shed: { maxInFlight: 10 }')).toEqual([])
  })
})
