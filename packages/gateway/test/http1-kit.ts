/** A client that sends exact bytes, and a vendor whose answers the test provides. */
import { once } from 'node:events'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { until } from '../../spillway/test/streams/stream-kit.js'
import { startGateway, type Written } from './gateway-kit.js'
import { connectTo, statusesIn } from './security/raw.js'

export class Talk {
  readonly socket: Socket
  text = ''
  ended = false
  closed = false

  constructor(url: string) {
    this.socket = connectTo(url)
    this.socket.setNoDelay(true)
    this.socket.on('data', (chunk) => {
      this.text += chunk.toString('latin1')
    })
    this.socket.on('end', () => {
      this.ended = true
    })
    this.socket.on('close', () => {
      this.closed = true
    })
    this.socket.on('error', () => {})
    onTestFinished(() => void this.socket.destroy())
  }

  /** A byte for each letter; resolves when it has left. */
  send(text: string): Promise<void> {
    return new Promise((resolve) => this.socket.write(Buffer.from(text, 'latin1'), () => resolve()))
  }

  /** Waits until this number of answers has begun and the last one contains `last`. */
  async receives(answers: number, last = ''): Promise<void> {
    await until(`${answers} answers (${this.text})`, () => this.statuses.length >= answers)
    await until(`the last ends (${this.text.slice(-500)})`, () => this.text.includes(last))
  }

  get statuses(): number[] {
    return statusesIn(this.text)
  }
}

export interface HttpVendor {
  readonly url: string
  readonly requests: {
    url: string
    method: string
    headers: IncomingMessage['headers']
    body: string
  }[]
}

export async function startHttpVendor(
  answer: (
    request: HttpVendor['requests'][number],
    response: ServerResponse,
  ) => void | Promise<void> = ({ url }, response) => void response.end(`you asked for ${url}`),
): Promise<HttpVendor> {
  const requests: HttpVendor['requests'] = []
  const listener: RequestListener = async (request, response) => {
    const { url = '', method = '', headers } = request
    let body = ''
    try {
      for await (const chunk of request.setEncoding('latin1')) body += chunk
    } catch {
      return
    }
    const one = { url, method, headers, body }
    requests.push(one)
    await answer(one, response)
  }
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close().closeAllConnections())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}

/** Requests below `/echo` go to that vendor. */
export async function startEchoGateway(vendor: HttpVendor, written: Written = {}) {
  const file = (more: Written): Written => ({
    vendors: { echo: { protocol: 'http', url: vendor.url } },
    routes: [{ path: '/echo*', vendor: 'echo' }],
    ...more,
  })
  const running = await startGateway(file(written))
  return { ...running, change: (more: Written) => running.rewrite(file(more)), file }
}

export function get(path: string, headers = ''): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\n${headers}\r\n`
}

export function post(path: string, body: string, headers = ''): string {
  return `POST ${path} HTTP/1.1\r\nHost: a\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`
}
