/** A gateway on each kind of listener, and a client for it that keeps its connection. */
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { type ClientHttp2Session, connect } from 'node:http2'
import { request as httpsRequest, Agent as TlsAgent } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { CERTIFICATE } from '../certificate.js'
import { type RunningGateway, startGateway, type Written } from '../gateway-kit.js'

export const HTTP1_LISTENERS = ['HTTP/1.1', 'HTTP/1.1 over TLS', 'a Unix socket'] as const
export const LISTENERS = [...HTTP1_LISTENERS, 'HTTP/2 over TLS'] as const
export type Listener = (typeof LISTENERS)[number]

const TLS = { server: { tls: { cert: 'env:CERT', key: 'env:KEY' } } }
const ENV = { CERT: CERTIFICATE.cert, KEY: CERTIFICATE.key }

/** `url`: as `connectTo` takes it. */
export async function startOn(listener: Listener, written: Written = {}): Promise<RunningGateway> {
  if (listener === 'HTTP/1.1') return startGateway(written)
  if (listener === 'a Unix socket') {
    const folder = mkdtempSync(join(tmpdir(), 'gateway-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const path = join(folder, 'gateway.sock')
    const listen = { listen: `unix:${path}`, port: undefined, host: undefined }
    return { ...(await startGateway({ ...written, ...listen })), url: `unix:${path}` }
  }
  const running = await startGateway({ ...written, ...TLS }, {}, ENV)
  return { ...running, url: running.url.replace('http:', 'https:') }
}

export interface TestRequest {
  readonly path: string
  readonly headers: Readonly<Record<string, string | number>>
  readonly chunks: readonly Buffer[]
}

export interface Answered {
  /** 0: there was no answer, only a reset stream of HTTP/2. */
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
}

/** Sends POST requests, one after the other on one connection unless the gateway closes it. */
export function clientOf(
  listener: Listener,
  url: string,
): (testRequest: TestRequest) => Promise<Answered> {
  if (listener === 'HTTP/2 over TLS') return http2Client(url)
  const isTls = listener === 'HTTP/1.1 over TLS'
  const options = { keepAlive: true, maxSockets: 1 }
  const agent = isTls ? new TlsAgent({ ...options, rejectUnauthorized: false }) : new Agent(options)
  onTestFinished(() => agent.destroy())
  const { hostname, port, pathname } = new URL(url)
  const address = listener === 'a Unix socket' ? { socketPath: pathname } : { hostname, port }
  const send = isTls ? httpsRequest : httpRequest
  return async ({ path, headers, chunks }) => {
    const request = send({ ...address, path, headers, method: 'POST', agent })
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      request.on('response', resolve).on('error', reject)
    })
    for (const chunk of chunks) request.write(chunk)
    request.end()
    const response = await answered
    response.resume()
    await new Promise((resolve) => response.once('close', resolve))
    return { status: response.statusCode ?? 0, headers: response.headers }
  }
}

function http2Client(url: string): (testRequest: TestRequest) => Promise<Answered> {
  let session: ClientHttp2Session | undefined
  onTestFinished(() => session?.destroy())
  return async ({ path, headers, chunks }) => {
    if (session === undefined || session.closed || session.destroyed) {
      session = connect(url, { rejectUnauthorized: false })
      session.on('error', () => {})
    }
    const stream = session.request({ ...headers, ':method': 'POST', ':path': path })
    let answer: Answered = { status: 0, headers: {} }
    stream.on('response', (received) => {
      answer = { status: received[':status'] ?? 0, headers: received }
    })
    stream.on('error', () => {}).resume()
    for (const chunk of chunks) stream.write(chunk)
    stream.end()
    await new Promise<void>((resolve) => stream.once('end', resolve).once('close', resolve))
    return answer
  }
}
