// test-group: sockets

/** Routes, vendors and limits for paths in odd spellings. */
import { Socket } from 'node:net'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { startGateway } from '../gateway-kit.js'
import { startRecordingVendor } from '../recording-vendor.js'
import { exchangeRaw } from './raw.js'

const BODY = '{"model":"gpt","messages":[]}'
const hasAnswer = (text: string) => /\r\n\r\n.*\}$/s.test(text)

interface TestRequest {
  method?: string
  headers?: string
  /** Headers that make Node's HTTP parser read the request instead of the gateway's fast path. */
  byNode?: boolean
}

/** A request with its path exactly as given. */
async function ask(
  url: string,
  path: string,
  { method = 'POST', headers = '', byNode }: TestRequest = {},
) {
  const body = method === 'POST' ? BODY : ''
  const lines =
    `Host: a\r\nContent-Type: application/json\r\n${headers}` +
    (body === '' ? '' : `Content-Length: ${body.length}\r\n`) +
    (byNode === true ? 'TE: trailers\r\n' : '')
  const request = `${method} ${path} HTTP/1.1\r\n${lines}\r\n${body}`
  const { statuses, text } = await exchangeRaw(url, request, { enough: hasAnswer })
  const [, json = ''] = text.split('\r\n\r\n')
  const { error } = (json === '' ? {} : JSON.parse(json)) as {
    error?: { code: string; message: string }
  }
  return { status: statuses[0], code: error?.code, message: error?.message ?? '', text }
}

describe.each([false, true])('paths (read by Node: %s)', (byNode) => {
  it('an encoded path has the endpoint limit of the path, and the vendor gets the path', async () => {
    const { url: vendorUrl, seen } = await startRecordingVendor()
    const userLimits = [{ per: 'endpoint', limit: { '/v1/chat/completions': 2 }, windowMs: '1h' }]
    const { url } = await startGateway({
      guard: { url: vendorUrl, userLimits },
      routes: [{ path: '/v1/*', vendor: 'openai' }],
    })
    const paths = ['/v1/chat/%63ompletions', '/v1/%63hat/completions', '/v1/chat/completions']
    const statuses: unknown[] = []
    for (const path of paths) statuses.push((await ask(url, path, { byNode })).status)
    expect(statuses).toEqual([200, 200, 429])
    expect(seen.map((each) => each.url)).toEqual(['/v1/chat/completions', '/v1/chat/completions'])
  })

  it('an encoded path takes the route of the path', async () => {
    const { url: vendorUrl, seen } = await startRecordingVendor()
    const { url } = await startGateway({
      guard: { url: vendorUrl },
      vendors: { files: { protocol: 'openai', url: `${vendorUrl}/files` } },
      routes: [
        { path: '/v1/files/*', vendor: 'files' },
        { path: '/v1/*', vendor: 'openai' },
      ],
    })
    for (const path of ['/v1/%66iles/a?%61=b', '/v1/files/%61%2fb', '/v1/files%2fa']) {
      expect((await ask(url, path, { byNode })).status).toBe(200)
    }
    expect(seen.map((each) => each.url)).toEqual([
      '/files/v1/files/a?%61=b',
      '/files/v1/files/a%2Fb',
      // An encoded slash does not begin another segment, so this is no path under /v1/files/.
      '/v1/files%2Fa',
    ])
  })

  it.each([
    '/v1//chat/completions',
    '/v1/chat/completions/',
    '/v1/%2Fchat/completions',
    '/v1/chat/completions%2f',
    '/v1/chat%2f%2e%2e%2ffiles',
    '/v1/chat/%2e%2e/files',
    '/v1/chat/%252e%252e/files',
    '/v1/chat/completions;a=b',
  ])('path %s is refused with 400 on default and on configured routes', async (path) => {
    const { url: vendorUrl, seen } = await startRecordingVendor()
    const guard = { url: vendorUrl }
    const written = [{ path: '/v1/*', vendor: 'openai' }]
    for (const routes of [undefined, written]) {
      const { url } = await startGateway({ guard, ...(routes && { routes }) })
      expect(await ask(url, path, { byNode })).toMatchObject({ status: 400, code: 'INVALID_URL' })
    }
    expect(seen).toEqual([])
  })

  it('empty segments and a slash at the end reach a vendor of protocol http unchanged', async () => {
    const { url: vendorUrl, seen } = await startRecordingVendor()
    const { url } = await startGateway({
      vendors: { files: { protocol: 'http', url: vendorUrl } },
      routes: [{ path: '/files/*', vendor: 'files', stripPrefix: '/files' }],
    })
    expect((await ask(url, '/%66iles/a//b/', { byNode })).status).toBe(200)
    expect(seen.map((each) => each.url)).toEqual(['/a//b/'])
  })

  it.each(['GET', 'HEAD', 'DELETE', 'OPTIONS'])(
    'a body on %s is refused with 400 and never reaches a vendor',
    async (method) => {
      const { url: vendorUrl, seen } = await startRecordingVendor()
      const { url } = await startGateway({
        vendors: { files: { protocol: 'http', url: vendorUrl } },
        routes: [{ path: '/files/*', vendor: 'files' }],
      })
      const bodies = ['Content-Length: 5\r\n\r\nhello', 'Content-Length: 005\r\n\r\nhello']
      bodies.push('Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n')
      for (const body of bodies) {
        const head = `${method} /files/a HTTP/1.1\r\nHost: a\r\n${byNode ? 'TE: trailers\r\n' : ''}`
        const { statuses, closed } = await exchangeRaw(url, head + body)
        expect([statuses, closed]).toEqual([[400], true])
      }
      expect(seen).toEqual([])
      const empty = { method, headers: 'Content-Length: 0\r\n', byNode }
      expect(
        (
          await exchangeRaw(url, `${method} /files/a HTTP/1.1\r\nHost: a\r\n${empty.headers}\r\n`, {
            enough: (text) => text.includes('\r\n\r\n'),
          })
        ).statuses,
      ).toEqual([200])
      expect(seen).toHaveLength(1)
    },
  )

  it.each(['spillway-user', 'spillway-tier'])(
    'a %s header of more than 200 characters is refused with 400',
    async (name) => {
      const { url } = await startGateway()
      const of = (length: number) =>
        ask(url, '/v1/chat/completions', { headers: `${name}: ${'x'.repeat(length)}\r\n`, byNode })
      expect((await of(200)).status).toBe(200)
      const { status, message } = await of(201)
      expect(status).toBe(400)
      expect(message).toBe(
        `Spillway gateway: the header ${name} has 201 characters; at most 200 are allowed`,
      )
      const twice = `${name}: a\r\n${name}: b\r\n`
      expect((await ask(url, '/v1/chat/completions', { headers: twice, byNode })).status).toBe(400)
    },
  )
})

