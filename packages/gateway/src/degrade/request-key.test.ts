import { describe, expect, it } from 'vitest'
import type { CachedAnswerConfig } from '../config/config.js'
import { PROTOCOLS } from '../protocols/index.js'
import { ByteList } from '../request/body/byte-list.js'
import { ForwardedHeaders } from '../vendor/forwarded-headers.js'
import { requestKey } from './request-key.js'

const CONFIG: CachedAnswerConfig = {
  kind: 'cached',
  on: ['error'],
  maxAgeMs: 1_000,
  shared: false,
  maxEntries: 10,
  maxBytes: 1_000,
  maxAnswerBytes: 1_000,
  ignoreFields: ['user'],
  ignoreHeaders: ['x-request-id', 'x-stainless-*'],
}

interface TestRequest {
  method?: string
  url?: string
  user?: string
  key?: string
  headers?: Record<string, string>
  body?: string
  vendor?: string
  config?: Partial<CachedAnswerConfig>
}

function keyOf(tested: TestRequest = {}): string | undefined {
  const { method = 'POST', url = '/v1/chat/completions', user = 'ann', key = 'secret' } = tested
  const { body = '{"model":"gpt"}', vendor = 'openai', config = {} } = tested
  const headers: Record<string, string> = { authorization: `Bearer ${key}`, ...tested.headers }
  const rawHeaders = Object.entries(headers).flat()
  const forwarded = new ForwardedHeaders({
    own: new Set(),
    credentials: false,
    compression: false,
  })
  const bytes = ByteList.of(Buffer.from(body))
  return requestKey(
    { method, url, headers, rawHeaders } as never,
    {
      path: url.split('?')[0],
      query: url.slice(url.split('?')[0]?.length),
      callerKey: key,
      caller: { user },
      parsed: { body: { kind: 'held', bytes }, json: body === '' ? undefined : {} },
    } as never,
    {
      vendor: { name: vendor, url: 'https://vendor.example', protocol: PROTOCOLS.openai },
      config: {},
      forwarded,
    } as never,
    { ...CONFIG, ...config },
  )
}

describe('key of a cached answer', () => {
  const usual = keyOf()

  it.each<[string, TestRequest]>([
    ['an ignored field', { body: '{"user":"x","model":"gpt"}' }],
    ['spaces', { body: '{ "model": "gpt" }' }],
    ['an ignored header', { headers: { 'X-Request-Id': '1', 'x-stainless-os': 'linux' } }],
    ['a header that the vendor does not receive', { headers: { 'x-forwarded-for': '10.0.0.1' } }],
  ])('%s does not make it another request', (_, tested) => {
    expect(keyOf(tested)).toBe(usual)
  })

  it.each<[string, TestRequest]>([
    ['another user', { user: 'bob' }],
    ['another key of the caller', { key: 'other' }],
    ['another vendor', { vendor: 'azure' }],
    ['another path', { url: '/v1/embeddings' }],
    ['a query', { url: '/v1/chat/completions?a=1' }],
    ['another field', { body: '{"model":"gpt","n":1}' }],
    ['a header that the vendor receives', { headers: { 'openai-organization': 'org' } }],
  ])('%s makes it another request', (_, tested) => {
    expect(keyOf(tested)).toBeDefined()
    expect(keyOf(tested)).not.toBe(usual)
  })

  it('a shared answer does not depend on the caller', () => {
    const config = { shared: true }
    expect(keyOf({ user: 'bob', key: 'other', config })).toBe(keyOf({ config }))
    expect(keyOf({ config })).not.toBe(usual)
  })

  it('the key is a hash, which contains neither the caller nor the question', () => {
    expect(usual).toMatch(/^[\w-]{43}$/)
  })

  it.each<[string, TestRequest]>([
    ['a method that changes something', { method: 'DELETE' }],
    ['a path that creates something', { url: '/v1/files' }],
    ['a body with a repeated key', { body: '{"messages":[{"a":1,"a":2}]}' }],
    ['a body of more than a megabyte', { body: `{"input":"${'x'.repeat(1_024 ** 2)}"}` }],
  ])('%s has no key', (_, tested) => {
    expect(keyOf(tested)).toBeUndefined()
  })

  it('GET without a body has a key', () => {
    expect(keyOf({ method: 'GET', url: '/v1/models', body: '' })).toBeDefined()
  })
})
