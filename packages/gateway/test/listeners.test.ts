// test-group: sockets, slow

/** The data port over TLS, with HTTP/2 and HTTP/1.1, and on a Unix socket. */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2'
import { Agent, request as httpsRequest } from 'node:https'
import { type AddressInfo, connect as connectTcp, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { until } from '../../spillway/test/streams/stream-kit.js'
import { CERTIFICATE } from './certificate.js'
import { expectIdle, startGateway, type Written } from './gateway-kit.js'
import { startHttpVendor } from './http1-kit.js'

type MockOptions = Parameters<typeof startGateway>[1]

const TLS = { cert: 'env:CERT', key: 'env:KEY' }
const ENV = { CERT: CERTIFICATE.cert, KEY: CERTIFICATE.key, ADA: 'ada-key', VENDOR: 'vendor-key' }
const BODY = JSON.stringify({ model: 'gpt', messages: [] })
const STREAMED = JSON.stringify({ model: 'gpt', messages: [], stream: true })

async function startTls(written: Written = {}, mock: MockOptions = {}) {
  const { server, ...rest } = written as { server?: object }
  const running = await startGateway({ ...rest, server: { tls: TLS, ...server } }, mock, ENV)
  const url = running.url.replace('http:', 'https:')
  const session = connect(url, { rejectUnauthorized: false })
  session.on('error', () => {})
  onTestFinished(() => session.destroy())
  await once(session, 'connect')
  return { ...running, url, session }
}

/** A client whose windows never fill, so that only TCP holds the gateway back. `stop`: it reads nothing any more. */
async function startWindowless(url: string) {
  const upstream = connectTcp(Number(new URL(url).port), '127.0.0.1')
  const relay = createServer((socket) => {
    socket.on('error', () => {})
    socket.pipe(upstream).pipe(socket)
  }).listen(0, '127.0.0.1')
  await once(relay, 'listening')
  const { port } = relay.address() as AddressInfo
  const settings = { initialWindowSize: 2 ** 30 }
  const session = connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false, settings })
  session.on('error', () => {})
  upstream.on('error', () => {})
  onTestFinished(() => {
    session.destroy()
    upstream.destroy()
    relay.close()
  })
  await once(session, 'connect')
  session.setLocalWindowSize(2 ** 30)
  return { session, stop: () => upstream.unpipe().pause() }
}

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The stream was reset instead of ended. */
  readonly isReset: boolean
}

function post(session: ClientHttp2Session, headers: OutgoingHttpHeaders = {}): ClientHttp2Stream {
  const usual = {
    ':method': 'POST',
    ':path': '/v1/chat/completions',
    'content-type': 'application/json',
  }
  return session.request({ ...usual, ...headers }, { endStream: false })
}

async function answerTo(stream: ClientHttp2Stream, body?: string): Promise<Answer> {
  let headers: IncomingHttpHeaders = {}
  let text = ''
  stream.on('response', (received) => {
    headers = received
  })
  stream.on('data', (chunk) => {
    text += chunk
  })
  stream.on('error', () => {})
  if (body !== undefined) stream.end(body)
  await new Promise((resolve) => stream.once('close', resolve))
  const status = Number((headers as Record<string, unknown>)[':status'])
  return { status, headers, text, isReset: stream.rstCode !== 0 }
}

