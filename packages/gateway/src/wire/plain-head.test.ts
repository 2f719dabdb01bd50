import { describe, expect, it } from 'vitest'
import { readPlainHead } from './plain-head.js'

const head = (first: string, ...lines: string[]) => [first, 'Host: a', ...lines].join('\r\n')
const POST = 'POST /v1/chat/completions?a=b HTTP/1.1'

describe('readPlainHead', () => {
  it('a plain head is read with its method, URL, lower-case header names and body length', () => {
    const read = readPlainHead(head(POST, 'Content-LENGTH: 12', 'X-High:  caf\xe9  ', 'x-empty:'))
    expect(read).toEqual({
      method: 'POST',
      url: '/v1/chat/completions?a=b',
      headers: expect.objectContaining({ host: 'a', 'x-high': 'caf\xe9', 'x-empty': '' }),
      rawHeaders: ['host', 'a', 'content-length', '12', 'x-high', 'caf\xe9', 'x-empty', ''],
      bodyBytes: 12,
    })
    expect(readPlainHead(head('GET / HTTP/1.1'))).toMatchObject({ method: 'GET', bodyBytes: 0 })
  })

  it('a plain head has only the headers that were sent and no inherited ones', () => {
    const { headers = {} } = readPlainHead(head(POST, 'constructor: x')) ?? {}
    expect(Object.keys(headers)).toEqual(['host', 'constructor'])
    expect(headers.constructor).toBe('x')
    expect(headers.toString).toBeUndefined()
    expect('valueOf' in headers).toBe(false)
  })

  it('a plain head may have Connection: keep-alive', () => {
    expect(readPlainHead(head(POST, 'Connection: Keep-Alive'))).toBeDefined()
  })
})

describe('heads that are left to Node', () => {
  it.each([
    ['of another method', head('PUT / HTTP/1.1')],
    ['of a method in small letters', head('post / HTTP/1.1')],
    ['of another version', head('GET / HTTP/1.0')],
    ['with two spaces', head('GET  / HTTP/1.1')],
    ['with a URL that has a host', head('GET http://a/ HTTP/1.1')],
    ['with an odd character in its URL', head('GET /a|b HTTP/1.1')],
    ['with bytes beyond ASCII in its URL', head('GET /\xe9 HTTP/1.1')],
    ['without headers', 'GET / HTTP/1.1'],
    ['with a header twice', head(POST, 'X-A: 1', 'x-a: 1')],
    ['with two lengths', head(POST, 'Content-Length: 1', 'Content-Length: 1')],
    ['with an empty length', head(POST, 'Content-Length:')],
    ['with a sign before its length', head(POST, 'Content-Length: +1')],
    ['with zeros before its length', head(POST, 'Content-Length: 01')],
    ['with a length in two parts', head(POST, 'Content-Length: 1, 1')],
    // Node accepts a space after a length, but no tab.
    ['with a tab after its length', head(POST, 'Content-Length: 1\t')],
    ['with an impossibly large length', head(POST, 'Content-Length: 9999999999')],
    ['with a chunked body', head(POST, 'Transfer-Encoding: chunked')],
    ['with Connection: close', head(POST, 'Connection: close')],
    ['that names hop-by-hop headers', head(POST, 'Connection: keep-alive, x-a')],
    ['with Proxy-Connection', head(POST, 'Proxy-Connection: close')],
    ['with Expect', head(POST, 'Expect: 100-continue')],
    ['with Upgrade', head(POST, 'Upgrade: h2c')],
    ['that accepts trailers', head(POST, 'TE: trailers')],
    ['with Set-Cookie, which Node returns as a list', head(POST, 'Set-Cookie: a=b')],
    ['with a header named __proto__', head(POST, '__proto__: x')],
    ['with a header named __PROTO__', head(POST, '__PROTO__: x')],
    ['with a continued header line', head(POST, 'X-A: 1', ' 2')],
    ['with a space before a colon', head(POST, 'X-A : 1')],
    ['with a space in a name', head(POST, 'X A: 1')],
    ['with a lone line feed', head(POST, 'X-A: 1\nX-B: 2')],
    ['with a lone carriage return', head(POST, 'X-A: 1\rX-B: 2')],
    ['with a carriage return before a line break', head(POST, 'X-A: 1\r', 'X-B: 2')],
    ['with a line feed before a line break', head(POST, 'X-A: 1\n', 'X-B: 2')],
    ['with a carriage return after a line break', head(POST, '\rX-A: 1')],
    ['with a line feed after a line break', head(POST, '\nX-A: 1')],
    ['with a reversed line break', head(POST, 'X-A: 1\n\rX-B: 2')],
    ['with a carriage return at its end', head(POST, 'X-A: 1\r')],
    ['with a line feed at its end', head(POST, 'X-A: 1\n')],
    ['with a line feed as its only line break', 'GET / HTTP/1.1\nHost: a'],
    ['with a NUL', head(POST, 'X-A: \0')],
  ])('a head %s is left to Node', (_, text) => {
    expect(readPlainHead(text)).toBeUndefined()
    // The result does not depend on the head that was read before.
    expect(readPlainHead(head(POST, 'X-A: 1', 'Content-Length: 1'))).toBeDefined()
    expect(readPlainHead(text)).toBeUndefined()
  })
})