describe('default routes', () => {
  const REFUSED = [
    ['GET', '/v1/files'],
    ['POST', '/v1/files'],
    ['GET', '/v1/files/file-1/content'],
    ['POST', '/v1/batches'],
    ['GET', '/v1/responses/resp_1'],
    ['DELETE', '/v1/responses/resp_1'],
    ['GET', '/v1/responses'],
    ['GET', '/v1/chat/completions'],
    ['DELETE', '/v1/models/ft:gpt'],
    ['POST', '/v1/fine_tuning/jobs'],
    ['GET', '/v1/organization/users'],
    ['POST', '/v1/messages/batches'],
  ] as const
  const ALLOWED = [
    ['POST', '/v1/chat/completions'],
    ['POST', '/v1/completions'],
    ['POST', '/v1/responses'],
    ['POST', '/v1/embeddings'],
    ['POST', '/v1/moderations'],
    ['POST', '/v1/images/generations'],
    ['POST', '/v1/audio/speech'],
    ['GET', '/v1/models'],
    ['GET', '/v1/models/gpt-4o'],
  ] as const

  it('default routes allow generating and listing models, and nothing else of the account', async () => {
    const { url: vendorUrl, seen } = await startRecordingVendor()
    const { url } = await startGateway({
      guard: { url: vendorUrl },
      routes: [{ vendor: 'openai' }],
    })
    for (const [method, path] of REFUSED) {
      const { status, message } = await ask(url, path, { method })
      expect([path, status]).toEqual([path, 404])
      expect(message).toContain(`no route for ${method} ${path}`)
      expect(message).toMatch(/write "- \{ path: \/v1\/[\w/*]+, vendor: openai \}" under routes/)
    }
    expect(seen).toEqual([])
    for (const [method, path] of ALLOWED) {
      expect([path, (await ask(url, path, { method })).status]).toEqual([path, 200])
    }
    expect(seen.map(({ url: each }) => each)).toEqual(ALLOWED.map(([, path]) => path))
  })

  it('the route that the refusal names allows the request', async () => {
    const { url: vendorUrl, seen } = await startRecordingVendor()
    const { url } = await startGateway({
      guard: { url: vendorUrl },
      routes: [{ path: '/v1/files/*', vendor: 'openai' }, { vendor: 'openai' }],
    })
    expect((await ask(url, '/v1/files/file-1', { method: 'GET' })).status).toBe(200)
    expect(seen).toHaveLength(1)
  })

  it('anthropic-version chooses Anthropic on a shared default path, which is refused without it', async () => {
    const [openai, anthropic] = [await startRecordingVendor(), await startRecordingVendor()]
    const { url } = await startGateway({
      vendors: {
        openai: { protocol: 'openai', url: openai.url },
        anthropic: { protocol: 'anthropic', url: anthropic.url },
      },
    })
    const headers = 'anthropic-version: 2023-06-01\r\n'
    for (const path of ['/v1/models', '/v1/models/claude']) {
      expect((await ask(url, path, { method: 'GET', headers })).status).toBe(200)
      const { status, code, message } = await ask(url, path, { method: 'GET' })
      expect([status, code]).toEqual([400, 'AMBIGUOUS_ROUTE'])
      expect(message).toContain('vendor: openai }" under routes')
    }
    expect(anthropic.seen).toHaveLength(2)
    const files = await ask(url, '/v1/files', { method: 'GET', headers })
    expect(files).toMatchObject({ status: 404 })
    expect(files.text).toContain('not_found_error')
    expect(files.message).toContain('- { path: /v1/files, vendor: anthropic }')
    expect((await ask(url, '/v1/messages')).status).toBe(200)
    expect(anthropic.seen).toHaveLength(3)
    expect(openai.seen).toEqual([])
  })

  it('an Anthropic client does not reach the OpenAI vendor by a default route', async () => {
    const { url: vendorUrl, seen } = await startRecordingVendor()
    const { url } = await startGateway({
      guard: { url: vendorUrl },
      routes: [{ path: '/v1/messages', vendor: 'anthropic' }, { vendor: 'openai' }],
    })
    const headers = 'anthropic-version: 2023-06-01\r\n'
    expect((await ask(url, '/v1/models', { method: 'GET', headers })).status).toBe(404)
    expect((await ask(url, '/v1/models', { method: 'GET' })).status).toBe(200)
    expect(seen).toHaveLength(1)
  })

  it('a shared path is not ambiguous where one vendor is configured or a route names it', async () => {
    const { url: vendorUrl, seen } = await startRecordingVendor()
    const named = [
      { path: '/v1/models', vendor: 'openai' },
      { vendor: 'openai' },
      { vendor: 'anthropic' },
    ]
    for (const routes of [[{ vendor: 'openai' }], [{ vendor: 'anthropic' }], named]) {
      const { url } = await startGateway({ guard: { url: vendorUrl }, routes })
      expect((await ask(url, '/v1/models', { method: 'GET' })).status).toBe(200)
    }
    expect(seen).toHaveLength(3)
  })

  it('vendor names are not shown to callers without a key', async () => {
    const callers = [{ key: 'env:KEY', user: 'ann' }]
    const { url } = await startGateway({ callers }, {}, { KEY: 'key-of-ann-0123456789' })
    const unknown = await ask(url, '/v1/files', { method: 'GET' })
    expect(unknown).toMatchObject({
      status: 404,
      message: 'Spillway gateway: no route for GET /v1/files',
    })
    expect((await ask(url, '/v1/models', { method: 'GET' })).status).toBe(401)
    const headers = 'Authorization: Bearer key-of-ann-0123456789\r\n'
    const known = await ask(url, '/v1/files', { method: 'GET', headers })
    expect(known.message).toContain('vendor: openai')
  })
})

