/** Uploads that a gateway refuses while they are sent, and clients that send them. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, request as httpRequest } from 'node:http'
import type { ClientHttp2Session } from 'node:http2'
import { request as httpsRequest } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { createRandom } from 'spillway/testing'
import { onTestFinished } from 'vitest'
import { until } from '../../spillway/test/streams/stream-kit.js'
import { CERTIFICATE } from './certificate.js'
import { startGateway } from './gateway-kit.js'
import { connectTo, statusesIn } from './security/raw.js'

export const MB = 1_048_576
export const CHUNK = Buffer.alloc(65_536, 'x')
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

export async function startRefusingGateway(listener: Listener) {
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

export function sent(stream: Writable, chunk: Buffer): Promise<void> {
  return new Promise((resolve) => stream.write(chunk, () => resolve()))
}

type Status = number | string

/** Sends an upload. Returns the status of its answer, or an error. */
type Client = (url: string, refusal: Refusal) => Promise<Status>

export const withNode: Client = async (url, refusal) => {
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
export function rawClient({ late }: { late: boolean }): Client {
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

export const CLIENTS: Readonly<Record<string, Client>> = {
  'node:http': withNode,
  fetch: withFetch,
  'a socket that is read at once': rawClient({ late: false }),
  'a socket that is read after the upload': rawClient({ late: true }),
}

/** All uploads share one connection. */
export function http2Client(session: ClientHttp2Session): Client {
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

/** Uploads `times` bodies for each refusal, a few at once. Returns the unexpected results. */
export async function surprises(url: string, client: Client, times: number): Promise<string[]> {
  const found: string[] = []
  for (const [name, refusal] of Object.entries(REFUSALS)) {
    const statuses = await Promise.all(Array.from({ length: times }, () => client(url, refusal)))
    for (const status of statuses) {
      if (status !== refusal.status) found.push(`${name}: ${status}`)
    }
  }
  return found
}
