// test-group: sockets

/** Behaviour that HTTP clients expect: Expect, absolute URLs, CORS, compression, trailers. */
import { gunzipSync, gzipSync } from 'node:zlib'
import { describe, expect, it, onTestFinished } from 'vitest'
import { until } from '../../spillway/test/streams/stream-kit.js'
import { turns } from './fake-socket.js'
import { startGateway, type Written } from './gateway-kit.js'
import { get, type HttpVendor, post, startEchoGateway, startHttpVendor, Talk } from './http1-kit.js'

function startWithKeys(vendor: HttpVendor, more: Written = {}) {
  return startGateway(
    {
      vendors: { echo: { protocol: 'http', url: vendor.url, key: 'env:VENDOR' } },
      routes: [{ path: '/echo*', vendor: 'echo' }],
      callers: [{ key: 'env:ADA', user: 'ada' }],
      ...more,
    },
    {},
    { ADA: 'ada-key', VENDOR: 'vendor-key' },
  )
}

const EXPECT = 'Expect: 100-continue\r\n'

describe('Expect: 100-continue', () => {
  it('a client with a known key receives a 100, and its body reaches the vendor', async () => {
    const vendor = await startHttpVendor()
    const { url } = await startWithKeys(vendor)
    const talk = new Talk(url)
    const [head = '', body = ''] = post(
      '/echo/1',
      'the body',
      `Authorization: Bearer ada-key\r\n${EXPECT}`,
    ).split('\r\n\r\n')
    await talk.send(`${head}\r\n\r\n`)
    await talk.receives(1)
    expect(talk.statuses).toEqual([100])
    expect(vendor.requests).toEqual([])
    await talk.send(body)
    await talk.receives(2, '/echo/1')
    expect(talk.statuses).toEqual([100, 200])
    expect(vendor.requests[0]?.body).toBe('the body')
    expect(vendor.requests[0]?.headers.expect).toBeUndefined()
  })

  it('a client with an unknown key is refused without a 100, and its connection is closed', async () => {
    const vendor = await startHttpVendor()
    const { url } = await startWithKeys(vendor)
    const talk = new Talk(url)
    const [head] = post('/echo/1', 'the body', `Authorization: Bearer x\r\n${EXPECT}`).split(
      '\r\n\r\n',
    )
    await talk.send(`${head}\r\n\r\n`)
    await until('it is closed', () => talk.closed)
    expect(talk.statuses).toEqual([401])
    expect(vendor.requests).toEqual([])
  })
})

describe('connections that are kept', () => {
  const SHORT = { server: { headersMs: 300 } }

  /** Resolves when a connection that sends nothing was closed, so more than `headersMs` after the call. */
  async function pastHeadersMs(url: string): Promise<void> {
    const silent = new Talk(url)
    await until('the silent connection is closed', () => silent.closed)
  }

  it('a connection that carries only health checks stays open', async () => {
    const { url } = await startEchoGateway(await startHttpVendor(), SHORT)
    const talk = new Talk(url)
    await talk.send(get('/health/live'))
    await talk.receives(1)
    await pastHeadersMs(url)
    await talk.send(get('/health/live'))
    await talk.receives(2)
    expect([talk.statuses, talk.closed]).toEqual([[200, 200], false])
  })

  it('a connection whose request was answered before its body arrived stays open', async () => {
    const { url } = await startEchoGateway(await startHttpVendor(), SHORT)
    const talk = new Talk(url)
    await talk.send(post('/echo', 'the body'))
    await talk.receives(1, '/echo')
    const [head, body = ''] = post('/nowhere', 'the body').split('\r\n\r\n')
    await talk.send(`${head}\r\n\r\n`)
    await talk.receives(2)
    await talk.send(body)
    await pastHeadersMs(url)
    await talk.send(get('/echo/3'))
    await talk.receives(3, '/echo/3')
    expect([talk.statuses, talk.closed]).toEqual([[200, 404, 200], false])
  })
})

describe('bytes that are not HTTP', () => {
  it('packets that follow a request add no listeners, and the request is answered', async () => {
    const warnings: string[] = []
    const warn = ({ name }: Error) => warnings.push(name)
    process.on('warning', warn)
    onTestFinished(() => void process.off('warning', warn))
    let answer = () => {}
    const vendor = await startHttpVendor((_, response) => {
      answer = () => void response.end('fine')
    })
    const talk = new Talk((await startEchoGateway(vendor)).url)
    await talk.send(get('/echo'))
    await until('it is asked', () => vendor.requests.length === 1)
    for (let i = 0; i < 20; i++) {
      await talk.send('\0nonsense')
      // The gateway, in this process, reads it before the next one is sent.
      await turns(3)
    }
    answer()
    await until('it is closed', () => talk.closed)
    expect(talk.statuses).toEqual([200])
    expect(warnings).toEqual([])
  })
})