it('all addresses of one IPv6 network share the limit per address', async () => {
  let address = ''
  // Replaces the source of `remoteAddress`, because loopback has only one IPv6 address.
  const sockets = Socket.prototype as unknown as { _getpeername(): { address: string } }
  vi.spyOn(sockets, '_getpeername').mockImplementation(() => ({ address }))
  onTestFinished(() => void vi.restoreAllMocks())
  const { url: vendorUrl } = await startRecordingVendor()
  const userLimits = [{ per: 'ip', limit: 2, windowMs: '1h' }]
  const { url } = await startGateway({ guard: { url: vendorUrl, userLimits } })
  const from = async (each: string) => {
    address = each
    return (await ask(url, '/v1/chat/completions')).status
  }
  expect(await from('2001:db8:1:2::1')).toBe(200)
  expect(await from('2001:db8:1:2:ffff::9')).toBe(200)
  expect(await from('2001:db8:1:2:abcd:1:2:3')).toBe(429)
  expect(await from('2001:db8:1:3::1')).toBe(200)
  // An IPv4 client is the same one whether it connects to an IPv4 or an IPv6 socket.
  expect(await from('::ffff:10.0.0.1')).toBe(200)
  expect(await from('10.0.0.1')).toBe(200)
  expect(await from('::ffff:10.0.0.1')).toBe(429)
  expect(await from('::ffff:10.0.0.2')).toBe(200)
})

it('headers about the client do not change the address that a limit counts', async () => {
  const { url: vendorUrl } = await startRecordingVendor()
  const userLimits = [{ per: 'ip', limit: 1, windowMs: '1h' }]
  const { url } = await startGateway({ guard: { url: vendorUrl, userLimits } })
  const statuses: unknown[] = []
  for (const headers of [
    '',
    'X-Forwarded-For: 10.0.0.1\r\n',
    'Forwarded: for=10.0.0.2\r\n',
    'X-Real-IP: 10.0.0.3\r\n',
  ]) {
    statuses.push((await ask(url, '/v1/chat/completions', { headers })).status)
  }
  expect(statuses).toEqual([200, 429, 429, 429])
})
