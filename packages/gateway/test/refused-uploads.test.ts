// test-group: sockets

/** Refusals while the client still sends its body: the client reads the answer, not a reset of its connection. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, request as httpRequest } from 'node:http'
import { type ClientHttp2Session, connect } from 'node:http2'
import { request as httpsRequest } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { createRandom } from 'spillway/testing'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { until } from '../../spillway/test/streams/stream-kit.js'
import { CERTIFICATE } from './certificate.js'
import { startGateway } from './gateway-kit.js'
import { get, startEchoGateway, startHttpVendor, Talk } from './http1-kit.js'
import { connectTo, statusesIn } from './security/raw.js'

const MB = 1_048_576
const CHUNK = Buffer.alloc(65_536, 'x')
const random = createRandom(1)

interface Refusal {
  readonly path: string
  readonly status: number
  readonly key: string
  readonly megabytes: number
  /** With a Content-Length; otherwise in chunks of unknown total length. */
  readonly isAnnounced: boolean
}

const MAX_MEGABYTES = 3

const REFUSALS: Readonly<Record<string, Refusal>> = {
  'too large by its Content-Length': refusal('/echo', 413, { megabytes: 4 }),
  'too large after some chunks': refusal('/echo', 413, { megabytes: 4, isAnnounced: false }),
  'a JSON body that is too large': refusal('/v1/chat/completions', 413, { megabytes: 4 }),
  'an unknown key': refusal('/echo', 401, { key: 'wrong' }),
  'no route': refusal('/nowhere', 404, { isAnnounced: false }),
  'an open circuit': refusal('/isolated', 503),
  'an early answer of the vendor': refusal('/early', 403),
}

function refusal(path: string, status: number, more: Partial<Refusal> = {}): Refusal {
  return { path, status, key: 'ada-key', megabytes: 2, isAnnounced: true, ...more }
}

type Listener = 'HTTP/1.1' | 'TLS' | 'a Unix socket'

const TLS = { cert: 'env:CERT', key: 'env:KEY' }
const ENV = { CERT: CERTIFICATE.cert, KEY: CERTIFICATE.key, ADA: 'ada-key' }

