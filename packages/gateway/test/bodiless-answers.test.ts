// test-group: sockets

/** Answers that must not have a body: 204, 304, and answers to HEAD. */
import { describe, expect, it } from 'vitest'
import { startGateway } from './gateway-kit.js'
import { startRecordingVendor } from './recording-vendor.js'
import { exchangeRaw } from './security/raw.js'

const ROUTES = [{ path: '/files/*', vendor: 'files' }]

async function askFor(answer: string, method: string) {
  const vendor = await startRecordingVendor(answer)
  const vendors = { files: { protocol: 'http', url: vendor.url } }
  const { url } = await startGateway({ vendors, routes: ROUTES })
  const request = `${method} /files/a HTTP/1.1\r\nHost: a\r\n\r\n`
  const exchange = () => exchangeRaw(url, request, { enough: (text) => text.includes('\r\n\r\n') })
  const first = await exchange()
  const second = await exchange()
  return { texts: [first.text, second.text], seen: vendor.seen }
}

describe('an answer without a body', () => {
  it.each([
    ['a 204 with a length', '204 No Content', 'content-length: 5\r\n', ''],
    ['a 204 with a length and a body', '204 No Content', 'content-length: 5\r\n', 'hello'],
    ['a 204 with length 0', '204 No Content', 'content-length: 0\r\n', ''],
    ['a 204 in chunks', '204 No Content', 'transfer-encoding: chunked\r\n', '0\r\n\r\n'],
    ['a 304 with a length', '304 Not Modified', 'content-length: 5\r\n', ''],
    ['a 304 with a length and a body', '304 Not Modified', 'content-length: 5\r\n', 'hello'],
  ])('%s is passed on without length and body', async (_, status, header, body) => {
    const answer = `HTTP/1.1 ${status}\r\nx-kept: yes\r\n${header}\r\n${body}`
    const { texts, seen } = await askFor(answer, 'GET')
    for (const text of texts) {
      expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status}\r\n`))
      expect(text).toContain('x-kept: yes')
      expect(text).not.toMatch(/content-length|transfer-encoding|hello/i)
      expect(text.endsWith('\r\n\r\n')).toBe(true)
    }
    expect(seen).toHaveLength(2)
  })

  it.each(['', 'hello'])(
    'an answer to HEAD keeps its length and has no body (vendor sends %j)',
    async (body) => {
      const answer = `HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n${body}`
      const { texts, seen } = await askFor(answer, 'HEAD')
      for (const text of texts) {
        expect(text).toMatch(/^HTTP\/1.1 200 OK\r\n/)
        expect(text).toMatch(/content-length: 5\r\n/i)
        expect(text.endsWith('\r\n\r\n')).toBe(true)
      }
      expect(seen).toHaveLength(2)
    },
  )

  it('an informational status is not passed on', async () => {
    const between = 'HTTP/1.1 103 Early Hints\r\ncontent-length: 5\r\n\r\n'
    const { texts } = await askFor(`${between}HTTP/1.1 204 No Content\r\n\r\n`, 'GET')
    for (const text of texts) expect(text).toMatch(/^HTTP\/1.1 204/)
  })
})
