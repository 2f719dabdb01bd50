import { describe, expect, it } from 'vitest'
import { ConfigError } from '../config-error.js'
import { loadConfig } from '../load.js'

const env = { OPENAI_API_KEY: 'sk-main', SPARE_KEY: 'sk-spare' }
const load = (text: string) => loadConfig({ file: 'a.yaml', text, env })

/** `path: message` of every mistake. */
function mistakesIn(text: string): string[] {
  try {
    load(text)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.mistakes.map(({ path, message }) => `${path}: ${message}`)
  }
  throw new Error('no mistake was found')
}

const ONE = 'vendors:\n  openai: { protocol: openai }\n'

describe('vendors in the configuration', () => {
  it('a vendor accepts endpoint limits only for paths in their canonical form', () => {
    const limits = 'userLimits: [{ per: endpoint, limit: { "/v1/ch%61t": 5 }, windowMs: 1m }]'
    expect(vendor(`protocol: openai, ${limits}`)).toEqual([
      'vendors.a.userLimits[0].limit./v1/ch%61t: must be written as /v1/chat',
    ])
  })

  it('a vendor accepts sliding windows of users, and rejects a burst or an unknown algorithm of one', () => {
    const level = (more: string) =>
      `protocol: openai, userLimits: [{ per: user, limit: 60, windowMs: 1m, ${more} }]`
    const sliding = `vendors: { a: { ${level('algorithm: sliding-window')} } }`
    expect(load(sliding).vendors[0]?.guard.userLimits).toMatchObject([
      { per: 'user', limit: 60, algorithm: 'sliding-window' },
    ])
    expect(vendor(level('algorithm: sliding-window, burst: 5'))).toEqual([
      "vendors.a.userLimits[0].burst: applies to 'token-bucket' only: a sliding window grants at most limit at once",
    ])
    expect(vendor(level('algorithm: sliding'))[0]).toMatch(
      /^vendors\.a\.userLimits\[0\]\.algorithm: must be one of 'token-bucket', 'sliding-window'/,
    )
  })

  it('a vendor has a first-byte timeout of 60 s unless another one is configured', () => {
    const timeoutOf = (timeout: string) =>
      load(
        `vendors: { a: { protocol: http, url: "http://a"${timeout} } }\nroutes: [{ vendor: a, path: /a }]`,
      ).vendors[0]?.guard.timeout
    expect(timeoutOf('')).toEqual({ firstByteMs: 60_000 })
    expect(timeoutOf(', timeout: { idleMs: 15s }')).toEqual({ firstByteMs: 60_000, idleMs: '15s' })
    expect(timeoutOf(', timeout: { firstByteMs: 5m }')).toEqual({ firstByteMs: '5m' })
  })

  it('a limit per calendar day does not learn, and an unknown time zone is an error with its path', () => {
    const perDay = (zone: string) =>
      `protocol: gemini, limits: [{ limit: 5, windowMs: 1m }, { limit: 900, window: day, timeZone: ${zone} }]`
    const [one] = load(`vendors: { a: { ${perDay('America/Los_Angeles')} } }`).vendors
    expect(one?.guard.limits).toMatchObject([
      { limit: 5, learn: true },
      { limit: 900, window: 'day', timeZone: 'America/Los_Angeles' },
    ])
    expect(one?.guard.limits?.[1]).not.toHaveProperty('learn', true)
    expect(vendor(perDay('Pacific/Los_Angeles'))[0]).toMatch(
      /^vendors\.a\.limits\[1\]\.timeZone: no time zone 'Pacific\/Los_Angeles'; .*use a name of the IANA database/,
    )
  })

  const quotaOf = (protocol: string, more: string) =>
    load(`vendors: { a: { protocol: ${protocol}, ${more} } }`).vendors[0]

  it('a vendor can replace single rules of a quota preset', () => {
    const rules =
      'quota: { countCacheReads: true, reserve: max, outputFactor: 2, keepReserved: true }'
    expect(quotaOf('anthropic', rules)?.quota).toMatchObject({
      preset: 'anthropic',
      countCacheReads: true,
      reserve: 'max',
      outputFactor: 2,
      keepReserved: true,
    })
    expect(quotaOf('anthropic', 'quota: bedrock')?.quota).toBe('bedrock')
    expect(vendor('protocol: openai, quota: { countCachedReads: true }')[0]).toMatch(
      /^vendors\.a\.quota\.countCachedReads: .*countCacheReads/,
    )
    expect(vendor('protocol: openai, quota: { outputFactor: -1 }')[0]).toMatch(
      /^vendors\.a\.quota\.outputFactor: must be a number from 0 to 100/,
    )
    expect(vendor('protocol: openai, quota: azur')[0]).toMatch(/^vendors\.a\.quota: .*'azure'/)
  })

  it("limits of a vendor have the sub-windows and the time zone of the vendor's quota", () => {
    const limits = `limits: [{ limit: 600, windowMs: 1m }, { limit: 5, windowMs: 1m },
      { unit: tokens, limit: 600, windowMs: 1m }, { limit: 900, window: day }]`
    const windowsOf = (protocol: string, quota: string) =>
      quotaOf(protocol, `${quota}${limits}`)?.guard.limits?.map(
        ({ subWindowMs, timeZone }) => subWindowMs ?? timeZone,
      )
    const none = [undefined, undefined, undefined, undefined]
    expect(windowsOf('azure', 'url: "https://a.openai.azure.com", ')).toEqual([
      10_000,
      ...none.slice(1),
    ])
    expect(windowsOf('gemini', '')).toEqual([...none.slice(1), 'America/Los_Angeles'])
    expect(windowsOf('anthropic', '')).toEqual(none)
    const own = 'quota: { preset: azure, subWindowMs: 1s, timeZone: Asia/Tokyo }, '
    expect(windowsOf('anthropic', own)).toEqual([1_000, ...none.slice(2), 'Asia/Tokyo'])
    const off = 'quota: { preset: azure, subWindowMs: none }, '
    expect(windowsOf('anthropic', off)).toEqual(none)
  })

  it('models and pools of a vendor have its sub-windows and time zone as well', () => {
    const perDay = '[{ limit: 5, window: day }]'
    const guard = quotaOf(
      'gemini',
      `models: [{ match: a*, limits: ${perDay} }, { match: b*, pool: p }], pools: { p: { limits: ${perDay} } }`,
    )?.guard
    const zone = [{ timeZone: 'America/Los_Angeles' }]
    expect(guard?.lanes?.[0]?.limits).toMatchObject(zone)
    expect(guard?.pools?.p?.limits).toMatchObject(zone)
  })

  const LIMIT = '[{ limit: 5, windowMs: 1m }]'

  it('models and pools of a vendor become lanes and pools of its guard', () => {
    const [one] = load(`vendors: { a: { protocol: openai, key: 'env:SPARE_KEY',
      models: [{ match: gpt-4o*, limits: ${LIMIT} }, { match: opus-*, pool: opus }],
      pools: { opus: { limits: ${LIMIT} } } } }`).vendors
    expect(one?.guard).toMatchObject({
      lanes: [{ match: 'gpt-4o*' }, { match: 'opus-*', pool: 'opus' }],
      pools: { opus: { limits: [{ limit: 5 }] } },
    })
  })

  it('every key of a vendor has the limits of its models and pools of its own', () => {
    const [one] = load(`vendors: { a: { protocol: openai,
      keys: { x: 'env:OPENAI_API_KEY', y: 'env:SPARE_KEY' },
      models: [{ match: opus-*, pool: opus }], pools: { opus: { limits: ${LIMIT} } } } }`).vendors
    expect(one?.guard.lanes).toEqual([
      { match: 'opus-* (x)', pool: 'opus (x)' },
      { match: 'opus-* (y)', pool: 'opus (y)' },
    ])
    expect(Object.keys(one?.guard.pools ?? {})).toEqual(['opus (x)', 'opus (y)'])
    expect(one?.models).toEqual([{ match: 'opus-*', pool: 'opus' }])
  })

  it.each([
    [
      `models: [{ match: a, pool: opsu }], pools: { opus: { limits: ${LIMIT} } }`,
      "vendors.a.models[0].pool: no pool 'opsu'; did you mean 'opus'?",
    ],
    [
      `pools: { opus: { limits: ${LIMIT} } }`,
      'vendors.a.pools.opus: no entry of `models` uses this pool',
    ],
    [
      'models: [{ match: a, pool: b }], pools: { b: { limits: [] } }',
      'vendors.a.pools.b.limits: must be 1 to 16 limits',
    ],
    [
      `models: [{ match: "*", limits: ${LIMIT} }, { match: gpt-4o, limits: ${LIMIT} }]`,
      "vendors.a.models[1].match: is never reached: '*' (entry 1) comes first and matches the same names; move this entry up",
    ],
    [
      'models: [{ match: a, limits: [{ unit: dollars, limit: 5, windowMs: 1m }] }]',
      `vendors.a.models[0].limits[0].unit: must be one of 'requests', 'tokens', 'inputTokens', 'outputTokens', got "dollars"`,
    ],
    [
      'models: [{ match: a, limits: [{ limit: 5, windowMs: 1m, per: vendor }] }]',
      "vendors.a.models[0].limits[0].per: must not be 'vendor' here; put limits of all lanes into the vendor's `limits`",
    ],
  ])('a vendor with %s is rejected', (options, mistake) => {
    expect(vendor(`protocol: openai, ${options}`)).toContain(mistake)
  })

  it('models of an http vendor are rejected', () => {
    const text = `protocol: http, url: "http://a", models: [{ match: a, limits: ${LIMIT} }]`
    expect(vendor(text)).toContain(
      'vendors.a.models: has no meaning with protocol http, whose requests have no model',
    )
  })

  const vendor = (options: string) => mistakesIn(`vendors: { a: { ${options} } }\n`)

  it.each([
    [
      'url: mock',
      "vendors.a.protocol: must be one of 'openai', 'anthropic', 'gemini', 'azure', 'http', got nothing",
    ],
    [
      'protocol: openai, url: localhost',
      "vendors.a.url: must be an http:// or https:// URL, or 'mock'",
    ],
    [
      'protocol: openai, url: "ftp://a.b"',
      "vendors.a.url: must be an http:// or https:// URL, or 'mock'",
    ],
    [
      'protocol: openai, url: "https://a.b/v1/"',
      'vendors.a.url: must not end in /v1: the paths of requests begin with it',
    ],
    [
      'protocol: openai, url: "https://a.b/?x"',
      'vendors.a.url: must end with its path, without ? and #: a key belongs in key, or in headers',
    ],
    [
      'protocol: openai, url: "https://u:p@a.b"',
      'vendors.a.url: must not contain a user or a password: use key, or headers',
    ],
    [
      'protocol: openai, connectMs: 0',
      "vendors.a.connectMs: must be a duration of at least 1 ms, such as 250 or '5s', got 0",
    ],
    [
      'protocol: openai, keys: {}',
      'vendors.a.keys: must be an object with at least one key, got an empty one',
    ],
    [
      'protocol: openai, keys: [env:SPARE_KEY]',
      'vendors.a.keys: must be an object with at least one key, got an array',
    ],
    [
      'protocol: openai, keys: { 1: env:SPARE_KEY }',
      "vendors.a.keys.1: a key's name must be letters, digits, _ . and -, and not digits alone",
    ],
    [
      'protocol: openai, key: env:SPARE_KEY, keys: { b: env:SPARE_KEY }',
      'vendors.a.keys: must not come together with key: put all of them here',
    ],
    [
      'protocol: openai, headers: [a]',
      'vendors.a.headers: must be an object with the names of headers',
    ],
    ['protocol: openai, headers: { "a b": c }', 'vendors.a.headers.a b: is no name of a header'],
    [
      'protocol: openai, headers: { Host: c }',
      'vendors.a.headers.Host: must not be configured, because the gateway sets this header itself',
    ],
    [
      'protocol: openai, headers: { x-a: b, X-A: c }',
      'vendors.a.headers.X-A: is written twice, in other letters',
    ],
    [
      'protocol: openai, headers: { x-a: 1 }',
      'vendors.a.headers.x-a: must be text without line breaks: put it in quotes',
    ],
    [
      'protocol: openai, headers: { x-a: "a\\nb" }',
      'vendors.a.headers.x-a: must be text without line breaks, env:NAME or file:PATH',
    ],
    [
      'protocol: openai, shed: { when: busy }',
      'vendors.a.shed.when: is a function: only a program can have it, not a file',
    ],
    [
      'protocol: openai, shed: { sensors: { cpu: 1 } }',
      'vendors.a.shed.sensors: is a function: only a program can have it, not a file',
    ],
    [
      'protocol: openai, breaker: { failureRate: "0.5" }',
      'vendors.a.breaker.failureRate: must be a number above 0 and at most 1, got "0.5"; write it without the quotes',
    ],
    [
      'protocol: openai, hedge: { delayMs: soon }',
      `vendors.a.hedge.delayMs: must be a duration of at least 1 ms, such as 250 or '5s', got "soon"`,
    ],
    [
      'protocol: openai, concurrency: { adaptive: gradient }',
      `vendors.a.concurrency.adaptive: must be one of 'aimd', 'gradient2', got "gradient"; did you mean 'gradient2'?`,
    ],
    [
      'protocol: openai, concurency: 5',
      "vendors.a.concurency: unknown option; did you mean 'concurrency'?",
    ],
    [
      'protocol: openai, classify: x',
      expect.stringMatching(
        /^vendors\.a\.classify: unknown option; known: protocol, url, .*retry, shadow$/,
      ),
    ],
    ['protocol: openai, fetch: {}', expect.stringMatching(/^vendors\.a\.fetch: unknown option/)],
  ])('the vendor %s is rejected', (options, expected) => {
    expect(vendor(options)).toEqual([expected])
  })

  it('a vendor has the public API of its protocol as the default URL', () => {
    const urls = load('vendors: { a: { protocol: anthropic }, b: { protocol: openai, url: mock } }')
    expect(urls.vendors.map(({ url }) => url)).toEqual(['https://api.anthropic.com', 'mock'])
    const http = (url: string) =>
      mistakesIn(`vendors: { a: { protocol: http${url} } }
routes: [{ vendor: a, path: /a }]`)
    expect(http('')).toEqual(['vendors.a.url: must be an http:// or https:// URL, got nothing'])
    expect(http(', url: mock')).toEqual([
      "vendors.a.url: must be an http:// or https:// URL: 'mock' speaks the protocols of LLM vendors, not http",
    ])
  })

  it('Gemini has a public API, and a vendor of Azure OpenAI needs the URL of its resource', () => {
    expect(load('vendors: { a: { protocol: gemini } }').vendors[0]?.url).toBe(
      'https://generativelanguage.googleapis.com',
    )
    expect(vendor('protocol: azure')).toEqual([
      "vendors.a.url: must be an http:// or https:// URL, or 'mock': that of your resource, got nothing",
    ])
  })

  it.each([
    ['gemini', '/v1beta'],
    ['gemini', '/v1'],
    ['azure', '/openai'],
    ['azure', '/openai/v1'],
  ])('the URL of a vendor of %s must not end in %s', (protocol, end) => {
    expect(vendor(`protocol: ${protocol}, url: "https://a.b${end}/"`)).toEqual([
      `vendors.a.url: must not end in ${end}: the paths of requests begin with it`,
    ])
  })

  it('the URL of an http vendor may end in /v1', () => {
    const config = load(`vendors: { a: { protocol: http, url: "https://a.b/v1" } }
routes: [{ path: /a/*, vendor: a }]`)
    expect(config.vendors[0]?.url).toBe('https://a.b/v1')
  })

  it('a vendor may have any ordinary name, including those of object properties', () => {
    const names = ['constructor', 'toString', 'hasOwnProperty', 'open_ai-2.eu']
    const text = names.map((name) => `  ${name}: { protocol: openai }\n`).join('')
    const config = load(
      `vendors:\n${text}routes: [{ vendor: constructor }, { vendor: toString, path: /a }]`,
    )
    expect(config.vendors.map(({ name }) => name)).toEqual(names)
    expect(mistakesIn('vendors: { "a b": { protocol: openai } }')[0]).toContain("a vendor's name")
    expect(mistakesIn('vendors: { __proto__: { protocol: openai } }')).toEqual([
      'vendors.__proto__: is a reserved name; use another one',
    ])
    expect(mistakesIn(`${ONE}routes: [{ vendor: valueOf }]`)[0]).toContain('there is no vendor')
    expect(
      load('vendors: { a: { protocol: openai, headers: { __PROTO__: x } } }').vendors[0]?.headers,
    ).toEqual(Object.fromEntries([['__proto__', 'x']]))
  })
})
