import { describe, expect, it } from 'vitest'
import { ConfigError } from '../../config-error.js'
import { DEFAULT_PATHS } from '../../default-paths.js'
import { loadConfig } from '../../load.js'

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

const HTTP = 'vendors:\n  weather: { protocol: http, url: "https://weather.example" }\n'

describe('routes to several vendors', () => {
  const VENDORS = `vendors:
  openai: { protocol: openai, keys: { main: env:OPENAI_API_KEY, spare: env:SPARE_KEY } }
  azure: { protocol: openai }
  claude: { protocol: anthropic }
`
  const route = (line: string) => `${VENDORS}routes: [${line}]`

  it('a path that two routes give to vendors of different protocols is a mistake', () => {
    const two = (line: string) =>
      route(`{ path: /v1/chat/completions, vendor: openai, models: [gpt*] }, ${line}`)
    expect(mistakesIn(two('{ path: /v1/chat/completions, vendor: claude }'))).toEqual([
      "routes[1].path: is also the path of routes[0], whose vendor has protocol openai, and this vendor's is anthropic; give each protocol its own path",
    ])
    const { routes } = load(two('{ path: /v1/chat/completions, vendor: azure }'))
    expect(routes.map(({ targets }) => targets[0].vendor)).toEqual(['openai', 'azure'])
  })

  const PLAIN = '{ path: /v1/*, vendor: plain }'
  const withPlain = (...lines: string[]) =>
    `${VENDORS}  plain: { protocol: http, url: https://plain.example }\nroutes: [${lines.join()}]`

  it.each([
    ['{ path: /v1/chat/completions, vendor: openai, models: [gpt*] }', '/v1/chat/completions'],
    ['{ path: /v1/chat*, vendor: openai, models: [gpt*] }', '/v1/chat*'],
    ['{ vendor: openai, models: [gpt*] }', '/v1/chat/completions'],
    ['{ path: /v1/a/*, vendor: claude, models: [c*] }', '/v1/a/*'],
  ])(
    'a route for other models of the paths of %s cannot have another protocol',
    (first, shared) => {
      const [mistake, ...others] = mistakesIn(withPlain(first, PLAIN))
      const start = `routes[1].path: overlaps with routes[0] on ${shared}, whose vendor has protocol `
      expect(mistake?.slice(0, start.length)).toBe(start)
      expect(others).toEqual([])
    },
  )

  it.each([
    ['{ path: /v1/chat/completions, vendor: openai }', 'routes[1].path'],
    ['{ path: /v1/chat*, vendor: openai, models: [gpt*] }', 'routes[1].path'],
    ['{ vendor: openai }', 'routes[1]'],
    ['{ vendor: claude, models: [c*] }', 'routes[1]'],
  ])('the route %s after one of another protocol for /v1/* is never used', (second, at) => {
    expect(mistakesIn(withPlain(PLAIN, second))).toEqual([
      expect.stringContaining(`${at}: is never used, because routes[0] takes `),
    ])
  })

  it.each([
    ['{ path: /v1/chat/completions, vendor: openai }'],
    [
      '{ path: /v1/chat/completions, vendor: openai, models: [gpt*] }, { path: /v1/chat/completions, vendor: azure }',
    ],
    ['{ vendor: openai }'],
    ['{ path: /v2/*, vendor: openai, models: [gpt*] }'],
    ['{ path: /v1/models*, vendor: openai }, { vendor: claude }'],
  ])('the specific routes %s may come before one of another protocol for /v1/*', (first) => {
    expect(() => load(withPlain(first, PLAIN))).not.toThrow()
  })

  it('a route has all keys of a vendor named without a key, followed by the fallbacks', () => {
    const [only] = load(
      route(
        `{ pick: headroom, vendors: [openai, { vendor: azure, model: big }], model: small, fallbacks: [{ model: tiny }] }`,
      ),
    ).routes
    expect(only?.paths).toBe(DEFAULT_PATHS.openai)
    expect(only?.choices).toBe(3)
    expect(only?.targets).toEqual([
      { vendor: 'openai', key: 'main', model: 'small' },
      { vendor: 'openai', key: 'spare', model: 'small' },
      { vendor: 'azure', key: undefined, model: 'big' },
      { vendor: 'openai', key: undefined, model: 'tiny' },
    ])
  })

  it.each([
    ['{ pick: headroom, vendor: openai }', 'routes[0].pick: needs vendors: a list of those'],
    ['{ vendors: [openai], vendor: azure }', 'routes[0].vendor: must not come together'],
    ['{ vendors: [] }', 'routes[0].vendors: must have at least one vendor'],
    ['{ vendors: [opena] }', `routes[0].vendors[0]: there is no vendor of this name; did you mean`],
    ['{ vendors: [openai, claude] }', 'routes[0].vendors[1].vendor: has the protocol anthropic'],
    [
      '{ vendors: [openai, { vendor: openai, key: spare }] }',
      'routes[0].vendors[1]: is listed twice',
    ],
    ['{ vendors: [azure, { vendor: openai, key: spar }] }', 'routes[0].vendors[1].key: vendor'],
    ['{ vendors: [openai], pick: order }', 'routes[0].pick: of several vendors'],
    ['{ path: /v1/* }', 'routes[0].vendor: must be the name of a vendor, got undefined'],
  ])('the route is rejected: %s', (line, message) => {
    expect(mistakesIn(route(line)).join()).toContain(message)
  })
})