describe('absolute URLs', () => {
  it('an absolute URL with the host of the request is served like its path', async () => {
    const vendor = await startHttpVendor()
    const { url, records } = await startEchoGateway(vendor)
    const talk = new Talk(url)
    await talk.send(get('http://a/echo/1?b=c').replace('Host: a', 'Host: A'))
    await talk.receives(1, '/echo/1?b=c')
    expect(vendor.requests[0]?.url).toBe('/echo/1?b=c')
    await until('it is recorded', () => records.length === 1)
    expect(records[0]).toMatchObject({ path: '/echo/1', status: 200 })
  })

  it.each([
    'http://b/echo/1',
    'http://a:80/echo/1',
    'http://u@a/echo/1',
    'ftp://a/echo/1',
    'a/echo',
  ])('the URL %s is refused with 400', async (target) => {
    const vendor = await startHttpVendor()
    const { url } = await startEchoGateway(vendor)
    const talk = new Talk(url)
    await talk.send(get(target))
    await until('it is closed', () => talk.closed)
    expect(talk.statuses).toEqual([400])
    expect(vendor.requests).toEqual([])
  })
})

describe('cross-origin requests', () => {
  const CORS = { cors: { origins: ['https://app.example'] } }
  const PREFLIGHT = {
    origin: 'https://app.example',
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization, content-type',
  }

  it('a preflight of an allowed origin is answered without a key and without a vendor call', async () => {
    const vendor = await startHttpVendor()
    const { url } = await startWithKeys(vendor, CORS)
    const answer = await fetch(`${url}/echo`, { method: 'OPTIONS', headers: PREFLIGHT })
    expect(answer.status).toBe(204)
    expect(answer.headers.get('access-control-allow-origin')).toBe('https://app.example')
    expect(answer.headers.get('access-control-allow-headers')).toBe('authorization, content-type')
    expect(answer.headers.get('access-control-allow-methods')).toContain('POST')
    expect(answer.headers.get('vary')).toContain('origin')
    expect(vendor.requests).toEqual([])
  })

  it('a preflight of another origin is refused with 403', async () => {
    const { url } = await startWithKeys(await startHttpVendor(), CORS)
    const headers = { ...PREFLIGHT, origin: 'https://evil.example' }
    const answer = await fetch(`${url}/echo`, { method: 'OPTIONS', headers })
    expect(answer.status).toBe(403)
    expect(answer.headers.get('access-control-allow-origin')).toBeNull()
  })

  it('answers and refusals name the allowed origin, in place of the vendor', async () => {
    const vendor = await startHttpVendor((_, response) => {
      response.writeHead(200, { 'access-control-allow-origin': '*' }).end('fine')
    })
    const { url } = await startWithKeys(vendor, CORS)
    const { origin } = PREFLIGHT
    const headers = { origin, authorization: 'Bearer ada-key' }
    const good = await fetch(`${url}/echo`, { headers })
    expect([good.status, good.headers.get('access-control-allow-origin')]).toEqual([200, origin])
    const refused = await fetch(`${url}/echo`, { headers: { origin } })
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([
      401,
      origin,
    ])
  })

  it('without cors, OPTIONS is an ordinary request that needs a key', async () => {
    const { url } = await startWithKeys(await startHttpVendor())
    const answer = await fetch(`${url}/echo`, { method: 'OPTIONS', headers: PREFLIGHT })
    expect(answer.status).toBe(401)
    expect(answer.headers.get('access-control-allow-origin')).toBeNull()
  })
})

describe('answers of vendors', () => {
  it('a compressed answer of an http vendor is passed on as it is', async () => {
    const packed = gzipSync('some text '.repeat(100))
    const vendor = await startHttpVendor(({ headers }, response) => {
      expect(headers['accept-encoding']).toBe('gzip')
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(packed)
    })
    const { url } = await startEchoGateway(vendor)
    const talk = new Talk(url)
    await talk.send(get('/echo', 'Accept-Encoding: gzip\r\nConnection: close\r\n'))
    await until('it is closed', () => talk.closed)
    const [head = '', ...rest] = talk.text.split('\r\n\r\n')
    expect(head.toLowerCase()).toContain('content-encoding: gzip')
    expect(head.toLowerCase()).toContain(`content-length: ${packed.length}`)
    const body = Buffer.from(rest.join('\r\n\r\n'), 'latin1')
    expect(gunzipSync(body).toString()).toBe('some text '.repeat(100))
  })

  it('the gateway does not accept compressed answers of an LLM vendor, because it reads them', async () => {
    const { chat, vendor } = await startGateway()
    await chat({}, { headers: { 'accept-encoding': 'gzip' } })
    const [call] = vendor.calls as unknown as { headers: Record<string, unknown> }[]
    expect(call?.headers['accept-encoding']).toBeUndefined()
  })

  it('trailers are passed on in neither direction', async () => {
    const vendor = await startHttpVendor((_, response) => {
      response.writeHead(200, { trailer: 'x-sum' })
      response.write('text')
      response.addTrailers({ 'x-sum': '1' })
      response.end()
    })
    const { url } = await startEchoGateway(vendor)
    const talk = new Talk(url)
    const chunked = 'Transfer-Encoding: chunked\r\nTrailer: x-mine\r\nConnection: close\r\n'
    await talk.send(
      `POST /echo HTTP/1.1\r\nHost: a\r\n${chunked}\r\n2\r\nhi\r\n0\r\nx-mine: 2\r\n\r\n`,
    )
    await until('it is closed', () => talk.closed)
    expect(talk.statuses).toEqual([200])
    expect(talk.text.toLowerCase()).not.toContain('x-sum')
    expect(vendor.requests[0]?.body).toBe('hi')
    expect(Object.keys(vendor.requests[0]?.headers ?? {})).not.toContain('trailer')
  })
})
