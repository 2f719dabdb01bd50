import { describe, expect, it } from 'vitest'
import { SERVER_LIMITS } from '../../config/shapes/server-limits-shape.js'
import type { ClientRequest } from '../client-http.js'
import { validateRequest } from './validate.js'

interface Sent {
  method?: string
  url?: string
  minor?: number
  major?: number
}

function fault(headers: [string, string][] = [], sent: Sent = {}) {
  const { method = 'POST', url = '/v1/chat/completions', minor = 1, major = 1 } = sent
  const hasHost = headers.some(([name]) => name.toLowerCase() === 'host')
  const all: [string, string][] = hasHost ? headers : [['Host', 'gateway'], ...headers]
  const request = {
    method,
    url,
    httpVersionMajor: major,
    httpVersionMinor: minor,
    rawHeaders: all.flat(),
    headers: Object.fromEntries(all.map(([name, value]) => [name.toLowerCase(), value])),
  } as unknown as ClientRequest
  return validateRequest(request, { ...SERVER_LIMITS, maxUrlBytes: 64, maxHeaders: 20 })
}

const codeOf = (...args: Parameters<typeof fault>) => fault(...args)?.code

describe('requests that are refused before they are read', () => {
  it.each<[number, string, [string, string][], Sent]>([
    [501, 'METHOD_NOT_SUPPORTED', [], { method: 'TRACE' }],
    [505, 'HTTP_VERSION', [], { major: 2 }],
    [414, 'URL_TOO_LONG', [], { url: `/${'a'.repeat(64)}` }],
    [431, 'TOO_MANY_HEADERS', Array.from({ length: 30 }, (_, i) => [`x-${i}`, '1']), {}],
    [501, 'TRANSFER_ENCODING', [['Transfer-Encoding', 'gzip']], {}],
    [400, 'UNEXPECTED_BODY', [['Content-Length', '1']], { method: 'GET' }],
    [501, 'UPGRADE', [['Upgrade', 'websocket']], {}],
    [417, 'EXPECTATION_FAILED', [['Expect', 'x']], {}],
  ])('status %i with the code %s closes the connection', (status, code, headers, sent) => {
    expect(fault(headers, sent)).toMatchObject({ status, code, closes: true })
  })

  it('an ordinary request has no fault', () => {
    expect(
      fault([
        ['Content-Type', 'application/json'],
        ['X-A', '1'],
      ]),
    ).toBeUndefined()
    expect(fault([['Content-Length', '5']])).toBeUndefined()
    expect(fault([['Transfer-Encoding', 'Chunked']])).toBeUndefined()
  })

  it('a refusal closes the connection', () => {
    expect(fault([], { method: 'TRACE' })).toMatchObject({ status: 501, closes: true })
  })

  it.each(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('%s is allowed', (method) => {
    expect(codeOf([], { method })).toBeUndefined()
  })

  it.each(['TRACE', 'CONNECT', 'PROPFIND', 'post'])('%s is refused as 501', (method) => {
    expect(codeOf([], { method })).toBe('METHOD_NOT_SUPPORTED')
  })

  it('only HTTP/1 is accepted', () => {
    expect(codeOf([], { major: 2 })).toBe('HTTP_VERSION')
  })

  it('a URL may have maxUrlBytes bytes, and must be valid', () => {
    expect(codeOf([], { url: `/${'a'.repeat(63)}` })).toBeUndefined()
    expect(codeOf([], { url: `/${'a'.repeat(64)}` })).toBe('URL_TOO_LONG')
    expect(codeOf([], { url: '/a/../b' })).toBe('INVALID_URL')
  })

  it('a request may have maxHeaders headers', () => {
    const headers = (count: number) =>
      Array.from({ length: count - 1 }, (_, i): [string, string] => [`x-${i}`, '1'])
    expect(codeOf(headers(20))).toBeUndefined()
    expect(codeOf(headers(21))).toBe('TOO_MANY_HEADERS')
  })

  it.each([
    ...['host', 'upgrade', 'x-api-key', 'content-type', 'authorization', 'content-length'],
    ...['idempotency-key', 'content-encoding', 'transfer-encoding', 'spillway-deadline-ms'],
    ...['spillway-user', 'spillway-tier', 'spillway-priority'],
  ])('the header %s must not occur twice', (name) => {
    const message = `the header ${name} occurs twice`
    expect(
      fault([
        [name, 'a'],
        ['x-other', '1'],
        [name.toUpperCase(), 'b'],
      ]),
    ).toMatchObject({
      status: 400,
      code: 'MALFORMED_REQUEST',
      message,
    })
  })

  it('other headers may occur twice', () => {
    expect(
      codeOf([
        ['accept', 'a'],
        ['accept', 'b'],
        ['x-a', '1'],
        ['x-a', '2'],
      ]),
    ).toBeUndefined()
  })

  it.each(['spillway-user', 'spillway-tier'])('%s has at most 200 characters', (name) => {
    expect(codeOf([[name, 'a'.repeat(200)]])).toBeUndefined()
    expect(fault([[name, 'a'.repeat(201)]])).toMatchObject({
      status: 400,
      code: 'NAME_TOO_LONG',
      message: `the header ${name} has 201 characters; at most 200 are allowed`,
    })
  })

  it('a host is needed in HTTP/1.1 and must be a host name', () => {
    expect(codeOf([['Host', '[::1]:8080']])).toBeUndefined()
    expect(codeOf([['Host', 'a b']])).toBe('MALFORMED_REQUEST')
    expect(codeOf([['Host', 'user@host']], { minor: 0 })).toBe('MALFORMED_REQUEST')
    const withoutHost = (minor: number) =>
      validateRequest(
        {
          method: 'GET',
          url: '/',
          httpVersionMajor: 1,
          httpVersionMinor: minor,
          rawHeaders: [],
          headers: {},
        } as unknown as ClientRequest,
        SERVER_LIMITS,
      )?.code
    expect([withoutHost(1), withoutHost(0)]).toEqual(['MALFORMED_REQUEST', undefined])
  })

  it('chunked is the only transfer-encoding, and not in HTTP/1.0', () => {
    expect(codeOf([['Transfer-Encoding', 'gzip, chunked']])).toBe('TRANSFER_ENCODING')
    expect(codeOf([['Transfer-Encoding', 'chunked']], { minor: 0 })).toBe('TRANSFER_ENCODING')
  })

  it.each(['GET', 'HEAD', 'DELETE', 'OPTIONS'])('%s must not have a body', (method) => {
    expect(codeOf([['Content-Length', '1']], { method })).toBe('UNEXPECTED_BODY')
    expect(codeOf([['Content-Length', '00']], { method })).toBeUndefined()
    expect(codeOf([['Transfer-Encoding', 'chunked']], { method })).toBe('UNEXPECTED_BODY')
  })

  it('an upgrade is refused, except to h2c, which is ignored', () => {
    expect(codeOf([['Upgrade', 'websocket']])).toBe('UPGRADE')
    expect(codeOf([['Upgrade', 'H2C']])).toBeUndefined()
  })

  it('100-continue is the only expectation', () => {
    expect(codeOf([['Expect', '100-Continue']])).toBeUndefined()
    expect(fault([['Expect', 'x']])).toMatchObject({ status: 417, code: 'EXPECTATION_FAILED' })
  })
})