/** Reads the body before it answers, except on `/early`. */
async function startEcho(): Promise<string> {
  const server = createServer((request, response) => {
    const answer = () => void response.writeHead(403).end('no')
    if (request.url?.startsWith('/early')) answer()
    else request.resume().on('end', answer)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close().closeAllConnections())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function start(listener: Listener) {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'gateway.sock')
  const echo = { protocol: 'http', url: await startEcho() }
  const isolated = { ...echo, breaker: { failureRate: 0.5 } }
  const openai = { ...echo, protocol: 'openai' }
  const running = await startGateway(
    {
      vendors: { echo, isolated, openai },
      routes: [
        { path: '/echo*', vendor: 'echo' },
        { path: '/early*', vendor: 'echo' },
        { path: '/isolated*', vendor: 'isolated' },
        { vendor: 'openai' },
      ],
      callers: [{ user: 'ada', key: 'env:ADA' }],
      body: { keepBytes: '64kb', maxBytes: `${MAX_MEGABYTES}mb` },
      ...(listener === 'TLS' && { server: { tls: TLS } }),
      ...(listener === 'a Unix socket' && {
        listen: `unix:${path}`,
        port: undefined,
        host: undefined,
      }),
    },
    {},
    ENV,
  )
  const isolate = { action: 'isolate', guard: 'isolated', forMs: '10m', by: 'ada' }
  await fetch(`${running.adminUrl}/actions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(isolate),
  })
  const urls: Record<Listener, string> = {
    'HTTP/1.1': running.url,
    TLS: running.url.replace('http:', 'https:'),
    'a Unix socket': `unix:${path}`,
  }
  return { ...running, url: urls[listener] }
}

/** Pauses between some of the chunks, so that the refusal meets the upload at any point. */
async function* chunksOf({ megabytes }: Refusal): AsyncGenerator<Buffer> {
  for (let sent = 0; sent < megabytes * MB; sent += CHUNK.length) {
    if (random() < 0.2) await new Promise((resolve) => setTimeout(resolve, 3 * random()))
    yield CHUNK
  }
}

function headersOf({ key, megabytes, isAnnounced }: Refusal): Record<string, string> {
  return {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    ...(isAnnounced && { 'content-length': String(megabytes * MB) }),
  }
}

function sent(stream: Writable, chunk: Buffer): Promise<void> {
  return new Promise((resolve) => stream.write(chunk, () => resolve()))
}

type Status = number | string

/** Sends an upload and returns the status of its answer, or what happened instead. */
type Client = (url: string, refusal: Refusal) => Promise<Status>

const withNode: Client = async (url, refusal) => {
  const ask = url.startsWith('https:') ? httpsRequest : httpRequest
  const request = ask(`${url}${refusal.path}`, {
    method: 'POST',
    headers: headersOf(refusal),
    agent: false,
    rejectUnauthorized: false,
  } as object)
  const answer = new Promise<Status>((resolve) => {
    request.on('response', async (response) => {
      try {
        for await (const _ of response);
        resolve(response.statusCode ?? 0)
      } catch (error) {
        resolve(`an incomplete ${response.statusCode}: ${error}`)
      }
    })
    // The answer may have arrived before.
    request.on('error', (error) => setImmediate(() => resolve(String(error))))
  })
  const isClosed = new Promise((resolve) => request.once('close', resolve))
  let isAnswered = false
  void answer.then(() => {
    isAnswered = true
  })
  for await (const chunk of chunksOf(refusal)) {
    if (isAnswered || request.destroyed) break
    await Promise.race([sent(request, chunk), isClosed])
  }
  request.end()
  return answer
}

const withFetch: Client = async (url, refusal) => {
  try {
    const response = await fetch(`${url}${refusal.path}`, {
      method: 'POST',
      headers: headersOf(refusal),
      body: ReadableStream.from(chunksOf(refusal)),
      duplex: 'half',
    } as RequestInit)
    await response.text()
    return response.status
  } catch (error) {
    return String((error as Error).cause ?? error)
  }
}

/** `late`: begins to read when it has sent everything. */
function rawClient({ late }: { late: boolean }): Client {
  return async (url, refusal) => {
    const socket = connectTo(url)
    let text = ''
    let end: string | undefined
    const read = () => {
      socket.on('data', (chunk) => {
        text += chunk
      })
    }
    socket.on('error', (error) => {
      end = String(error)
    })
    const isClosed = new Promise<void>((resolve) => {
      socket.on('close', () => {
        end ??= 'closed'
        resolve()
      })
    })
    if (!late) read()
    const headers = Object.entries({ host: 'a', ...headersOf(refusal) })
    if (!refusal.isAnnounced) headers.push(['transfer-encoding', 'chunked'])
    const head = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
    socket.write(`POST ${refusal.path} HTTP/1.1\r\n${head}\r\n`)
    for await (const chunk of chunksOf(refusal)) {
      if (end !== undefined) break
      const framed = refusal.isAnnounced
        ? [chunk]
        : [`${chunk.length.toString(16)}\r\n`, chunk, '\r\n']
      for (const piece of framed.slice(0, -1)) socket.write(piece)
      await Promise.race([sent(socket, framed.at(-1) as Buffer), isClosed])
    }
    if (!refusal.isAnnounced && end === undefined) socket.write('0\r\n\r\n')
    if (late) read()
    await until(`an answer (${end})`, () => end !== undefined || text.includes('\r\n\r\n'))
    socket.destroy()
    return statusesIn(text)[0] ?? `no answer: ${end}`
  }
}

const CLIENTS: Readonly<Record<string, Client>> = {
  'node:http': withNode,
  fetch: withFetch,
  'a socket that is read at once': rawClient({ late: false }),
  'a socket that is read after the upload': rawClient({ late: true }),
}

/** All uploads share one connection. */
function http2Client(session: ClientHttp2Session): Client {
  return async (_, refusal) => {
    const { path, key, isAnnounced, megabytes } = refusal
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      ...(isAnnounced && { 'content-length': megabytes * MB }),
    })
    let status: Status = 'no answer'
    stream.on('response', (headers) => {
      status = headers[':status'] ?? 0
    })
    stream.on('error', (error) => {
      status = `${status} with ${error}`
    })
    stream.resume()
    // Node's client does not close a stream while one of its writes waits for the server's window.
    const hasEnded = new Promise<void>((resolve) =>
      stream.once('end', resolve).once('close', resolve),
    )
    for await (const chunk of chunksOf(refusal)) {
      if (stream.closed || stream.destroyed) break
      await Promise.race([sent(stream, chunk), hasEnded])
    }
    stream.end()
    await hasEnded
    return status
  }
}

/** Uploads `times` bodies for each refusal, a few at once, and returns what did not end as it should. */
async function surprises(url: string, client: Client, times: number): Promise<string[]> {
  const found: string[] = []
  for (const [name, refusal] of Object.entries(REFUSALS)) {
    const statuses = await Promise.all(Array.from({ length: times }, () => client(url, refusal)))
    for (const status of statuses) {
      if (status !== refusal.status) found.push(`${name}: ${status}`)
    }
  }
  return found
}

describe('uploads that are refused while they are sent', () => {
  it.each(Object.entries(CLIENTS))(
    'every one of 56 uploads with %s receives its status over HTTP/1.1',
    async (_, client) => {
      const { url, failures } = await start('HTTP/1.1')
      expect(await surprises(url, client, 8)).toEqual([])
      expect(failures).toEqual([])
    },
  )

  it.each([
    ['node:https', withNode],
    ['a socket that is read after the upload', rawClient({ late: true })],
  ])('every one of 28 uploads with %s receives its status over TLS', async (_, client) => {
    const { url, failures } = await start('TLS')
    expect(await surprises(url, client, 4)).toEqual([])
    expect(failures).toEqual([])
  })

  it('every one of 28 uploads with a socket that is read after the upload receives its status over a Unix socket', async () => {
    const { url, failures } = await start('a Unix socket')
    expect(await surprises(url, rawClient({ late: true }), 4)).toEqual([])
    expect(failures).toEqual([])
  })

  it('every one of 56 uploads on one connection of HTTP/2 receives its status', async () => {
    const { url, failures } = await start('TLS')
    const session = connect(url, { rejectUnauthorized: false })
    onTestFinished(() => session.destroy())
    expect(await surprises(url, http2Client(session), 8)).toEqual([])
    expect(failures).toEqual([])
  })

  it('a refused HEAD request with a body receives its status while the body is sent', async () => {
    const { url } = await start('HTTP/1.1')
    const talk = new Talk(url)
    await talk.say(`HEAD /echo HTTP/1.1\r\nHost: a\r\nContent-Length: ${MB}\r\n\r\nthe beginning`)
    await until('it is closed', () => talk.closed)
    expect(talk.statuses).toEqual([400])
  })

  it('an upload that is refused behind a running answer waits for the end of that answer', async () => {
    let answer = () => {}
    const vendor = await startHttpVendor((_, response) => {
      response.write('the beginning, ')
      answer = () => void response.end('the end')
    })
    const { url } = await startEchoGateway(vendor, { body: { maxBytes: '1mb' } })
    const talk = new Talk(url)
    await talk.say(get('/echo/1'))
    await talk.hears(1, 'the beginning')
    await talk.say(`POST /echo/2 HTTP/1.1\r\nHost: a\r\nContent-Length: ${2 * MB}\r\n\r\n`)
    for (let bytes = 0; bytes < MB; bytes += CHUNK.length) await talk.say(CHUNK.toString())
    expect(talk.statuses).toEqual([200])
    answer()
    await until('it is closed', () => talk.closed)
    expect(talk.statuses).toEqual([200, 413])
    expect(talk.text).toContain('the end')
  })

  it('a refused request with a small body leaves its connection usable', async () => {
    const { url } = await start('HTTP/1.1')
    const talk = new Talk(url)
    const head = 'POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n'
    await talk.say(`${head}01234`)
    await talk.hears(1, 'NOT_FOUND')
    await talk.say(`56789${head}0123456789`)
    await talk.hears(2)
    expect(talk.statuses).toEqual([404, 404])
    expect(talk.closed).toBe(false)
  })

  it.each(['HTTP/1.1', 'TLS'] as const)(
    'headers that are too large are answered with 431 over %s while they are sent',
    async (listener) => {
      const { url } = await start(listener)
      for (let i = 0; i < 10; i++) {
        const socket = connectTo(url)
        socket.on('error', () => {})
        let text = ''
        // It begins to read when it has sent everything.
        await sent(socket, Buffer.from(`GET /echo HTTP/1.1\r\nHost: a\r\nLong: `))
        for (let sentBytes = 0; sentBytes < 2 * MB; sentBytes += CHUNK.length) {
          await sent(socket, CHUNK)
        }
        socket.on('data', (chunk) => {
          text += chunk
        })
        await once(socket, 'close')
        expect(statusesIn(text)).toEqual([431])
      }
    },
  )

  it('bodies held at once stay below maxTotalBytes, and a request beyond it is a 503 with Retry-After', async () => {
    let answerAll = () => {}
    const mayAnswer = new Promise<void>((resolve) => {
      answerAll = resolve
    })
    const vendor = await startHttpVendor(async (_, response) => {
      await mayAnswer
      response.setHeader('content-type', 'application/json').end('{}')
    })
    const { url, failures } = await startGateway({
      vendors: { openai: { protocol: 'openai', url: vendor.url, concurrency: { limit: 100 } } },
      routes: [{ vendor: 'openai' }],
      body: { maxBytes: '1mb', maxTotalBytes: '4mb' },
    })
    const content = 'x'.repeat(MB - 1_000)
    const upload = async () => {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'gpt', messages: [{ role: 'user', content }] }),
      })
      return [response.status, response.headers.get('retry-after'), await response.text()] as const
    }
    const held = Array.from({ length: 4 }, upload)
    await until('four are held', () => vendor.asked.length === 4)
    const refused = await Promise.all(Array.from({ length: 20 }, upload))
    for (const [status, retryAfter, text] of refused) {
      expect([status, retryAfter]).toEqual([503, '1'])
      expect(text).toContain('reached body.maxTotalBytes (4194304 bytes)')
    }
    answerAll()
    expect((await Promise.all(held)).map(([status]) => status)).toEqual([200, 200, 200, 200])
    // The memory of all of them was given back.
    for (let i = 0; i < 8; i++) expect((await upload())[0]).toBe(200)
    expect(failures).toEqual([])
  })

  it('the memory of a compressed body is given back if its client disconnects while it is decoded', async () => {
    const vendor = await startHttpVendor((_, response) => {
      response.setHeader('content-type', 'application/json').end('{}')
    })
    const { url } = await startGateway({
      vendors: { openai: { protocol: 'openai', url: vendor.url } },
      routes: [{ vendor: 'openai' }],
      body: { maxBytes: '1mb', maxTotalBytes: '1mb' },
    })
    // It is received as one chunk and decoded in about sixty.
    const parts = Array.from({ length: 1_200 }, (_, index) => `${index}${'x'.repeat(800)}`)
    const text = JSON.stringify({ model: 'gpt', messages: [{ content: parts.join('') }] })
    const body = gzipSync(text)
    const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: ${body.length}\r\n\r\n`
    for (let i = 0; i < 60; i++) {
      const socket = connectTo(url)
      socket.on('error', () => {})
      await sent(socket, Buffer.concat([Buffer.from(head), body]))
      await new Promise((resolve) => setTimeout(resolve, i % 4))
      socket.resetAndDestroy()
      await once(socket, 'close')
    }
    const upload = () =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: text,
      })
    await vi.waitFor(async () => expect((await upload()).status).toBe(200), 5_000)
  })

  it('a request that follows a refused upload on its connection is not sent to the vendor', async () => {
    const vendor = await startHttpVendor((_, response) => {
      response.setHeader('content-type', 'application/json').end('{}')
    })
    const { url, records } = await startGateway({
      vendors: { openai: { protocol: 'openai', url: vendor.url } },
      routes: [{ vendor: 'openai' }],
      body: { maxBytes: '100kb' },
    })
    const post = (length: number) =>
      `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`
    const socket = connectTo(url)
    // It goes on sending after the end of the answer.
    socket.allowHalfOpen = true
    socket.on('error', () => {})
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    await sent(socket, Buffer.from(post(200_000)))
    await once(socket, 'end')
    expect(statusesIn(text)).toEqual([413])
    const closed = once(socket, 'close')
    const body = JSON.stringify({ model: 'gpt', messages: [] })
    await sent(socket, Buffer.alloc(199_000, 'x'))
    // In one packet with the end of the first body.
    socket.end(`${'x'.repeat(1_000)}${post(body.length)}${body}`)
    await closed
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    expect(answer.status).toBe(200)
    await until('both are recorded', () => records.length >= 2)
    expect(records.map(({ status }) => status)).toEqual([413, 200])
    expect(vendor.asked).toHaveLength(1)
  })

  it('a client that stops sending receives the end of an answer whose length was not announced', async () => {
    const server = createServer((_, response) => {
      response.write('the beginning, ')
      setImmediate(() => response.end('the end'))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close().closeAllConnections())
    const vendor = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const written = { body: { keepBytes: 1_000 } }
    const { url, records } = await startEchoGateway({ url: vendor, asked: [] }, written)
    const talk = new Talk(url)
    await talk.say(
      `POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ${MB}\r\n\r\n${'x'.repeat(50_000)}`,
    )
    await until('the answer has ended', () => talk.ended)
    expect(talk.text).toMatch(/transfer-encoding: chunked/i)
    expect(talk.text).toMatch(/\r\n0\r\n\r\n$/)
    await until('it is recorded', () => records.length === 1)
    expect(records).toMatchObject([{ status: 200, code: undefined }])
  })

  it('a client that goes on sending after a malformed chunk is disconnected long before 1 GB', async () => {
    const { url } = await startEchoGateway(await startHttpVendor())
    const socket = connectTo(url)
    socket.allowHalfOpen = true
    let text = ''
    let failure: unknown
    socket.on('error', (error) => {
      failure = error
    })
    socket.on('data', (chunk) => {
      text += chunk
    })
    const head = 'POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n'
    await sent(socket, Buffer.from(head))
    await once(socket, 'end')
    expect(statusesIn(text)).toEqual([400])
    let sentBytes = 0
    const chunk = Buffer.alloc(MB, 'x')
    while (failure === undefined && sentBytes < 1_024 * MB) {
      await new Promise((resolve) => socket.write(chunk, resolve))
      sentBytes += chunk.length
    }
    expect(failure).toMatchObject({ code: expect.stringMatching(/EPIPE|ECONNRESET/) })
    expect(sentBytes).toBeGreaterThanOrEqual(64 * MB)
  })
})
