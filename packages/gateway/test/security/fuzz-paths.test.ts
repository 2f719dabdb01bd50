// test-group: sockets

/**
 * Paths in odd spellings: the vendor receives the path by which the gateway chose the route and the endpoint limit,
 * and all spellings of one path lead to the same decision.
 */
import { expect, it, vi } from 'vitest'
import { unescaped } from '../../../spillway/src/store/keys.js'
import { usualOrLong } from '../../../spillway/test/long-run.js'
import { loadConfig } from '../../src/config/load.js'
import { ByteList } from '../../src/request/body/byte-list.js'
import type { ClientRequest } from '../../src/request/client-http.js'
import type { RoutedRequest } from '../../src/request/routed-request.js'
import {
  faultInLlmPath,
  faultInUrl,
  requestTarget,
} from '../../src/request/validation/request-url.js'
import { Routes } from '../../src/routing/routes.js'
import type { Target } from '../../src/routing/target.js'
import { vendorRequest } from '../../src/vendor/vendor-request.js'
import { startRecordingVendor } from '../recording-vendor.js'
import { clientOf, LISTENERS, startOn } from './listener-kit.js'
import { dice } from './mutate.js'
import {
  encodeSome,
  isDangerous,
  meaningOf,
  PATHS,
  ROUTES,
  routeFor,
  spell,
} from './path-spellings.js'

const CASES = usualOrLong(10_000, 100_000)
/** On each listener. */
const OVER_SOCKETS = usualOrLong(200, 600)
const SEED = 31

interface Decision {
  readonly route: string
  /** The path under which limits count the request. */
  readonly endpoint: string
  /** The path that the vendor receives. */
  readonly vendorUrl: string
}

const NEEDLESS_ESCAPE = /%(2d|2e|3\d|4[1-9a-f]|5[0-9a]|5f|6[1-9a-f]|7[0-9a]|7e)/i
const SMALL_HEX = /%([a-f]|.[a-f])/

/** The route is that of the path as a vendor reads it, and the vendor receives the path of the limit. */
function expectSame(url: string, { route, endpoint, vendorUrl }: Decision): void {
  const [path = ''] = url.split('?', 1)
  const meaning = meaningOf(path) as string[]
  const wanted = routeFor(meaning)
  expect(route, url).toBe(wanted?.name)
  const prefix = wanted !== undefined && 'stripPrefix' in wanted ? wanted.stripPrefix : ''
  expect(prefix + vendorUrl, url).toBe(endpoint + url.slice(path.length))
  expect(meaningOf(endpoint), url).toEqual(meaning)
  expect(endpoint, url).not.toMatch(NEEDLESS_ESCAPE)
  expect(endpoint, url).not.toMatch(SMALL_HEX)
  if (route !== 'raw') expect(isDangerous(path), url).toBe(false)
}

const VENDORS = { files: { protocol: 'openai' }, raw: { protocol: 'http' } }
const text = JSON.stringify({
  vendors: {
    openai: { protocol: 'openai' },
    files: { protocol: 'openai' },
    raw: { protocol: 'http', url: 'http://raw.example' },
  },
  routes: ROUTES,
})
const routes = new Routes(loadConfig({ file: 'test.yaml', text, env: {} }))
const target = { forwarded: { of: () => [] }, ownHeaders: [], config: {} } as unknown as Target

/** The gateway's decision about a URL, or undefined if it is refused. */
function decide(url: string): Decision | undefined {
  if (faultInUrl(url) !== undefined) return undefined
  const { path, query } = requestTarget(url)
  const { rows } = routes.find({ method: 'POST', path, fromAnthropicClient: false })
  const route = routes.forModel(rows, 'gpt')
  if (route === undefined) return undefined
  if (route.name !== 'raw' && faultInLlmPath(path) !== undefined) return undefined
  const request = { method: 'POST', url, headers: {}, rawHeaders: [] } as unknown as ClientRequest
  const parsed = { body: { kind: 'held', bytes: new ByteList() }, json: undefined }
  const routed = { route, path, query, parsed } as unknown as RoutedRequest
  return {
    route: route.name,
    endpoint: path,
    vendorUrl: vendorRequest(request, routed, target, false).path,
  }
}

it('none of thousands of odd paths reaches a vendor in another form than the one that was checked', () => {
  const random = dice(SEED)
  const taken = new Map<string, number>()
  let dangerous = 0
  for (let i = 0; i < CASES; i++) {
    const url = spell(random)
    if (isDangerous(url)) dangerous++
    const decision = decide(url)
    if (decision === undefined) continue
    taken.set(decision.route, (taken.get(decision.route) ?? 0) + 1)
    expectSame(url, decision)
  }
  // Every kind of path must have occurred often enough.
  for (const { name } of ROUTES) expect(taken.get(name), name).toBeGreaterThan(CASES / 100)
  expect(dangerous).toBeGreaterThan(CASES / 10)
})

it('a path with encoded unreserved characters is treated like the decoded path', () => {
  const random = dice(SEED + 1)
  for (let i = 0; i < CASES / 4; i++) {
    const path = random.pick(PATHS)
    const other = encodeSome(path, random)
    expect(decide(other), other).toEqual(decide(path))
  }
})

it.each(LISTENERS)(
  'the vendor receives the path under which the gateway on %s counted the request',
  async (listener) => {
    const vendor = await startRecordingVendor()
    const userLimits = [{ per: 'endpoint', limit: 1_000_000, windowMs: '1h' }]
    const options = { url: vendor.url, userLimits, concurrency: { limit: 50 } }
    const { url, gateway, records, failures } = await startOn(listener, {
      vendors: {
        openai: { protocol: 'openai', ...options },
        ...Object.fromEntries(
          Object.entries(VENDORS).map(([name, each]) => [name, { ...each, ...options }]),
        ),
      },
      routes: [...ROUTES],
    })
    const counted: string[] = []
    const { levels } = gateway.spillway.store
    const check = levels.check.bind(levels)
    vi.spyOn(levels, 'check').mockImplementation((requests, atMs) => {
      for (const each of requests) counted.push(each.levels[0]?.key.replace(/^.*:/, '') ?? '')
      return check(requests, atMs)
    })
    const client = clientOf(listener, url)
    const random = dice(SEED + 2 + LISTENERS.indexOf(listener))
    let taken = 0
    for (let i = 0; i < OVER_SOCKETS; i++) {
      const target = spell(random)
      const { status } = await client({
        path: target,
        headers: { 'content-length': 2 },
        chunks: [Buffer.from('{}')],
      })
      const expected = decide(target)
      const refused = listener === 'HTTP/2 over TLS' ? [400, 404, 0] : [400, 404]
      expect([target, status]).toEqual([
        target,
        expected === undefined ? expect.toBeOneOf(refused) : 200,
      ])
      const seen = vendor.seen.splice(0)
      const endpoints = counted.splice(0).map(unescaped)
      if (expected === undefined) {
        expect([target, seen, endpoints]).toEqual([target, [], []])
        continue
      }
      taken++
      const decision = {
        route: records.at(-1)?.route ?? '',
        endpoint: endpoints[0] ?? '',
        vendorUrl: seen[0]?.url ?? '',
      }
      expect(seen).toHaveLength(1)
      expect(decision).toEqual(expected)
      expectSame(target, decision)
    }
    expect(taken).toBeGreaterThan(OVER_SOCKETS / 5)
    expect(failures).toEqual([])
  },
)
