import { describe, expect, it } from 'vitest'
import type { GatewayConfig, VendorConfig } from '../config/config.js'
import { PROTOCOLS } from '../protocols/index.js'
import { RefCounted } from '../routing/ref-counted.js'
import type { Target } from '../routing/target.js'
import { keyNameOf } from '../vendor/model-lanes.js'
import { namedLanes } from '../vendor/named-lanes.js'
import type { ClientRequest } from './client-http.js'
import type { ParsedRequest } from './parse-request.js'
import { canBeRepeated, canBeSentTo, type RoutedRequest, routedRequest } from './routed-request.js'
import { withTrace } from './trace.js'

interface TestRequest {
  method?: string
  path?: string
  headers?: Record<string, string>
  parsed?: object
  protocol?: keyof typeof PROTOCOLS
}

function ask({
  method = 'POST',
  path = '/v1/chat/completions',
  headers = {},
  parsed = {},
  protocol = 'openai',
}: TestRequest) {
  const body = { kind: 'held' }
  return routedRequest({ method, headers } as unknown as ClientRequest, PROTOCOLS[protocol], {
    path,
    parsed: { json: {}, isUnread: false, body, ...parsed },
  } as unknown as RoutedRequest)
}

describe('RoutedRequest', () => {
  it.each(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])(
    '%s may be sent twice without an idempotency key',
    (method) => {
      expect(ask({ method })).toMatchObject({ harmless: true, idempotencyKey: undefined })
    },
  )

  it('a POST that generates gets an idempotency key, each its own', () => {
    const [one, other] = [ask({}), ask({})]
    expect([one.harmless, typeof one.idempotencyKey]).toEqual([true, 'string'])
    expect(one.idempotencyKey).not.toBe(other.idempotencyKey)
  })

  it('a POST with a key of the client keeps it, and other POSTs may not be repeated', () => {
    const keyed = ask({ headers: { 'idempotency-key': 'k' }, path: '/v1/files' })
    expect(keyed).toMatchObject({ harmless: true, idempotencyKey: undefined })
    expect(ask({ path: '/v1/files' })).toMatchObject({ harmless: false, idempotencyKey: undefined })
  })

  it('only a held body of a harmless request may be sent again', () => {
    expect(canBeRepeated(ask({}))).toBe(true)
    expect(canBeRepeated(ask({ parsed: { body: { kind: 'streamed' } } }))).toBe(false)
    expect(canBeRepeated(ask({ path: '/v1/files' }))).toBe(false)
  })

  it('a request generates if its body was read, or is an unread form on a path for forms', () => {
    const generates = (tested: TestRequest) => ask(tested).generates
    const unread = { json: undefined, isUnread: true }
    expect(generates({})).toBe(true)
    expect(generates({ path: '/v1/moderations' })).toBe(false)
    expect(generates({ path: '/v1/files' })).toBe(false)
    expect(generates({ path: '/v1/audio/transcriptions', parsed: unread })).toBe(true)
    expect(generates({ path: '/v1/other', parsed: unread })).toBe(false)
    expect(generates({ path: '/v1/models', parsed: { json: undefined } })).toBe(false)
    expect(generates({ protocol: 'http' })).toBe(false)
  })

  it('an unread body is not sent to a target that replaces the model', () => {
    const to = (model: string | undefined) => ({ config: { model } }) as unknown as Target
    const unread = ask({ parsed: { isUnread: true } as Partial<ParsedRequest> })
    expect([canBeSentTo(unread, to('gpt')), canBeSentTo(unread, to(undefined))]).toEqual([
      false,
      true,
    ])
    expect(canBeSentTo(ask({}), to('gpt'))).toBe(true)
  })
})

describe('lanes that the configuration names', () => {
  const vendor = (...keys: string[]) =>
    ({ name: 'openai', keys: keys.map((name) => ({ name })) }) as unknown as VendorConfig
  const target = (changes: object) => ({
    vendor: 'openai',
    key: undefined,
    model: undefined,
    ...changes,
  })
  const named = (routes: object[], queues: object[], of = vendor('a')) =>
    [...namedLanes({ routes, jobQueues: queues } as unknown as GatewayConfig, of)].sort()

  it('exact models of routes, models of targets and models of job queues are named', () => {
    const routes = [
      { models: ['gpt-4', 'o*'], targets: [target({}), target({ vendor: 'other', model: 'x' })] },
      { targets: [target({ model: 'gpt-5' })] },
    ]
    const queues = [
      { vendor: 'openai', model: 'batch' },
      { vendor: 'other', model: 'y' },
    ]
    expect(named(routes, queues)).toEqual(['(other)', 'batch', 'gpt-4', 'gpt-5'])
  })

  it('a vendor with several keys has lanes for each key that a target uses', () => {
    const routes = [{ models: ['gpt-4'], targets: [target({}), target({ key: 'b' })] }]
    expect(named(routes, [], vendor('a', 'b'))).toEqual([
      '(other) (a)',
      '(other) (b)',
      'a',
      'b',
      'gpt-4 (a)',
      'gpt-4 (b)',
    ])
  })

  it('the key of a target is named only if the vendor has several', () => {
    expect(keyNameOf(vendor('a'), undefined)).toBeUndefined()
    expect(keyNameOf(vendor('a', 'b'), undefined)).toBe('a')
    expect(keyNameOf(vendor('a', 'b'), 'b')).toBe('b')
    expect(keyNameOf(vendor(), undefined)).toBeUndefined()
  })
})

describe('trace headers', () => {
  it('trace headers of the client are replaced by those of the gateway', () => {
    const raw = ['traceparent', 'theirs', 'x-a', '1', 'baggage', 'b', 'tracestate', 's']
    expect(withTrace(raw, { traceparent: 'ours', other: 'no' })).toEqual([
      'x-a',
      '1',
      'traceparent',
      'ours',
    ])
    expect(withTrace(raw, undefined)).toEqual(['x-a', '1'])
  })
})

describe('values that several configurations hold', () => {
  it('a shared value is closed once, when its last user releases it', async () => {
    const closed: string[] = []
    const held = new RefCounted('pool', async (value) => void closed.push(value))
    expect(held.retain()).toBe(held)
    await held.release()
    expect(closed).toEqual([])
    await held.release()
    expect(closed).toEqual(['pool'])
  })
})