describe('HTTP/2 over TLS', () => {
  it('requests of one connection are answered at once and recorded', async () => {
    const { session, records, vendor } = await startTls()
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => answerTo(post(session), BODY)),
    )
    for (const { status, headers, text } of answers) {
      expect(status).toBe(200)
      expect(headers['spillway-decision']).toMatch(/^admitted/)
      expect(headers.connection).toBeUndefined()
      expect(JSON.parse(text).usage).toBeDefined()
    }
    expect(vendor.counts.arrived).toBe(20)
    await until('they are recorded', () => records.length === 20)
    expect(new Set(records.map(({ status }) => status))).toEqual(new Set([200]))
  })

  it('a stream of events arrives whole, and a broken one ends with an error event', async () => {
    const { session } = await startTls({}, { knobs: { tokens: 5 } })
    const whole = await answerTo(post(session), STREAMED)
    expect(whole).toMatchObject({ status: 200, isReset: false })
    expect(whole.text).toContain('[DONE]')
    const headers = { 'x-mock': JSON.stringify({ tokens: 50, cutAfter: 3 }) }
    const cut = await answerTo(post(session, headers), STREAMED)
    expect(cut.isReset).toBe(false)
    expect(cut.text).toContain('VENDOR_ERROR')
    expect(cut.text).not.toContain('[DONE]')
  })

  it('the vendor receives no pseudo header and no header of HTTP/2', async () => {
    const { session, vendor } = await startTls()
    await answerTo(post(session, { 'x-kept': 'yes', te: 'trailers' }), BODY)
    const [call] = vendor.calls as unknown as { headers: Record<string, unknown> }[]
    expect(call?.headers['x-kept']).toBe('yes')
    expect(Object.keys(call?.headers ?? {}).filter((name) => /^(:|te$)/.test(name))).toEqual([])
  })

  it('a vendor that repeats headers or names one like a property of objects is answered', async () => {
    const vendor = await startHttpVendor((_, response) => {
      const once = ['x-content-type-options', 'nosniff', 'Retry-After', '1']
      const twice = [...once, ...once, 'x-many', 'a', 'x-many', 'b', 'constructor', 'c']
      response.writeHead(200, [...twice, '__proto__', 'd']).end('fine')
    })
    const { session, failures } = await startTls({
      vendors: { echo: { protocol: 'http', url: vendor.url } },
      routes: [{ path: '/echo*', vendor: 'echo' }],
    })
    const { status, headers, text } = await answerTo(post(session, { ':path': '/echo' }), BODY)
    expect([status, text]).toEqual([200, 'fine'])
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'retry-after': '1',
      'x-many': 'a, b',
      constructor: 'c',
    })
    expect(failures).toEqual([])
  })

  it('a status of the vendor that HTTP/2 does not have is answered as 502', async () => {
    const vendor = await startHttpVendor((_, response) => void response.writeHead(799).end('odd'))
    const { session, failures } = await startTls({
      vendors: { echo: { protocol: 'http', url: vendor.url } },
      routes: [{ path: '/echo*', vendor: 'echo' }],
    })
    const { status, text } = await answerTo(post(session, { ':path': '/echo' }), BODY)
    expect([status, text, failures]).toEqual([502, 'odd', []])
  })

  it.each<[string, OutgoingHttpHeaders, string | undefined, number]>([
    ['two hosts', { ':authority': 'a', host: 'b' }, BODY, 400],
    ['a body on GET', { ':method': 'GET' }, 'x', 400],
    ['a path with dots', { ':path': '/v1/../up' }, BODY, 400],
    ['a long path', { ':path': `/${'x'.repeat(9_000)}` }, BODY, 414],
    ['an unknown method', { ':method': 'TRACE' }, undefined, 501],
    ['an unknown expectation', { expect: 'wonders' }, BODY, 417],
    ['invalid JSON', {}, '{"model":', 400],
  ])(
    'a request with %s is refused and never reaches a vendor',
    async (_, headers, body, status) => {
      const { session, records, vendor } = await startTls()
      const stream = post(session, headers)
      const answer = await answerTo(stream, body ?? '')
      expect(answer.status).toBe(status)
      await until('it is recorded', () => records.length === 1)
      expect(records[0]?.status).toBe(status)
      expect(vendor.counts.arrived).toBe(0)
      // The connection is still good.
      expect((await answerTo(post(session), BODY)).status).toBe(200)
    },
  )

  it('a request without a known key is refused before its body arrives', async () => {
    const { session, vendor } = await startTls({
      vendors: { openai: { protocol: 'openai', url: 'http://127.0.0.1:1', key: 'env:VENDOR' } },
      callers: [{ key: 'env:ADA', user: 'ada' }],
    })
    const stream = post(session, { authorization: 'Bearer wrong', 'content-length': '100' })
    const { status } = await answerTo(stream)
    expect(status).toBe(401)
    expect(vendor.counts.arrived).toBe(0)
  })

  it('a client that resets its stream ends the call', async () => {
    const running = await startTls({}, { knobs: { latencyMs: 60_000 } })
    const stream = post(running.session)
    const answer = answerTo(stream, BODY)
    await until('it is asked', () => running.vendor.counts.arrived === 1)
    stream.close(8)
    await answer
    await until('it is recorded', () => running.records.length === 1)
    expect(running.records[0]).toMatchObject({ status: 499, code: 'HUNG_UP' })
    await expectIdle(running)
  })

  it('a client with an unfinished body gets a 408', async () => {
    const { session, vendor, records } = await startTls({ server: { bodyMs: 300 } })
    const stream = post(session)
    stream.write('{"model":')
    expect((await answerTo(stream)).status).toBe(408)
    await until('it is recorded', () => records.length === 1)
    expect(records[0]?.code).toBe('SLOW_BODY')
    expect(vendor.counts.arrived).toBe(0)
  })

  it('a client that does not read its answer loses it, and its call is aborted', async () => {
    const running = await startTls(
      { server: { unreadMs: 500 } },
      { knobs: { tokens: 1_000_000, tokenMs: 0 } },
    )
    const stream = post(running.session)
    stream.on('error', () => {})
    stream.end(STREAMED)
    await until('it is given up', () => running.records.length === 1)
    expect(running.records[0]).toMatchObject({ code: 'HUNG_UP', end: 'aborted' })
    await expectIdle(running)
  })

  it('a client that stops reading its connection loses its answer as well', async () => {
    const vendor = await startHttpVendor((_, response) => void response.end(Buffer.alloc(5e7)))
    const { url, records } = await startTls({
      server: { unreadMs: 500 },
      vendors: { echo: { protocol: 'http', url: vendor.url } },
      routes: [{ path: '/echo*', vendor: 'echo' }],
    })
    const client = await startWindowless(url)
    const stream = post(client.session, { ':path': '/echo' })
    stream.on('error', () => {})
    stream.on('response', () => client.stop())
    stream.end(BODY)
    await until('it is given up', () => records.length === 1)
    expect(records[0]).toMatchObject({ code: 'HUNG_UP', end: 'aborted' })
  })

  it('a connection that carries only health checks stays open', async () => {
    const { session, url } = await startTls({ server: { headersMs: 300 } })
    const check = () => session.request({ ':path': '/health/live' })
    expect((await answerTo(check())).status).toBe(200)
    // The gateway closes a connection without a request after headersMs.
    const unused = connect(url, { rejectUnauthorized: false })
    unused.on('error', () => {})
    await once(unused, 'close')
    expect((await answerTo(check())).status).toBe(200)
  })

  it('an idle connection is closed', async () => {
    const { session } = await startTls({ server: { idleMs: 300 } })
    await answerTo(post(session), BODY)
    await expect.poll(() => session.closed || session.destroyed).toBe(true)
  })

  it('running requests are answered while the gateway drains', async () => {
    const { session, gateway, vendor } = await startTls(
      { drain: { graceMs: '20s' } },
      { knobs: { tokens: 20, tokenMs: 20 } },
    )
    const answer = answerTo(post(session), STREAMED)
    await until('it is asked', () => vendor.counts.arrived === 1)
    const closed = gateway.close()
    const { text, isReset } = await answer
    expect(text).toContain('[DONE]')
    expect(isReset).toBe(false)
    await closed
    await until('the connection is closed', () => session.closed)
  })
})