describe('routes', () => {
  const TWO = `vendors:
  openai: { protocol: openai, keys: { main: env:OPENAI_API_KEY, spare: env:SPARE_KEY } }
  azure: { protocol: openai }
  claude: { protocol: anthropic }
`
  const routes = (...lines: string[]) =>
    `${TWO}routes:\n${lines.map((line) => `  - ${line}\n`).join('')}`

  it.each([
    [
      '{ vendor: opena }',
      "routes[0].vendor: there is no vendor of this name; did you mean 'openai'?",
    ],
    [
      '{ vendor: gemini }',
      'routes[0].vendor: there is no vendor of this name; known: openai, azure, claude',
    ],
    [
      '{ vendor: openai, key: spar }',
      "routes[0].key: vendor 'openai' has no key of this name; did you mean 'spare'?",
    ],
    [
      '{ vendor: azure, key: main }',
      "routes[0].key: vendor 'azure' has no key of this name; it has none",
    ],
    [
      '{ vendor: openai, path: v1 }',
      'routes[0].path: must be a path that begins with / and may end in *, got "v1"',
    ],
    [
      '{ vendor: openai, path: /a*b }',
      'routes[0].path: must be a path that begins with / and may end in *, got "/a*b"',
    ],
    ['{ vendor: openai, models: [] }', 'routes[0].models: must have at least one model'],
    ['{ vendor: openai, models: gpt-4o }', 'routes[0].models: must be an array, got "gpt-4o"'],
    [
      '{ vendor: openai, stripPrefix: /v1 }',
      "routes[0].stripPrefix: has an effect only with protocol http, and this vendor's is openai",
    ],
    [
      '{ vendor: openai, timeoutMs: 0 }',
      "routes[0].timeoutMs: must be a duration of at least 1 ms, such as 250 or '5s', got 0",
    ],
    [
      '{ vendor: openai, fallback: [] }',
      "routes[0].fallback: unknown option; did you mean 'fallbacks'?",
    ],
    [
      '{ vendor: openai, fallbacks: [{ vendor: azur }] }',
      "routes[0].fallbacks[0].vendor: there is no vendor of this name; did you mean 'azure'?",
    ],
    [
      '{ vendor: openai, fallbacks: [{ key: man }] }',
      "routes[0].fallbacks[0].key: vendor 'openai' has no key of this name; did you mean 'main'?",
    ],
    [
      '{ vendor: openai, fallbacks: [{ vendor: claude }] }',
      "routes[0].fallbacks[0].vendor: has the protocol anthropic, but the route's vendor has openai; a fallback needs the same protocol",
    ],
    [
      '{ vendor: openai, fallbacks: [{}] }',
      'routes[0].fallbacks[0]: is where the route went before: needs another vendor, key or model',
    ],
    [
      '{ vendor: openai, fallbacks: [{ key: main }] }',
      'routes[0].fallbacks[0]: is where the route went before: needs another vendor, key or model',
    ],
  ])('the route %s is rejected', (route, expected) => {
    expect(mistakesIn(routes(route))).toEqual([expected])
  })

  it('an unreachable route and a duplicate route name are rejected', () => {
    expect(mistakesIn(routes('vendor: openai', 'vendor: azure'))).toEqual([
      'routes[1]: has the path and models of routes[0], which comes first',
    ])
    expect(
      mistakesIn(routes('{ vendor: openai, name: a }', '{ vendor: claude, name: a }')),
    ).toEqual(['routes[1].name: duplicates the name of routes[0]'])
  })

  it('a route of an http vendor needs a path, has no models and may strip a prefix', () => {
    const http = (route: string) => `${HTTP}routes: [{ vendor: weather, ${route} }]`
    expect(load(http('path: /weather/*, stripPrefix: /weather')).routes[0]).toMatchObject({
      paths: [{ path: '/weather/*', methods: undefined }],
      stripPrefix: '/weather',
    })
    expect(mistakesIn(http('model: a, models: [b]'))).toEqual([
      'routes[0].path: must be given for a vendor of protocol http',
      'routes[0].model: has no meaning with protocol http',
      'routes[0].models: has no meaning with protocol http',
    ])
    for (const prefix of ['/wea', '/weather/', '/weather*', '/other']) {
      expect(mistakesIn(http(`path: /weather/*, stripPrefix: "${prefix}"`))).toEqual([
        "routes[0].stripPrefix: must be what the route's path begins with, without a * and a / at its end",
      ])
    }
  })

  it('without routes, each vendor has a route with the default paths of its protocol', () => {
    const config = load('vendors: { a: { protocol: openai }, b: { protocol: anthropic } }')
    expect(
      config.routes.map(({ name, paths, targets }) => [name, paths, targets[0].vendor]),
    ).toEqual([
      ['anthropic defaults', DEFAULT_PATHS.anthropic, 'b'],
      ['openai defaults', DEFAULT_PATHS.openai, 'a'],
    ])
  })

  it('a path that no request can have in its canonical form is a mistake that names that form', () => {
    const written = (path: string) => `${HTTP}routes: [{ vendor: weather, path: "${path}" }]`
    const path = (text: string) => mistakesIn(written(text))
    expect(path('/caf%c3%a9/*')).toEqual(['routes[0].path: must be written as /caf%C3%A9/*'])
    expect(path('/%77eather')).toEqual(['routes[0].path: must be written as /weather'])
    expect(path('/a/../b')).toEqual([
      'routes[0].path: matches no request: a path must not have . or .. as one of its segments',
    ])
    expect(load(written('/caf%C3%A9/*')).routes[0]?.name).toBe('/caf%C3%A9/*')
  })

  it('a vendor without a default path needs a route', () => {
    expect(mistakesIn(HTTP)).toEqual([
      'vendors.weather: needs a route: a vendor of protocol http has no default paths',
    ])
    expect(mistakesIn(TWO)).toEqual([
      "vendors.azure: needs a route: without routes, the default paths of openai lead to 'openai'",
    ])
  })

  it('once there are routes, a vendor needs none', () => {
    expect(load(routes('vendor: azure')).routes).toHaveLength(1)
  })

  it('a route to a vendor with mistakes is not reported as well', () => {
    const text =
      'vendors: { a: { protocol: x, keys: 5 } }\nroutes: [{ vendor: a, key: k, path: /a }]'
    expect(mistakesIn(text).map((each) => each.split(':')[0])).toEqual([
      'vendors.a.protocol',
      'vendors.a.keys',
    ])
  })
})
