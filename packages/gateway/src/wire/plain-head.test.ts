import { describe, expect, it } from 'vitest'
import { readPlainHead } from './plain-head.js'

const head = (first: string, ...lines: string[]) => [first, 'Host: a', ...lines].join('\r\n')
const POST = 'POST /v1/chat/completions?a=b HTTP/1.1'

describe('a plain head', () => {
  it('has a method, a URL, headers in small letters and the length of a body', () => {
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

  it('has no headers but its own', () => {
    const { headers = {} } = readPlainHead(head(POST, 'constructor: x')) ?? {}
    expect(Object.keys(headers)).toEqual(['host', 'constructor'])
    expect(headers.constructor).toBe('x')
    expect(headers.toString).toBeUndefined()
    expect('valueOf' in headers).toBe(false)
  })

  it('may say that its connection stays', () => {
    expect(readPlainHead(head(POST, 'Connection: Keep-Alive'))).toBeDefined()
  })
})

describe('for Node is a head', () => {
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
    // Node takes a space behind a length, and no tab.
    ['with a tab behind its length', head(POST, 'Content-Length: 1\t')],
    ['with a length that nothing has', head(POST, 'Content-Length: 9999999999')],
    ['in chunks', head(POST, 'Transfer-Encoding: chunked')],
    ['that is the last', head(POST, 'Connection: close')],
    ['that names headers for this hop', head(POST, 'Connection: keep-alive, x-a')],
    ['with an old word for connection', head(POST, 'Proxy-Connection: close')],
    ['that expects', head(POST, 'Expect: 100-continue')],
    ['that wants another protocol', head(POST, 'Upgrade: h2c')],
    ['with trailers', head(POST, 'TE: trailers')],
    ['with a cookie that Node makes a list of', head(POST, 'Set-Cookie: a=b')],
    ['with a name that is no name for a property', head(POST, '__proto__: x')],
    ['with the same in large letters', head(POST, '__PROTO__: x')],
    ['with a line that goes on', head(POST, 'X-A: 1', ' 2')],
    ['with a space before a colon', head(POST, 'X-A : 1')],
    ['with a space in a name', head(POST, 'X A: 1')],
    ['with half a line break', head(POST, 'X-A: 1\nX-B: 2')],
    ['with the other half', head(POST, 'X-A: 1\rX-B: 2')],
    ['with half a line break before a whole one', head(POST, 'X-A: 1\r', 'X-B: 2')],
    ['with the other half before a whole one', head(POST, 'X-A: 1\n', 'X-B: 2')],
    ['with half a line break behind a whole one', head(POST, '\rX-A: 1')],
    ['with the other half behind a whole one', head(POST, '\nX-A: 1')],
    ['with a line break the wrong way round', head(POST, 'X-A: 1\n\rX-B: 2')],
    ['with half a line break at its end', head(POST, 'X-A: 1\r')],
    ['with the other half at its end', head(POST, 'X-A: 1\n')],
    ['with half a line break and no other', 'GET / HTTP/1.1\nHost: a'],
    ['with a NUL', head(POST, 'X-A: \0')],
  ])('%s', (_, text) => {
    expect(readPlainHead(text)).toBeUndefined()
    // What was read before does not matter.
    expect(readPlainHead(head(POST, 'X-A: 1', 'Content-Length: 1'))).toBeDefined()
    expect(readPlainHead(text)).toBeUndefined()
  })
})
