import { describe, expect, it } from 'vitest'
import type { GatewayConfig, RouteConfig } from '../config/config.js'
import { DEFAULT_PATHS } from '../config/default-paths.js'
import { ambiguous, notFound } from './no-route.js'
import { type RouteQuery, Routes } from './routes.js'

type Defaults = 'openai' | 'anthropic'

const target = (vendor: string) => ({ vendor, key: undefined, model: undefined })
const route = (name: string, changes: Partial<RouteConfig>): RouteConfig => ({
  name,
  paths: [],
  defaultsOf: undefined,
  models: undefined,
  choices: 1,
  targets: [target(name)],
  timeoutMs: undefined,
  keepAliveMs: undefined,
  stripPrefix: undefined,
  ...changes,
})
const defaults = (of: Defaults) => route(of, { paths: DEFAULT_PATHS[of], defaultsOf: of })
const onPath = (name: string, path: string, changes: Partial<RouteConfig> = {}) =>
  route(name, { paths: [{ path, methods: undefined }], ...changes })

function routesOf(...routes: RouteConfig[]): Routes {
  const protocols = new Set(routes.map(({ defaultsOf }) => defaultsOf ?? 'http'))
  const vendors = [...protocols].map((protocol) => ({
    protocol,
  })) as unknown as GatewayConfig['vendors']
  return new Routes({ routes, vendors })
}

const query = (method: string, path: string, fromAnthropicClient = false): RouteQuery => ({
  method,
  path,
  fromAnthropicClient,
})

/** Twice, because results are cached. */
function found(routes: Routes, ...args: Parameters<typeof query>): string {
  const [first, second] = [routes.find(query(...args)), routes.find(query(...args))]
  expect(second).toEqual(first)
  return [first.kind, ...first.rows.map((row) => row.route.name)].join(' ')
}

describe('routes by path', () => {
  it('an exact path matches only itself, with every character as it is', () => {
    const routes = routesOf(onPath('a', '/v1/a.b+c'))
    expect(found(routes, 'POST', '/v1/a.b+c')).toBe('found a')
    for (const path of ['/v1/a-b+c', '/v1/a.bbc', '/v1/a.b+c/', '/x/v1/a.b+c']) {
      expect(found(routes, 'POST', path)).toBe('none')
    }
  })

  it('an asterisk stands for anything, and nothing else in a pattern is special', () => {
    const routes = routesOf(onPath('a', '/v1/a.(b)/*'))
    expect(found(routes, 'GET', '/v1/a.(b)/')).toBe('found a')
    expect(found(routes, 'GET', '/v1/a.(b)/c/d\ne')).toBe('found a')
    expect(found(routes, 'GET', '/v1/axb/c')).toBe('none')
    expect(found(routes, 'GET', '/v1/a.(b)')).toBe('none')
  })

  it('the routes of a path keep their configured order', () => {
    const routes = routesOf(onPath('b', '/v1/*'), onPath('a', '/v1/x'), onPath('c', '/v2'))
    expect(found(routes, 'GET', '/v1/x')).toBe('found b a')
  })

  it('a path with methods takes only those', () => {
    const routes = routesOf(defaults('openai'))
    expect(found(routes, 'POST', '/v1/chat/completions')).toBe('found openai')
    expect(found(routes, 'GET', '/v1/chat/completions')).toBe('none')
    expect(found(routes, 'DELETE', '/v1/models/x')).toBe('none')
    expect(found(routes, 'GET', '/v1/models/x')).toBe('found openai')
  })

  it('paths that are too long to remember, or too many, are matched as others are', () => {
    const routes = routesOf(onPath('a', '/v1/*'))
    expect(found(routes, 'GET', `/v1/${'a'.repeat(500)}`)).toBe('found a')
    for (let i = 0; i < 2_500; i++) expect(found(routes, 'GET', `/v1/${i}`)).toBe('found a')
  })
})

describe('default routes of OpenAI and Anthropic', () => {
  const both = routesOf(defaults('openai'), defaults('anthropic'))

  it('a default path of OpenAI and Anthropic is ambiguous, unless the client is one of Anthropic', () => {
    expect(found(both, 'GET', '/v1/models')).toBe('ambiguous openai anthropic')
    expect(found(both, 'GET', '/v1/models', true)).toBe('found anthropic')
  })

  it('a default path of only one vendor is routed to it', () => {
    expect(found(both, 'POST', '/v1/chat/completions')).toBe('found openai')
    expect(found(both, 'POST', '/v1/messages')).toBe('found anthropic')
  })

  it('a request of an Anthropic client never goes to the default routes of OpenAI', () => {
    expect(found(both, 'POST', '/v1/chat/completions', true)).toBe('none')
    const onlyOpenai = routesOf(defaults('openai'))
    expect(found(onlyOpenai, 'POST', '/v1/chat/completions', true)).toBe('found openai')
  })

  it('a path that the configuration names first is not ambiguous', () => {
    const routes = routesOf(onPath('mine', '/v1/models'), defaults('openai'), defaults('anthropic'))
    expect(found(routes, 'GET', '/v1/models')).toBe('found mine openai anthropic')
  })

  it('two default routes of the same protocol are not ambiguous', () => {
    const routes = routesOf(defaults('openai'), { ...defaults('openai'), name: 'second' })
    expect(found(routes, 'GET', '/v1/models')).toBe('found openai second')
  })
})