describe('HTTP/1.1 over TLS', () => {
  it('a client without HTTP/2 is served on the same port', async () => {
    const { url, vendor } = await startTls()
    const agent = new Agent({ rejectUnauthorized: false, keepAlive: true })
    onTestFinished(() => agent.destroy())
    for (let i = 0; i < 2; i++) {
      const request = httpsRequest(`${url}/v1/chat/completions`, { method: 'POST', agent })
      request.setHeader('content-type', 'application/json').end(BODY)
      const [response] = (await once(request, 'response')) as [import('node:http').IncomingMessage]
      expect([response.statusCode, response.httpVersion]).toEqual([200, '1.1'])
      response.resume()
      await once(response, 'end')
    }
    expect(vendor.counts.arrived).toBe(2)
  })

  it('a client that never begins its handshake is disconnected when the gateway closes', async () => {
    const { url, gateway } = await startTls({ server: { headersMs: '10m' } })
    const socket = connectTcp(Number(new URL(url).port), '127.0.0.1').resume()
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => {})
    await once(socket, 'connect')
    // A connection that was not accepted yet would be reset at once. They are accepted in order.
    const later = connect(url, { rejectUnauthorized: false })
    later.on('error', () => {})
    await once(later, 'connect')
    await gateway.close({ graceMs: 0, delayMs: 0 })
    await expect.poll(() => socket.closed).toBe(true)
  })

  it('bytes that are not TLS get no answer', async () => {
    const { url } = await startTls()
    const { port } = new URL(url)
    const request = httpRequest({ port, host: '127.0.0.1' }).end()
    const [error] = await once(request, 'error')
    expect(error).toBeInstanceOf(Error)
  })
})

describe('Unix socket', () => {
  function socketPath(): string {
    const folder = mkdtempSync(join(tmpdir(), 'gateway-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    return join(folder, 'gateway.sock')
  }

  const start = (path: string) =>
    startGateway({ listen: `unix:${path}`, port: undefined, host: undefined })

  async function chat(socketPath: string): Promise<number | undefined> {
    const request = httpRequest({ socketPath, path: '/v1/chat/completions', method: 'POST' })
    request.setHeader('content-type', 'application/json').end(BODY)
    const [response] = (await once(request, 'response')) as [import('node:http').IncomingMessage]
    response.resume()
    return response.statusCode
  }

  it('requests on a Unix socket are answered', async () => {
    const path = socketPath()
    const { vendor } = await start(path)
    expect(await Promise.all([chat(path), chat(path)])).toEqual([200, 200])
    expect(vendor.counts.arrived).toBe(2)
  })

  it('a socket that a killed process left behind is replaced', async () => {
    const path = socketPath()
    const before = createServer().listen(path)
    await once(before, 'listening')
    // Its file stays, as after a kill.
    const copy = `${path}.copy`
    const { linkSync, renameSync } = await import('node:fs')
    linkSync(path, copy)
    await new Promise((resolve) => before.close(resolve))
    renameSync(copy, path)
    await start(path)
    expect(await chat(path)).toBe(200)
  })

  it('a socket that another process listens on is not replaced', async () => {
    const path = socketPath()
    const other = createServer().listen(path)
    await once(other, 'listening')
    onTestFinished(() => void other.close())
    await expect(start(path)).rejects.toMatchObject({ code: 'EADDRINUSE' })
  })

  it('a file that is not a socket is not replaced', async () => {
    const path = socketPath()
    writeFileSync(path, 'precious')
    await expect(start(path)).rejects.toMatchObject({ code: 'EADDRINUSE' })
  })
})
