// test-group: sockets

/** Requests refused before any vendor call, and headers that never reach a vendor. */

import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startGateway } from '../gateway-kit.js'
import { exchangeRaw } from './raw.js'
import { PATH, TRICKS, VALID, VALID_CHUNKED } from './tricks.js'

async function echoVendor(answer: Record<string, string> = {}) {
  const seen: { url: string | undefined; headers: IncomingHttpHeaders }[] = []
  const server = createServer((request, response) => {
    seen.push({ url: request.url, headers: request.headers })
    request.resume()
    response.writeHead(200, { 'content-type': 'application/json', ...answer })
    response.end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close().closeAllConnections())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
}

describe('malicious requests', () => {
  it('a malicious request is refused, logged and disconnected without a vendor call', async () => {
    const { url, vendor, records, failures } = await startGateway()
    for (const [name, [request, ...fitting]] of Object.entries(TRICKS)) {
      const before = records.length
      const { statuses, closed, text } = await exchangeRaw(url, request)
      expect(fitting, `${name}: ${text.slice(0, 80)}`).toContain(statuses[0])
      expect([statuses.length, closed], name).toEqual([1, true])
      expect(
        records.slice(before).map(({ status }) => status),
        name,
      ).toEqual([statuses[0]])
    }
    expect(vendor.counts.arrived).toBe(0)
    expect(failures).toEqual([])
    for (const request of [VALID, VALID_CHUNKED]) {
      const { statuses } = await exchangeRaw(url, request, {
        enough: (text) => text.includes('"usage"'),
      })
      expect(statuses).toEqual([200])
    }
    expect(vendor.counts.arrived).toBe(2)
  })

  it('a malicious request after a valid one does not cost that one its answer', async () => {
    const { url, vendor } = await startGateway()
    const { statuses, closed } = await exchangeRaw(url, `${VALID}GARBAGE / HTTP/1.1\r\n\r\n`)
    expect([statuses[0], closed]).toEqual([200, true])
    expect(vendor.counts.arrived).toBe(1)
  })
})

it('a request without a known key is refused before its body arrives', async () => {
  const callers = [{ key: 'env:KEY', user: 'ann' }]
  const { url, vendor } = await startGateway({ callers }, {}, { KEY: 'key-of-ann-0123456789' })
  const head = `POST ${PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n`
  for (const key of ['', 'Authorization: Bearer another-key-0123456789\r\n']) {
    const { statuses } = await exchangeRaw(url, `${head}${key}Content-Length: 30000000\r\n\r\n{`, {
      enough: (text) => text.includes('UNKNOWN_KEY'),
    })
    expect(statuses).toEqual([401])
  }
  expect(vendor.counts.arrived).toBe(0)
})

describe('request to the vendor', () => {
  it('the vendor receives no header meant for the gateway or about the client', async () => {
    const { url: vendorUrl, seen } = await echoVendor()
    const { url } = await startGateway(
      { guard: { url: vendorUrl, key: 'env:KEY' } },
      {},
      { KEY: 'ours' },
    )
    await fetch(`${url}${PATH}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: 'Bearer theirs',
        'x-api-key': 'theirs',
        x_api_key: 'theirs',
        cookie: 'a=b',
        forwarded: 'for=1.2.3.4;host=evil.example',
        'x-forwarded-for': '1.2.3.4',
        'x-forwarded-host': 'evil.example',
        X_Forwarded_Proto: 'https',
        'x-real-ip': '1.2.3.4',
        'x-original-url': '/admin',
        'x-http-method-override': 'DELETE',
        via: '1.1 evil',
        proxy: 'http://evil.example',
        'spillway-user': 'root',
        'x-kept': 'yes',
      },
      body: '{"model":"gpt"}',
    })
    const { host, connection, 'content-length': length, ...rest } = seen[0]?.headers ?? {}
    expect(rest).toEqual({
      'content-type': 'application/json',
      accept: '*/*',
      'accept-language': '*',
      'sec-fetch-mode': 'cors',
      'user-agent': 'node',
      'x-kept': 'yes',
      authorization: 'Bearer ours',
      'idempotency-key': expect.any(String),
    })
    expect([host, length]).toEqual([new URL(vendorUrl).host, '15'])
    expect(connection).toBe('keep-alive')
  })

  it('headers named in Connection do not reach the vendor', async () => {
    const { url: vendorUrl, seen } = await echoVendor()
    const { url } = await startGateway(
      { guard: { url: vendorUrl, key: 'env:KEY' } },
      {},
      { KEY: 'ours' },
    )
    const hop =
      'Connection: close, X-Secret, authorization\r\nX-Secret: 1\r\nX-Open: 2\r\nTE: trailers\r\n'
    await exchangeRaw(url, VALID.replace('\r\n\r\n', `\r\n${hop}\r\n`))
    expect(seen[0]?.headers).not.toHaveProperty('x-secret')
    expect(seen[0]?.headers).not.toHaveProperty('te')
    expect(seen[0]?.headers).toMatchObject({ 'x-open': '2', authorization: 'Bearer ours' })
  })

  it('the vendor receives its own host name, regardless of the request', async () => {
    const { url: vendorUrl, seen } = await echoVendor()
    const { url } = await startGateway({ guard: { url: `${vendorUrl}/base` } })
    const odd = VALID.replace('gateway', 'evil.example').replace(
      PATH,
      `${PATH}?url=http://evil/[a]|b`,
    )
    await exchangeRaw(url, odd, { enough: (text) => text.endsWith('{}') })
    expect(seen[0]?.headers.host).toBe(new URL(vendorUrl).host)
    expect(seen[0]?.url).toBe(`/base${PATH}?url=http://evil/[a]|b`)
  })
})

describe('answer to the client', () => {
  it('the client receives no vendor header meant for the gateway or about its host', async () => {
    const { url: vendorUrl } = await echoVendor({
      'set-cookie': 'a=b',
      'alt-svc': 'h3=":443"',
      'strict-transport-security': 'max-age=1',
      'x-accel-redirect': '/etc/passwd',
      'x-sendfile': '/etc/passwd',
      via: '1.1 inside',
      connection: 'close, x-inner',
      'x-inner': '1',
      'spillway-vendor': 'evil',
      'x-kept': 'yes',
    })
    const { chat } = await startGateway({ guard: { url: vendorUrl } })
    const { headers } = await chat()
    expect([...headers.keys()].filter((name) => !name.startsWith('spillway-')).sort()).toEqual([
      'connection',
      'content-length',
      'content-type',
      'date',
      'keep-alive',
      'x-kept',
    ])
    expect(headers.get('spillway-vendor')).toBe('openai')
  })
})

describe('unusual vendor answers', () => {
  async function answering(head: string, body = '{}') {
    const server = createTcpServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => {
        const text = `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n${head}\r\n${body}`
        socket.end(Buffer.from(text, 'latin1'))
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return startGateway({ guard: { url } })
  }

  it('non-ASCII bytes in vendor headers are passed on unchanged', async () => {
    const { chat, failures } = await answering(
      'x-note: h\xc3\xa9 \xe2\x9c\x93\r\nx-two: a\r\nx-two: b\r\n',
    )
    const { status, headers } = await chat()
    expect(status).toBe(200)
    expect(Buffer.from(headers.get('x-note') ?? '', 'latin1').toString()).toBe('h\u00e9 \u2713')
    expect(headers.get('x-two')).toBe('a, b')
    expect(failures).toEqual([])
  })

  it('vendor headers can neither reach a prototype nor replace spillway headers', async () => {
    const { chat, failures } = await answering(
      '__proto__: a\r\n__proto__: b\r\nspillway-vendor: evil\r\n',
    )
    const answer = await chat()
    expect([answer.status, await answer.text()]).toEqual([200, '{}'])
    expect(answer.headers.get('spillway-vendor')).toBe('openai')
    expect(failures).toEqual([])
  })

  it.each(['x-a: b\0c\r\n', 'x-a: b\r\n c\r\n', 'content-length: 7\r\n', 'x a: b\r\n'])(
    'a vendor answer that is not HTTP becomes a 502 (%j)',
    async (head) => {
      const { chat, failures } = await answering(head)
      expect((await chat()).status).toBe(502)
      expect(failures).toEqual([])
    },
  )
})

describe('model names in requests', () => {
  it('a duplicate model key is refused, because the vendor might read the other one', async () => {
    const { chat, url, vendor } = await startGateway()
    for (const body of [
      '{"model":"cheap","messages":[],"model":"dear"}',
      '{"model":"cheap","messages":[],"\\u006dodel":"dear"}',
    ]) {
      const answer = await fetch(`${url}${PATH}`, { method: 'POST', body })
      expect(answer.status).toBe(400)
      expect(await answer.text()).toContain('twice')
    }
    expect(vendor.counts.arrived).toBe(0)
    const inside = { model: 'gpt', tools: [{ model: 'x' }], messages: [{ content: '"model":"y"' }] }
    expect((await chat(inside)).status).toBe(200)
  })

  it('models named __proto__ or constructor are ordinary models', async () => {
    const { chat, gateway } = await startGateway()
    for (const model of ['__proto__', 'constructor', 'toString']) {
      expect((await chat({ model })).status).toBe(200)
    }
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
    expect(gateway.spillway.snapshot().guards).toBeDefined()
  })
})