describe('routes by model', () => {
  const routes = routesOf(
    onPath('exact', '/v1/x', { models: ['gpt-4', 'o1'] }),
    onPath('pattern', '/v1/x', { models: ['gpt-*'] }),
    onPath('any', '/v1/x'),
  )
  const chosen = (model: string | undefined, all = routes) =>
    all.forModel(all.find(query('POST', '/v1/x')).rows, model)?.name

  it('the first route that takes the model is used', () => {
    expect(['gpt-4', 'o1', 'gpt-5', 'claude'].map((model) => chosen(model))).toEqual([
      'exact',
      'exact',
      'pattern',
      'any',
    ])
  })

  it('a request without a model takes only routes for any model', () => {
    expect(chosen(undefined)).toBe('any')
    expect(chosen(undefined, routesOf(onPath('a', '/v1/x', { models: ['*'] })))).toBeUndefined()
  })
})

describe('refusals of requests without a route', () => {
  const routes = [defaults('openai'), defaults('anthropic')]
  const refuse = (changes: Partial<Parameters<typeof notFound>[0]>) =>
    notFound({
      query: query('GET', '/v1/files/file-1'),
      shownPath: '/v1/files/file-1',
      routes,
      isKnownCaller: true,
      ...changes,
    })

  it('a refusal names the route that would allow the request to known callers', () => {
    const error = refuse({})
    expect(error).toMatchObject({ status: 404, code: 'NOT_FOUND' })
    expect(error.message).toContain('no route for GET /v1/files/file-1; default routes only')
    expect(error.message).toContain('"- { path: /v1/files/*, vendor: openai }"')
    const anthropic = refuse({ query: query('GET', '/v1/files/file-1', true) })
    expect(anthropic.message).toContain('vendor: anthropic }"')
  })

  it('the advice names the vendor of another default route if there is none of its protocol', () => {
    const error = refuse({ routes: [onPath('x', '/x'), defaults('anthropic')] })
    expect(error.message).toContain('vendor: anthropic }"')
  })

  it.each([
    ['/chat/completions', '/v1/chat/completions', 'OpenAI clients ends in /v1'],
    ['/v1/v1/messages', '/v1/messages', 'Anthropic clients does not end in /v1'],
  ])('the answer to %s says that the base URL is wrong', (path, meant, base) => {
    const refusal = { query: query('POST', path), shownPath: path }
    const hint = `no route for POST ${path}; did you mean ${meant}? The base URL of ${base}`
    for (const isKnownCaller of [true, false]) {
      expect(refuse({ ...refusal, isKnownCaller }).message).toBe(hint)
    }
    const without = refuse({ ...refusal, routes: [onPath('x', '/x')] })
    expect(without.message).toBe(`no route for POST ${path}`)
  })

  it('a suggested route for a path without an id has the path unchanged', () => {
    const files = { query: query('POST', '/v1/files'), shownPath: '/v1/files' }
    expect(refuse(files).message).toContain('path: /v1/files, vendor')
  })

  it.each([
    ['an unknown caller', { isKnownCaller: false }],
    ['a path outside of /v1/', { query: query('GET', '/v2/files/file-1') }],
    ['a gateway without default routes', { routes: [onPath('x', '/x')] }],
  ])('%s gets no advice', (_, changes) => {
    expect(refuse(changes).message).toBe('no route for GET /v1/files/file-1')
  })

  it('an ambiguous request is refused with both vendors and the way out', () => {
    const error = ambiguous({
      query: query('GET', '/v1/models'),
      shownPath: '/v1/models',
      routes: [onPath('x', '/x'), ...routes],
    })
    expect(error).toMatchObject({ status: 400, code: 'AMBIGUOUS_ROUTE' })
    expect(error.message).toContain(
      'the default routes of openai and anthropic both take GET /v1/models; an anthropic-version',
    )
    expect(error.message).toContain('"- { path: /v1/models, vendor: openai }"')
  })
})
